"""Replies from data: for tests, for documentation, and to try the engine without any model.

A reply is a dict; every field may be left out:

======================= ==========================================================================
``text``                list of chunks (or one string)
``reasoning``           list of chunks
``tool_calls``          list of ``{"id", "name", "args" | "args_raw" | "args_chunks"}``
``usage``               ``{"prompt_tokens", "completion_tokens"}``; default 10 and 5, None for none
``finish``              default ``tool_calls`` or ``stop``
``gate``                wait for ``model.gate(name).set()`` before the first chunk
``gate_after_chunk``    ``{"1": name}``: wait after that text chunk
``chunk_delay_s``       seconds between text chunks
``http_error``          ``{"status", "message", "code", "headers": {"retry-after": "1"}}``
``disconnect_after_chunks``  the connection breaks after that many text chunks
``no_choices``          a stream that holds nothing
======================= ==========================================================================
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from copilot_nb.errors import ModelError, UsageError
from copilot_nb.events import JSON
from copilot_nb.models.base import ModelKind, Reply, Request, Sink, ToolCall
from copilot_nb.models.openai import retry_after
from copilot_nb.models.wire import usage_of

EXHAUSTED = "(exhausted)"


class ScriptedModel:
    """Gives the replies in order, one per request; then answers ``(exhausted)``.

    Parameters
    ----------
    replies
        Reply dicts, as the module's table says; a plain string is a reply of that text.

    Attributes
    ----------
    requests
        Every request so far, as it was when it arrived: ``{"messages", "tools", "stream"}``.
    """

    kind: ModelKind = "scripted"

    def __init__(
        self,
        replies: Iterable[Mapping[str, Any] | str],
        *,
        name: str = "scripted",
        max_prompt_tokens: int | None = None,
    ) -> None:
        self.name = name
        self.label = f"{name}: replies from data, no LLM"
        self.max_prompt_tokens = max_prompt_tokens
        self.requests: list[JSON] = []
        self._replies = [_as_reply(reply) for reply in replies]
        self._gates: dict[str, asyncio.Event] = {}
        self._arrived = asyncio.Event()

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedModel:
        """The replies of a JSON file: a list of reply dicts."""
        try:
            replies = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"Cannot read scripted replies from {str(path)!r}: {error}") from error
        if not isinstance(replies, list):
            raise UsageError(f"{str(path)!r} must hold a JSON list of replies.")
        return cls(replies, name=f"scripted:{Path(path).name}")

    def gate(self, name: str) -> asyncio.Event:
        """The event a reply waits for."""
        return self._gates.setdefault(name, asyncio.Event())

    async def wait_request(self, count: int) -> JSON:
        """Wait until that many requests have arrived; the last of them."""
        while len(self.requests) < count:
            self._arrived.clear()
            await self._arrived.wait()
        return self.requests[count - 1]

    async def reply(self, request: Request, sink: Sink) -> Reply:
        """Play the next reply."""
        taken = len(self.requests)
        script: JSON = self._replies[taken] if taken < len(self._replies) else {"text": [EXHAUSTED]}
        self.requests.append(
            {
                "messages": copy.deepcopy(request.messages),
                "tools": copy.deepcopy(request.tools),
                "stream": request.stream,
            }
        )
        self._arrived.set()
        if gate := script.get("gate"):
            await self.gate(gate).wait()
        if error := script.get("http_error"):
            raise ModelError(
                error.get("message", "scripted error"),
                status=error["status"],
                code=error.get("code"),
                retry_after=retry_after(error.get("headers", {})),
            )
        if script.get("disconnect_before_headers"):
            raise ModelError("The connection was closed before the answer.", code="stream_closed")
        if script.get("no_choices"):
            return Reply(finish=None)
        return await self._play(script, sink)

    async def _play(self, script: JSON, sink: Sink) -> Reply:
        for chunk in script.get("reasoning", ()):
            sink.reasoning(chunk)
        gates = script.get("gate_after_chunk", {})
        for number, chunk in enumerate(script.get("text", ()), 1):
            sink.text(chunk)
            await asyncio.sleep(script.get("chunk_delay_s", 0))
            if gate := gates.get(str(number)):
                await self.gate(gate).wait()
            if script.get("disconnect_after_chunks") == number:
                raise ModelError("The connection closed in the middle of the answer.", code="stream_closed")
        calls = [_tell_call(call, sink) for call in script.get("tool_calls", ())]
        usage = script.get("usage", {"prompt_tokens": 10, "completion_tokens": 5})
        return Reply(
            "".join(script.get("text", ())),
            "".join(script.get("reasoning", ())),
            calls,
            script.get("finish") or ("tool_calls" if calls else "stop"),
            usage_of(usage) if usage else None,
        )

    async def close(self) -> None:
        """Nothing to free."""


def _as_reply(reply: Mapping[str, Any] | str) -> JSON:
    script: JSON = {"text": reply} if isinstance(reply, str) else dict(reply)
    if isinstance(script.get("text"), str):
        script["text"] = [script["text"]]
    return script


def _tell_call(call: Mapping[str, Any], sink: Sink) -> ToolCall:
    if "args_chunks" in call:
        pieces = list(call["args_chunks"])
    else:
        pieces = [call["args_raw"] if "args_raw" in call else json.dumps(call.get("args", {}))]
    for piece in pieces:
        if piece:
            sink.tool_arguments(call["id"], call["name"], piece)
    return ToolCall(call["id"], call["name"], "".join(pieces))
