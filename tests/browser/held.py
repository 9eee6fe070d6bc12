"""A session that stops where a test wants: a tool that holds until it is let go. For use in a kernel."""

from __future__ import annotations

import asyncio
import json

import copilot_nb
from copilot_nb.models.scripted import ScriptedModel

gates: dict[str, asyncio.Event] = {}


def gate(name: str) -> asyncio.Event:
    return gates.setdefault(name, asyncio.Event())


async def hold(name: str) -> str:
    """Wait until the test lets go."""
    await gate(name).wait()
    return f"{name} is done"


async def touch(path: str) -> str:
    """Something that must be allowed."""
    return f"{path} was touched"


def calls(*names: str, tool: str = "hold", key: str = "name") -> list[dict]:
    return [{"id": f"call-{name}", "name": tool, "args": {key: name}} for name in names]


def start(replies: list, session_id: str = "held", allow: tuple[str, ...] = ("hold",), **more: object):
    """A session with these replies."""
    model = ScriptedModel(replies, max_prompt_tokens=64_000)
    return copilot_nb.open_session(
        model=model, session_id=session_id, tools=[hold, touch], allow=allow, **more
    )


async def form(schema: dict) -> str:
    """Have the person fill in a form, as an MCP server does through the Copilot CLI."""
    session = copilot_nb.current()
    params = {"sessionId": session.id, "message": "About the file", "requestedSchema": schema}
    return json.dumps(await session.runtime._client.request("session.ui.elicitation", params))


def on_the_cli(url: str, *builtin: str, session_id: str = "held"):
    """A session on the real Copilot CLI, whose model is the scripted server at that address."""
    sdk = {"system_message": {"mode": "replace", "content": "-"}, "available_tools": ["form", *builtin]}
    place = {"runtime": "copilot", "base_url": url, "wire_api": "completions", "sdk": sdk}
    return copilot_nb.open_session(
        "fake-model", session_id=session_id, tools=[form], allow=("form",), **place
    )


LOREM = "The quick brown fox jumps over the lazy dog. "


def streaming(words: int = 400, delay: float = 0.02) -> dict:
    """A reply that takes its time."""
    return {"text": [f"word{n:04d} " for n in range(words)] + ["the end."], "chunk_delay_s": delay}
