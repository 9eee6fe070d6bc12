"""What changed since the last flush, as the short operations that views apply.

Every view of a panel gets the same numbered stream, so the kernel knows what each has: text goes once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from copilot_nb.events import JSON
from copilot_nb.fold.items import Item, Run, Tool, Turn
from copilot_nb.state import SessionState
from copilot_nb.widgets import view

WINDOW = 60  # items that a view starts with; earlier ones come when the reader scrolls up


@dataclass(slots=True)
class _Text:
    """A list of pieces and how many of them were sent."""

    pieces: list[str]
    sent: int = 0

    def news(self, pieces: list[str]) -> tuple[str, bool]:
        """The unsent text, and whether it replaces what was sent (a retry, or a reply that differs)."""
        if pieces is self.pieces:
            text, self.sent = "".join(pieces[self.sent :]), len(pieces)
            return text, False
        before, text = "".join(self.pieces[: self.sent]), "".join(pieces)
        self.pieces, self.sent = pieces, len(pieces)
        return (text[len(before) :], False) if text.startswith(before) else (text, True)


@dataclass(slots=True)
class _Live:
    """What views have of one turn."""

    text: _Text
    think: _Text
    facts: JSON
    tools: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    outputs: dict[str, _Text] = field(default_factory=dict)


class Feed:
    """Collects touched items of one session and turns them into operations.

    Operations: ``["item", item, before]`` (new or changed; `before` is the key it stands in front of),
    ``["text" | "think", key, piece, replace]``, ``["out", turn, tool, piece]``, ``["tool", turn, tool]``.
    """

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.dirty: dict[Item, None] = {}
        self._live: dict[str, _Live] = {}
        self._run: JSON = {}

    def flush(self) -> list[list[Any]]:
        """The operations since the last flush."""
        items, self.dirty = self.dirty, {}
        ops: list[list[Any]] = []
        for item in items:
            if isinstance(item, Turn):
                self._turn(item, ops)
            else:
                ops.append(["item", view.item_json(item), self._next(item)])
        run = view.run_json(self.state.run) if self.state.run is not None else self._run
        if run != self._run:
            self._run = run
            ops.insert(0, ["item", run, None])
        return ops

    def _turn(self, turn: Turn, ops: list[list[Any]]) -> None:
        live = self._live.get(turn.key)
        if live is None:
            if len(self._live) > 8:
                self._live.pop(next(iter(self._live)))
            self._live[turn.key] = self._known(turn)
            ops.append(["item", view.turn_json(turn), self._next(turn)])
            return
        text, replace = live.text.news(turn.text)
        if text or replace:
            ops.append(["text", turn.key, text, replace])
        think, replace = live.think.news(turn.reasoning)
        if think or replace:
            ops.append(["think", turn.key, think, replace])
        facts = view.turn_json(turn, whole=False)
        if facts != live.facts:
            live.facts = facts
            ops.append(["item", facts, self._next(turn)])
        for tool in turn.tools:
            self._tool(turn, tool, live, ops)

    def _tool(self, turn: Turn, tool: Tool, live: _Live, ops: list[list[Any]]) -> None:
        was, now = live.tools.get(tool.key), _print(tool)
        if was != now:
            live.tools[tool.key] = now
            ops.append(["tool", turn.key, view.tool_json(tool, whole=was is None)])
            if was is None:
                live.outputs[tool.key] = _Text(tool.output, len(tool.output))
                return
        piece, _ = live.outputs[tool.key].news(tool.output)
        if piece:
            ops.append(["out", turn.key, tool.key, view.cut(piece, view.RESULT_CHARS)])

    def _known(self, turn: Turn) -> _Live:
        text, think = _Text(turn.text, len(turn.text)), _Text(turn.reasoning, len(turn.reasoning))
        live = _Live(text, think, view.turn_json(turn, whole=False))
        for tool in turn.tools:
            live.tools[tool.key] = _print(tool)
            live.outputs[tool.key] = _Text(tool.output, len(tool.output))
        return live

    def _next(self, item: Item) -> str | None:
        """The key of the item behind this one in its run; a steer stands before the turn it landed in."""
        run = getattr(item, "run", None)
        if run is None or isinstance(item, Run):
            return None
        items = self.state.runs[run - 1].items
        for place in range(len(items) - 1, max(-1, len(items) - 40), -1):
            if items[place] is item:
                return view.key_of(items[place + 1]) if place + 1 < len(items) else None
        return None

    # --- windows on the conversation ---

    def tail(self) -> JSON:
        """The last items: what a view starts with."""
        return self._window(*self._back(len(self.state.runs), None, WINDOW))

    def earlier(self, key: str, count: int) -> JSON:
        """The items before one that a view has."""
        run, place = self._find(key)
        return self._window(*self._back(run, place, count))

    def around(self, key: str, count: int = WINDOW) -> JSON:
        """Items around one that a view jumps to, and whether they reach the end."""
        run, place = self._find(key)
        first_run, first = self._back(run, place + 1, count // 2)
        return self._window(first_run, first, count)

    def _find(self, key: str) -> tuple[int, int]:
        """Run number and place in it; a run's key is the place of its first item."""
        if key.startswith("r"):
            return int(key[1:]), 0
        item: Item | None
        if key.startswith("t"):
            item = self.state.turns[int(key[1:])]
        elif key.startswith("m:"):
            item = self.state.messages[key[2:]]
        else:
            item = next(i for run in self.state.runs for i in run.items if view.key_of(i) == key)
        number = getattr(item, "run", None) or len(self.state.runs)
        items = self.state.runs[number - 1].items
        return number, next((k for k, other in enumerate(items) if other is item), len(items))

    def _back(self, run: int, place: int | None, count: int) -> tuple[int, int]:
        """The start of a window that ends before `place` of a run."""
        if run == 0:
            return 0, 0
        place = len(self.state.runs[run - 1].items) if place is None else place
        while place < count and run > 1:
            count -= place
            run -= 1
            place = len(self.state.runs[run - 1].items)
        return run, max(0, place - count)

    def _window(self, run: int, place: int, count: int = WINDOW) -> JSON:
        items: list[JSON] = []
        more = run > 1 or place > 0
        runs = self.state.runs
        while 0 < run <= len(runs) and count > 0:
            part = runs[run - 1].items[place : place + count]
            items.append(view.run_json(runs[run - 1]))
            items += [view.item_json(item) for item in part]
            count -= len(part)
            if count <= 0 and place + len(part) < len(runs[run - 1].items):
                return {"items": items, "more": more, "tail": False}
            run, place = run + 1, 0
        return {"items": items, "more": more, "tail": run == 0 or run > len(runs)}


def _print(tool: Tool) -> tuple[Any, ...]:
    return tool.state, tool.t1, tool.asked_at, tool.answered_at, tool.answer, len(tool.display)
