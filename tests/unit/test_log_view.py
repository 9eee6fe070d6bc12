"""A log as something to look at, small, big, and odd."""

from __future__ import annotations

import pytest

import copilot_nb
from copilot_nb.errors import SessionNotFound
from copilot_nb.events import EventSource, to_line
from copilot_nb.widgets.feed import WINDOW, Feed


def write(path, turns, size=20):
    source = EventSource()
    lines = [to_line(source.stored("session.start", {"sessionId": "s1", "selectedModel": "demo"}))]
    for n in range(turns):
        if n % 5 == 0:
            prompt = {"content": f"prompt {n}", "delivery": "idle", "messageId": f"m{n}"}
            lines.append(to_line(source.stored("user.message", prompt)))
        lines.append(to_line(source.stored("assistant.turn_start", {"turnId": str(n % 5)})))
        said = {"messageId": f"a{n}", "content": f"answer {n} " + "x" * size, "toolRequests": []}
        lines.append(to_line(source.stored("assistant.message", said)))
        lines.append(to_line(source.stored("assistant.turn_end", {"turnId": str(n % 5)})))
    path.write_bytes(b"".join(lines))
    return path


def test_a_log_shows_what_happened(tmp_path):
    view = copilot_nb.open_log(write(tmp_path / "events.jsonl", 7))
    assert (len(view.state.runs), len(view.state.turns), view.id) == (2, 7, "s1")
    assert not view.state.busy
    assert len(view.turns()) == 7
    assert "answer 6" in view._repr_mimebundle_()[0]["text/plain"]


def test_lines_that_are_no_events_are_left_out(tmp_path):
    """Field case 43: one of five real logs had such a line."""
    path = write(tmp_path / "events.jsonl", 3)
    path.write_bytes(b"not json\n" + path.read_bytes() + b'{"type": "cut o')
    with pytest.warns(UserWarning, match="odd line"):
        view = copilot_nb.open_log(path)
        assert len(view.state.turns) == 3
        assert len(view.problems) == 2


async def test_a_big_log_shows_its_end_first(tmp_path):
    """A first picture may not wait until a million events are folded."""
    view = copilot_nb.open_log(write(tmp_path / "events.jsonl", 3_000, 2_000))
    assert 0 < len(view.state.turns) < 3_000
    assert view.state.last_answer.startswith("answer 2999 ")
    told = []
    view.on(told.append)
    before = view.state.generation
    await view._task
    assert len(view.state.turns) == 3_000
    assert view.state.generation == before + 1
    assert told


def test_no_such_log(tmp_path):
    with pytest.raises(SessionNotFound):
        copilot_nb.open_log(tmp_path / "nothing.jsonl")


def test_windows_on_a_long_conversation(tmp_path):
    """Scrolling up shows every item once, in order, whatever the windows are."""
    view = copilot_nb.open_log(write(tmp_path / "events.jsonl", 400))
    feed = Feed(view.state)
    part = feed.tail()
    assert part["tail"]
    keys = [item["key"] for item in part["items"] if item["kind"] == "turn"]
    assert keys[-1] == "t399"
    assert len(part["items"]) <= 2 * WINDOW
    while part["more"]:
        part = feed.earlier(part["items"][0]["key"], 37)
        found = [item["key"] for item in part["items"] if item["kind"] == "turn"]
        keys = [key for key in found if key not in keys] + keys
    assert keys == [f"t{n}" for n in range(400)]
    around = feed.around("t200")
    assert "t200" in [item["key"] for item in around["items"]]
    assert not around["tail"]
