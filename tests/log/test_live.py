"""The log of a running session: the same tables, frames that never change, nothing heavy before a table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from logs import LogWriter

from copilot_nb.errors import StoreError
from copilot_nb.events import Event, EventSource, from_line, to_line
from copilot_nb.frames import LiveLog, read_log, read_parquet, schema


def busy_log() -> LogWriter:
    log = LogWriter().start()
    for number in range(40):
        run = f"i{number}"
        log.user(f"prompt {number} ünï", run=run)
        log.add("assistant.message_delta", {"messageId": "x", "deltaContent": "d"}, ephemeral=True)
        log.turn("0", run, calls=("a", "b"))
        log.turn("1", run, text="\u2028 \U0001f600")
        log.add("session.idle", {"mode": "interactive"}, ephemeral=True)
    return log


def events_of(log: LogWriter) -> list[Event]:
    return [Event.from_dict(line) for line in log.lines]


def test_live_and_read_logs_say_the_same(tmp_path):
    log = busy_log()
    live, read = LiveLog(), read_log(log.write(tmp_path / "log.jsonl"))
    for event in events_of(log):
        live.append(event)
    for table in schema.LOG_TABLES:
        one, other = live.table(table), read.table(table)
        assert one.equals(other) and list(one.dtypes) == list(other.dtypes), table


def test_frames_never_change(tmp_path):
    log = busy_log()
    live, frames = LiveLog(), []
    for number, event in enumerate(events_of(log)):
        live.append(event)
        if number % 37 == 0:
            frame = live.events()
            frames.append((number + 1, frame, frame.copy(deep=True)))
    for count, frame, before in frames:
        assert len(frame) == count
        assert frame.equals(before)


def test_what_the_user_writes_into_a_frame_stays_there():
    live = LiveLog()
    for event in events_of(busy_log()):
        live.append(event)
    frame = live.events()
    before = frame.copy(deep=True)
    frame["text"] = "mine"
    frame.loc[:, "turn"] = 99
    frame.loc[:, "time"] = frame["time"].iloc[0]
    frame.iloc[:, frame.columns.get_loc("input_tokens")] = 1
    assert live.events().equals(before)


def test_appending_and_reading_on_different_threads():
    live, source, stop = LiveLog(), EventSource(), threading.Event()
    total = 30_000

    def write() -> None:
        for number in range(total):
            live.append(source.stored("user.message", {"content": str(number), "messageId": str(number)}))
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not stop.is_set():
        frame = live.events()
        assert len(frame) >= seen
        seen = len(frame)
        assert list(frame["text"].iloc[:50]) == [str(n) for n in range(min(50, seen))]
    writer.join()
    frame = live.events()
    assert list(frame["text"]) == [str(n) for n in range(total)]
    assert len(live.messages()) == total


def test_events_are_read_from_the_file_or_from_recent_memory(tmp_path):
    path = tmp_path / "events.jsonl"
    source, offsets = EventSource(), {}
    live = LiveLog(path)
    with path.open("wb") as file:
        for number in range(3000):
            event = source.stored("user.message", {"content": str(number)})
            offsets[event.id] = file.tell()
            file.write(to_line(event))
            live.append(event, offsets[event.id] if number % 2 else None)  # the caller may not know it
    last = source.ephemeral("jupyter.notice", {"level": "info", "message": "hi"})
    live.append(last)
    frame = live.events()
    for row in (0, 1, 1500, 2999):
        assert live.event(row).data == {"content": str(row)}
        assert live.event(frame["id"].iloc[row]).data == {"content": str(row)}
    assert live.event(last.id).data["message"] == "hi"
    for _ in range(6000):
        live.append(source.ephemeral("jupyter.notice", {}))
    with pytest.raises(StoreError, match="too old"):
        live.event(last.id)
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="rewound"):
        live.event(0)


def test_stored_data_does_not_stay_in_memory(tmp_path):
    import weakref

    class Big(dict):
        pass

    live, source, seen = LiveLog(tmp_path / "x"), EventSource(), []
    for _ in range(5000):
        data = Big(content="x")
        seen.append(weakref.ref(data))
        live.append(source.stored("user.message", data))
    del data
    live.events()
    assert sum(ref() is not None for ref in seen) == 0


def test_a_live_log_goes_to_parquet(tmp_path):
    live = LiveLog()
    for event in events_of(busy_log()):
        live.append(event)
    live.to_parquet(tmp_path, "turns")
    assert read_parquet(tmp_path, "turns").equals(live.turns())


def test_appending_imports_nothing_heavy():
    code = """
import sys
from copilot_nb.events import EventSource
from copilot_nb.frames import LiveLog
log, source = LiveLog(), EventSource()
for n in range(5000):
    log.append(source.stored("user.message", {"content": "x"}))
heavy = {"pandas", "numpy", "pyarrow", "duckdb", "dask", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
assert len(log.events()) == 5000
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_session_delegates_its_tables(tmp_path):
    """`Session.log` is a `LiveLog`; its rows are those of the file plus the ephemeral ones."""
    log = busy_log()
    path = log.write(tmp_path / "log.jsonl")
    live = LiveLog(path)
    for line in path.read_bytes().split(b"\n")[:-1]:
        live.append(from_line(line))
    assert "LiveLog" in repr(live) and str(len(log.lines)) in repr(live)
    assert live.problems.empty
    assert live.svg().startswith("<svg")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that interrupts, as Unix has")
def test_an_interrupt_leaves_the_columns_whole():
    """The user stops a cell that looks at tables while events come in."""
    events = events_of(busy_log())
    stopped = 0

    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for moment in range(1, 100):
            live = LiveLog()
            for event in events:
                live.append(event)
            try:
                signal.setitimer(signal.ITIMER_REAL, moment / 20_000)
                live.events()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            assert len(live.events()) == len(events)
            assert len(live.turns()) == 80
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stopped
