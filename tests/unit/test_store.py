"""The store: one line per event at once, files for one pair of eyes, and logs that others have torn."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from copilot_nb.errors import CorruptLog, SessionNotFound, StoreError, UsageError
from copilot_nb.events import EventSource
from copilot_nb.store import (
    EventStore,
    check_session_id,
    copy_session,
    holders,
    home_dir,
    session_folder,
)
from copilot_nb.transcript import read_transcript


def start(store: EventStore, session_id: str = "s1") -> EventSource:
    source = EventSource()
    data = {"sessionId": session_id, "version": 1, "producer": "t", "copilotVersion": "0", "startTime": "t"}
    store.append(source.stored("session.start", data))
    return source


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "a.b", "a b", "ä", "a:b", "$(rm)", "x" * 201, "a\n"])
def test_ids_are_refused_before_the_disk_is_looked_at(bad: str, tmp_path: Path) -> None:
    """Field case 52: a session id in a path or a shell command."""
    with pytest.raises(UsageError, match="is no session id"):
        EventStore.create(bad, tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_an_id_of_200_letters_is_fine() -> None:
    assert check_session_id("x" * 200)


def test_each_event_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    source = start(store)
    for n in range(3):
        offset = store.append(source.stored("user.message", {"content": str(n)}))
        raw = store.path.read_bytes()
        assert json.loads(raw[offset:])["data"] == {"content": str(n)}
    store.close()


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    start(store)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.folder / "workspace.yaml").stat().st_mode) == 0o600
    store.close()


def test_home_is_the_argument_then_the_variable_then_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPILOT_HOME", "/somewhere")
    assert home_dir("/here") == Path("/here")
    assert home_dir() == Path("/somewhere")
    monkeypatch.delenv("COPILOT_HOME")
    assert home_dir() == Path.home() / ".copilot"


def test_a_taken_id_is_refused(tmp_path: Path) -> None:
    start(store := EventStore.create("s1", tmp_path))
    store.close()
    with pytest.raises(UsageError, match="exists already"):
        EventStore.create("s1", tmp_path)


def test_a_torn_last_line_is_taken_out_and_the_file_kept(tmp_path: Path) -> None:
    """copilot-cli#4098: the next event was glued to the half line."""
    store = EventStore.create("s1", tmp_path)
    start(store)
    store.close()
    with store.path.open("ab") as file:
        file.write(b'{"type":"user.message","data":{"cont')
    torn = store.path.read_bytes()
    again, transcript = EventStore.resume("s1", tmp_path)
    again.append(EventSource().stored("user.message", {"content": "next"}))
    again.close()
    assert [p.line for p in transcript.problems] == [2]
    assert [e.type for e in read_transcript(store.path).events] == ["session.start", "user.message"]
    backups = list(store.folder.glob("events.jsonl.backup-before-recovery-*"))
    assert [b.read_bytes() for b in backups] == [torn]


def test_a_last_line_without_its_newline_is_finished_first(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    start(store)
    store.close()
    store.path.write_bytes(store.path.read_bytes().rstrip(b"\n"))
    again, transcript = EventStore.resume("s1", tmp_path)
    again.append(EventSource().stored("user.message", {"content": "next"}))
    again.close()
    assert not transcript.problems
    assert len(read_transcript(store.path).events) == 2


def test_recovery_can_be_refused(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    start(store)
    store.close()
    with store.path.open("ab") as file:
        file.write(b"garbage\n")
    before = store.path.read_bytes()
    with pytest.raises(CorruptLog, match="line 2"):
        EventStore.resume("s1", tmp_path, recover=False)
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"\n\n", b'{"type":"x","data":{},"id":"x"}\n'])
def test_a_file_without_a_start_is_no_session(content: bytes, tmp_path: Path) -> None:
    folder = session_folder("s1", tmp_path)
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(content)
    with pytest.raises(CorruptLog, match=r"session\.start"):
        EventStore.resume("s1", tmp_path)


def test_a_log_of_another_session_is_refused(tmp_path: Path) -> None:
    start(store := EventStore.create("s1", tmp_path), "other")
    store.close()
    with pytest.raises(CorruptLog, match="belongs to"):
        EventStore.resume("s1", tmp_path)


def test_a_missing_session_says_so(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        EventStore.resume("nope", tmp_path)


def test_a_home_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "session-state").write_text("a file is in the way")
    with pytest.raises(StoreError, match="COPILOT_HOME"):
        EventStore.create("s1", tmp_path)


def test_a_disk_that_fills_up_loses_nothing(tmp_path: Path) -> None:
    """A full disk refuses a line half-way: no half line stays, and the event is written later."""
    store = EventStore.create("s1", tmp_path)
    told: list[str | None] = []
    store.on_failure = told.append
    source = start(store)
    whole = store.path.read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a limit stands in for the disk's end, but also signals
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 40, old[1]))
    try:
        assert store.append(source.stored("user.message", {"content": "one"})) == -1
        assert store.append(source.stored("user.message", {"content": "two"})) == -1
        assert store.path.read_bytes() == whole
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    store.append(source.stored("user.message", {"content": "three"}))
    store.close()
    contents = [e.data.get("content") for e in read_transcript(store.path).events]
    assert contents == [None, "one", "two", "three"]
    assert len(told) == 2 and told[0] is not None and "kept in memory" in told[0] and told[1] is None


def test_only_live_processes_hold_a_session(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    assert (store.folder / f"inuse.{os.getpid()}.lock").read_text() == f"{os.getpid()}\n"
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (store.folder / f"inuse.{other.pid}.lock").touch()
    assert holders(store.folder) == [other.pid]
    other.communicate(b"\n")
    assert holders(store.folder) == []
    store.close()
    assert not (store.folder / f"inuse.{os.getpid()}.lock").exists()


def test_a_fork_is_a_session_of_its_own(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    source = start(store)
    first = source.stored("user.message", {"content": "1"})
    second = source.stored("user.message", {"content": "2"})
    store.append(first)
    store.append(second)
    store.close()
    folder = copy_session(store.folder, "s2", tmp_path, before=second.id)
    events = read_transcript(folder / "events.jsonl").events
    assert events[0].data["sessionId"] == "s2"
    assert [e.id for e in events[1:]] == [first.id]


def test_removing_the_end_leaves_one_whole_file(tmp_path: Path) -> None:
    store = EventStore.create("s1", tmp_path)
    source = start(store)
    first = source.stored("user.message", {"content": "1"})
    store.append(first)
    assert [e.id for e in store.keep_before(first.id)] == [first.id]
    store.append(source.stored("user.message", {"content": "2"}))
    store.close()
    assert [e.data.get("content") for e in read_transcript(store.path).events] == [None, "2"]
