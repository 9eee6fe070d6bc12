"""Where sessions lie, and the one file that is the truth: ``events.jsonl``.

``$COPILOT_HOME/session-state/<id>/`` holds ``events.jsonl``, ``workspace.yaml`` and, while somebody has
the session open, ``inuse.<pid>.lock`` (reference §13, §14). Each event is written with one system call at
the moment it happens: a kernel can be killed without any ``finally`` (jupyter-facts Q1).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from copilot_nb.errors import CorruptLog, StoreError, UsageError
from copilot_nb.events import Event, now, to_line
from copilot_nb.transcript import Transcript, read_transcript

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
EVENTS: Final = "events.jsonl"


def home_dir(home: str | os.PathLike[str] | None = None) -> Path:
    """The folder above ``session-state``: the argument, else ``COPILOT_HOME``, else ``~/.copilot``."""
    return Path(home or os.environ.get("COPILOT_HOME") or Path.home() / ".copilot").expanduser()


def check_session_id(session_id: str) -> str:
    """The id itself, or a `UsageError`; nothing on disk is looked at."""
    if not isinstance(session_id, str) or not _ID.fullmatch(session_id):
        raise UsageError(
            f"{session_id!r} is no session id: use 1 to 200 letters, digits, '-' and '_', like 'sales-2026'."
        )
    return session_id


def session_folder(session_id: str, home: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a session, whether it exists or not."""
    return home_dir(home) / "session-state" / check_session_id(session_id)


def holders(folder: Path) -> list[int]:
    """Ids of the other live processes that have the session open (advisory, reference §13)."""
    found = []
    for lock in folder.glob("inuse.*.lock"):
        with contextlib.suppress(ValueError):
            pid = int(lock.name.split(".")[1])
            if pid != os.getpid() and _alive(pid):
                found.append(pid)
    return sorted(found)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class EventStore:
    """The open log of one session.

    Attributes
    ----------
    path
        ``…/events.jsonl``, mode 0600, in a folder of mode 0700.
    size
        Bytes of the file as far as this process knows.
    on_failure
        Called with a sentence when the disk refuses a line, and with None when it accepts again. Refused
        lines are kept in memory, in order, and written before the next one.
    """

    def __init__(self, folder: Path, on_failure: Callable[[str | None], None] | None = None) -> None:
        self.folder = folder
        self.path = folder / EVENTS
        self.on_failure = on_failure or (lambda message: None)
        self._waiting: list[bytes] = []
        self._fd = -1
        self._dirty = False
        self.size = 0

    @classmethod
    def create(cls, session_id: str, home: str | os.PathLike[str] | None = None) -> EventStore:
        """Make a session's folder and an empty log; a `UsageError` when the session exists."""
        folder = session_folder(session_id, home)
        if (folder / EVENTS).exists():
            raise UsageError(f"Session {session_id!r} exists already: resume it, or choose another id.")
        store = cls(folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            store._open()
            store._lock()
            store._write_workspace(session_id)
        except OSError as error:
            store.close()
            raise StoreError(
                f"Cannot keep a session log in {folder}: {error.strerror or error}. "
                "Free some space, or name another home: COPILOT_HOME or open_session(home=…)."
            ) from error
        return store

    @classmethod
    def resume(
        cls, session_id: str, home: str | os.PathLike[str] | None = None, *, recover: bool = True
    ) -> tuple[EventStore, Transcript]:
        """Open an existing log for appending.

        Bad lines are taken out first; the file as it was stays beside it as
        ``events.jsonl.backup-before-recovery-<sha256>`` (reference §13).

        Raises
        ------
        SessionNotFound, CorruptLog, StoreError
            `CorruptLog` when no ``session.start`` of this id is in the file, or when lines are bad and
            `recover` is False.
        """
        folder = session_folder(session_id, home)
        store = cls(folder)
        transcript = read_transcript(store.path)
        starts = [event for event in transcript.events if event.type == "session.start"]
        if not starts:
            raise CorruptLog(f"{store.path} holds no session.start: it is empty or no session log.")
        if all(event.data.get("sessionId") != session_id for event in starts):
            raise CorruptLog(f"{store.path} belongs to session {starts[0].data.get('sessionId')!r}.")
        try:
            if transcript.problems:
                if not recover:
                    first = transcript.problems[0]
                    raise CorruptLog(
                        f"{store.path}, line {first.line}: {first.reason}; recovery was refused."
                    )
                store._recover(transcript)
            elif transcript.open_end:
                with store.path.open("ab") as file:
                    file.write(b"\n")
            store._open()
            store._lock()
        except OSError as error:
            store.close()
            raise StoreError(f"Cannot write {store.path}: {error.strerror or error}.") from error
        return store, transcript

    def append(self, event: Event) -> int:
        """Write one event now; returns the byte offset of its line, -1 while the disk refuses."""
        line = to_line(event)
        self._dirty = True
        if self._waiting:
            self._waiting.append(line)
            self._retry()
            return -1
        try:
            self._write(line)
        except OSError as error:
            self._waiting.append(line)
            self.on_failure(
                f"The session log cannot be written ({error.strerror or error}); events are kept in memory "
                f"and written as soon as {self.path} can be."
            )
            return -1
        return self.size - len(line)

    def _write(self, line: bytes) -> None:
        written = os.write(self._fd, line)
        if written != len(line):  # the disk filled up in mid-line: leave no half line behind
            os.ftruncate(self._fd, os.lseek(self._fd, 0, os.SEEK_CUR) - written)
            raise OSError(28, "No space left on device")
        self.size = os.lseek(self._fd, 0, os.SEEK_CUR)

    def _retry(self) -> None:
        try:
            while self._waiting:
                self._write(self._waiting[0])
                del self._waiting[0]
        except OSError:
            return
        self.on_failure(None)

    def sync(self) -> None:
        """Have the disk confirm what was written (fsync); tries refused lines again first."""
        if self._fd < 0 or not self._dirty:
            return
        self._dirty = False
        self._retry_if_waiting()
        with contextlib.suppress(OSError):  # a full or vanished disk was reported by append
            os.fsync(self._fd)

    def sync_soon(self) -> None:
        """`sync` on a thread of its own, so that a slow disk does not hold up the kernel's loop."""
        if self._fd < 0 or not self._dirty:
            return
        self._dirty = False
        self._retry_if_waiting()
        copy = os.dup(self._fd)
        threading.Thread(target=_fsync_and_close, args=(copy,), name="copilot_nb fsync", daemon=True).start()

    def _retry_if_waiting(self) -> None:
        if self._waiting:
            self._retry()

    def read(self) -> list[Event]:
        """Every stored event, from the file."""
        return read_transcript(self.path).events

    def keep_before(self, event_id: str) -> list[Event]:
        """Remove that event and all after it from the file (reference §18); the removed events."""
        transcript = read_transcript(self.path)
        index = next((i for i, event in enumerate(transcript.events) if event.id == event_id), None)
        if index is None:
            raise UsageError(f"No event {event_id!r} in this session's log.")
        self._replace(transcript.lines[:index])
        return transcript.events[index:]

    def drop(self, event_ids: Iterable[str]) -> int:
        """Remove single events from the file (a withdrawn message's); how many were there."""
        gone = set(event_ids)
        transcript = read_transcript(self.path)
        kept = [
            line
            for event, line in zip(transcript.events, transcript.lines, strict=True)
            if event.id not in gone
        ]
        self._replace(kept)
        return len(transcript.events) - len(kept)

    def _recover(self, transcript: Transcript) -> None:
        raw = self.path.read_bytes()
        name = f"{EVENTS}.backup-before-recovery-{hashlib.sha256(raw).hexdigest()}"
        shutil.copyfile(self.path, self.folder / name)
        (self.folder / name).chmod(0o600)
        self._replace(transcript.lines)

    def _replace(self, lines: list[bytes]) -> None:
        """Put a new file in the old one's place in one step: a crash leaves one of the two whole."""
        draft = self.path.with_suffix(f".{os.getpid()}.tmp")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        if self._fd >= 0:
            os.close(self._fd)
            self._open()

    def _open(self) -> None:
        self._fd = os.open(
            self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600
        )
        self.size = os.lseek(self._fd, 0, os.SEEK_END)

    def _lock(self) -> None:
        lock = self.folder / f"inuse.{os.getpid()}.lock"
        lock.write_text(f"{os.getpid()}\n")

    def _write_workspace(self, session_id: str) -> None:
        stamp = now()
        write_workspace(
            self.folder,
            id=session_id,
            cwd=str(Path.cwd()),
            client_name="copilot_nb",
            name=session_id,
            user_named=False,
            summary_count=0,
            fork_count=0,
            created_at=stamp,
            updated_at=stamp,
        )

    def close(self) -> None:
        """Let go of the file and the lock; closing twice is harmless."""
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1
        with contextlib.suppress(OSError):
            (self.folder / f"inuse.{os.getpid()}.lock").unlink()


def _fsync_and_close(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.fsync(fd)
    os.close(fd)


def write_workspace(folder: Path, **fields: str | int | bool) -> None:
    """Write ``workspace.yaml``; JSON scalars are YAML scalars."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
    path = folder / "workspace.yaml"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)


def read_workspace(folder: Path) -> dict[str, str]:
    """The flat ``key: value`` lines of ``workspace.yaml``; empty when there is none."""
    try:
        text = (folder / "workspace.yaml").read_text(errors="replace")
    except OSError:
        return {}
    pairs = (
        line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith((" ", "#"))
    )
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}


def copy_session(
    source: Path,
    session_id: str,
    home: str | os.PathLike[str] | None,
    *,
    before: str | None,
    name: str | None = None,
) -> Path:
    """Copy a log, or the part before an event, into a new session (reference §18); the new folder."""
    transcript = read_transcript(source / EVENTS)
    end = len(transcript.events)
    if before is not None:
        ids = [event.id for event in transcript.events]
        if before not in ids:
            raise UsageError(f"No event {before!r} in this session's log.")
        end = ids.index(before)
    store = EventStore.create(session_id, home)
    try:
        for event in transcript.events[:end]:
            if event.type == "session.start":
                event = msgspec.structs.replace(event, data={**event.data, "sessionId": session_id})
            store.append(event)
    finally:
        store.close()
    old = read_workspace(source)
    stamp = now()
    write_workspace(
        store.folder,
        id=session_id,
        cwd=old.get("cwd", str(Path.cwd())),
        client_name="copilot_nb",
        name=name or old.get("name", session_id),
        user_named=name is not None,
        summary_count=0,
        fork_count=0,
        created_at=stamp,
        updated_at=stamp,
    )
    return store.folder
