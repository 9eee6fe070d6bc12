"""Bad files: good lines are kept, each bad one is named, on every engine (field cases 33-37, 43)."""

from __future__ import annotations

import json
import threading

import pytest
from logs import LogWriter, comparable, fleet_rows, plain

from copilot_nb.errors import StoreError
from copilot_nb.frames import read_log

GOOD = [plain(f"good {n}") for n in range(3)]


def with_data(value: bytes) -> bytes:
    """A line whose data is this JSON."""
    return plain().replace(b'{"content": "hello"}', value)


def with_content(value: bytes) -> bytes:
    """A line whose content is this JSON."""
    return plain().replace(b'"hello"', value)


# name -> (the odd bytes between good lines, rows they make, problems they make, words of the reason)
ODD: dict[str, tuple[bytes, int, int, str]] = {
    "garbage": (b"not json at all\n", 0, 1, "not JSON"),
    "glued": (plain()[:40] + plain(), 0, 1, "not JSON"),  # copilot-cli#4098
    "newline in a string": (with_content(b'"a\nb"'), 0, 2, "not JSON"),  # copilot-cli#2649
    "two on a line": (plain().strip() + plain(), 0, 1, "not JSON"),
    "array": (b"[1, 2]\n", 0, 1, "an array"),
    "number": (b"5\n", 0, 1, "a number"),
    "string": (b'"text"\n', 0, 1, "a string"),
    "null": (b"null\n", 0, 1, "null"),
    "blank lines": (b"\n  \n\r\n", 0, 0, ""),
    "byte order mark": (b"\xef\xbb\xbf" + plain(), 1, 0, ""),
    "CRLF": (plain().replace(b"\n", b"\r\n"), 1, 0, ""),
    "U+2028 and U+0085": (with_content('"a\u2028b\u2029c\x85d"'.encode()), 1, 0, ""),  # copilot-cli#2012
    "control characters": (with_content(b'"a\x01\tb"'), 1, 0, ""),
    "lone surrogate": (with_content(b'"a\\ud800b"'), 1, 0, ""),
    "invalid UTF-8": (with_content(b'"a\xff\xfeb"'), 1, 1, "UTF-8"),
    "NaN": (with_content(b"NaN"), 1, 0, ""),
    "NaN elsewhere": (with_data(b'{"x": -Infinity, "content": "c"}'), 1, 0, ""),
    "huge integer": (with_content(b"123456789012345678901234567890"), 1, 0, ""),
    "tokens told twice": (with_data(b'{"usage": {"inputTokens": 1}, "inputTokens": 2}'), 1, 0, ""),
    "huge tokens": (with_data(b'{"usage": {"inputTokens": 123456789012345678901234567890}}'), 1, 0, ""),
    "duplicate keys": (plain().replace(b'"type"', b'"type": "first", "type"'), 1, 0, ""),
    "data is an array": (with_data(b"[1]"), 1, 1, "an array"),
    "data is a string": (with_data(b'"text"'), 1, 1, "a string"),
    "data is a number": (with_data(b"1.5"), 1, 1, "a number"),
    "data is true": (with_data(b"true"), 1, 1, "a boolean"),
    "data is null": (with_data(b"null"), 1, 1, "null"),
    "no data": (
        b'{"type": "x", "id": "1", "timestamp": "2026-11-30T10:00:00Z", "parentId": null}\n',
        1,
        0,
        "",
    ),
    "content is an object": (with_content(b'{"a": [1, true, null]}'), 1, 0, ""),
    "deep nesting": (with_data(b'{"content": "c", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"), 1, 1, "deeper"),
    "naive timestamp": (plain().replace(b"00Z", b"00"), 1, 1, "without offset"),
    "odd timestamp": (plain().replace(b"2026-11-30T10:00:00Z", b"yesterday"), 1, 1, "not understood"),
    "timestamp is a date": (plain().replace(b"T10:00:00Z", b""), 1, 1, "without offset"),
    "timestamp that only DuckDB knows": (
        plain().replace(b"2026-11-30T10:00:00Z", b"infinity")
        + plain().replace(b"00Z", b"00 America/New_York")
        + plain().replace(b"2026-11-30", b"2026-1-3"),
        3,
        3,
        "not understood",
    ),
    "timestamp that only Python knows": (plain().replace(b"2026-11-30T10:00:00Z", b"20261130T10Z"), 1, 0, ""),
    "nanoseconds": (plain().replace(b"00Z", b"00.123456789Z"), 1, 0, ""),
    "other offset": (plain().replace(b"00Z", b"00+05:30"), 1, 0, ""),
    "no timestamp": (b'{"type": "x", "data": {}, "id": "1", "parentId": null}\n', 1, 1, "no timestamp"),
    "no type": (b'{"data": {}, "id": "1", "timestamp": "2026-11-30T10:00:00Z"}\n', 1, 1, "type"),
    "type is a number": (plain().replace(b'"user.message"', b"7"), 1, 1, "type"),
    "unknown type": (plain(type="future.event"), 1, 0, ""),
    "lone surrogate in the type": (plain().replace(b"user.message", b"a\\ud800b"), 1, 0, ""),
    "turn ids of any type": (with_data(b'{"turnId": 3}') + with_data(b'{"turnId": [1]}'), 2, 0, ""),
    "two session.start": (LogWriter("a").start().text().encode() * 2, 2, 0, ""),
}
TAILS: dict[str, tuple[bytes, int, int, str]] = {
    "torn last line": (plain()[:50], 0, 1, "cut off"),  # a public statistics page: 1 of 5 real logs
    "no newline at the end": (plain().strip(), 1, 0, ""),
    "NUL tail": (b"\0" * 512, 0, 1, "NUL"),
    "last line and NULs": (plain().strip() + b"\0" * 16, 1, 0, ""),
}


# The same rows, without a word: DuckDB's parser knows no depth, takes null for no data and 7 for "7".
TAKEN_BY_DUCKDB = {"deep nesting", "data is null", "type is a number"}


def cases() -> list[pytest.ParameterSet]:
    every = {**ODD, **TAILS}
    return [pytest.param(name, *value, id=name.replace(" ", "-")) for name, value in every.items()]


@pytest.mark.filterwarnings("ignore:.*odd line:UserWarning")
@pytest.mark.parametrize(("name", "odd", "rows", "problems", "words"), cases())
def test_good_lines_are_kept_and_bad_ones_named(tmp_path, name, odd, rows, problems, words):
    path = tmp_path / "log.jsonl"
    after = b"" if name in TAILS else GOOD[2]
    path.write_bytes(GOOD[0] + GOOD[1] + odd + after)
    log = read_log(path)
    events = log.events()
    assert len(events) == 2 + rows + bool(after)
    assert list(events["text"][:2]) == ["good 0", "good 1"]
    if after:
        assert events["text"].iloc[-1] == "good 2"
    found = log.problems
    assert len(found) == problems
    assert (found["line"] >= 3).all()
    assert all(words in reason for reason in found["reason"])
    assert log.turns().empty
    for row in range(len(events)):
        assert log.event(row).type == events["type"].iloc[row]

    mended = int(found["kept"].sum())
    expected = comparable(events)
    for engine in ("pandas", "duckdb", "dask"):
        got, counts = fleet_rows(path, engine)
        assert got == expected, engine
        taken = engine == "duckdb" and name in TAKEN_BY_DUCKDB
        assert counts == ((0, 0) if taken else (problems - mended, mended)), engine


def test_a_bad_line_is_warned_about_once(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD[0] + b"x\n" + b"y\n")
    log = read_log(path)
    with pytest.warns(UserWarning, match="2 odd lines") as said:
        log.events()
        log.turns()
        log.problems  # noqa: B018
    assert len(said) == 1
    assert list(log.problems["line"]) == [2, 3]
    assert list(log.problems["offset"]) == [len(GOOD[0]), len(GOOD[0]) + 2]


def test_a_bad_line_far_down_spoils_only_its_block(tmp_path):
    lines = [plain(f"line {n}") for n in range(5000)]
    lines[3333] = b'{"type": "torn", "da\n'
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(lines))
    log = read_log(path)
    with pytest.warns(UserWarning, match="1 odd line;"):
        events = log.events()
    assert len(events) == 4999
    assert list(log.problems["line"]) == [3334]
    assert log.event(3333).data["content"] == "line 3334"
    assert log.event(4998).data["content"] == "line 4999"


def test_a_huge_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD[0] + plain("x" * 3_000_000) + GOOD[1])
    assert list(read_log(path).events()["text"].str.len()) == [6, 3_000_000, 6]


def test_a_growing_file(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD[0] + GOOD[1][:30])
    log = read_log(path)
    with pytest.warns(UserWarning, match="1 odd line"):
        first = log.events()
    assert len(first) == 1 and log.runs().shape[0] == 1
    with path.open("ab") as file:
        file.write(GOOD[1][30:] + GOOD[2])
    assert log.refresh() == 2
    assert list(log.events()["text"]) == ["good 0", "good 1", "good 2"]
    assert len(log.runs()) == 3
    assert log.problems.empty  # the line was whole in the end
    assert len(first) == 1  # what was handed out does not change
    assert log.refresh() == 0


def test_reading_while_another_thread_writes(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"")
    lines = [plain(f"{n}") for n in range(4000)]

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            for line in lines:
                file.write(line[:50])
                file.write(line[50:])

    writer = threading.Thread(target=write)
    writer.start()
    log = read_log(path)
    log.warned = True
    while writer.is_alive():
        log.refresh()
    writer.join()
    log.refresh()
    assert list(log.events()["text"]) == [str(n) for n in range(4000)]
    assert log.problems.empty


def test_a_log_that_was_rewound_says_so(tmp_path):
    """A session that is rewound cuts its file: bytes that were read are gone, or are others."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(GOOD))
    log = read_log(path)
    log.events()
    for after in (GOOD[0], GOOD[0] + plain("another") + GOOD[2], b""):
        path.write_bytes(after)
        with pytest.raises(StoreError, match="rewound or replaced"):
            log.event(1)
        if len(after) < len(GOOD[0]) * 2:
            for ask in (log.refresh, log.turns, lambda: log.to_jsonl(tmp_path / "copy.jsonl")):
                with pytest.raises(StoreError, match="rewound or replaced"):
                    ask()
    path.write_bytes(b"".join(GOOD))
    assert len(log.messages()) == 3 and log.refresh() == 0


def test_an_empty_file_has_all_tables_with_their_dtypes(tmp_path):
    from copilot_nb.frames import schema

    path = tmp_path / "log.jsonl"
    path.write_bytes(b"")
    log = read_log(path)
    for table in schema.LOG_TABLES:
        frame = log.table(table)
        assert frame.empty
        assert frame.dtypes.to_dict() == schema.dtypes(table)
    assert log.problems.empty
    for engine in ("pandas", "duckdb", "dask"):
        assert fleet_rows(path, engine) == ([], (0, 0))


def test_interleaved_writers_stay_apart(tmp_path):
    """Two processes appended to one file (reference §13): each run keeps its own turns and tools."""
    one, two = LogWriter().start(), LogWriter()
    one.user("first", run="i1")
    two.parent = one.parent  # the second process resumed here
    two.add("session.resume", {"resumeTime": "x", "eventCount": 2})
    two.user("second", run="i2")
    shared = len(one.lines)
    one.turn("0", "i1", calls=("c1",))
    one.turn("1", "i1", text="answer one")
    two.turn("0", "i2", calls=("c1",))
    two.turn("1", "i2", text="answer two")
    mixed = one.lines[:shared] + two.lines[:2]
    left, right = one.lines[shared:], two.lines[2:]
    while left or right:
        mixed += [side.pop(0) for side in (left, right) if side]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in mixed))
    log = read_log(path)
    runs, turns, tools = log.runs(), log.turns(), log.tools()
    assert list(runs["answer"]) == ["answer one", "answer two"]
    assert list(runs["turns"]) == [2, 2]
    assert list(runs["tools"]) == [1, 1]
    assert list(runs["model_calls"]) == [2, 2]
    assert set(turns["status"]) == {"completed"}
    assert sorted(zip(tools["run"], tools["turn"], strict=True)) == [(0, 0), (1, 0)]
