"""A screenful of events at a time, filtered and sorted: what an event table on screen asks for."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, Protocol

from copilot_nb.errors import UsageError
from copilot_nb.frames.columns import NA

if TYPE_CHECKING:
    import numpy as np

    from copilot_nb.frames.base import Columns
    from copilot_nb.frames.relate import Relations

SORTABLE: Final = ("seq", "time", "type", "run", "turn", "tool", "ms", "tokens")
_SUMMARY: Final = 200  # characters


class _Readable(Protocol):
    complete: bool

    def _columns(self, rows: int | None = None) -> Columns: ...

    def _relations(self, rows: int | None = None) -> Relations: ...


class EventWindow:
    """Windows of one log's events. Keep one per view: what it has filtered and sorted, it remembers.

    Rows are dicts: ``seq`` (place in the log), ``time`` (seconds since the first event; None if unknown),
    ``type``, ``run``, ``turn``, ``tool``, ``ms`` (how long what this event ends took: turn, tool call,
    permission, model call), ``tokens`` (of a model call, both directions), ``summary`` (one line of at most
    200 characters), ``ephemeral``, ``id``. What an event does not have is None.
    """

    def __init__(self, log: Any) -> None:
        self._log: _Readable = log
        self._chosen: dict[tuple[Any, ...], tuple[int, np.ndarray]] = {}
        self._ms = array("d")
        self._tool_of_end: dict[int, str] = {}
        self._spans = 0
        self._tool_of_start: dict[int, int] = {}
        self._tools = 0

    def count(
        self, types: Collection[str] | None = None, text: str | None = None, ephemeral: bool = True
    ) -> int:
        """How many events pass the filter. Reads a file to its end."""
        base = self._log._columns()
        return len(self._choice(base, types, text, ephemeral))

    def type_counts(self, ephemeral: bool = True) -> dict[str, int]:
        """How many events there are of each type, the most frequent first."""
        import numpy as np

        base = self._log._columns()
        types = np.frombuffer(base.types[: base.rows], np.int32)
        if not ephemeral:
            types = types[np.frombuffer(bytes(base.ephemeral[: base.rows]), np.bool_) == 0]
        counts = np.bincount(types, minlength=len(base.type_codes))
        names = base.type_codes.names()
        return {names[code]: int(counts[code]) for code in np.argsort(-counts, kind="stable") if counts[code]}

    def rows(
        self,
        start: int,
        stop: int,
        sort: tuple[str, bool] = ("seq", True),
        types: Collection[str] | None = None,
        text: str | None = None,
        ephemeral: bool = True,
    ) -> list[dict[str, Any]]:
        """The rows from `start` to before `stop` of what passes the filter.

        Parameters
        ----------
        sort
            Column and whether upwards; rows without a value come last either way.
        types
            Only these types; None is all.
        text
            Only events whose text has this, whatever the case.
        ephemeral
            Whether ephemeral events count.
        """
        column, upwards = sort
        if column not in SORTABLE:
            raise UsageError(f"Cannot sort by {column!r}: there are {', '.join(SORTABLE)}.")
        if column == "seq" and upwards and types is None and text is None and ephemeral:
            base = self._log._columns(stop)  # the beginning of a long file, without the rest
            picked: Any = range(start, min(stop, base.rows))
            relations = self._log._relations(min(stop, base.rows))
        else:
            base = self._log._columns()
            picked = self._choice(base, types, text, ephemeral)
            relations = self._log._relations()
            if column == "seq":
                picked = picked if upwards else picked[::-1]
            else:
                picked = self._sorted(base, relations, picked, column, upwards, (types, text, ephemeral))
            picked = picked[start:stop].tolist()
        self._follow(relations)
        return [self._row(base, relations, row) for row in picked]

    def chosen(
        self, types: Collection[str] | None = None, text: str | None = None, ephemeral: bool = True
    ) -> list[int]:
        """The places in the log of what passes the filter."""
        rows: list[int] = self._choice(self._log._columns(), types, text, ephemeral).tolist()
        return rows

    def place(
        self,
        which: str,
        types: Collection[str] | None = None,
        text: str | None = None,
        ephemeral: bool = True,
    ) -> int | None:
        """Which of the filtered rows, in the log's order, an event id is; else the nearest."""
        import numpy as np

        from copilot_nb.frames.log import row_of

        base = self._log._columns()
        try:
            row = row_of(base, which)
        except UsageError:
            return None
        chosen = self._choice(base, types, text, ephemeral)
        return min(int(np.searchsorted(chosen, row)), len(chosen) - 1) if len(chosen) else None

    def _choice(
        self, base: Columns, types: Collection[str] | None, text: str | None, ephemeral: bool
    ) -> np.ndarray:
        """Rows that pass the filter, upwards; only new events are looked at."""
        import numpy as np

        key = (None if types is None else frozenset(types), text or None, ephemeral)
        rows = base.rows
        seen, chosen = self._chosen.get(key, (0, np.array([], np.int64)))
        if seen < rows:
            keep = np.ones(rows - seen, bool)
            if types is not None:
                codes = [base.type_codes[name] for name in types if name in base.type_codes]
                keep &= np.isin(np.frombuffer(base.types[seen:rows], np.int32), np.array(codes, np.int32))
            if not ephemeral:
                keep &= np.frombuffer(bytes(base.ephemeral[seen:rows]), np.bool_) == 0
            if text:
                keep &= _contains(base, seen, rows, text)
            chosen = np.concatenate([chosen, np.flatnonzero(keep) + seen])
            if len(self._chosen) > 8:
                self._chosen.clear()
            self._chosen[key] = (rows, chosen)
        return chosen

    def _sorted(
        self, base: Columns, relations: Relations, picked: np.ndarray, column: str, upwards: bool, filter: Any
    ) -> np.ndarray:
        import numpy as np

        types, text, ephemeral = filter
        key = (None if types is None else frozenset(types), text or None, ephemeral, column, upwards)
        seen, order = self._chosen.get(key, (-1, picked))
        if seen == base.rows:
            return order
        self._follow(relations)
        values, missing = self._values(base, relations, column)
        values, missing = values[picked], missing[picked]
        known, unknown = picked[~missing], picked[missing]
        ranks = values[~missing]
        places = np.argsort(ranks if upwards else -ranks, kind="stable")
        order = np.concatenate([known[places], unknown])
        self._chosen[key] = (base.rows, order)
        return order

    def _values(self, base: Columns, relations: Relations, column: str) -> tuple[np.ndarray, np.ndarray]:
        """A number for each event, by which to sort, and whether it has none."""
        import numpy as np

        rows = base.rows
        if column == "time":
            values = np.frombuffer(base.time[:rows], np.int64)
            return values, values == NA
        if column == "tokens":
            ins, outs = (
                np.frombuffer(base.input[:rows], np.int64),
                np.frombuffer(base.output[:rows], np.int64),
            )
            missing = (ins == NA) & (outs == NA)
            return np.where(ins == NA, 0, ins) + np.where(outs == NA, 0, outs), missing
        if column == "ms":
            took = np.full(rows, np.nan)
            known = np.frombuffer(self._ms[:rows], np.float64)
            took[: len(known)] = known
            return took, np.isnan(took)
        if column == "tool":
            names = [self._tool_name(base, row) for row in range(rows)]
            ranks = {name: rank for rank, name in enumerate(sorted({n for n in names if n is not None}))}
            values = np.array([-1 if name is None else ranks[name] for name in names], np.int64)
            return values, values < 0
        if column == "type":
            names_ = base.type_codes.names()
            rank = np.argsort(np.argsort(np.array(names_)))
            return rank[np.frombuffer(base.types[:rows], np.int32)], np.zeros(rows, bool)
        values = np.frombuffer((relations.run_of if column == "run" else base.turns)[:rows], np.int32)
        return values.astype(np.int64), values < 0

    def _follow(self, relations: Relations) -> None:
        """Learn of what ended since the last look."""
        spans, tools = relations.spans, relations.tools
        for span in spans[self._spans :]:
            if span.tool is not None:
                self._tool_of_end[span.end] = span.tool
            if len(self._ms) <= span.end:
                self._ms.extend([float("nan")] * (span.end + 1 - len(self._ms)))
            if span.milliseconds is not None:
                self._ms[span.end] = span.milliseconds
            elif span.start >= 0:
                self._ms[span.end] = self._between(span.start, span.end)
        self._spans = len(spans)
        for index in range(self._tools, len(tools)):
            self._tool_of_start[tools[index].start] = index
        self._tools = len(tools)

    def _between(self, start: int, end: int) -> float:
        time = self._log._columns(end + 1).time
        return (time[end] - time[start]) / 1000 if NA not in (time[start], time[end]) else float("nan")

    def _tool_name(self, base: Columns, row: int) -> str | None:
        code = base.tools[row]
        return self._tool_of_end.get(row) if code < 0 else base.tool_codes.names()[code]

    def _row(self, base: Columns, relations: Relations, row: int) -> dict[str, Any]:
        time, first = base.time[row], base.time[0]
        took = self._ms[row] if row < len(self._ms) else float("nan")
        spent = [value for value in (base.input[row], base.output[row]) if value != NA]
        run, turn = relations.run_of[row], base.turns[row]
        return {
            "seq": row,
            "time": (time - first) / 1e6 if NA not in (time, first) else None,
            "type": base.type_codes.names()[base.types[row]],
            "run": run if run >= 0 else None,
            "turn": turn if turn >= 0 else None,
            "tool": self._tool_name(base, row),
            "ms": took if took == took else None,
            "tokens": sum(spent) if spent else None,
            "summary": self._summary(base, relations, row),
            "ephemeral": bool(base.ephemeral[row]),
            "id": base.ids.at(row),
        }

    def _summary(self, base: Columns, relations: Relations, row: int) -> str:
        text = base.texts.at(row)
        if not text:
            index = self._tool_of_start.get(row)
            arguments = relations.tools[index].arguments if index is not None else None
            text = "" if arguments is None else arguments[: 4 * _SUMMARY].decode("utf-8", "replace")
        line = " ".join(text[: 4 * _SUMMARY].split())
        return line if len(line) <= _SUMMARY else line[: _SUMMARY - 1] + "…"


def _contains(base: Columns, start: int, stop: int, text: str) -> np.ndarray:
    import numpy as np
    import pyarrow.compute as pc

    texts = base.texts.chunked(stop).slice(start)
    found: np.ndarray = (
        pc.match_substring(texts, text, ignore_case=True).fill_null(False).to_numpy().astype(bool)
    )
    return np.asarray(found)
