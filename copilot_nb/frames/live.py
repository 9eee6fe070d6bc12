"""`LiveLog`: the tables of a session that runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from copilot_nb.errors import StoreError
from copilot_nb.events import Event
from copilot_nb.frames import schema
from copilot_nb.frames.base import EMPTY, Columns
from copilot_nb.frames.columns import no_gc
from copilot_nb.frames.log import Tables, row_of
from copilot_nb.frames.reading import event_of
from copilot_nb.frames.relate import Relations

if TYPE_CHECKING:
    import pandas as pd

_CHUNK: Final = 1024  # events that a live log folds at once
_KEPT: Final = 4096  # ephemeral events whose data can still be looked at


class LiveLog(Tables):
    """The log of a session that runs: events come by `append`, tables at any time, from any thread.

    Parameters
    ----------
    path
        The session's ``events.jsonl``, for `event`; None when nothing is stored.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._base = Columns()
        self._fold = Relations()
        self._lock = threading.Lock()
        self._tail: list[Event] = []
        self._offsets: list[int] = []
        self._kept: deque[Event] = deque(maxlen=_KEPT)

    def __repr__(self) -> str:
        return f"<LiveLog {self.path or 'in memory'}: {self._base.rows + len(self._tail)} events>"

    def append(self, event: Event, offset: int | None = None) -> None:
        """Add the next event; `offset` is where its line starts in the file, if the caller knows."""
        self._offsets.append(-1 if offset is None else offset)
        self._tail.append(event)
        if len(self._tail) >= _CHUNK:
            self._take()

    def _take(self) -> None:
        with self._lock, _uninterrupted():
            count = len(self._tail)  # more may come meanwhile, on another thread
            if not count:
                return
            events = self._tail[:count]
            with no_gc():
                self._base.add_events(events, self._offsets[:count], self._fold)
            keep_all = self.path is None
            self._kept.extend(e for e in events if (keep_all or e.ephemeral is True) and e.type not in EMPTY)
            del self._tail[:count], self._offsets[:count]

    def _columns(self, rows: int | None = None) -> Columns:
        self._take()
        return self._base

    def _relations(self, rows: int | None = None) -> Relations:
        return self._fold

    @property
    def complete(self) -> bool:
        """Always: all that was appended is here."""
        return True

    @property
    def problems(self) -> pd.DataFrame:
        """Always empty: what was delivered was no bad line."""
        return schema.empty("problems")

    def event(self, which: str | int) -> Event:
        """The whole event of an id or row number: from the file, or, if ephemeral, from recent memory."""
        base = self._columns()
        row = row_of(base, which)
        wanted = base.ids.chunked(base.rows)[row].as_py()
        for event in reversed(self._kept):
            if event.id == wanted:
                return event
        if self.path is not None and not base.ephemeral[row]:
            return find_event(self.path, wanted, base.offset[row])
        raise StoreError(f"Event {wanted} was ephemeral and is too old: only its row in events() is left.")


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt waits until the columns are of one length again (milliseconds)."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


def find_event(path: Path, wanted: str, offset: int) -> Event:
    """A stored event by id, at its offset if that is known, else by looking through the file."""
    needle = f'"id":"{wanted}"'.encode()
    with path.open("rb") as file:
        if offset >= 0:
            file.seek(offset)
        for line in file:
            if needle in line:
                event = event_of(line)
                if event.id == wanted:
                    return event
    raise StoreError(f"Event {wanted} is no longer in {path}: the log was rewound.")
