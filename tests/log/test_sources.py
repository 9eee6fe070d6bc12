"""Where logs are read from: compressed, open or remote files, and paths that are none."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from logs import LogWriter, comparable, fleet_rows, plain

from copilot_nb.errors import SessionNotFound, StoreError, UsageError
from copilot_nb.frames import read_log, read_logs

GOOD = [plain(f"good {n}") for n in range(3)]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_logs(tmp_path, suffix):
    raw = GOOD[0] + plain("b" * 100_000) + GOOD[1]
    path = tmp_path / f"log.jsonl{suffix}"
    path.write_bytes(compressed(raw, suffix))
    log = read_log(path)
    assert list(log.events()["text"].str.len()) == [6, 100_000, 6]
    assert log.event(2).data == {"content": "good 1"}
    for engine in ("pandas", "duckdb", "dask"):
        rows, counts = fleet_rows(path, engine)
        assert (len(rows), counts) == (3, (0, 0))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_log_that_ends_early(tmp_path, suffix):
    lines = [plain(os.urandom(500).hex()) for _ in range(2000)]
    path = tmp_path / f"log.jsonl{suffix}"
    path.write_bytes(compressed(b"".join(lines), suffix)[:-200_000])
    log = read_log(path)
    with pytest.warns(UserWarning, match="log.problems"):
        events = log.events()
    assert 100 < len(events) < 2000
    assert not log.problems["kept"].any()
    for engine in ("pandas", "duckdb", "dask"):
        assert fleet_rows(path, engine) == (comparable(events), (1, 0)), engine


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("content", [b"", b"not compressed\n"])
def test_a_compressed_log_that_is_none(tmp_path, suffix, content):
    path = tmp_path / f"log.jsonl{suffix}"
    path.write_bytes(content)
    good = tmp_path / "good.jsonl"
    good.write_bytes(GOOD[0])
    for engine in ("pandas", "duckdb", "dask"):
        rows, counts = fleet_rows(tmp_path, engine)
        assert (len(rows), counts) == (1, (bool(content), 0)), engine


def compressed(raw: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(raw)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(raw)
    return sink.getvalue().to_pybytes()


def test_paths_that_are_no_log(tmp_path, monkeypatch):
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    with pytest.raises(StoreError, match="is a folder"):
        read_log(tmp_path)
    with pytest.raises(SessionNotFound, match=r"nothing\.jsonl"):
        read_log(tmp_path / "nothing.jsonl")
    with pytest.raises(SessionNotFound, match="no session 'nobody'"):
        read_log("nobody")
    with pytest.raises(StoreError, match="no session logs"):
        read_logs(tmp_path)
    with pytest.raises(StoreError, match=r"no session logs at \[\]"):
        read_logs([])
    for engine in ("pandas", "duckdb", "dask"):
        with pytest.raises(SessionNotFound, match=r"nothing\.jsonl"):
            fleet_rows(tmp_path / "nothing.jsonl", engine)


AS_NOBODY = """
import os, sys
import duckdb, dask.dataframe, numpy, pandas, pyarrow.parquet
from copilot_nb.errors import StoreError
from copilot_nb.frames import duck, parquet, read_log, read_logs, tables
path = sys.argv[1]
if os.access(path, os.R_OK):  # root may read anything; somebody else may not
    os.setuid(65534)
jobs = [lambda: read_log(path)]
jobs += [lambda name=name: read_logs(path, engine=name).events() for name in ("pandas", "duckdb")]
jobs += [lambda: read_logs(path, engine="dask").events().compute(scheduler="sync")]
for job in jobs:
    try:
        print(job())
    except StoreError as error:
        assert "may not be read" in str(error), error
"""


def test_a_log_that_may_not_be_read(tmp_path):
    path = LogWriter().start().write(tmp_path / "log.jsonl")
    path.chmod(0)
    command = [sys.executable, "-c", AS_NOBODY, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


IN_A_HOME = """
import os, sys
import pandas, pyarrow.compute
from copilot_nb import sessions
from copilot_nb.errors import StoreError
from copilot_nb.frames import arrays, read_logs
home = sys.argv[1]
if os.access(home + "/session-state/theirs/events.jsonl", os.R_OK):
    os.setuid(65534)
print(*sorted(sessions(home)["title"].str.slice(0, 14)), sep="|")
for where in (home, home + "/session-state/theirs"):
    try:
        read_logs(where)
    except StoreError as error:
        print("may not be read" in str(error) or error, "theirs" in str(error))
"""


def test_a_home_with_a_session_that_may_not_be_read():
    """It is a row of its own, and reading all sessions names it; it is not left out in silence."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        for name in ("mine", "theirs"):
            log = LogWriter().start()
            log.user(f"of {name}")
            folder = Path(home, "session-state", name)
            folder.mkdir(parents=True)
            log.write(folder / "events.jsonl")
        folder.chmod(0)
        command = [sys.executable, "-c", IN_A_HOME, home]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        folder.chmod(0o755)
    assert ended.stdout == "cannot be read|of mine\n" + "True True\n" * 2, ended.stderr


def test_open_files(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(GOOD))
    with path.open("rb") as file:
        file.seek(len(GOOD[0]))  # from where it stands
        log = read_log(file)
        assert list(log.events()["text"]) == ["good 1", "good 2"]
        assert len(log.runs()) == 2
        assert log.event(1).data == {"content": "good 2"}
        assert not file.closed
    with pytest.raises(StoreError, match="closed"):
        log.event(0)
    with path.open() as file:
        assert len(read_log(file).events()) == 3
    assert len(read_log(io.BytesIO(b"".join(GOOD))).events()) == 3
    assert len(read_log(io.StringIO(b"".join(GOOD).decode())).events()) == 3


def test_remote_paths(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/logs/a/events.jsonl", b"".join(GOOD))
    memory.pipe("/logs/b/events.jsonl", GOOD[0] + b"bad\n")
    assert len(read_log("memory://logs/a/events.jsonl").events()) == 3
    for engine in ("pandas", "duckdb", "dask"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fleet = read_logs("memory://logs/*/events.jsonl", engine=engine)
            frame = fleet.events()
            frame = frame.compute(scheduler="sync") if engine == "dask" else frame
            assert sorted(frame["session"]) == ["a", "a", "a", "b"]
            assert list(fleet.files()["bad"]) == [0, 1]
    memory.pipe("/home/session-state/c/events.jsonl", GOOD[0])
    memory.pipe("/logs/d.jsonl.zst", compressed(GOOD[0], ".zst"))
    assert read_logs("memory://home").paths == ["memory:///home/session-state/c/events.jsonl"]
    assert len(read_logs("memory://logs").paths) == 3
    assert len(read_log("memory://logs/d.jsonl.zst").events()) == 1
    with pytest.raises(SessionNotFound, match="memory://logs/nothing"):
        read_log("memory://logs/nothing")
    for read in (read_log, read_logs):
        with pytest.raises(UsageError, match="nosuch://x cannot be read by fsspec"):
            read("nosuch://x")


def test_a_file_that_is_away_for_a_while_loses_nothing(tmp_path):
    """It is said each time, and what was read stays; never an empty table instead."""
    path, away = tmp_path / "log.jsonl", tmp_path / "away.jsonl"
    writer = LogWriter().start()
    writer.user("hi")
    writer.write(path)
    log = read_log(path)
    path.rename(away)
    for _ in range(2):
        with pytest.raises(SessionNotFound, match="no log at"):
            log.events()
    away.rename(path)
    assert len(log.events()) == 2 and len(log.messages()) == 1
    path.rename(away)
    with pytest.raises(SessionNotFound, match="no log at"):
        log.refresh()
    assert len(log.events()) == 2 and len(log.messages()) == 1
