"""Any log we can write, we read back equal, and writing what was read changes nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from copilot_nb.events import UNSET, Event, new_id, to_line
from copilot_nb.frames import LiveLog, read_log, schema
from copilot_nb.frames.base import EMPTY
from copilot_nb.frames.known import KNOWN_TYPES

texts = st.text(max_size=40) | st.sampled_from(["\u2028\x85\r\n", "\ud800", "\x00", "\ufeff", "😀", '"\\'])
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
ids = st.sampled_from([f"id{n}" for n in range(4)])
turn_ids = st.sampled_from(["0", "1", "2", "x", ""]) | st.integers(-2, 3)
data = st.fixed_dictionaries(
    {},
    optional={
        "content": texts | values,
        "turnId": turn_ids,
        "interactionId": ids,
        "messageId": ids,
        "toolCallId": ids,
        "toolName": texts,
        "delivery": st.sampled_from(["idle", "queued", "steering", "?"]),
        "requestId": ids,
        "success": st.booleans() | values,
        "result": st.fixed_dictionaries({}, optional={"content": values, "kind": texts}) | values,
        "error": st.fixed_dictionaries({}, optional={"message": texts, "code": scalars}) | values,
        "usage": st.fixed_dictionaries(
            {}, optional={"inputTokens": numbers, "apiCallId": ids, "cost": numbers}
        ),
        "toolRequests": st.lists(
            st.fixed_dictionaries({}, optional={"toolCallId": ids}) | values, max_size=3
        ),
        "permissionRequest": st.fixed_dictionaries({}, optional={"toolCallId": ids, "kind": texts}),
        "arguments": values,
        "op": st.sampled_from(["add", "remove", "move", "edit", "pause", "restored", "?"]),
        "lane": st.sampled_from(["queue", "steering"]) | values,
        "prompt": texts | values,
        "items": st.lists(st.fixed_dictionaries({}, optional={"messageId": ids, "lane": texts}), max_size=2)
        | values,
        "anything": values,
    },
)
stamps = st.datetimes(min_value=pd.Timestamp("2001-01-01"), max_value=pd.Timestamp("2200-01-01"))


@st.composite
def logs(draw) -> list[Event]:
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 25))):
        parents = [event.id for event in events][-5:]
        events.append(
            Event(
                draw(
                    st.sampled_from([kind for kind in KNOWN_TYPES if kind not in EMPTY])
                    | st.text("abc.", min_size=1, max_size=8)
                ),
                draw(data),
                new_id(),
                draw(stamps).isoformat(timespec="microseconds")
                + draw(st.sampled_from(["Z", "+00:00", "-07:30"])),
                draw(st.sampled_from([None, *parents])),
                draw(st.sampled_from([UNSET, "helper"])),
                draw(st.sampled_from([UNSET, UNSET, True])),
            )
        )
    return events


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(logs())
def test_what_we_write_we_read_back(events):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"".join(map(to_line, events)))
        log = read_log(path)
        frame = log.events()
        assert log.problems.empty
        assert list(frame["type"].astype(str)) == [event.type for event in events]
        assert list(frame["id"]) == [event.id for event in events]
        for row, event in enumerate(events):
            back = log.event(row)
            assert to_line(back) == to_line(event)
            assert frame["time"].iloc[row] == pd.Timestamp(event.timestamp)
            assert bool(frame["ephemeral"].iloc[row]) is (event.ephemeral is True)

        live = LiveLog()
        for event in events:
            live.append(event)
        for table in schema.LOG_TABLES:
            one, other = live.table(table), log.table(table)
            assert one.equals(other), (
                table,
                one.compare(other) if one.shape == other.shape else (one, other),
            )

        copied = Path(folder) / "copy.jsonl"
        assert log.to_jsonl(copied) == len(events)
        assert copied.read_bytes() == path.read_bytes()
        assert read_log(copied).events().equals(frame)
        if len(events):
            picked = frame.iloc[::2]
            log.to_jsonl(copied, picked)
            assert list(read_log(copied).events()["id"]) == list(picked["id"])
