"""Model calls: streamed text, replies, usage (reference §1, §2, §11)."""

from __future__ import annotations

from typing import Any

from copilot_nb.events import JSON, Event
from copilot_nb.fold.base import Fold, on


@on("assistant.turn_start")
def _turn_start(state: Fold, data: JSON, event: Event) -> None:
    state.touched = state._new_turn(state._at(event), data.get("turnId"), event)


@on("assistant.message_delta")
def _message_delta(state: Fold, data: JSON, event: Event) -> None:
    turn = state.turn
    if turn is None or turn.t1 is not None:
        turn = state._live_turn(event)
    if turn.text_at is None:
        turn.text_at = state._at(event)
        turn.first_at = turn.first_at or turn.text_at
    turn.text.append(data.get("deltaContent", ""))
    state.touched = turn


@on("assistant.reasoning_delta")
def _reasoning_delta(state: Fold, data: JSON, event: Event) -> None:
    turn = state._live_turn(event)
    if turn.first_at is None:
        turn.first_at = state._at(event)
    turn.reasoning.append(data.get("deltaContent", ""))
    state.touched = turn


@on("assistant.message_start")
def _message_start(state: Fold, data: JSON, event: Event) -> None:
    turn = state._live_turn(event)
    turn.message_id = data.get("messageId")
    if turn.text:  # a retry after a broken stream: what was shown is void [§11]
        turn.text, turn.text_at = [], None
    state.touched = turn


@on("assistant.turn_retry")
def _turn_retry(state: Fold, data: JSON, event: Event) -> None:
    turn = state._live_turn(event)
    turn.retries.append(str(data.get("reason", "")))
    turn.text, turn.reasoning, turn.first_at, turn.text_at = [], [], None, None
    state.touched = turn


@on("assistant.tool_call_delta")
def _tool_call_delta(state: Fold, data: JSON, event: Event) -> None:
    turn = state.turn
    if turn is not None and turn.t1 is None and turn.first_at is None:
        turn.first_at = state._at(event)
        state.touched = turn


@on("assistant.message")
def _message(state: Fold, data: JSON, event: Event) -> None:
    turn = state.turn
    if turn is None or turn.t1 is not None or turn.said_at is not None:
        turn = state._new_turn(state._at(event), data.get("turnId"), event)
    turn.said_at = state._at(event)
    turn.message_id = data.get("messageId")
    turn.model = data.get("model") or turn.model
    content = str(data.get("content") or "")
    turn.text = [content] if content else []
    if data.get("reasoningText"):
        turn.reasoning = [str(data["reasoningText"])]
    if content:
        state.last_answer = content
    state.in_flight.clear()
    state.touched = turn


@on("jupyter.partial")
def _partial(state: Fold, data: JSON, event: Event) -> None:
    turn = state.turn
    if turn is not None and data.get("content"):
        turn.text, turn.partial = [str(data["content"])], True
        state.touched = turn


@on("assistant.turn_end")
def _turn_end(state: Fold, data: JSON, event: Event) -> None:
    state._close_turn(state._at(event))
    state.in_flight.clear()
    state.touched = state.turn


@on("assistant.usage", "session.usage_record")
def _usage(state: Fold, data: JSON, event: Event) -> None:
    usage: JSON = data.get("usage") or data
    call, turn = usage.get("apiCallId"), state.turn
    if turn is None or call in state._calls:  # told twice: live, and by the record on disk (field case 41)
        return
    if call is not None:
        state._calls.add(call)
    tokens_in, tokens_out = _whole(usage, "inputTokens"), _whole(usage, "outputTokens")
    turn.tokens_in = (turn.tokens_in or 0) + tokens_in
    turn.tokens_out = (turn.tokens_out or 0) + tokens_out
    turn.cached = (turn.cached or 0) + _whole(usage, "cacheReadTokens")
    state.tokens_in += tokens_in
    state.tokens_out += tokens_out
    turn.context = state.context_tokens = tokens_in + tokens_out
    first = usage.get("timeToFirstTokenMs")
    if turn.first_at is None and isinstance(first, int | float):
        turn.first_at = turn.t0 + first / 1000
    state.touched = turn


def _whole(usage: JSON, key: str) -> int:
    value: Any = usage.get(key)
    return value if isinstance(value, int) else 0


@on("session.usage_info")
def _usage_info(state: Fold, data: JSON, event: Event) -> None:
    state.context_tokens = data.get("currentTokens") or state.context_tokens
    state.context_limit = data.get("tokenLimit") or state.context_limit
