"""Tool calls that were running when a log broke off (reference §13)."""

from __future__ import annotations

from collections.abc import Sequence

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON, Event
from copilot_nb.runtimes.engine import words
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.history import unfinished_calls


class OpenCalls:
    """Answers them as interrupted before the next message, or holds everything until they are answered."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ids: list[str] = []
        self._requests: dict[str, JSON] = {}
        self._late: list[JSON] = []

    def found(self, events: Sequence[Event], *, hold: bool) -> None:
        """Take them from the log of a resumed session."""
        self._ids = unfinished_calls(events)
        asked = [e.data for e in events if e.type == "external_tool.requested"]
        if hold:
            self._requests = {r["requestId"]: r for r in asked if r.get("toolCallId") in self._ids}
            self._ids = [i for i in self._ids if i not in {r["toolCallId"] for r in self._requests.values()}]

    def __bool__(self) -> bool:
        return bool(self._requests)

    def pending(self) -> list[JSON]:
        """What still waits for a result: ``{requestId, toolCallId, toolName, arguments}``."""
        names = ("requestId", "toolCallId", "toolName", "arguments")
        return [{name: request.get(name) for name in names} for request in self._requests.values()]

    def handle(self, request_id: str, result: str) -> list[JSON]:
        """Give a late result; all of them, once the last one is there."""
        request = self._requests.pop(request_id, None)
        if request is None:
            raise UsageError(f"No tool call {request_id!r} waits for a result.")
        self._late.append({"requestId": request_id, "toolCallId": request["toolCallId"], "result": result})
        for message in self._core.history.messages:
            if message.get("tool_call_id") == request["toolCallId"]:
                message["content"] = result
        return [] if self._requests else self._late

    def interrupt(self) -> None:
        """Close what nobody will answer, once, before the next message."""
        calls, self._ids = self._ids, []
        for call_id in calls:
            error = {"message": words.INTERRUPTED, "code": "interrupted"}
            done = {"toolCallId": call_id, "success": False, "error": error}
            self._core.stored(
                "tool.execution_complete", {**done, "model": "resumed", "interactionId": "resume"}
            )
        if calls:
            text = f"{len(calls)} tool call(s) had not finished when the session ended: {', '.join(calls)}."
            self._core.stored("session.warning", {"warningType": "interrupted_tools", "message": text})
