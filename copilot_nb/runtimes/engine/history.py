"""What the model is told of the past: chat messages, kept as the loop goes and rebuilt from a log.

Messages have the OpenAI wire form. The rules of the rebuild are the reference's (§20).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from copilot_nb.events import JSON, Event
from copilot_nb.models.base import ToolCall
from copilot_nb.runtimes.engine import attachments, words


class History(Struct):
    """Chat messages without the system prompt.

    Attributes
    ----------
    user_texts
        What people wrote, word for word, for the summary of a compaction.
    run_start
        Where the messages of the running run begin; None once a compaction has rewritten them.
    tokens
        About how many tokens the messages are, kept up to date message by message.
    """

    messages: list[JSON] = field(default_factory=list)
    user_texts: list[str] = field(default_factory=list)
    run_start: int | None = None
    tokens: int = 0

    def keep(self, message: JSON) -> None:
        """Append a message as it is."""
        self.messages.append(message)
        self.tokens += estimate_tokens(message)

    def add_user(self, content: str | list[JSON], said: str | None = None) -> None:
        """A user message; `said` is what the person wrote of it."""
        self.keep({"role": "user", "content": content})
        if said:
            self.user_texts.append(said)

    def begin_run(self) -> None:
        """A run's messages begin here."""
        self.run_start = len(self.messages)

    def as_recorded(self, events: Iterable[Event], *, broken_turn: str | None) -> None:
        """Have the log's version of the run stand for it, as the reference does after an abort or error (§8).

        The thinking before a turn that was broken off (`broken_turn`, its ``turnId``) is not kept.
        """
        if self.run_start is not None:
            run = rebuild(events, reasoning=True, broken_turn=broken_turn)
            self.tokens -= sum(estimate_tokens(message) for message in self.messages[self.run_start :])
            self.messages[self.run_start :] = run.messages
            self.tokens += run.tokens

    def add_assistant(
        self, text: str, calls: Iterable[ToolCall] = (), reasoning: str = "", streamed: bool = True
    ) -> None:
        """An answer; the thinking before it goes back to the model as long as the session is open."""
        tool_calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in calls
        ]
        message: JSON = {"role": "assistant", "content": text or (None if streamed else "")}
        if tool_calls:
            message["tool_calls"] = tool_calls
        if reasoning:
            message["reasoning_content"] = reasoning
        self.keep(message)

    def add_results(self, calls: Iterable[ToolCall], results: list[str | None]) -> None:
        """The results of one turn's calls, in call order; a missing one is told to be interrupted."""
        for call, result in zip(calls, results, strict=True):
            content = words.INTERRUPTED if result is None else result
            self.keep({"role": "tool", "tool_call_id": call.id, "content": content})

    def replace_by(self, summary: str) -> None:
        """Let one user message with a summary stand for everything (reference §17)."""
        self.messages, self.tokens, self.run_start = [], 0, None
        self.keep({"role": "user", "content": words.compacted(self.user_texts, summary)})


def rebuild(events: Iterable[Event], *, reasoning: bool = False, broken_turn: str | None = None) -> History:
    """The history that a log holds.

    The reference keeps the `reasoning` of answers as long as the session is open, and not after a resume.
    """
    history = History()
    results = _results(events := list(events))
    assets = {e.data.get("assetId"): e.data for e in events if e.type == "session.binary_asset"}
    for event in events:
        data = event.data
        if isinstance(event.agent_id, str):
            continue
        if event.type == "user.message":
            text = str(data.get("transformedContent") or data.get("content") or "")
            said = None if data.get("source") == "autopilot" else str(data.get("content") or "")
            history.add_user(attachments.content(text, data.get("attachments") or [], assets), said)
        elif event.type == "assistant.message":
            calls = [_call(request) for request in data.get("toolRequests") or []]
            kept = reasoning and not (calls and data.get("turnId") == broken_turn)
            thought = str(data.get("reasoningText") or "") if kept else ""
            history.add_assistant(str(data.get("content") or ""), calls, thought)
            history.add_results(calls, [results.get(call.id) for call in calls])
        elif event.type == "system.notification":
            history.add_user(str(data.get("content", "")))
        elif event.type == "session.compaction_complete" and data.get("success"):
            history.replace_by(str(data.get("summaryContent") or ""))
    return history


def _results(events: Iterable[Event]) -> dict[str, str]:
    """Tool texts by call: the content on success, the error's message otherwise."""
    found: dict[str, str] = {}
    for event in events:
        if event.type == "tool.execution_complete" and not isinstance(event.agent_id, str):
            data = event.data
            if data.get("success"):
                text = str((data.get("result") or {}).get("content", ""))
            else:
                text = str((data.get("error") or {}).get("message", ""))
            found[str(data.get("toolCallId"))] = text
    return found


def _call(request: JSON) -> ToolCall:
    arguments: Any = request.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(",", ":"))
    return ToolCall(str(request.get("toolCallId")), str(request.get("name")), text)


def unfinished_calls(events: Iterable[Event]) -> list[str]:
    """Calls that were running when the log broke off (reference §13): started, not completed, turn open."""
    open_calls: dict[str, None] = {}
    for event in events:
        if event.type == "tool.execution_start":
            open_calls[str(event.data.get("toolCallId"))] = None
        elif event.type == "tool.execution_complete":
            open_calls.pop(str(event.data.get("toolCallId")), None)
        elif event.type in ("assistant.turn_end", "abort"):
            open_calls.clear()
    return list(open_calls)


def estimate_tokens(value: Any) -> int:
    """About how many tokens a message or tool is: a third of its characters (numbers and code are dense)."""
    return _characters(value) // 3


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(len(key) + 4 + _characters(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(_characters(item) + 1 for item in value)
    return 5
