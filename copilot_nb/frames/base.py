"""The columns of one log: what every table is made from. Fed by the file reader or by a live session."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from copilot_nb.events import Event
from copilot_nb.frames import wire
from copilot_nb.frames.columns import NA, Clock, Codes, Texts, parse_time
from copilot_nb.frames.known import KNOWN_TYPES
from copilot_nb.frames.reading import Batch, Problem
from copilot_nb.frames.relate import SHARED_KEYS, Relations
from copilot_nb.frames.wire import Data, Line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_FLUSH: Final = 8192  # rows that become one Arrow piece
_NO_DATA: Final = Data()


class Columns:
    """All columns of a log, and the relations between its events."""

    def __init__(self) -> None:
        self.relations = Relations()
        self.types = array("i")
        self.agents = array("i")
        self.time = array("q")
        self.ephemeral = bytearray()
        self.offset = array("q")
        self.length = array("q")
        self.ids, self.parents, self.texts = Texts(), Texts(), Texts()
        self.type_codes = Codes((name, code) for code, name in enumerate(KNOWN_TYPES))
        self.agent_codes = Codes()
        self.rows = 0
        self._lines: list[tuple[int, int]] = []  # (row, line number) where numbers jump
        self._next_line = -1
        self._waiting: tuple[list[str | None], ...] = ([], [], [], [])  # ids, parents, texts, timestamps
        self._clock = Clock()

    # --- from a file ----------------------------------------------------------------------------------

    def add_batch(self, batch: Batch, problems: list[Problem]) -> None:
        """Take lines of a file; `flush` when a table is wanted."""
        lines = batch.lines
        if not lines:
            return
        texts = self.relations.feed(lines, batch.whole)
        ids, parents, texts_, stamps = self._waiting
        ids += [line.id for line in lines]
        parents += [line.parentId for line in lines]
        stamps += [line.timestamp for line in lines]
        texts_ += texts
        self._common(lines)
        self.offset.extend(batch.offsets)
        self.length.extend(batch.lengths)
        self._number(batch.numbers)
        if len(ids) >= _FLUSH:
            self.flush(problems)

    def _number(self, numbers: Sequence[int]) -> None:
        first = self.rows - len(numbers)
        if numbers[0] == self._next_line and numbers[-1] - numbers[0] == len(numbers) - 1:
            self._next_line = numbers[-1] + 1
            return
        for row, number in enumerate(numbers, first):
            if number != self._next_line:
                self._lines.append((row, number))
            self._next_line = number + 1

    def line_of(self, row: int) -> int:
        """The 1-based line number of a row."""
        first, number = self._lines[bisect_right(self._lines, row, key=lambda mark: mark[0]) - 1]
        return number + row - first

    def flush(self, problems: list[Problem]) -> None:
        """Make Arrow pieces of what waits."""
        ids, parents, texts, stamps = self._waiting
        if not ids:
            return
        self.ids.add_arrow(ids)
        self.parents.add_arrow(parents)
        self.texts.add_arrow(texts)
        self._read_times(stamps, problems)
        for waiting in self._waiting:
            waiting.clear()

    def _read_times(self, stamps: Sequence[str | None], problems: list[Problem]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            moments = pc.cast(pa.array(stamps, pa.string()), pa.timestamp("us", "UTC")).cast(pa.int64())
            self.time.frombytes(moments.fill_null(NA).to_numpy().tobytes())
            return
        except (pa.ArrowInvalid, UnicodeEncodeError):
            pass
        for stamp in stamps:
            micros, odd = (NA, "no timestamp") if stamp is None else parse_time(stamp)
            row = len(self.time)
            self.time.append(micros)
            if odd is not None:
                problems.append(Problem(self.line_of(row), self.offset[row], self.length[row], odd, True))

    # --- from a live session --------------------------------------------------------------------------

    def add_events(self, events: Sequence[Event], offsets: Sequence[int]) -> None:
        """Take events as they were delivered, without numpy or pyarrow."""
        lines = [_line(event) for event in events]
        texts = self.relations.feed(lines, lambda index: events[index].data)
        self.ids.add([line.id for line in lines])
        self.parents.add([line.parentId for line in lines])
        self.texts.add(texts)
        read = self._clock.read
        self.time.extend([read(line.timestamp) for line in lines])
        self.offset.extend(offsets)
        self._common(lines)

    def _common(self, lines: Sequence[Line]) -> None:
        codes = self.type_codes
        self.types.extend([codes[line.type] for line in lines])
        agents = self.agent_codes
        self.agents.extend([-1 if line.agentId is None else agents[line.agentId] for line in lines])
        self.ephemeral += bytes([line.ephemeral for line in lines])
        self.rows += len(lines)

    # --- to tables ------------------------------------------------------------------------------------

    def times(self, rows: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Times of rows in microseconds, NaT for row -1; all of them without an argument."""
        import numpy as np

        every = np.frombuffer(self.time[: self.rows], np.int64)
        if rows is None:
            return every
        return _pick(every, rows, NA)

    def text_at(self, rows: Sequence[int]) -> pa.Array:
        """Texts of rows; null for row -1."""
        import numpy as np
        import pyarrow as pa

        index = np.asarray(rows, np.int64)
        return self.texts.chunked(self.rows).take(pa.array(index, mask=index < 0)).combine_chunks()

    def ids_at(self, rows: Sequence[int]) -> pa.Array:
        """Event ids of rows; null for row -1."""
        import numpy as np
        import pyarrow as pa

        index = np.asarray(rows, np.int64)
        return self.ids.chunked(self.rows).take(pa.array(index, mask=index < 0)).combine_chunks()


def _pick(values: np.ndarray, rows: Any, missing: int) -> np.ndarray:
    import numpy as np

    index = np.asarray(rows, np.int64)
    if not len(values):
        return np.full(len(index), missing, values.dtype)
    return np.where(index < 0, missing, values[np.maximum(index, 0)])


def _line(event: Event) -> Line:
    """The typed line of an event; the many that carry nothing for the tables share one empty data."""
    kind = event.type
    agent = event.agent_id
    data = event.data
    if kind in _EMPTY:
        typed = _NO_DATA
    elif kind in SHARED_KEYS:
        try:
            typed = wire.convert(data)
        except wire.MsgspecError:
            typed = wire.lenient(data)
    else:
        typed = wire.lenient(data)
    return Line(
        kind,
        event.id,
        event.timestamp,
        event.parent_id,
        typed,
        agent if isinstance(agent, str) else None,
        event.ephemeral is True,
    )


_EMPTY: Final = frozenset(
    {
        "assistant.message_delta",
        "assistant.message_start",
        "assistant.reasoning_delta",
        "assistant.streaming_delta",
        "pending_messages.modified",
    }
)
Whole = Callable[[int], Mapping[str, Any]]
