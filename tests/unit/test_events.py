"""Events: the record, its ids and times, and lines that other readers cannot split."""

from __future__ import annotations

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from copilot_nb.events import Event, EventSource, from_line, new_id, now, to_line

TEXT = st.text(st.characters(codec=None, exclude_categories=()))
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, st.lists, max_leaves=5)
DATA = st.dictionaries(TEXT, VALUES, max_size=4)


@given(DATA)
def test_what_is_written_is_read_back(data: dict[str, object]) -> None:
    event = EventSource().stored("jupyter.test", data)
    line = to_line(event)
    assert line.count(b"\n") == 1  # copilot-cli#2649: a raw newline would split the record
    assert line.endswith(b"\n")
    assert from_line(line) == event


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\r", "\x0b", "\x0c", "\x1c"])
def test_no_line_separator_is_left_for_other_readers(separator: str) -> None:
    """copilot-cli#2012: a raw U+2028 in a line broke reading; Python's splitlines splits there too."""
    line = to_line(EventSource().stored("user.message", {"content": f"a{separator}b"}))
    assert line.decode().splitlines() == [line.decode().rstrip("\n")]
    assert from_line(line).data["content"] == f"a{separator}b"


def test_lone_surrogates_foreign_objects_and_nan_do_not_lose_the_event() -> None:
    data = {"text": "\ud800", "object": ValueError("x"), "nan": float("nan"), "huge": 2**80}
    event = from_line(to_line(EventSource().stored("jupyter.test", data)))
    assert event.data == {"text": "\ud800", "object": "x", "nan": None, "huge": 2**80}


def test_key_order_and_absent_keys_are_the_reference_s() -> None:
    """Reference §14: type, data, id, timestamp, parentId; ephemeral and agentId only when set."""
    source = EventSource()
    first = source.stored("session.start", {})
    second = source.stored("user.message", {"content": "hi"})
    assert list(json.loads(to_line(second))) == ["type", "data", "id", "timestamp", "parentId"]
    assert (first.parent_id, second.parent_id) == (None, first.id)
    assert list(source.ephemeral("assistant.idle", {}).to_dict())[-1] == "ephemeral"


def test_ephemeral_events_carry_the_last_stored_one_as_parent() -> None:
    source = EventSource()
    stored = source.stored("session.start", {})
    assert source.ephemeral("assistant.idle", {}).parent_id == stored.id
    assert source.stored("user.message", {}).parent_id == stored.id


def test_ids_are_random_version_4_uuids() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert all(uuid.UUID(one).version == 4 and uuid.UUID(one).variant == uuid.RFC_4122 for one in ids)


def test_times_have_an_offset_and_microseconds() -> None:
    event = EventSource().stored("session.start", {})
    assert event.time.utcoffset() is not None
    assert now().endswith("Z") and len(now()) == len("2026-11-30T10:00:00.123456Z")


def test_unknown_types_and_keys_are_no_error() -> None:
    line = b'{"type":"new.thing","data":{"a":[1]},"id":"x","timestamp":"t","parentId":null,"later":1}'
    assert from_line(line) == Event("new.thing", {"a": [1]}, "x", "t", None)
