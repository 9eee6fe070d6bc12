"""What a person may get wrong, or a tool may leave behind: no harm is done, and the words help."""

from __future__ import annotations

import signal

import pandas as pd
import pytest
from logs import LogWriter
from make_log import make_log

from copilot_nb.errors import UsageError
from copilot_nb.frames import read_log


def test_rows_are_named_by_any_integer(tmp_path):
    """An index that was filtered holds numpy's integers; a missing value is no event."""
    log = read_log(session_of_two(tmp_path))
    events = log.events()
    row = events.index[events["type"] == "user.message"].to_numpy()[0]
    assert log.event(row).type == "user.message"
    for missing in (pd.NA, None, True):
        with pytest.raises(UsageError, match="no event"):
            log.event(missing)


def test_writing_a_log_never_harms_one(tmp_path):
    """Not the log itself, which would be emptied; nor rows whose place in it has been lost."""
    path = session_of_two(tmp_path)
    before = path.read_bytes()
    log = read_log(path)
    with pytest.raises(UsageError, match="the log itself"):
        log.to_jsonl(path)
    assert path.read_bytes() == before
    some = log.events().iloc[1:].reset_index(drop=True)
    with pytest.raises(UsageError, match="lost their index"):
        log.to_jsonl(tmp_path / "copy.jsonl", some)


def session_of_two(tmp_path):
    """The path of a log of two events."""
    log = LogWriter().start()
    log.user("hi")
    return log.write(tmp_path / "two.jsonl")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that interrupts, as Unix has")
@pytest.mark.parametrize("table", ["events", "turns"])
def test_a_reading_that_was_interrupted_begins_anew(tmp_path, table):
    """The user stops a long cell and runs it again: all rows are there, none twice."""
    path = make_log(20_000, tmp_path / "long.jsonl")
    whole = read_log(path).table(table)
    log, stopped = read_log(path), 0

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for moment in range(1, 12):
            signal.setitimer(signal.ITIMER_REAL, moment / 500)
            try:
                log.table(table)
            except KeyboardInterrupt:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if log.complete:
                log = read_log(path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stopped
    pd.testing.assert_frame_equal(log.table(table), whole)
