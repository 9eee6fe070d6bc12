"""What changed since the last flush, as the short operations that views apply.

Every view of a panel gets the same numbered stream, so the kernel knows what each has: text goes once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from copilot_nb.events import JSON
from copilot_nb.fold.items import Item, Run, Tool, Turn
from copilot_nb.state import SessionState
from copilot_nb.widgets import view

_NEW = 200  # new items stand among so many last ones of their run
WINDOW = 60  # items that a view starts with; earlier ones come when the reader scrolls up


class _Text(Struct):
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


class _Live(Struct):
    """What views have of one turn."""

    turn: Turn
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
        self._runs: dict[int, JSON] = {}  # what views have of runs that were open when it was sent

    def flush(self) -> list[list[Any]]:
        """The operations since the last flush, in reading order."""
        for live in self._live.values():  # closed by what came next, not by an event of its own
            if live.facts["t1"] is None and live.turn.t1 is not None:
                self.dirty[live.turn] = None
        items, self.dirty = self.dirty, {}
        ops: list[list[Any]] = []
        for number in list(self._runs):
            self._run(number, ops)
        places = self._places(items)
        fresh = {view.key_of(item) for item in items if places.get(id(item), (0, -1))[1] >= 0}
        fresh -= self._live.keys()
        for item in sorted(items, key=lambda item: places.get(id(item), (getattr(item, "run", 0) or 0, -1))):
            if isinstance(item, Run):
                continue
            if item.run is not None:
                self._run(item.run, ops)
            before = self._next(item, places, fresh)
            fresh.discard(view.key_of(item))
            if isinstance(item, Turn):
                self._turn(item, before, ops)
            else:
                ops.append(["item", view.item_json(item), before])
        if self.state.run is not None:
            self._run(self.state.run.n, ops)
        return ops

    def _run(self, number: int, ops: list[list[Any]]) -> None:
        """A run's header, if it changed; those that are over are not looked at again."""
        run = view.run_json(self.state.runs[number - 1])
        if self._runs.get(number) == run:
            return
        ops.append(["item", run, None])
        self._runs[number] = run
        for old in [n for n, sent in self._runs.items() if sent["t1"] is not None and n < number]:
            del self._runs[old]

    def _places(self, items: Iterable[Item]) -> dict[int, tuple[int, int]]:
        """Run and place of each item that is among the last of its run, where new ones are."""
        places = {}
        for number in {item.run for item in items if not isinstance(item, Run) and item.run is not None}:
            members = self.state.runs[number - 1].items
            first = max(0, len(members) - _NEW)
            places.update({id(members[k]): (number, k) for k in range(first, len(members))})
        return places

    def _turn(self, turn: Turn, before: str | None, ops: list[list[Any]]) -> None:
        live = self._live.get(turn.key)
        if live is None:
            if len(self._live) > 8:
                self._live.pop(next(iter(self._live)))
            self._live[turn.key] = self._known(turn)
            ops.append(["item", view.turn_json(turn), before])
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
            ops.append(["item", facts, before])
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
        live = _Live(turn, text, think, view.turn_json(turn, whole=False))
        for tool in turn.tools:
            live.tools[tool.key] = _print(tool)
            live.outputs[tool.key] = _Text(tool.output, len(tool.output))
        return live

    def _next(self, item: Item, places: dict[int, tuple[int, int]], fresh: set[str]) -> str | None:
        """The key of the first item behind this one that views have already."""
        number, place = places.get(id(item), (0, -1))
        if place < 0:
            return None
        behind = self.state.runs[number - 1].items[place + 1 :]
        return next((key for key in map(view.key_of, behind) if key not in fresh), None)

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
