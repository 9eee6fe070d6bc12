"""A session on the real Copilot CLI, offline: its models come from the scripted server on loopback."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from copilot_nb.events import Event
from copilot_nb.permissions import Policy
from copilot_nb.runtimes.base import Message
from copilot_nb.runtimes.copilot.options import CopilotOptions, Provider
from copilot_nb.runtimes.copilot.runtime import CopilotRuntime
from copilot_nb.tools.base import Tool, ToolContext, ToolResult

for folder in ("conformance", "kernel"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
from model_server import ModelServer  # noqa: E402


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A scripted reply that calls one tool."""
    return {"tool_calls": [{"id": id, "name": name, "args": arguments}]}


class Rig:
    """A session on the CLI, its events in a list, and a gated tool.

    ``events`` holds what `emit` received; ``gate`` lets the tool ``gate`` return.
    """

    def __init__(self, script: list[Any], home: Path, **options: Any) -> None:
        self.model = ModelServer(script)
        self.events: list[Event] = []
        self.changed = asyncio.Event()
        self.gate = asyncio.Event()
        self.in_tool = asyncio.Event()
        self.cancelled = asyncio.Event()
        work = home.parent / "work"
        work.mkdir(exist_ok=True)
        tools = [
            Tool("gate", "waits", self._gated, skip_permission=options.pop("skip_permission", True)),
            *options.pop("more_tools", ()),
        ]
        defaults = {
            "session_id": "s1",
            "home": home,
            "policy": Policy(),
            "model": "fake-model",
            "provider": Provider(self.model.base_url, wire_api="completions"),
            "tools": tools,
            "working_directory": str(work),
        }
        sdk = {"system_message": {"mode": "replace", "content": "SYS"}}
        sdk["available_tools"] = [tool.name for tool in tools] + options.pop("builtin", [])
        self.options = CopilotOptions(**{**defaults, "sdk": sdk, **options})
        self.runtime = CopilotRuntime(self.emit, self.options)

    async def _gated(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        self.in_tool.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return ToolResult("the gate is open")

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.changed.set()

    async def send(self, prompt: str, mode: str = "enqueue", **more: Any) -> str:
        return await self.runtime.send(Message(prompt, mode, **more))

    async def until(self, ready: Callable[[], Any], seconds: float = 60) -> Any:
        async with asyncio.timeout(seconds):
            while not (value := ready()):
                self.changed.clear()
                await self.changed.wait()
        return value

    def of(self, type: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.type == type]

    async def event(self, type: str, n: int = 1) -> dict[str, Any]:
        """The data of the n-th event of a type, waited for."""
        await self.until(lambda: len(self.of(type)) >= n)
        return self.of(type)[n - 1]

    async def idle(self, n: int = 1) -> dict[str, Any]:
        return await self.event("session.idle", n)

    @property
    def lane_ops(self) -> list[tuple[Any, ...]]:
        """The ``jupyter.queue`` events: op and what tells it from its like."""
        keys = ("lane", "prompt", "position", "reason", "paused")
        return [
            (data["op"], *(data[key] for key in keys if key in data)) for data in self.of("jupyter.queue")
        ]

    async def close(self) -> None:
        self.gate.set()
        await self.runtime.close()
        self.model.close()
