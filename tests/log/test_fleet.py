"""Many logs: the same answers from pandas, DuckDB and Dask, and Parquet by day."""

from __future__ import annotations

import io
import warnings

import pandas as pd
import pytest
from logs import LogWriter

from copilot_nb.errors import UsageError
from copilot_nb.frames import read_log, read_logs, read_parquet, schema, sessions


@pytest.fixture
def home(tmp_path):
    """Three sessions, one with bad lines."""
    for number in range(3):
        log = LogWriter(f"s{number}").start()
        log.at = number * 86_400.0
        for run in range(number + 1):
            log.user(f"prompt {run}", run=f"i{run}")
            log.turn("0", f"i{run}", calls=("c1", "c2"))
        path = log.write(tmp_path / "session-state" / f"s{number}" / "events.jsonl")
        if number == 2:
            path.write_bytes(path.read_bytes() + b"broken\n\xff\xfe\n" + b'{"type": "torn", ')
    return tmp_path


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize("engine", ["pandas", "duckdb", "dask"])
def test_all_tables_are_the_same_on_every_engine(home, engine):
    fleet = read_logs(home, engine=engine)
    for table in schema.LOG_TABLES:
        frame = fleet.table(table)
        frame = frame.compute(scheduler="sync") if engine == "dask" else frame
        single = pd.concat([read_log(path).table(table) for path in fleet.paths])
        assert len(frame) == len(single), table
        assert [str(dtype) for dtype in frame.dtypes] == [
            "string",
            *(str(dtype) for dtype in single.dtypes),
        ], table
        for column in single.columns:
            one, other = frame[column].astype(object), single[column].astype(object)
            got, wanted = (sorted(str(value) for value in side) for side in (one, other))
            assert got == wanted, (table, column)
    files = fleet.files()
    assert list(files["session"]) == ["s0", "s1", "s2"]
    assert list(files["bad"]) == [0, 0, 3]
    assert list(fleet.problems["session"]) == ["s2"] * 3
    assert len(fleet.log("s2").problems) == 3
    with pytest.raises(UsageError, match="no session 'nope'"):
        fleet.log("nope")
    with pytest.raises(UsageError, match="there are events"):
        fleet.table("nope")


def test_sql_over_many_sessions(home):
    fleet = read_logs(home, engine="duckdb")
    with pytest.warns(UserWarning, match="3 bad and 0 mended"):
        answer = fleet.sql(
            "SELECT session, count(*) AS n FROM events WHERE type = ? GROUP BY 1 ORDER BY 1", ["user.message"]
        )
    assert answer.to_dict("list") == {"session": ["s0", "s1", "s2"], "n": [1, 2, 3]}
    slow = fleet.sql("SELECT tool, count(*) AS n, sum(duration) AS seconds FROM tools GROUP BY tool")
    assert slow.to_dict("list") == {"tool": ["echo"], "n": [12], "seconds": [12.0]}
    joined = fleet.sql("SELECT count(*) AS n FROM turns JOIN events ON turns.event_id = events.id")
    assert joined["n"].iloc[0] == 6
    fleet.close()


def test_dask_on_a_cluster_of_two_processes(home):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        fleet = read_logs(home, engine="dask")
        assert fleet.events().npartitions == 3
        per_session = fleet.turns().groupby("session").size().compute()
        assert per_session.to_dict() == {"s0": 1, "s1": 2, "s2": 3}
        assert list(fleet.files()["bad"]) == [0, 0, 3]


@pytest.mark.parametrize("table", schema.LOG_TABLES)
def test_parquet_by_day_comes_back_the_same(home, tmp_path, table):
    fleet = read_logs(home)
    frame = fleet.table(table)
    target = fleet.to_parquet(tmp_path / "out", table)
    back = read_parquet(tmp_path / "out", table)
    assert [str(dtype) for dtype in back.dtypes] == [str(dtype) for dtype in frame.dtypes]
    pd.testing.assert_frame_equal(back, frame if table == "events" else frame.reset_index(drop=True))
    if table in ("events", "turns", "tools"):
        days = {path.name for path in target.glob("day=*")}
        assert {"day=2026-11-30", "day=2026-12-01", "day=2026-12-02"} <= days


def test_parquet_that_is_written_again_is_replaced(tmp_path):
    """Two logs in one folder: never the rows of both in one day and of one in another."""
    first, second = LogWriter("a").start(), LogWriter("b").start()
    first.user("late", after=90_000)
    first.user("one")
    logs = [read_log(log.write(tmp_path / f"{log.session}.jsonl")) for log in (first, second)]
    for log in (*logs, read_log(io.BytesIO(b""))):
        log.to_parquet(tmp_path / "out")
        pd.testing.assert_frame_equal(read_parquet(tmp_path / "out"), log.events())


def test_where_logs_are_found(home, monkeypatch):
    monkeypatch.setenv("COPILOT_HOME", str(home))
    state = home / "session-state"
    assert len(read_logs().paths) == 3
    assert len(read_logs(f"{state}/*/events.jsonl").paths) == 3
    assert len(read_logs([state / "s0" / "events.jsonl", state / "s1"]).paths) == 2
    assert len(read_logs(state).paths) == 3
    (state / "s0" / "events.jsonl.backup-before-recovery-0").write_text("{}")  # what the store leaves
    assert len(read_logs(state).paths) == 3
    with pytest.raises(UsageError, match="no engine"):
        read_logs(home, engine="spark")


@pytest.mark.parametrize("engine", ["pandas", "duckdb", "dask"])
def test_names_that_look_like_patterns(tmp_path, engine):
    """DuckDB would read both sessions for each."""
    for name in ("a[1]*", "a1b"):
        LogWriter(name).start().write(tmp_path / name / "events.jsonl")
    for where in (tmp_path, [tmp_path / "a[1]*" / "events.jsonl", tmp_path / "a1b"]):
        fleet = read_logs(where, engine=engine)
        assert list(fleet.files()["events"]) == [1, 1]
        frame = fleet.to_parquet(tmp_path / "out")
        assert sorted(read_parquet(frame.parent)["session"]) == ["a1b", "a[1]*"]


def test_sessions_of_a_home(home):
    (home / "session-state" / "s1" / "workspace.yaml").write_text('id: s1\ncwd: /work\nname: "My name"\n')
    frame = sessions(home)
    assert frame.dtypes.to_dict() == schema.dtypes("sessions")
    assert list(frame["session_id"]) == ["s2", "s1", "s0"]  # the latest first
    assert list(frame["turns"]) == [3, 2, 1]
    named = frame.set_index("session_id").loc["s1"]
    assert (named["title"], named["folder"]) == ("My name", "/work")
    assert frame["title"].iloc[0] == "prompt 0"
    assert frame["started"].notna().all() and (frame["last_event"] > frame["started"]).all()
    assert frame["in_use_by"].isna().all()
    (home / "session-state" / "none").mkdir()  # no log in it: no session
    (home / "session-state" / "odd" / "events.jsonl").mkdir(parents=True)
    assert list(sessions(home)["title"])[3:] == ["cannot be read: Is a directory"]
    assert sessions(home / "empty").dtypes.to_dict() == schema.dtypes("sessions")


def test_a_session_says_who_holds_it(home):
    import subprocess
    import sys

    holder = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        (home / "session-state" / "s0" / f"inuse.{holder.pid}.lock").write_text(f"{holder.pid}\n")
        assert sessions(home).set_index("session_id").loc["s0", "in_use_by"] == str(holder.pid)
    finally:
        holder.communicate(b"\n")
    assert sessions(home)["in_use_by"].isna().all()
