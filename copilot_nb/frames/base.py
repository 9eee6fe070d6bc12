"""The columns of one log: what every table is made from. Fed by the file reader or by a live session."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from copilot_nb.events import Event
from copilot_nb.frames import wire
from copilot_nb.frames.columns import (
    NA,
    Clock,
    Codes,
    Numbers,
    Texts,
    arrow_texts,
    as_text,
    packed,
    parse_time,
    turn_number,
)
from copilot_nb.frames.known import KNOWN_TYPES
from copilot_nb.frames.reading import Batch
from copilot_nb.frames.relate import Relations
from copilot_nb.frames.wire import Failure, Result

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from typing_extensions import Buffer

_FLUSH: Final = 1024  # rows that become one Arrow piece: their texts are still in the cache
_tuple: Final = msgspec.structs.astuple


class Columns:
    """What each event says by itself."""

    def __init__(self) -> None:
        self.rows = 0
        self.types, self.agents, self.tools, self.turns = array("i"), array("i"), array("i"), array("i")
        self.time, self.input, self.output = array("q"), array("q"), array("q")
        self.ephemeral = bytearray()
        self.offset = array("q")  # of a live session's events; a file's are found through `segments`
        self.segments: list[tuple[int, Batch]] = []  # (first row, where its lines are)
        self.ids, self.parents, self.texts, self.interactions = Texts(), Texts(), Texts(), Texts()
        self.type_codes = Codes((name, code) for code, name in enumerate(KNOWN_TYPES))
        self.agent_codes, self.tool_codes = Codes({None: -1}), Codes({None: -1})
        self._turn_numbers = Numbers()
        self._waiting: tuple[list[str | None], ...] = ([], [], [], [], [])  # texts that Arrow is to take
        self._stamps = Texts()  # that Arrow has taken and nobody has read
        self._loose: tuple[list[Buffer], ...] = ([], [], [], [], [], [], [])  # numbers that go to the arrays
        self._clock = Clock()

    # --- from a file ----------------------------------------------------------------------------------

    def add_batch(self, batch: Batch) -> None:
        """Take lines of a file; `flush` before a table is made."""
        if not batch.lines:
            return
        types, datas, ids, stamps, parents, agents, ephemeral = zip(*map(_tuple, batch.lines), strict=True)
        turns, interactions, tools, contents, results, usages, errors, messages, summaries, ins, outs = zip(
            *map(_tuple, datas), strict=True
        )
        count = len(ids)
        texts = _texts(contents, results, errors, messages, summaries)
        for column, values in zip(self._waiting, (ids, parents, texts, interactions, stamps), strict=True):
            column.extend(values)
        numbers = (
            self.type_codes.of(types),
            self.agent_codes.of(agents),
            self.tool_codes.of(tools),
            self._turn_numbers.of(turns),
            *_tokens(usages, ins, outs),
            bytes(count) if ephemeral.count(None) == count else bytes(map(bool, ephemeral)),
        )
        for loose, piece in zip(self._loose, numbers, strict=True):
            loose.append(piece)
        self.segments.append((self.rows, replace(batch, lines=[])))
        self.rows += count
        if len(self._waiting[0]) >= _FLUSH:
            self._to_arrow()

    def place(self, row: int, read: Callable[[int, int], bytes]) -> tuple[int, int, int]:
        """Offset, length and 1-based line number of a row; `read` gives bytes of the file."""
        first, batch = self.segments[bisect_right(self.segments, row, key=lambda segment: segment[0]) - 1]
        if batch.places is not None:
            return batch.places[row - first]
        offset = batch.offset
        lines = read(batch.offset, batch.length).split(b"\n")
        offset += sum(len(line) + 1 for line in lines[: row - first])
        return offset, len(lines[row - first]) + 1, batch.number + row - first

    def flush(self, oddities: list[tuple[int, str]]) -> None:
        """Make columns of what waits; timestamps that are odd are told by row and reason."""
        self._to_arrow()
        self._read_times(oddities)
        arrays = self.types, self.agents, self.tools, self.turns, self.input, self.output
        for column, loose in zip(arrays, self._loose, strict=False):
            column.frombytes(b"".join(loose))  # at once: an array that grows copies itself again and again
        self.ephemeral += b"".join(self._loose[-1])
        for loose in self._loose:
            loose.clear()

    def _to_arrow(self) -> None:
        ids, parents, texts, interactions, stamps = self._waiting
        if not ids:
            return
        if parents[1:] == ids[:-1]:  # one chain, as events nearly always are: one piece of memory holds both
            chain = arrow_texts([parents[0], *ids])
            self.ids.add_arrow(chain[1:])
            self.parents.add_arrow(chain[:-1])
        else:
            self.ids.add_arrow(arrow_texts(ids))
            self.parents.add_arrow(arrow_texts(parents))
        self.texts.add_arrow(arrow_texts(texts))
        self.interactions.add_arrow(arrow_texts(interactions))
        self._stamps.add_arrow(arrow_texts(stamps))
        for waiting in self._waiting:
            waiting.clear()

    def _read_times(self, oddities: list[tuple[int, str]]) -> None:
        stamps, self._stamps = self._stamps.chunked(self.rows - len(self.time)), Texts()
        if self._read_well_formed(stamps):
            return
        for piece in stamps.chunks:
            if not self._read_well_formed(piece):
                for stamp in piece.to_pylist():
                    micros, odd = (NA, "no timestamp") if stamp is None else parse_time(stamp)
                    if odd is not None:
                        oddities.append((len(self.time), odd))
                    self.time.append(micros)

    def _read_well_formed(self, stamps: pa.Array | pa.ChunkedArray) -> bool:
        """Whether all were, and have been taken."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            moments = pc.cast(stamps, pa.timestamp("us", "UTC")).cast(pa.int64())
        except pa.ArrowInvalid:
            return False
        if not moments.null_count:
            self.time.frombytes(moments.to_numpy().tobytes())
        return not moments.null_count

    # --- from a live session --------------------------------------------------------------------------

    def add_events(self, events: Sequence[Event], offsets: Iterable[int], relations: Relations) -> None:
        """Take events as they were delivered, without numpy or pyarrow, and fold them into `relations`."""
        types, datas, ids, stamps, parents, agents, flags = zip(*map(_tuple, events), strict=True)
        count = len(types)
        if agents.count(UNSET) == count:
            agents = (None,) * count
        else:
            agents = tuple([agent if type(agent) is str else None for agent in agents])
        ephemeral = [flag is True for flag in flags]
        self.types.frombytes(self.type_codes.of(types))
        self.agents.frombytes(self.agent_codes.of(agents))
        self.ephemeral += bytes(ephemeral)
        tokens = _NAS * count, _NAS * count
        turns, tools = _NONE * count, _NONE * count
        texts: list[str | None] = [None] * count
        interactions: list[str | None] = [None] * count
        for index, kind in enumerate(types):
            if kind in EMPTY:
                continue
            get = datas[index].get
            value = get("turnId")
            if value is not None:
                turns[index] = self._turn_numbers[value] if type(value) is str else turn_number(value)
            value = get("toolName")
            if type(value) is str:
                tools[index] = self.tool_codes[value]
            value = get("interactionId")
            if type(value) is str:
                interactions[index] = value
            value = get("content")
            if value is None:
                value = _other_text(get)
            texts[index] = value if value is None or type(value) is str else as_text(value)
            usage, tokens_in, tokens_out = get("usage"), get("inputTokens"), get("outputTokens")
            if usage is not None and isinstance(usage, Mapping):
                tokens_in = usage.get("inputTokens") if tokens_in is None else tokens_in
                tokens_out = usage.get("outputTokens") if tokens_out is None else tokens_out
            if tokens_in is not None or tokens_out is not None:
                _put(tokens[0], index, wire.whole(tokens_in))
                _put(tokens[1], index, wire.whole(tokens_out))
        self.input.extend(tokens[0])
        self.output.extend(tokens[1])
        self.turns.frombytes(packed(turns))
        self.tools.frombytes(packed(tools))
        for column, values in (
            (self.ids, ids),
            (self.parents, parents),
            (self.texts, texts),
            (self.interactions, interactions),
        ):
            column.add(values)
        self.time.extend(map(self._clock.read, stamps))
        self.offset.extend(offsets)
        self.rows += count
        relations.feed(zip(types, datas, ids, parents, agents, ephemeral, strict=True))

    # --- to tables ------------------------------------------------------------------------------------

    def times(self, rows: Sequence[int]) -> np.ndarray:
        """Times of rows in microseconds, NaT for row -1."""
        import numpy as np

        index = np.asarray(rows, np.int64)
        values = np.frombuffer(self.time[: self.rows], np.int64)
        if not len(values):
            return np.full(len(index), NA, np.int64)
        return np.where(index < 0, NA, values[np.maximum(index, 0)])

    def texts_at(self, column: Texts, rows: Sequence[int]) -> pa.Array:
        """Texts of rows; null for row -1."""
        import numpy as np
        import pyarrow as pa

        index = np.asarray(rows, np.int64)
        return column.chunked(self.rows).take(pa.array(index, mask=index < 0)).combine_chunks()


def _texts(contents: Sequence[Any], *others: Sequence[Any]) -> Sequence[Any]:
    """The content of each event, or else the first of the others that it has."""
    texts = list(contents)
    for column in others:
        if column.count(None) < len(texts):
            for row, other in enumerate(column):
                if other is not None and texts[row] is None:
                    kind = type(other)
                    texts[row] = (
                        other.content if kind is Result else other.message if kind is Failure else other
                    )
    return texts


def _tokens(
    usages: Sequence[wire.Usage | None], ins: Sequence[int | None], outs: Sequence[int | None]
) -> tuple[Buffer, Buffer]:
    """Tokens in and out, from the usage of a call or from the event itself."""
    count = len(usages)
    column_in, column_out = _NAS * count, _NAS * count
    for row, usage in enumerate(usages):
        if usage is not None:
            _put(column_in, row, usage.inputTokens)
            _put(column_out, row, usage.outputTokens)
    for column, values in ((column_in, ins), (column_out, outs)):
        if values.count(None) < count:
            for row, value in enumerate(values):
                _put(column, row, value)
    return column_in, column_out


def _put(column: array[int], row: int, value: int | None) -> None:
    if value is not None and -wire.I64 < value < wire.I64:
        column[row] = value


def _other_text(get: Callable[[str], Any]) -> Any:
    """What stands for the content of an event that has none: the same order as in `_texts`."""
    for key, part in (("result", "content"), ("error", "message"), ("message", ""), ("summary", "")):
        value = get(key)
        if part and value is not None and not isinstance(value, str):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


_NAS: Final = array("q", [NA])
_NONE: Final = array("i", [-1])
EMPTY: Final = frozenset(
    {
        "assistant.message_delta",
        "assistant.message_start",
        "assistant.reasoning_delta",
        "assistant.streaming_delta",
        "pending_messages.modified",
    }
)
"""Types of which there are many, and whose data has nothing for a row."""
