"""A log as something to look at: the same panel as a running session's, read-only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from copilot_nb.events import Event, EventSource, from_line
from copilot_nb.frames import Log, read_log
from copilot_nb.frames.log import Tables
from copilot_nb.loops import running_loop
from copilot_nb.record import bundle, export
from copilot_nb.state import SessionState

if TYPE_CHECKING:
    import pandas as pd

    from copilot_nb.widgets.panel import Panel


BIG = 4_000_000  # bytes of a file, above which its end is shown before the whole was folded
TAIL = 1_000_000
CHUNK = 1_000  # events folded at once while the loop waits
LONG = 4_000  # characters of a result that a big log's fold keeps


class LogView(Tables):
    """A session's log: tables, panel and record, for looking at.

    Attributes
    ----------
    log
        The `Log` that the tables come from.
    state
        The fold of its events. Of a big file first only that of its end; the whole follows within seconds.
    """

    runtime_name = "log"
    model_kind = "provider"
    closed = False

    def __init__(self, log: Log) -> None:
        self.log = log
        self._handlers: list[Callable[[Event], None]] = []
        path = Path(log.source.name)
        size = path.stat().st_size if path.is_file() else 0
        loop = running_loop()
        if size > BIG and loop is not None:
            self.state = SessionState.from_events(self._events(size - TAIL))
            self._task = loop.create_task(self._whole())
        else:
            self.state = SessionState.from_events(self._events(0, slim=size > 10 * BIG))
        self.id = self.state.session_id or (path.parent.name if path.stem == "events" else path.stem)

    @property
    def model_label(self) -> str:
        """Who answered, by the log."""
        turn = self.state.turn
        return (turn.model if turn else None) or self.state.model or ""

    def __repr__(self) -> str:
        return f"<copilot_nb log {self.id}: {len(self.state.runs)} runs, {len(self.state.turns)} turns>"

    def table(self, name: str) -> pd.DataFrame:
        """A table by name, of the log."""
        return self.log.table(name)

    def _events(self, offset: int, *, slim: bool = True) -> Iterator[Event]:
        """The file's events from an offset on (from the next line, if it is within one)."""
        with self.log.source.open(offset) as stream:
            lines = iter(stream)
            if offset:
                next(lines, None)
            for line in lines:
                try:
                    event = from_line(line)
                except (ValueError, msgspec.MsgspecError):  # `problems` names such lines
                    continue
                if slim and len(line) > 2 * LONG and event.type == "tool.execution_complete":
                    _cut(event)
                yield event

    async def _whole(self) -> None:
        """Fold everything, a piece at a time, and put it in the place of the end's fold."""
        state = SessionState()
        events = self._events(0)
        while chunk := list(islice(events, CHUNK)):
            for event in chunk:
                state.apply(event)
            await asyncio.sleep(0)
        state.settle()
        state.generation = self.state.generation + 1
        self.state = state
        for handler in tuple(self._handlers):
            handler(EventSource().ephemeral("jupyter.notice", {"level": "info", "message": "log read"}))

    def on(self, handler: Callable[[Event], None]) -> Callable[[], None]:
        """Call back when the whole of a big log was read; nothing else happens in a log."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def panel(self, tab: str = "conversation") -> Panel:
        """The panel, read-only."""
        from copilot_nb.widgets.panel import Panel

        return Panel(self, tab=tab)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the record as ``.html``, ``.md`` or ``.ipynb``, by the name's ending."""
        return export(self, path)

    @property
    def problems(self) -> pd.DataFrame:
        """Lines of the file that are no events."""
        return self.log.problems

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """The panel; the record for front ends that draw no widgets."""
        still = bundle(self.state, self.state.runs[-20:], model=self.model_label)
        if running_loop() is None:
            return dict(still), {}
        data, metadata = self.panel()._repr_mimebundle_() or ({}, {})
        return {**still, **data, "text/plain": still["text/plain"]}, metadata


def _cut(event: Event) -> None:
    result = event.data.get("result")
    if isinstance(result, dict):
        result.pop("detailedContent", None)
        if len(str(result.get("content"))) > LONG:
            result["content"] = f"{str(result['content'])[:LONG]}\n… (the log has all of it)"


def open_log(log: str | Path | IO[bytes] | IO[str], home: str | os.PathLike[str] | None = None) -> LogView:
    """Open a session's log to look at: as the last value of a cell it shows the panel, read-only.

    Parameters
    ----------
    log
        A path (``.jsonl``, also compressed), a session's folder, or a session id.
    home
        Where ids are looked up; default ``$COPILOT_HOME`` or ``~/.copilot``.

    Raises
    ------
    SessionNotFound
        There is no such file or session.
    StoreError
        It cannot be read.
    """
    return LogView(read_log(log, Path(home) if home is not None else None))
