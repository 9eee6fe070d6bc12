"""What the demo model reads from a request: the person's words of this run, and what its calls gave."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct, field

from copilot_nb.events import JSON
from copilot_nb.models.base import Request
from copilot_nb.models.wire import text_of

_CLOCK = re.compile(r"^\s*<current_datetime>")
_BLOCK = re.compile(
    r"<([a-z_]*(?:datetime|reminder|notice|files|context|attachment)[a-z_]*)\b[^>]*>.*?</\1>", re.DOTALL
)


class Done(Struct):
    """A finished call: its code (or the tool's name), and its result."""

    name: str
    code: str
    result: str


class Situation(Struct):
    """One run so far.

    Attributes
    ----------
    texts
        The prompt, then each steer.
    fresh
        How many of `texts` came after the last reply.
    done
        Calls of this run with their results, in order.
    tools
        Names of what may be called.
    answer
        The last finished answer of the conversation.
    """

    texts: list[str] = field(default_factory=list)
    fresh: int = 0
    done: list[Done] = field(default_factory=list)
    tools: frozenset[str] = frozenset()
    answer: str = ""

    def result(self, name: str, code: str = "") -> str | None:
        """What that very call gave, if it was made in this run."""
        for call in self.done:
            if call.name == name and call.code == code:
                return call.result
        return None


def read(request: Request) -> Situation:
    """The situation a request describes."""
    messages = request.messages
    start = _run_start(messages)
    situation = Situation(tools=frozenset(tool.get("function", {}).get("name", "") for tool in request.tools))
    results = {
        message.get("tool_call_id"): text_of(message.get("content") or "")
        for message in messages[start:]
        if message.get("role") == "tool"
    }
    for position, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant" and not message.get("tool_calls") and message.get("content"):
            situation.answer = text_of(message["content"])
        if position < start:
            continue
        if role == "user":
            situation.texts.append(_words(message))
            situation.fresh += 1
        elif role == "assistant":
            situation.fresh = 0
            for call in message.get("tool_calls") or ():
                function = call.get("function", {})
                code = str(_arguments(function).get("code", ""))
                situation.done.append(Done(function.get("name", ""), code, results.get(call.get("id"), "")))
    return situation


def _run_start(messages: list[JSON]) -> int:
    """Where this run's prompt is: runs begin with a time stamp, steers come without (reference §1, §3)."""
    users = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    stamped = [place for place in users if _CLOCK.match(text_of(messages[place].get("content") or ""))]
    if stamped:
        return stamped[-1]
    answered = max(
        (
            place
            for place, message in enumerate(messages)
            if message.get("role") == "assistant" and not message.get("tool_calls")
        ),
        default=-1,
    )
    return next((place for place in users if place > answered), len(messages))


def _words(message: JSON) -> str:
    return _BLOCK.sub("", text_of(message.get("content") or "")).strip()


def _arguments(function: JSON) -> JSON:
    raw: Any = function.get("arguments") or "{}"
    try:
        parsed = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
