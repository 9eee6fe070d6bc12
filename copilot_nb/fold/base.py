"""The data of the fold, and the table of functions that fill it, one per event type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from copilot_nb.events import JSON, Event
from copilot_nb.fold.items import Item, Lane, Mark, Message, Request, Run, Tool, Turn


class Fold:
    """The data of `SessionState`, and `apply`."""

    def __init__(self) -> None:
        self.generation = 0
        self._reset()

    def _reset(self) -> None:
        self.events = 0
        self.session_id = ""
        self.title = ""
        self.model = ""
        self.mode = "interactive"
        self.busy = False
        self.aborted = False
        self.started_at: float | None = None
        self.last_at: float | None = None
        self.runs: list[Run] = []
        self.turns: list[Turn] = []
        self.tools: dict[str, Tool] = {}
        self.messages: dict[str, Message] = {}
        self.lanes: dict[Lane, list[str]] = {"queue": [], "steering": []}
        self.in_flight: list[Message] = []
        self.removed: list[Message] = []
        self.queue_paused = False
        self.permissions: dict[str, Request] = {}
        self.questions: dict[str, Request] = {}
        self.last_answer = ""
        self.errors: list[JSON] = []
        self.task_complete: JSON | None = None
        self.notices: list[JSON] = []
        self.runtime: JSON = {}
        self.context_tokens = 0
        self.context_limit: int | None = None
        self.tokens_in = 0
        self.tokens_out = 0
        self.background = False
        self.touched: Item | None = None
        self._calls: set[str] = set()
        self._marks = 0

    def apply(self, event: Event) -> None:
        """Take in one event. Unknown types are counted and otherwise ignored; so are sub-agents' turns."""
        self.events += 1
        self.touched = None
        handler = _HANDLERS.get(event.type)
        if handler is not None and (type(event.agent_id) is not str or event.type in _ALSO_FROM_AGENTS):
            handler(self, event.data, event)

    def rebuild(self, events: Iterable[Event]) -> None:
        """Start over from the stored events, after a truncate or rewind removed some."""
        self.generation += 1
        self._reset()
        for event in events:
            self.apply(event)
        self.settle()

    def settle(self) -> None:
        """Close what the log left open: nothing runs and nobody is asked any more (field case 43)."""
        self._close_run("done")
        self.busy = False
        self.permissions.clear()
        self.questions.clear()
        self.in_flight.clear()

    @property
    def run(self) -> Run | None:
        """The last run."""
        return self.runs[-1] if self.runs else None

    @property
    def turn(self) -> Turn | None:
        """The last turn."""
        return self.turns[-1] if self.turns else None

    # --- the pieces the handlers share ---

    def _at(self, event: Event) -> float:
        at = seconds(event.timestamp)
        self.last_at = at
        if self.started_at is None:
            self.started_at = at
        return at

    def _close_turn(self, at: float | None) -> None:
        turn = self.turn
        if turn is not None and turn.t1 is None:
            turn.t1 = at or turn.said_at or turn.t0
            for tool in turn.tools:
                if tool.t1 is None:
                    tool.state, tool.t1 = "interrupted", turn.t1

    def _close_run(self, state: str) -> None:
        run = self.run
        if run is None or run.t1 is not None:
            return
        self._close_turn(self.last_at)
        run.t1 = max([run.t0, *(turn.t1 or run.t0 for turn in run.turns[-1:])])
        if run.state == "running":
            run.state = "aborted" if state == "aborted" else "done"
        self.touched = run

    def _new_run(self, at: float, interaction: str | None) -> Run:
        self._close_run("done")
        run = Run(len(self.runs) + 1, at, interaction)
        self.runs.append(run)
        self.busy, self.aborted = True, False
        return run

    def _need_run(self, at: float) -> Run:
        run = self.run
        return run if run is not None and run.t1 is None else self._new_run(at, None)

    def _new_turn(self, at: float, turn_id: str | None, event: Event) -> Turn:
        run = self._need_run(at)
        self._close_turn(at)
        turn = Turn(f"t{len(self.turns)}", run.n, len(run.turns) + 1, turn_id, at, event_id=event.id)
        self.turns.append(turn)
        run.turns.append(turn)
        run.items.append(turn)
        self.busy = True
        return turn

    def _live_turn(self, event: Event) -> Turn:
        """The open turn; logs without turn events (minimal ones, reference §20) get one per reply."""
        turn = self.turn
        if turn is not None and turn.t1 is None:
            return turn
        return self._new_turn(self._at(event), None, event)

    def _mark(self, kind: str, text: str, data: JSON, event: Event) -> None:
        at = self._at(event)
        run = self.run or self._need_run(at)
        self._marks += 1
        mark = Mark(f"k{self._marks}", kind, at, text, data, run.n)
        run.items.append(mark)
        self.touched = mark

    def _leave(self, message: Message) -> None:
        if message.lane and message.id in self.lanes[message.lane]:
            self.lanes[message.lane].remove(message.id)

    def _enter(self, message: Message, lane: Lane, position: int | None) -> None:
        message.lane, message.state = lane, "pending"
        ids = self.lanes[lane]
        ids.insert(len(ids) if position is None else position, message.id)
        self.messages[message.id] = message
        self.touched = message

    def _answered(self, request_id: str) -> None:
        self.permissions.pop(request_id, None)
        self.questions.pop(request_id, None)


def seconds(timestamp: str) -> float:
    """An event's timestamp in seconds since 1970; 0.0 when it is no ISO time."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0


_Handler = Callable[[Fold, JSON, Event], None]
_HANDLERS: dict[str, _Handler] = {}
_ALSO_FROM_AGENTS = frozenset({"permission.requested", "permission.completed", "session.error"})


def on(*types: str) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        _HANDLERS.update(dict.fromkeys(types, handler))
        return handler

    return register
