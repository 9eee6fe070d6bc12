"""From bytes to typed lines: in blocks, forgiving, never dropping a line in silence."""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec import UNSET

from copilot_nb.errors import SessionNotFound, StoreError, UsageError
from copilot_nb.events import Event
from copilot_nb.frames import wire
from copilot_nb.frames.wire import Line, NotAnEvent
from copilot_nb.store import EVENTS, session_folder

BLOCK: Final = 1 << 18  # bytes; larger blocks leave the processor's cache and are slower
_BLANK: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that is no event, or that was kept only after mending.

    Attributes
    ----------
    line
        1-based number of the line in the file.
    offset
        Byte at which it starts (of the decompressed text for ``.gz`` and ``.zst``).
    length
        Bytes.
    reason
        What is wrong with it.
    kept
        Whether the line is a row of the tables nevertheless.
    """

    line: int
    offset: int
    length: int
    reason: str
    kept: bool


class Source:
    """Where the bytes are: a file (plain, ``.gz``, ``.zst``, remote), or something open already."""

    def __init__(self, name: str, opener: Callable[[], IO[bytes]]) -> None:
        self.name = name
        self.opener = opener

    def open(self, offset: int = 0) -> IO[bytes]:
        """A stream at that byte; raises `SessionNotFound` or `StoreError` in words."""
        try:
            stream = self.opener()
        except FileNotFoundError:
            raise SessionNotFound(f"There is no log at {self.name}.") from None
        except IsADirectoryError:
            raise StoreError(f"{self.name} is a folder: name a log in it, or use read_logs for all.") from None
        except PermissionError:
            raise StoreError(f"{self.name} may not be read by this user.") from None
        except OSError as error:
            raise StoreError(f"Cannot read {self.name}: {error.strerror or error}.") from error
        try:
            if offset:
                skip(stream, offset)
        except (OSError, EOFError, ValueError) as error:
            raise StoreError(f"Cannot read {self.name} at byte {offset}: {error}.") from error
        return stream

    def read(self, offset: int, length: int) -> bytes:
        """Some bytes."""
        with self.open(offset) as stream:
            return stream.read(length)


def skip(stream: IO[bytes], offset: int) -> None:
    """Go to a byte, by reading when the stream cannot seek."""
    if stream.seekable():
        stream.seek(offset)
        return
    while offset > 0:
        got = len(stream.read(min(offset, BLOCK)))
        if not got:
            raise EOFError("the file is shorter than it was")
        offset -= got


def source_of(log: str | Path | IO[bytes] | IO[str], home: str | Path | None = None) -> Source:
    """The source for a path, a session id, a URL that fsspec knows, or an open file."""
    if hasattr(log, "read"):
        return _open_source(log)
    text = str(log)
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", text):
        return Source(text, lambda: _remote(text))
    path = Path(text).expanduser()
    if isinstance(log, str) and not path.exists() and re.fullmatch(r"[A-Za-z0-9_-]{1,200}", log):
        folder = session_folder(log, home)
        path = folder / EVENTS
        if not path.exists():
            raise SessionNotFound(f"There is no session {log!r} in {folder.parent} and no file of that name here.")
    elif path.is_dir() and (path / EVENTS).exists():
        path /= EVENTS
    return Source(str(path), lambda: open_plain(path))


def open_plain(path: Path) -> IO[bytes]:
    """A local file, decompressed by its ending."""
    if path.suffix in (".gz", ".zst"):
        return _decompressed(path.open("rb"), path.suffix)
    return path.open("rb")


def _decompressed(stream: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        import gzip

        return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]
    import pyarrow as pa

    return pa.CompressedInputStream(stream, "zstd")  # type: ignore[no-any-return]


def _remote(url: str) -> IO[bytes]:
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"To read {url}, install fsspec (and its package for this kind of address).") from None
    stream: IO[bytes] = fsspec.open(url, "rb").open()
    suffix = Path(url).suffix
    return _decompressed(stream, suffix) if suffix in (".gz", ".zst") else stream




def _open_source(stream: Any) -> Source:
    name = str(getattr(stream, "name", "the open file"))
    raw = getattr(stream, "buffer", stream)  # a text file has its bytes beneath
    if isinstance(raw, io.BufferedReader) and raw.seekable():
        start = raw.tell()

        def again() -> IO[bytes]:
            if raw.closed:
                raise OSError("the file was closed")
            raw.seek(start)
            return _View(raw, start)  # type: ignore[return-value]

        return Source(name, again)
    content = raw.read()
    blob = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)
    return Source(name, lambda: io.BytesIO(blob))


class _View:
    """Somebody's open file from where it stood when it was handed over; closing it leaves theirs open."""

    def __init__(self, raw: io.BufferedReader, start: int) -> None:
        self._raw, self._start = raw, start
        self.read = raw.read

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int) -> None:
        self._raw.seek(self._start + offset)

    def close(self) -> None:
        """Nothing: the file is not ours."""

    def __enter__(self) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class Batch:
    """Lines that lie behind one another, with the place of each."""

    lines: list[Line]
    offsets: array[int]
    lengths: array[int]
    numbers: array[int]
    block: bytes
    base: int
    mended: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def whole(self, index: int) -> Mapping[str, Any]:
        """The full data of one line."""
        known = self.mended.get(index)
        if known is None:
            start = self.offsets[index] - self.base
            known = whole_data(self.block[start : start + self.lengths[index]])
        return known


def whole_data(line: bytes) -> Mapping[str, Any]:
    """All of a line's ``data``; empty when it is no object."""
    try:
        record = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        return read_alone_data(line)
    data = record.get("data") if isinstance(record, dict) else None
    return data if isinstance(data, dict) else {}


def read_alone_data(line: bytes) -> Mapping[str, Any]:
    """`whole_data` for a line that only the tolerant parser reads."""
    try:
        return wire.read_alone(line)[1]
    except NotAnEvent:
        return {}


class Reader:
    """Reads a source from where it stopped before.

    Attributes
    ----------
    position, line
        Byte and 1-based number of the next line to read.
    problems
        In file order.
    """

    def __init__(self, source: Source, position: int = 0, line: int = 1) -> None:
        self.source = source
        self.position = position
        self.line = line
        self.problems: list[Problem] = []

    def batches(self) -> Iterator[Batch]:
        """All lines that are there now."""
        self.problems = [problem for problem in self.problems if problem.offset < self.position]
        with self.source.open(self.position) as stream:
            rest: list[bytes] = []
            while True:
                try:
                    chunk = stream.read(BLOCK)
                except (OSError, EOFError, ValueError, _zlib_error()) as error:
                    self._problem(self.position, 0, f"the compressed file cannot be read further: {error}", False)
                    rest.clear()
                    break
                if not chunk:
                    break
                cut = chunk.rfind(b"\n") + 1
                if not cut:
                    rest.append(chunk)
                    continue
                rest.append(chunk[:cut])
                yield self._batch(b"".join(rest) if len(rest) > 1 else rest[0])
                rest = [chunk[cut:]] if cut < len(chunk) else []
        tail = b"".join(rest)
        if tail.strip(_BLANK):
            batch = self._tail(tail)
            if batch is not None:
                yield batch

    def _batch(self, block: bytes) -> Batch:
        import numpy as np

        base, number = self.position, self.line
        bytes_ = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(bytes_ == 10)
        count = len(ends)
        self.position += len(block)
        self.line += count
        lines = self._quick(block, bytes_, ends)
        if lines is None:
            return self._slow(block, base, number)
        starts = np.empty(count, np.int64)
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
        offsets, lengths, numbers = array("q"), array("q"), array("q")
        offsets.frombytes((starts + base).tobytes())
        lengths.frombytes((ends + 1 - starts).tobytes())
        numbers.frombytes(np.arange(number, number + count, dtype=np.int64).tobytes())
        return Batch(lines, offsets, lengths, numbers, block, base)

    @staticmethod
    def _quick(block: bytes, bytes_: Any, ends: Any) -> list[Line] | None:
        """All lines by one call; None when they must be read one by one.

        The parser takes values, not lines. If each line starts with a brace and ends with one, then every
        line's end lies between two values, and as many values as lines means one in each.
        """
        if not block.isascii() and not _is_utf8(block):
            return None
        try:
            lines: list[Line] = wire.decode_lines(block)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        if len(lines) != len(ends) or bytes_[0] != 123 or not (bytes_[ends[:-1] + 1] == 123).all():
            return None
        last = bytes_[ends - 1]
        if not (last == 125).all():
            if not ((last == 125) | ((last == 13) & (bytes_[ends - 2] == 125))).all():
                return None
        return lines

    def _slow(self, block: bytes, base: int, number: int) -> Batch:
        batch = Batch([], array("q"), array("q"), array("q"), block, base)
        offset = base
        for text in block.split(b"\n")[:-1]:
            self._one(batch, text, offset, len(text) + 1, number, "")
            offset += len(text) + 1
            number += 1
        return batch

    def _tail(self, text: bytes) -> Batch | None:
        """What comes after the last line's end: a whole event, or one that was cut off or still grows."""
        batch = Batch([], array("q"), array("q"), array("q"), text, self.position)
        self._one(batch, text, self.position, len(text), self.line, "the last line is cut off: ")
        if not batch.lines:
            return None  # read again when the file has grown
        self.position += len(text)
        return batch

    def _one(self, batch: Batch, text: bytes, offset: int, length: int, number: int, cut: str) -> None:
        if not text.strip(_BLANK):
            return
        mended = None
        try:
            if not _is_utf8(text):
                raise msgspec.DecodeError
            line = wire.decode_line(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            try:
                line, data, mended = wire.read_alone(text)
            except NotAnEvent as error:
                self._problem(offset, length, f"{cut}{error}", False, number)
                return
            batch.mended[len(batch.lines)] = data
        if mended is not None:
            self._problem(offset, length, mended, True, number)
        batch.lines.append(line)
        batch.offsets.append(offset)
        batch.lengths.append(length)
        batch.numbers.append(number)

    def _problem(self, offset: int, length: int, reason: str, kept: bool, number: int | None = None) -> None:
        self.problems.append(Problem(self.line if number is None else number, offset, length, reason, kept))


def _zlib_error() -> type[Exception]:
    import zlib

    return zlib.error


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def event_of(line: bytes) -> Event:
    """The whole event of one line, as far as it can be read."""
    record, data, _ = wire.read_alone(line)
    agent = record.agentId if record.agentId is not None else UNSET
    ephemeral = True if record.ephemeral else UNSET
    return Event(
        record.type, dict(data), record.id or "", record.timestamp or "", record.parentId, agent, ephemeral
    )
