"""The smallest agent loop there is: what every client does at least."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from harness import RESULT, SYSTEM, TOOL, past

Stream = Callable[[dict[str, Any]], AsyncIterator[dict[str, Any]]]


@dataclass
class Context:
    """A connection and one conversation."""

    client: Any
    url: str
    model: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)

    def fresh(self, model: str, history: int) -> None:
        """Begin a conversation."""
        self.model, self.messages = model, [{"role": "system", "content": SYSTEM}, *past(history)]


async def turn_by_turn(context: Context, stream: Stream, token: Callable[[], None]) -> None:
    """Turn after turn, until the model asks for no tool; `stream` yields decoded chunks."""
    messages = context.messages
    messages.append({"role": "user", "content": "go"})
    while True:
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        request = {"model": context.model, "stream": True, "messages": messages, "tools": [TOOL]}
        async for chunk in stream(request):
            if not chunk["choices"]:
                continue
            delta = chunk["choices"][0]["delta"]
            if delta.get("content"):
                token()
                text.append(delta["content"])
            for piece in delta.get("tool_calls") or ():
                empty = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece["index"], empty)
                if piece.get("id"):
                    call["id"], call["function"]["name"] = piece["id"], piece["function"]["name"]
                call["function"]["arguments"] += piece["function"].get("arguments") or ""
        answer: dict[str, Any] = {"role": "assistant", "content": "".join(text) or None}
        if calls:
            answer["tool_calls"] = list(calls.values())
        messages.append(answer)
        if not calls:
            return
        for call in calls.values():
            json.loads(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": RESULT})
