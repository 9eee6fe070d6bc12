"""From bytes to typed lines: in blocks, forgiving, never dropping a line in silence."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec import UNSET, Struct

from copilot_nb.errors import SessionNotFound, StoreError, UsageError
from copilot_nb.events import Event
from copilot_nb.frames import wire
from copilot_nb.frames.wire import NotAnEvent
from copilot_nb.store import EVENTS, session_folder

BLOCK: Final = 1 << 17  # bytes; larger blocks leave the processor's cache, smaller ones cost more calls
_BLANK: Final = b" \t\r\n"


class Problem(Struct, frozen=True):
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
            raise StoreError(
                f"{self.name} is a folder: name a log in it, or use read_logs for all."
            ) from None
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
    if isinstance(log, str) and not os.path.lexists(path) and re.fullmatch(r"[A-Za-z0-9_-]{1,200}", log):
        folder = session_folder(log, home)
        path = folder / EVENTS
        with contextlib.suppress(PermissionError):  # opening it will say so
            if not path.exists():
                raise SessionNotFound(
                    f"There is no session {log!r} in {folder.parent} and no file of that name here."
                )
    elif os.path.isdir(path) and os.path.lexists(path / EVENTS):  # noqa: PTH112  # never raises, unlike is_dir
        path /= EVENTS
    return Source(str(path), lambda: open_plain(path))


def open_plain(path: Path) -> IO[bytes]:
    """A local file, decompressed by its ending."""
    if path.suffix == ".gz":
        import gzip

        return gzip.open(path)  # type: ignore[return-value]  # reads like one
    if path.suffix == ".zst":
        import pyarrow as pa

        return pa.CompressedInputStream(str(path), "zstd")  # type: ignore[no-any-return]
    return path.open("rb")


def file_system(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it; raises `UsageError` where there is none."""
    try:
        import fsspec
    except ImportError:
        raise UsageError(
            f"To read {url}, install fsspec (and its package for this kind of address)."
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{url} cannot be read by fsspec: {error}.") from error
    return system, path


def _remote(url: str) -> IO[bytes]:
    system, path = file_system(url)
    if url.endswith(".zst"):
        import pyarrow as pa

        return pa.CompressedInputStream(system.open(path, "rb"), "zstd")  # type: ignore[no-any-return]
    stream: IO[bytes] = system.open(path, "rb", compression="gzip" if url.endswith(".gz") else None)
    return stream


def _open_source(stream: Any) -> Source:
    name = str(getattr(stream, "name", "the open file"))
    raw = getattr(stream, "buffer", stream)  # a text file has its bytes beneath
    if isinstance(raw, io.BufferedReader) and raw.seekable():
        start = raw.tell()

        def again() -> IO[bytes]:
            if raw.closed:
                raise OSError("the file was closed")
            return _View(raw, start)  # type: ignore[return-value]

        return Source(name, again)
    content = raw.read()
    blob = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)
    return Source(name, lambda: io.BytesIO(blob))


class _View:
    """Somebody's open file from where it stood when it was handed over; closing it leaves theirs open."""

    def __init__(self, raw: io.BufferedReader, start: int) -> None:
        self._raw, self._position, self._start = raw, start, start

    def read(self, size: int) -> bytes:
        self._raw.seek(self._position)  # somebody else may have moved it, and so may another view
        got = self._raw.read(size)
        self._position += len(got)
        return got

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int) -> None:
        self._position = self._start + offset

    def close(self) -> None:
        """Nothing: the file is not ours."""

    def __enter__(self) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Batch(Struct):
    """Lines that were read together.

    Attributes
    ----------
    lines
        Of the form that was asked for.
    offset, length
        The bytes they lie in.
    number
        Of the first line.
    places
        Offset, length and number of each line, where a block had to be read line by line; None where every
        line of the block is an event, so that the n-th line is the n-th event.
    """

    lines: list[Any]
    offset: int
    length: int
    number: int
    places: list[tuple[int, int, int]] | None = None


class Reader:
    """Reads a source from where it stopped before.

    Attributes
    ----------
    position, line
        Byte and 1-based number of the next line to read.
    problems
        In file order.

    Parameters
    ----------
    end
        Stop before this byte; for reading again what another reader has read.
    """

    def __init__(self, source: Source, form: wire.Form = wire.LEAN, end: int | None = None) -> None:
        self.source = source
        self.form = form
        self.end = end
        self.position = 0
        self.line = 1
        self.problems: list[Problem] = []

    def batches(self) -> Iterator[Batch]:
        """All lines that are there now."""
        self.problems = [problem for problem in self.problems if problem.offset < self.position]
        with self.source.open(self.position) as stream:
            rest: list[bytes] = []
            while True:
                try:
                    chunk = stream.read(self._wanted(sum(map(len, rest))))
                except (OSError, EOFError, ValueError, _zlib_error()) as error:
                    self._problem(
                        self.position, 0, f"the compressed file cannot be read further: {error}", False
                    )
                    rest.clear()
                    break
                if not chunk:
                    break
                cut = chunk.rfind(b"\n") + 1
                if not cut:
                    rest.append(chunk)
                    continue
                yield self._batch(b"".join(rest), chunk, cut)
                rest = [chunk[cut:]] if cut < len(chunk) else []
        tail = b"".join(rest)
        if tail.strip(_BLANK):
            batch = self._tail(tail)
            if batch is not None:
                yield batch

    def _wanted(self, waiting: int) -> int:
        return BLOCK if self.end is None else max(0, min(BLOCK, self.end - self.position - waiting))

    def _batch(self, begun: bytes, chunk: bytes, cut: int) -> Batch:
        """The lines of `chunk` up to a line end at `cut`; the first line began with `begun`."""
        import numpy as np

        first = chunk.find(b"\n") + 1 if begun else 0
        head, body = begun + chunk[:first], memoryview(chunk)[first:cut]
        count = int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == 10))  # many: quicker than bytes.count
        offset, number = self.position, self.line
        length = len(begun) + cut
        self.position += length
        self.line += count
        if (chunk.isascii() and begun.isascii()) or (_is_utf8(head) and _is_utf8(body)):
            with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                lines = self.form.many(head) + self.form.many(body)
                if len(lines) == count:
                    return Batch(lines, offset, length, number)
        return self._slow(begun + chunk[:cut], offset, number)

    def _slow(self, block: bytes, offset: int, number: int) -> Batch:
        batch = Batch([], offset, len(block), number, [])
        for text in block.split(b"\n")[:-1]:
            self._one(batch, text, offset, len(text) + 1, number, "")
            offset += len(text) + 1
            number += 1
        return batch

    def _tail(self, text: bytes) -> Batch | None:
        """What comes after the last line's end: a whole event, or one that was cut off or still grows."""
        batch = Batch([], self.position, len(text), self.line, [])
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
            line = self.form.one(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            try:
                record, data, mended = wire.read_alone(text)
                line = self.form.tolerant(record, data)
            except NotAnEvent as error:
                self._problem(offset, length, f"{cut}{error}", False, number)
                return
        if mended is not None:
            self._problem(offset, length, mended, True, number)
        batch.lines.append(line)
        if batch.places is not None:
            batch.places.append((offset, length, number))

    def _problem(self, offset: int, length: int, reason: str, kept: bool, number: int | None = None) -> None:
        self.problems.append(Problem(self.line if number is None else number, offset, length, reason, kept))


def _zlib_error() -> type[Exception]:
    import zlib

    return zlib.error


def _is_utf8(block: bytes | memoryview) -> bool:
    try:
        str(block, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def lines_of(batch: Batch, read: Callable[[int, int], bytes]) -> list[bytes]:
    """The lines of a batch again; `read` gives bytes of the file."""
    block = read(batch.offset, batch.length)
    if batch.places is None:
        return [line + b"\n" for line in block.split(b"\n")[:-1]]
    return [block[start - batch.offset : start - batch.offset + size] for start, size, _ in batch.places]


def event_of(line: bytes) -> Event:
    """The whole event of one line, as far as it can be read."""
    record, _, _ = wire.read_alone(line)
    row = wire.tolerant_line(record, {})
    agent = UNSET if row.agentId is None else row.agentId
    ephemeral = True if row.ephemeral else UNSET
    return Event(
        row.type, record.get("data") or {}, row.id or "", row.timestamp or "", row.parentId, agent, ephemeral
    )
