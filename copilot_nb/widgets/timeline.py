"""Windows on a session's time: single bars while they are few, shares per column when they are many."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from copilot_nb.events import JSON
from copilot_nb.fold.items import Message, Run, Tool, Turn
from copilot_nb.state import SessionState
from copilot_nb.widgets import view
from copilot_nb.widgets.coverage import Coverage, parts

MANY = 240  # turns in a window, above which it is drawn in columns
COLUMNS = 360


class Timeline:
    """Windows of one panel's session; remembers the coverage of turns that are over."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self._state: SessionState | None = None
        self._generation = -1
        self._coverage = Coverage()

    def coverage(self) -> Coverage:
        """The coverage of the present state; a new one after a rewind."""
        state: SessionState = self.source.state
        if state is not self._state or state.generation != self._generation:
            self._state, self._generation, self._coverage = state, state.generation, Coverage()
        self._coverage.follow(state.turns)
        return self._coverage

    def window(self, start: float | None, stop: float | None, width: int = 700) -> JSON:
        """See `window`."""
        return window(self.source.state, start, stop, width, self.coverage())


def window(
    state: SessionState, start: float | None, stop: float | None, width: int, coverage: Coverage
) -> JSON:
    """What is in sight between two moments.

    Parameters
    ----------
    start, stop
        Seconds since the session's first event; None is its begin or end.
    width
        Pixels to draw on.

    Returns
    -------
    ``{from, to, end, now, runs, turns, messages, columns, over}``; times in seconds since the first event.
    `turns` is None and `columns` set when there are too many to tell apart.
    """
    zero = state.started_at or 0.0
    end = span(state)
    a = 0.0 if start is None else start
    b = end if stop is None else stop
    turns = _between(state.turns, zero + a, zero + b)
    many = len(turns) > MANY
    runs = _runs(state.runs, zero + a, zero + b)
    messages = _messages(state, zero + a, zero + b)
    return {
        "from": a,
        "to": b,
        "end": end,
        "zero": zero,
        "live": state.busy,
        "runs": [_run(r, zero) for r in runs] if len(runs) <= MANY else None,
        "turns": None if many else [_turn(t, zero) for t in turns],
        "messages": [_message(m, zero) for m in messages[:MANY]],
        "context": _context(turns, zero),
        "columns": coverage.columns(zero + a, zero + b, COLUMNS) if many else None,
        "over": _overview(state, coverage, max(100, min(width, 900))),
        "count": len(turns),
    }


def span(state: SessionState) -> float:
    """Seconds from the first event to the last one."""
    return max(0.001, (state.last_at or 0.0) - (state.started_at or 0.0))


def _between(turns: list[Turn], a: float, b: float) -> list[Turn]:
    first = bisect_right(turns, a, key=lambda t: t.t0) - 1
    return turns[max(0, first) : bisect_left(turns, b, key=lambda t: t.t0)]


def _runs(runs: list[Run], a: float, b: float) -> list[Run]:
    first = bisect_right(runs, a, key=lambda r: r.t0) - 1
    return runs[max(0, first) : bisect_left(runs, b, key=lambda r: r.t0)]


def _messages(state: SessionState, a: float, b: float) -> list[Message]:
    found = []
    for message in state.messages.values():
        sent = message.sent_at or message.landed_at or a
        until = message.landed_at or message.removed_at or b
        if sent <= b and until >= a and not message.nudge:
            found.append(message)
    return found


def _less(t: float | None, zero: float) -> float | None:
    return None if t is None else round(t - zero, 4)


def _run(run: Run, zero: float) -> JSON:
    return {
        "key": f"r{run.n}",
        "n": run.n,
        "a": _less(run.t0, zero),
        "b": _less(run.t1, zero),
        "state": run.state,
        "turns": len(run.turns),
        "prompt": run.prompt[:80],
        "event": getattr(run.items[0], "event_id", "") if run.items else "",
    }


def _turn(turn: Turn, zero: float) -> JSON:
    return {
        "key": turn.key,
        "run": turn.run,
        "n": turn.n,
        "a": _less(turn.t0, zero),
        "first": _less(turn.first_at, zero),
        "text": _less(turn.text_at, zero),
        "said": _less(turn.said_at, zero),
        "b": _less(turn.t1, zero),
        "in": turn.tokens_in,
        "out": turn.tokens_out,
        "event": turn.event_id,
        "tools": [_tool(tool, zero) for tool in turn.tools],
    }


def _tool(tool: Tool, zero: float) -> JSON:
    code, _ = view.code_of(tool.name, tool.arguments)
    return {
        "key": tool.key,
        "id": tool.id,
        "name": tool.name,
        "arg": view.first_line(code)[:80],
        "a": _less(tool.t0, zero),
        "b": _less(tool.t1, zero),
        "state": tool.state,
        "asked": None if tool.reason else _less(tool.asked_at, zero),
        "answered": None if tool.reason else _less(tool.answered_at, zero),
        "error": (tool.error or "")[:120],
        "event": tool.event_id,
    }


def _message(message: Message, zero: float) -> JSON:
    return {
        "key": view.key_of(message),
        "lane": message.lane,
        "state": message.state,
        "text": message.text[:120],
        "sent": _less(message.sent_at or message.landed_at, zero),
        "landed": _less(message.landed_at, zero),
        "removed": _less(message.removed_at, zero),
        "run": message.run,
        "turn": message.turn,
        "reason": message.reason,
        "event": message.event_id,
    }


def _context(turns: list[Turn], zero: float) -> list[list[float]]:
    """Steps of the context's size, at most one per column."""
    step = max(1, len(turns) // COLUMNS)
    return [[round((t.said_at or t.t0) - zero, 3), t.context] for t in turns[::step] if t.context]


def _bars(turn: Turn, zero: float) -> list[tuple[str, float, float | None]]:
    """A turn's parts, open ends as None."""
    end = turn.t1 or float("inf")
    return [
        (kind, round(a - zero, 3), None if b == float("inf") else round(b - zero, 3))
        for kind, a, b in parts(turn, end)
        if b > a and a != float("inf")
    ]


def _overview(state: SessionState, coverage: Coverage, count: int) -> JSON:
    """The whole session in columns, or its single bars while they are few."""
    turns = state.turns
    zero, end, many = state.started_at or 0.0, span(state), len(turns) > MANY
    steers = [m for m in state.messages.values() if m.lane == "steering" and m.sent_at]
    return {
        "end": end,
        "columns": coverage.columns(zero, zero + end, count // 2) if many else None,
        "bars": None if many else [part for turn in turns for part in _bars(turn, zero)],
        "steers": [_less(m.sent_at, zero) for m in steers[-300:]],
    }
