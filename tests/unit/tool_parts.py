"""A sink that keeps what it hears, a call's context without an engine, and a loop that runs a model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from copilot_nb.models import Model, Request
from copilot_nb.tools import Tool, ToolResult

CLOCK = "<current_datetime>2026-11-30T10:00:00Z</current_datetime>\n\n"


class Heard:
    """A sink; `all` is what it was told, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[str, ...]] = []
        self.any = asyncio.Event()

    def text(self, chunk: str) -> None:
        self.all.append(("text", chunk))
        self.any.set()

    def reasoning(self, chunk: str) -> None:
        self.all.append(("reasoning", chunk))
        self.any.set()

    def tool_arguments(self, call_id: str, name: str, piece: str) -> None:
        self.all.append((call_id, name, piece))
        self.any.set()


class Context:
    """What a call can reach; `steer()` does what the engine does when a person steers."""

    session_id, call_id, tool_name = "session", "call", "tool"

    def __init__(self, working_directory: str = ".") -> None:
        self.working_directory = working_directory
        self.said: list[str] = []
        self.backgrounds: list[Any] = []
        self.callbacks: list[Any] = []
        self.heard = asyncio.Event()

    def progress(self, text: str) -> None:
        self.said.append(text)
        self.heard.set()

    def when_steered(self, callback: Any) -> Any:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    def background(self, task: Any) -> None:
        self.backgrounds.append(task)

    def steer(self) -> None:
        for callback in list(self.callbacks):
            callback()


async def call(
    tool: Tool, arguments: dict[str, Any] | None = None, context: Context | None = None
) -> ToolResult:
    """Call a tool as the engine does."""
    result = tool.handler(arguments or {}, context or Context())
    return result if isinstance(result, ToolResult) else await result


async def run(
    model: Model, tools: list[Tool], messages: list[dict[str, Any]], steers: dict[int, str] | None = None
) -> list[dict[str, Any]]:
    """Turns until an answer without calls; `steers` come before the turn of that number."""
    by_name = {tool.name: tool for tool in tools}
    for turn in range(20):
        if steers and turn in steers:
            messages.append({"role": "user", "content": steers[turn]})
        reply = await model.reply(Request(messages, [tool.spec() for tool in tools]), Heard())
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.tool_calls:
            message["tool_calls"] = [
                {
                    "id": made.id,
                    "type": "function",
                    "function": {"name": made.name, "arguments": made.arguments},
                }
                for made in reply.tool_calls
            ]
        messages.append(message)
        if not reply.tool_calls:
            return messages
        results = await asyncio.gather(
            *(call(by_name[made.name], json.loads(made.arguments)) for made in reply.tool_calls)
        )
        messages += [
            {"role": "tool", "tool_call_id": made.id, "content": result.text}
            for made, result in zip(reply.tool_calls, results, strict=True)
        ]
    raise AssertionError("the model calls tools without end")
