"""`Log`: the tables of a file."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from operator import attrgetter, index
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, SupportsIndex

from copilot_nb.errors import CopilotNbError, StoreError, UsageError
from copilot_nb.events import Event, to_line
from copilot_nb.frames import schema, wire
from copilot_nb.frames.base import Columns
from copilot_nb.frames.columns import no_gc, well_formed
from copilot_nb.frames.reading import Batch, Problem, Reader, Source, event_of, lines_of, source_of
from copilot_nb.frames.relate import Relations
from copilot_nb.frames.wire import NotAnEvent

if TYPE_CHECKING:
    import pandas as pd

    from copilot_nb.frames.compare import Comparison
    from copilot_nb.frames.plots import Plots
    from copilot_nb.frames.window import EventWindow


class NamedTables:
    """The tables by name, and each by a method of its own."""

    def table(self, name: str) -> Any:
        """A table by name: ``events``, ``messages``, ``runs`` …"""
        raise NotImplementedError

    def events(self) -> Any:
        """One row per event; the index is its place in the log."""
        return self.table("events")

    def messages(self) -> Any:
        """One row per message: when it was sent and landed, how, where, or why it was discarded."""
        return self.table("messages")

    def runs(self) -> Any:
        """One row per run: everything one top-level message caused."""
        return self.table("runs")

    def turns(self) -> Any:
        """One row per turn: one model call (retries included) and its tools."""
        return self.table("turns")

    def tools(self) -> Any:
        """One row per tool call."""
        return self.table("tools")

    def permissions(self) -> Any:
        """One row per question whether a tool may run."""
        return self.table("permissions")

    def queue(self) -> Any:
        """One row per change of the two lanes."""
        return self.table("queue")

    def usage(self) -> Any:
        """One row per model call: tokens, time, cost in the provider's unit."""
        return self.table("usage")

    def errors(self) -> Any:
        """One row per thing that went wrong."""
        return self.table("errors")


class Tables(NamedTables):
    """The tables that both kinds of log have. Each call makes a new frame; it never changes afterwards."""

    def _columns(self, rows: int | None = None) -> Columns:
        """What each event says; of a file at least the first `rows`, if there are as many."""
        raise NotImplementedError

    def _relations(self, rows: int | None = None) -> Relations:
        """What belongs together."""
        raise NotImplementedError

    def table(self, name: str) -> pd.DataFrame:
        """A table by name: ``events``, ``messages``, ``runs`` …"""
        from copilot_nb.frames import tables

        frame: pd.DataFrame
        if name == "events":
            base = self._columns()
            frame = tables.events(base, base.rows)
        elif name in tables.MAKERS:
            frame = tables.MAKERS[name](self._columns(), self._relations())
        else:
            raise UsageError(f"There is no table {name!r}; there are {', '.join(schema.LOG_TABLES)}.")
        return frame

    @property
    def plot(self) -> Plots:
        """``plot()``: the timeline; ``plot.tokens()``, ``.tools()``, ``.waits()``. Needs matplotlib."""
        from copilot_nb.frames.plots import Plots

        return Plots(self)

    def svg(self) -> str:
        """The timeline as static SVG, without any extra."""
        from copilot_nb.frames.svg import timeline_svg

        return timeline_svg(self)

    def to_parquet(self, folder: str | Path, table: str = "events") -> Path:
        """Write a table partitioned by day; `copilot_nb.read_parquet` reads it back with the same dtypes."""
        from copilot_nb.frames.parquet import write

        return write([self.table(table)], folder, table)

    def compare(self, other: Any) -> Comparison:
        """Compare with another session turn by turn, see `copilot_nb.compare`."""
        from copilot_nb.frames.compare import compare

        return compare(self, other)

    def window(self) -> EventWindow:
        """Rows of the events for a view: filtered, sorted, a screenful at a time."""
        from copilot_nb.frames.window import EventWindow

        return EventWindow(self)


_full: Final = attrgetter("type", "data", "id", "parentId", "agentId", "ephemeral")


class Log(Tables):
    """The log of one session, read from a file when a table is first asked for.

    Parameters
    ----------
    source
        See `read_log`.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.warned = False
        self._begin()
        source.open().close()  # say at once what is wrong with the path

    def _begin(self) -> None:
        self._reader = Reader(self.source)
        self._fold_reader = Reader(self.source, wire.FULL)
        self._fold = Relations()
        self._base = Columns()
        self._batches: Iterator[Batch] | None = self._reader.batches()
        self._fold_batches: Iterator[Batch] | None = None
        self._oddities: list[tuple[int, str]] = []

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """After an interrupt columns may differ in length: reading begins anew. A failed one goes on."""
        try:
            with no_gc():
                yield
        except CopilotNbError:
            self._fold_batches = None
            self._batches = None if self._batches is None else self._reader.batches()
            raise
        except BaseException:
            self._begin()
            raise

    def __repr__(self) -> str:
        more = "" if self.complete else " so far"
        return f"<Log {self.source.name}: {self._base.rows} events{more}>"

    def _columns(self, rows: int | None = None) -> Columns:
        base = self._base
        with self._whole():
            while self._batches is not None and (rows is None or base.rows < rows):
                batch = next(self._batches, None)
                if batch is None:
                    self._batches = None
                else:
                    base.add_batch(batch)
            base.flush(self._oddities)
        if self._batches is None:
            self._warn()
        return base

    def _relations(self, rows: int | None = None) -> Relations:
        """Folded by a second reading, which most questions about events do not need."""
        fold = self._fold
        wanted = self._columns(rows).rows if rows is None else rows
        if len(fold.run_of) < wanted:
            self._fold_batches = self._fold_batches or self._fold_reader.batches()
            self._fold_reader.end = self._reader.position
            with self._whole():
                for batch in self._fold_batches:
                    fold.feed(map(_full, batch.lines))
                    if len(fold.run_of) >= wanted:
                        break
                else:
                    self._fold_batches = None
            if len(fold.run_of) < wanted:
                raise self._changed()
        return fold

    def _changed(self) -> StoreError:
        return StoreError(
            f"{self.source.name} was rewound or replaced since it was read: read_log reads it again."
        )

    @property
    def complete(self) -> bool:
        """Whether the file has been read to its end."""
        return self._batches is None

    def head(self, rows: int = 1000) -> pd.DataFrame:
        """The first rows of `events`, without reading a long file to its end."""
        from copilot_nb.frames import tables

        base = self._columns(rows)
        return tables.events(base, min(rows, base.rows))

    def count(self) -> int:
        """How many events the log has."""
        return self._columns().rows

    def pieces(self, rows: int) -> Iterator[pd.DataFrame]:
        """`events` in frames of about that many rows, one after another, none kept: for any size of log."""
        from copilot_nb.frames import tables

        reader, first = Reader(self.source), 0
        base = Columns()
        for batch in reader.batches():
            base.add_batch(batch)
            if base.rows >= rows:
                base.flush([])
                yield _from_row(tables.events(base, base.rows), first)
                first, base = first + base.rows, Columns()
        base.flush([])
        if base.rows:
            yield _from_row(tables.events(base, base.rows), first)

    def to_jsonl(self, path: str | Path, events: pd.DataFrame | None = None) -> int:
        """Write events as a log: all of them, or the rows of a frame such as a filtered ``log.events()``.

        Lines that had to be mended are written mended. Returns how many lines were written.

        Raises
        ------
        UsageError
            The path is the log itself, or the frame has lost the index of ``events()``, which names the rows.
        """
        if all(map(os.path.exists, (self.source.name, path))) and os.path.samefile(self.source.name, path):  # noqa: PTH121
            raise UsageError(f"{path} is the log itself: name another file.")
        if events is not None and events.index.name != "seq":
            raise UsageError("These rows have lost their index, seq, which says where in the log they are.")
        wanted = None if events is None else set(events.index)
        base = self._columns()
        count = row = 0
        with Path(path).open("wb") as file:
            for first, batch in base.segments:
                for row, line in enumerate(lines_of(batch, self.source.read), first):
                    if wanted is None or row in wanted:
                        file.write(line if batch.places is None else to_line(event_of(line)))
                        count += 1
        if row != max(base.rows - 1, 0):
            raise self._changed()
        return count

    def refresh(self) -> int:
        """Read what was added since the file was last read; how many events that were.

        Raises
        ------
        StoreError
            The file is no longer the one that was read: the session was rewound, or the file replaced.
        """
        before = self._columns().rows
        if before:
            self.event(before - 1)
        self._batches = self._reader.batches()
        try:
            return self._columns().rows - before
        except CopilotNbError:
            self._batches = None  # what was read stays
            raise

    def _warn(self) -> None:
        count = len(self._reader.problems) + len(self._oddities)
        if count and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.source.name}: {count} odd line{'s' if count > 1 else ''}; log.problems names "
                f"{'them' if count > 1 else 'it'}.",
                stacklevel=4,
            )

    @property
    def problems(self) -> pd.DataFrame:
        """Lines that are no events, or were kept only after mending: number, reason, whether kept."""
        from copilot_nb.frames import arrays

        base = self._columns()
        found = [*self._reader.problems]
        for row, reason in self._oddities:
            offset, length, line = base.place(row, self.source.read)
            found.append(Problem(line, offset, length, reason, True))
        found.sort(key=lambda problem: problem.offset)
        return arrays.frame(
            "problems",
            line=[problem.line for problem in found],
            reason=[problem.reason for problem in found],
            kept=[problem.kept for problem in found],
            offset=[problem.offset for problem in found],
            length=[problem.length for problem in found],
        )

    def event(self, which: str | int) -> Event:
        """The whole event of an id or a row number, read from the file."""
        base = self._columns(which + 1) if isinstance(which, int) else self._columns()
        row = row_of(base, which)
        try:
            offset, length, _ = base.place(row, self.source.read)
            event = event_of(self.source.read(offset, length))
        except (IndexError, NotAnEvent):
            raise self._changed() from None
        if well_formed(event.id) != (base.ids.at(row) or ""):
            raise self._changed()
        return event


def _from_row(frame: pd.DataFrame, first: int) -> pd.DataFrame:
    import pandas as pd

    frame.index = pd.RangeIndex(first, first + len(frame), name="seq")
    return frame


def row_of(base: Columns, which: str | int) -> int:
    """The row of an event id or row number; raises `UsageError` when there is none."""
    if isinstance(which, SupportsIndex) and not isinstance(which, bool):
        which = index(which)
        if not 0 <= which < base.rows:
            raise UsageError(f"There is no event {which}: the log has {base.rows}, counted from 0.")
        return which
    import pyarrow.compute as pc

    row = int(pc.index(base.ids.chunked(base.rows), which).as_py()) if isinstance(which, str) else -1
    if row < 0:
        raise UsageError(f"There is no event with id {which!r} in this log.")
    return row


def read_log(log: str | Path | IO[bytes] | IO[str], home: str | Path | None = None) -> Log:
    """Open a session's log for its tables.

    Parameters
    ----------
    log
        A path (``.jsonl``, ``.gz``, ``.zst``), a session's folder, a session id, a URL that fsspec knows, or
        an open file.
    home
        Where session ids are looked up; default ``$COPILOT_HOME`` or ``~/.copilot``.

    Raises
    ------
    SessionNotFound
        There is no such file or session.
    StoreError
        It is a folder without a log, or may not be read.
    """
    return Log(source_of(log, home))


__all__: list[Any] = ["Log", "read_log"]
