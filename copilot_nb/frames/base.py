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
from copilot_nb.frames.columns import NA, Clock, Codes, Numbers, Texts, parse_time, turn_number
from copilot_nb.frames.known import KNOWN_TYPES
from copilot_nb.frames.reading import Batch
from copilot_nb.frames.relate import Relations
from copilot_nb.frames.wire import Failure, Result

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_FLUSH: Final = 2048  # rows that become one Arrow piece: their texts are still in the cache
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
        self._waiting: tuple[list[str | None], ...] = ([], [], [], [], [])
        self._clock = Clock()

    # --- from a file ----------------------------------------------------------------------------------

    def add_batch(self, batch: Batch, oddities: list[tuple[int, str]]) -> None:
        """Take lines of a file; `flush` before a table is made."""
        if not batch.lines:
            return
        first = self.rows
        types, datas, ids, stamps, parents, agents, ephemeral = zip(*map(_tuple, batch.lines), strict=True)
        texts, interactions = self._add(types, datas, agents, ephemeral)
        waiting = self._waiting
        for column, values in zip(waiting, (ids, parents, texts, interactions, stamps), strict=True):
            column.extend(values)
        self.segments.append((first, replace(batch, lines=[])))
        if len(waiting[0]) >= _FLUSH:
            self.flush(oddities)

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
        """Make Arrow pieces of what waits; timestamps that are odd are told by row and reason."""
        ids, parents, texts, interactions, stamps = self._waiting
        if not ids:
            return
        self.ids.add_arrow(ids)
        self.parents.add_arrow(parents)
        self.texts.add_arrow(texts)
        self.interactions.add_arrow(interactions)
        self._read_times(stamps, oddities)
        for waiting in self._waiting:
            waiting.clear()

    def _read_times(self, stamps: Sequence[str | None], oddities: list[tuple[int, str]]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            moments = pc.cast(pa.array(stamps, pa.string()), pa.timestamp("us", "UTC")).cast(pa.int64())
            if not moments.null_count:
                self.time.frombytes(moments.to_numpy().tobytes())
                return
        except (pa.ArrowInvalid, UnicodeEncodeError):
            pass
        for stamp in stamps:
            micros, odd = (NA, "no timestamp") if stamp is None else parse_time(stamp)
            if odd is not None:
                oddities.append((len(self.time), odd))
            self.time.append(micros)

    # --- from a live session --------------------------------------------------------------------------

    def add_events(self, events: Sequence[Event], offsets: Iterable[int], relations: Relations) -> None:
        """Take events as they were delivered, without numpy or pyarrow, and fold them into `relations`."""
        types, datas, ids, stamps, parents, agents, flags = zip(*map(_tuple, events), strict=True)
        count, first = len(types), self.rows
        if agents.count(UNSET) == count:
            agents = (None,) * count
        else:
            agents = tuple([agent if type(agent) is str else None for agent in agents])
        ephemeral = [flag is True for flag in flags]
        self._common(types, agents, ephemeral)
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
            texts[index] = value if value is None or type(value) is str else wire.as_text(value)
            usage, tokens_in, tokens_out = get("usage"), get("inputTokens"), get("outputTokens")
            if usage is not None and isinstance(usage, Mapping):
                tokens_in = usage.get("inputTokens") if tokens_in is None else tokens_in
                tokens_out = usage.get("outputTokens") if tokens_out is None else tokens_out
            if tokens_in is not None or tokens_out is not None:
                self._set_tokens(first + index, wire.whole(tokens_in), wire.whole(tokens_out))
        self.turns.extend(turns)
        self.tools.extend(tools)
        for column, values in (
            (self.ids, ids),
            (self.parents, parents),
            (self.texts, texts),
            (self.interactions, interactions),
        ):
            column.add(values)
        self.time.extend(map(self._clock.read, stamps))
        self.offset.extend(offsets)
        relations.feed(zip(types, datas, ids, parents, agents, ephemeral, strict=True))

    # --- both -----------------------------------------------------------------------------------------

    def _add(
        self,
        types: Sequence[str],
        datas: Sequence[wire.Data],
        agents: Sequence[Any],
        ephemeral: Sequence[Any],
    ) -> tuple[Sequence[str | None], Sequence[str | None]]:
        """The columns of numbers; texts and interaction ids are left to the caller."""
        count, first = len(types), self.rows
        turns, interactions, tools, contents, results, usages, errors, messages, summaries, ins, outs = zip(
            *map(_tuple, datas), strict=True
        )
        self._common(types, agents, ephemeral)
        self.tools.extend(map(self.tool_codes.__getitem__, tools))
        try:
            self.turns.extend(map(self._turn_numbers.__getitem__, turns))
        except TypeError:  # an object or array as turnId
            del self.turns[first:]
            self.turns.extend([turn_number(turn) for turn in turns])
        column_in, column_out = self.input, self.output
        for row, usage in enumerate(usages, first):
            if usage is not None:
                value = usage.inputTokens
                if value is not None and -wire.I64 < value < wire.I64:
                    column_in[row] = value
                value = usage.outputTokens
                if value is not None and -wire.I64 < value < wire.I64:
                    column_out[row] = value
        if ins.count(None) + outs.count(None) < 2 * count:
            for row, (tokens_in, tokens_out) in enumerate(zip(ins, outs, strict=True), first):
                if tokens_in is not None or tokens_out is not None:
                    self._set_tokens(row, tokens_in, tokens_out)
        texts: Sequence[Any] = contents
        if results.count(None) < count:
            texts = [
                text
                if text is not None or result is None
                else result.content
                if type(result) is Result
                else result
                for text, result in zip(texts, results, strict=True)
            ]
        if errors.count(None) < count:
            texts = [
                text
                if text is not None or error is None
                else error.message
                if type(error) is Failure
                else error
                for text, error in zip(texts, errors, strict=True)
            ]
        for others in (messages, summaries):
            if others.count(None) < count:
                texts = [other if text is None else text for text, other in zip(texts, others, strict=True)]
        if not _PLAIN.issuperset(map(type, texts)):
            texts = [wire.as_text_or_none(text) for text in texts]
        return texts, interactions

    def _common(self, types: Sequence[str], agents: Sequence[Any], ephemeral: Sequence[Any]) -> None:
        count = len(types)
        self.types.extend(map(self.type_codes.__getitem__, types))
        if agents.count(None) == count:
            self.agents.extend(_NONE * count)
        else:
            self.agents.extend(map(self.agent_codes.__getitem__, agents))
        self.ephemeral += bytes(count) if ephemeral.count(None) == count else bytes(map(bool, ephemeral))
        self.input.extend(_NAS * count)
        self.output.extend(_NAS * count)
        self.rows += count

    def _set_tokens(self, row: int, tokens_in: int | None, tokens_out: int | None) -> None:
        for column, value in ((self.input, tokens_in), (self.output, tokens_out)):
            if value is not None and -wire.I64 < value < wire.I64:
                column[row] = value

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


def _other_text(get: Callable[[str], Any]) -> Any:
    """What stands for the content of an event that has none: the same order as in `Columns._add`."""
    for key, part in (("result", "content"), ("error", "message"), ("message", ""), ("summary", "")):
        value = get(key)
        if part and value is not None and not isinstance(value, str):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


_PLAIN: Final = frozenset({str, type(None)})
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
