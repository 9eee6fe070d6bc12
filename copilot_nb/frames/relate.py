"""The fold over a log: which run and turn an event belongs to, and which start and end belong together.

An event's run comes from its ``interactionId``, else from its tool call or request, else from its parent
event: never from a time window (cli-continues PR#47). So the lines of two writers that share a file
(reference §13) stay apart, as long as their parents do.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from copilot_nb.frames.columns import turn_number
from copilot_nb.frames.handlers import HANDLERS
from copilot_nb.frames.lanes import LaneBook
from copilot_nb.frames.records import Fault, ModelCall, Permission, Run, Span, Tool, Turn

Data = Mapping[str, Any]
_REMEMBERED: Final = 65_536  # parents that are looked up; older ones count as unknown


class Relations:
    """Fold events with `feed`; the records are its result.

    Attributes
    ----------
    run_of
        For each event the index of its run, -1 for none.
    ephemeral_seen
        Whether any event was ephemeral: without them nothing is known of retries.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.turns: list[Turn] = []
        self.tools: list[Tool] = []
        self.permissions: list[Permission] = []
        self.calls: list[ModelCall] = []
        self.faults: list[Fault] = []
        self.lanes = LaneBook()
        self.spans: list[Span] = []  # in the order in which they ended
        self.starts: list[int] = []  # rows of session.start and session.resume
        self.ephemeral_seen = False
        self.run_of = array("i")
        self._run_by_interaction: dict[str, int] = {}
        self._recent: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._last_id: str | None = None
        self._last_run = -1
        self.turn_of_call: dict[str, int] = {}
        self.open_tools: dict[str, list[int]] = {}
        self.asking: dict[str, int] = {}
        self.call_by_id: dict[str, int] = {}

    def feed(self, events: Iterable[tuple[str, Any, str | None, str | None, str | None, Any]]) -> None:
        """Fold ``(type, data, id, parent id, agent id, ephemeral)`` of the next events.

        The data is a mapping, or JSON text that is decoded only if a table needs it.
        """
        runs, find = self.run_of, HANDLERS.get
        row = len(runs)
        last_id, last_run, recent = self._last_id, self._last_run, self._recent
        by_interaction = self._run_by_interaction
        for kind, data, id, parent, agent, ephemeral in events:
            if parent == last_id or parent is None:
                run = last_run
            else:
                known = recent.get(parent)
                run = known if known is not None else self._older.get(parent, last_run)
            handler = find(kind)
            if handler is not None:
                if type(data) is not dict:
                    data = _decode(data)
                interaction = data.get("interactionId")
                if type(interaction) is str:
                    run = by_interaction.get(interaction, run)
                run = handler(self, row, kind, data, agent, run)
            runs.append(run)
            if ephemeral:
                self.ephemeral_seen = True
            elif id is not None:
                last_id, last_run = id, run
                recent[id] = run
            row += 1
        self._last_id, self._last_run = last_id, last_run
        if len(recent) > _REMEMBERED:
            self._older, self._recent = recent, {}

    # --- what the handlers share -----------------------------------------------------------------------

    def open_run(self, row: int, source: str, interaction: str | None, before: int) -> int:
        """A new run; the one before it, on the same thread of parents, is over."""
        if before >= 0:
            self.runs[before].over = True
        self.runs.append(Run(row, interaction, source))
        run = len(self.runs) - 1
        if interaction is not None:
            self._run_by_interaction[interaction] = run
        return run

    def find_turn(self, run: int, agent: str | None, turn: Any = None) -> int:
        """The turn of that number in the run, else the agent's current one when no number is said."""
        if run < 0:
            return -1
        known = self.runs[run]
        if type(turn) is not str and type(turn) is not int:
            return known.current.get(agent, -1)
        return known.turns.get((agent, turn), -1)

    def stray_turn(self, agent: str | None, turn: Any) -> int:
        """The latest open turn of that agent and number, for an end whose parent is unknown."""
        wanted = turn_number(turn)
        for index in range(len(self.turns) - 1, max(-1, len(self.turns) - 64), -1):
            known = self.turns[index]
            if known.end < 0 and known.start >= 0 and known.agent == agent and known.turn == wanted:
                return index
        return -1

    def close_tool(self, call: str | None, run: int) -> int:
        """The open call of that id, of the same run if there are several, else the oldest; no longer open."""
        waiting = self.open_tools.get(call) if call is not None else None
        if not waiting:
            return -1
        same = [index for index in waiting if self.tools[index].run == run] if len(waiting) > 1 else waiting
        index = same[0] if same else waiting[0]
        waiting.remove(index)
        if not waiting:
            del self.open_tools[call]  # type: ignore[arg-type]
        return index

    def open_tool(self, call: str | None) -> int:
        """The open call of that id that started last."""
        waiting = self.open_tools.get(call) if call is not None else None
        return waiting[-1] if waiting else -1


def _decode(data: Any) -> Data:
    if isinstance(data, Mapping):
        return data
    try:
        decoded = msgspec.json.decode(data) if data else {}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        decoded = json.loads(bytes(data).decode("utf-8", "replace"), strict=False)
    return decoded if isinstance(decoded, dict) else {}
