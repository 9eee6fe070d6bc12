"""What a person may get wrong, or a tool may leave behind: no harm is done, and the words help."""

from __future__ import annotations

import pandas as pd
import pytest
from logs import LogWriter

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
