"""A long log: every table against an independent slow computation."""

from __future__ import annotations

import hashlib

import pytest
from make_log import make_log
from slow import facts

from copilot_nb.frames import LiveLog, read_log, read_logs, read_parquet


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    return make_log(330_000, tmp_path_factory.mktemp("long") / "events.jsonl")


@pytest.fixture(scope="module")
def known(long_log):
    return facts(long_log)


@pytest.fixture(scope="module")
def log(long_log):
    return read_log(long_log)


def close(got, expected) -> bool:
    return abs(got - expected) < 1e-3


def test_events(log, known):
    events = log.events()
    assert len(events) == known["events"] >= 330_000
    assert {name: n for name, n in events["type"].value_counts().items() if n} == known["types"]
    assert events["input_tokens"].sum() == known["input"]
    assert events["output_tokens"].sum() == known["output"]
    assert events["text"].str.len().sum() == known["text"]
    assert events["time"].is_monotonic_increasing and events["time"].notna().all()
    assert events["id"].is_unique
    assert (events["parent_id"].iloc[1:].to_numpy() == events["id"].iloc[:-1].to_numpy()).all()


def test_runs(log, known):
    runs = log.runs()
    assert len(runs) == len(known["runs"])
    for column, key in (
        ("turns", "turns"),
        ("tools", "tools"),
        ("input_tokens", "in"),
        ("failed_tools", "failed"),
    ):
        assert list(runs[column].fillna(0)) == [run[key] for run in known["runs"]], column
    seconds = runs["duration"].dt.total_seconds()
    assert all(close(a, run["end"] - run["start"]) for a, run in zip(seconds, known["runs"], strict=True))
    assert set(runs["status"]) == {"completed"}


def test_turns(log, known):
    turns = log.turns()
    assert len(turns) == known["types"]["assistant.turn_start"] == len(known["turns"])
    assert list(turns["run"]) == [turn["run"] for turn in known["turns"]]
    assert list(turns["tools"]) == [turn["tools"] for turn in known["turns"]]
    assert list(turns["input_tokens"]) == [turn["in"] for turn in known["turns"]]
    seconds = turns["duration"].dt.total_seconds()
    assert all(close(a, turn["end"] - turn["start"]) for a, turn in zip(seconds, known["turns"], strict=True))


def test_tools(log, known):
    tools = log.tools()
    assert tools["tool"].value_counts().to_dict() == known["tools"]
    spent = tools["duration"].dt.total_seconds().groupby(tools["tool"]).sum()
    assert all(abs(spent[name] - seconds) < 0.1 for name, seconds in known["tool_time"].items())
    assert (tools["status"] == "failed").sum() == known["failed"] == len(log.errors())


def test_messages_and_usage(log, known):
    messages = log.messages()
    assert {name: n for name, n in messages["delivery"].value_counts().items() if n} == known["messages"]
    usage = log.usage()
    assert len(usage) == known["types"]["session.usage_record"]
    assert usage["input_tokens"].sum() == known["input"]
    assert usage["turn"].notna().all()
    assert log.permissions().empty
    assert log.problems.empty


def test_events_of_rows_are_read_from_the_file(log, long_log):
    lines = long_log.read_bytes().split(b"\n")
    events = log.events()
    for row in range(0, len(events), 40_009):
        event = log.event(events["id"].iloc[row])
        assert event.id.encode() in lines[row]
        assert event.to_dict()["type"] == events["type"].iloc[row]


def test_the_same_as_jsonl_parquet_duckdb_and_live(log, long_log, known, tmp_path):
    from copilot_nb.events import from_line

    copied = tmp_path / "copy.jsonl"
    assert log.to_jsonl(copied) == known["events"]
    assert digest(copied) == digest(long_log)

    log.to_parquet(tmp_path / "parquet")
    back = read_parquet(tmp_path / "parquet")
    events = log.events()
    assert back.equals(events) and list(back.dtypes) == list(events.dtypes)

    duck = read_logs(long_log, engine="duckdb")
    answer = duck.sql(
        "SELECT count(*) AS n, sum(input_tokens) AS tokens, sum(length(text)) AS text FROM events"
    )
    assert answer.iloc[0].to_dict() == {"n": known["events"], "tokens": known["input"], "text": known["text"]}

    live = LiveLog(long_log)
    with long_log.open("rb") as file:
        for line in file:
            live.append(from_line(line))
    for table in ("events", "messages", "runs", "turns", "tools", "usage", "errors"):
        assert live.table(table).equals(log.table(table)), table


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
