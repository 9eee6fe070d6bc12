"""Columns that grow: cheap to append to, and handed out without being read again.

Nothing here imports numpy or pyarrow before a frame is asked for; a live session appends to these.
"""

from __future__ import annotations

import contextlib
import gc
import json
import struct
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

NA: Final = -(2**63)  # in arrays of 64-bit integers; also pandas' NaT
SMALL: Final = 1024  # rows; smaller pieces are joined with what comes next


@contextlib.contextmanager
def no_gc() -> Iterator[None]:
    """Many short-lived tuples and no cycles: looking for cycles meanwhile would cost a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Codes(dict[str | None, int]):
    """A number for every distinct text, in order of first sight."""

    def __missing__(self, key: str | None) -> int:
        code = len(self) - (None in self)  # None, where it is known, is -1
        self[key] = code
        return code

    def names(self) -> list[str]:
        """The texts by number."""
        return [name for name in self if name is not None]

    def of(self, names: Sequence[str | None]) -> bytes:
        """The numbers of texts, see `packed`."""
        count = len(names)
        if None in self and names.count(None) == count:
            return packed((self[None],)) * count
        return packed([*map(self.__getitem__, names)])


class Numbers(dict[Any, int]):
    """``turnId`` as a number, -1 for what is none."""

    def __missing__(self, key: Any) -> int:
        number = turn_number(key)
        if len(self) < 10_000:
            self[key] = number
        return number

    def of(self, turns: Sequence[Any]) -> bytes:
        """The numbers of turns, see `packed`."""
        try:
            return packed([*map(self.__getitem__, turns)])
        except TypeError:  # an object or array as turnId
            return packed([*map(turn_number, turns)])


def packed(numbers: Sequence[int]) -> bytes:
    """32-bit numbers as the bytes of an ``array("i")``, which would take one by one four times as long."""
    return struct.pack(f"{len(numbers)}i", *numbers)


def turn_number(turn: Any) -> int:
    """``turnId`` (a decimal string in the reference) as a number; -1 for what is none."""
    if isinstance(turn, str):
        return int(turn) if len(turn) < 10 and turn.isdecimal() and turn.isascii() else -1
    return turn if isinstance(turn, int) and not isinstance(turn, bool) and 0 <= turn < 2**31 else -1


class Packed:
    """Texts as one block of UTF-8 and the place where each ends: what Arrow reads without a copy."""

    __slots__ = ("blob", "nulls", "offsets", "rows")

    def __init__(self, texts: Sequence[str | None]) -> None:
        rows = self.rows = len(texts)
        self.nulls: bytes | None = None
        missing = texts.count(None)
        whole: Sequence[str] = texts  # type: ignore[assignment]
        if missing:
            self.nulls = b"\1" * rows if missing == rows else bytes([text is None for text in texts])
            whole = () if missing == rows else [text or "" for text in texts]
        joined = "".join(whole)
        parts: Sequence[Any] = whole
        if joined.isascii():
            self.blob = joined.encode()
        else:
            parts = [encode(text) for text in whole]
            self.blob = b"".join(parts)
        sizes = set(map(len, parts)) if len(parts) == rows else {0}
        if len(sizes) == 1:  # ids, and columns of nothing
            size = sizes.pop()
            self.offsets = array("q", range(0, size * rows + 1, size) if size else bytes(8 * (rows + 1)))
        else:
            self.offsets = array("q", accumulate(map(len, parts), initial=0))

    def at(self, row: int) -> str | None:
        """One text."""
        if self.nulls is not None and self.nulls[row]:
            return None
        return self.blob[self.offsets[row] : self.offsets[row + 1]].decode()

    def arrow(self) -> pa.Array:
        """The same as an Arrow array that shares this memory."""
        import numpy as np
        import pyarrow as pa

        valid = None
        if self.nulls is not None:
            bits = np.packbits(np.frombuffer(self.nulls, np.uint8) == 0, bitorder="little")
            valid = pa.py_buffer(bits)
        buffers = [valid, pa.py_buffer(self.offsets.tobytes()), pa.py_buffer(self.blob)]
        return pa.Array.from_buffers(pa.large_string(), self.rows, buffers)


def encode(text: str) -> bytes:
    """UTF-8; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def well_formed(text: str) -> str:
    """The text with every lone surrogate as U+FFFD (as JSON's own pairs have been joined already)."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def as_text(value: object) -> str:
    """Text as it is, anything else as compact JSON."""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    )


def arrow_texts(texts: Sequence[Any]) -> pa.Array:
    """Texts as an Arrow array; lone surrogates become U+FFFD, and what is no text its JSON."""
    import pyarrow as pa

    try:
        return pa.array(texts, pa.large_string())
    except (UnicodeEncodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        texts = [None if text is None else encode(as_text(text)).decode() for text in texts]
        return pa.array(texts, pa.large_string())


class Texts:
    """A column of texts in frozen pieces."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []  # Packed, or pa.Array

    def add(self, texts: Sequence[str | None]) -> None:
        """Append without pyarrow."""
        self._pieces.append(Packed(texts))

    def add_arrow(self, piece: pa.Array) -> None:
        """Append with pyarrow, which is quicker for many."""
        self._pieces.append(piece)

    def at(self, row: int) -> str | None:
        """One text, without making a column."""
        for piece in self._pieces:
            size = piece.rows if isinstance(piece, Packed) else len(piece)
            if row < size:
                text: str | None = piece.at(row) if isinstance(piece, Packed) else piece[row].as_py()
                return text
            row -= size
        raise IndexError(row)

    def chunked(self, rows: int) -> pa.ChunkedArray:
        """The first `rows` rows; small pieces are joined, so that many short reads leave few pieces."""
        import pyarrow as pa

        pieces: list[pa.Array] = []
        for piece in self._pieces:
            array_ = piece.arrow() if isinstance(piece, Packed) else piece
            if pieces and len(pieces[-1]) < SMALL and len(array_) < SMALL:
                pieces[-1] = pa.concat_arrays([pieces[-1], array_])
            else:
                pieces.append(array_)
        self._pieces[:] = pieces
        return pa.chunked_array(pieces, pa.large_string()).slice(0, rows)


# --- timestamps ----------------------------------------------------------------------------------------


class Clock:
    """Reads ISO 8601 timestamps as microseconds since 1970 in UTC, quickly for neighbours in time."""

    def __init__(self) -> None:
        self._second = ""
        self._micros = 0

    def read(self, text: str | None) -> int:
        """Microseconds, or `NA` for what is no timestamp. A naive one counts as UTC."""
        try:
            if text[:19] == self._second and text[-1] == "Z":  # type: ignore[index]
                size = len(text)  # type: ignore[arg-type]
                if size == 27:
                    return self._micros + int(text[20:26])  # type: ignore[index]
                if size == 24:
                    return self._micros + int(text[20:23]) * 1000  # type: ignore[index]
            return self._read(text)
        except (ValueError, TypeError, IndexError):
            return NA

    def _read(self, text: str | None) -> int:
        if text is None:
            return NA
        micros = parse_time(text)[0]
        if micros != NA and text[19:20] == "." and text[-1] == "Z":
            self._second, self._micros = text[:19], micros - micros % 1_000_000
        return micros


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def parse_time(text: str) -> tuple[int, str | None]:
    """Microseconds in UTC and what is odd about the text; `NA` when it is no timestamp."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return NA, f"timestamp not understood: {text[:40]!r}"
    odd = None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
        odd = "timestamp without offset, read as UTC"
    try:
        return (moment - _EPOCH) // _MICROSECOND, odd
    except OverflowError:
        return NA, f"timestamp out of range: {text[:40]!r}"
