"""SessionState: the fold that every view reads. Each test names the fault it guards against."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from copilot_nb.events import Event, EventSource
from copilot_nb.fold.items import Mark, Message, Turn
from copilot_nb.state import SessionState

CASES = sorted((Path(__file__).parents[1] / "conformance" / "cases").glob("*.json"))


class Script:
    """Feeds events in a readable way."""

    def __init__(self) -> None:
        self.state = SessionState()
        self.source = EventSource()

    def __call__(self, type: str, **data: object) -> SessionState:
        self.state.apply(self.source.stored(type, data))
        return self.state

    def user(self, text: str, delivery: str = "idle", key: str | None = None) -> SessionState:
        return self("user.message", content=text, delivery=delivery, messageId=key or text)

    def turn(self, text: str = "", *tools: str) -> SessionState:
        self("assistant.turn_start", turnId="0")
        self("assistant.message", messageId="m", content=text, toolRequests=[])
        for name in tools:
            self("tool.execution_start", toolCallId=name, toolName=name, arguments={})
        for name in tools:
            self("tool.execution_complete", toolCallId=name, success=True, result={"content": "ok"})
        return self("assistant.turn_end", turnId="0")

    def idle(self, **data: object) -> SessionState:
        self("assistant.idle", **data)
        return self("session.idle", mode="interactive", **data)


@pytest.fixture
def feed() -> Script:
    return Script()


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_recorded_sessions_fold(path):
    """The real CLI's own event orders: nothing raises, every turn is counted, idle means idle."""
    source, state = EventSource(), SessionState()
    events = json.loads(path.read_text())["core_events"]
    for type, data in events:
        state.apply(source.stored(type, data))
    assert len([1 for type, _ in events if type == "assistant.turn_start"]) <= len(state.turns)
    if any(type == "session.idle" for type, _ in events) and events[-1][0] == "session.idle":
        assert not state.busy
        assert all(run.t1 is not None for run in state.runs)
        assert all(turn.t1 is not None for turn in state.turns)


def test_busy_from_the_first_message_to_idle(feed):
    """copilot-sdk#991: done too early, between queue items."""
    assert not feed.state.busy
    feed.user("a")
    assert feed.state.busy
    feed.turn("A")
    feed.user("b", "queued")
    assert feed.state.busy
    feed.turn("B")
    assert not feed.idle().busy
    assert [run.state for run in feed.state.runs] == ["done", "done"]
    assert feed.state.last_answer == "B"


def test_steer_stands_before_the_turn_it_joined(feed):
    """A steer shown where it was sent, not where it landed, reads as if the model had ignored it."""
    feed.user("go")
    feed.turn("", "t1")
    feed("jupyter.queue", op="add", lane="steering", messageId="s", prompt="left")
    feed("assistant.turn_start", turnId="1")
    feed.user("left", "steering", "s")
    state = feed("assistant.message", messageId="m2", content="ok", toolRequests=[])
    items = [
        (type(item).__name__, getattr(item, "n", item.id if isinstance(item, Message) else ""))
        for item in state.run.items
    ]
    assert items == [("Message", "go"), ("Turn", 1), ("Message", "s"), ("Turn", 2)]
    steer = state.messages["s"]
    assert (steer.run, steer.turn, steer.state) == (1, 2, "landed")
    assert steer.sent_at <= steer.landed_at


def test_lanes_fold_and_nothing_vanishes(feed):
    """vscode#317129: of two steers one was gone. Accepted = landed + pending + removed with a reason."""
    feed.user("go")
    for n in range(4):
        feed("jupyter.queue", op="add", lane="queue", messageId=f"q{n}", prompt=f"Q{n}")
    feed("jupyter.queue", op="add", lane="steering", messageId="s0", prompt="S0")
    feed("jupyter.queue", op="move", messageId="q3", lane="queue", position=0)
    feed("jupyter.queue", op="edit", messageId="q0", prompt="Q0 better")
    feed("jupyter.queue", op="remove", messageId="q1", reason="removed")
    feed("jupyter.queue", op="move", messageId="q2", lane="steering")
    feed("jupyter.queue", op="pause", paused=True)
    state = feed.state
    assert [m.text for m in state.queue] == ["Q3", "Q0 better"]
    assert [m.id for m in state.steers] == ["s0", "q2"]
    assert state.queue_paused
    assert state.messages["q1"].reason == "removed"
    feed("jupyter.queue", op="move", messageId="s0", lane="queue", position=0, reason="missed")
    assert [m.id for m in state.queue] == ["s0", "q3", "q0"]
    feed.user("S0", "queued", "s0")
    states = sorted(m.state for m in state.messages.values())
    assert states == ["landed", "landed", "pending", "pending", "pending", "removed"]
    assert state.messages["s0"].reason == "missed"


def test_retry_voids_what_was_streamed(feed):
    """Reference §11: deltas of a broken stream must not stay before the retried text."""
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    feed("assistant.message_start", messageId="m1")
    feed("assistant.message_delta", messageId="m1", deltaContent="broken ")
    feed("assistant.turn_retry", turnId="0", reason="streaming_error")
    feed("assistant.message_start", messageId="m2")
    state = feed("assistant.message_delta", messageId="m2", deltaContent="whole")
    assert "".join(state.turn.text) == "whole"
    assert state.turn.retries == ["streaming_error"]


def test_usage_counts_once_per_call(feed):
    """claude-code#87303: told twice (live, and by the record), tokens doubled."""
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    usage = {"apiCallId": "x", "inputTokens": 100, "outputTokens": 7, "timeToFirstTokenMs": 250}
    feed("session.usage_record", usage=usage)
    state = feed("assistant.usage", **usage)
    assert (state.tokens_in, state.tokens_out, state.turn.context) == (100, 7, 107)
    assert state.turn.first_at == pytest.approx(state.turn.t0 + 0.25)


def test_permission_is_asked_and_answered(feed):
    """copilot-sdk: a pending question that stays after its answer blocks every view."""
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    feed("tool.execution_start", toolCallId="c", toolName="python", arguments={"code": "1"})
    state = feed(
        "permission.requested", requestId="r", permissionRequest={"toolCallId": "c", "toolName": "python"}
    )
    assert state.tools["c"].state == "ask"
    assert "waiting for your answer about python" in state.describe()
    state = feed("permission.completed", requestId="r", toolCallId="c", result={"kind": "approved"})
    assert not state.permissions
    assert state.tools["c"].state == "running"


def test_describe_says_what_goes_on():
    """copilot-sdk#794: a timeout whose words do not say which tool ran and how many waited."""
    feed = Script()
    assert feed.state.describe() == "idle"
    feed.user("go")
    feed.turn("")
    feed("assistant.turn_start", turnId="1")
    feed("assistant.message", messageId="m", content="", toolRequests=[])
    feed("tool.execution_start", toolCallId="c", toolName="python", arguments={})
    feed("jupyter.queue", op="add", lane="steering", messageId="s", prompt="S")
    feed("jupyter.queue", op="add", lane="queue", messageId="q", prompt="Q")
    state = feed("jupyter.queue", op="add", lane="queue", messageId="q2", prompt="Q")
    words = state.describe(state.turn.said_at + 4.2)
    assert words == "turn 2, running python for 4.2 s, 1 steer and 2 queued waiting"


def test_what_a_log_left_open_is_closed_when_it_is_read(feed):
    """Field case 43: open tools and turns are normal; a file never looks as if it still ran."""
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    feed("tool.execution_start", toolCallId="c", toolName="bash", arguments={})
    feed("permission.requested", requestId="r", permissionRequest={"toolCallId": "c"})
    feed.state.settle()
    assert not feed.state.busy
    assert not feed.state.permissions
    assert feed.state.tools["c"].state == "interrupted"
    assert feed.state.run.t1 is not None


def test_abort_error_and_autopilot_are_marked(feed):
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    feed("session.error", errorType="query", message="HTTP 500")
    feed.user("", "idle", "nudge")
    state = feed("abort", reason="user_initiated")
    assert [item.kind for run in state.runs for item in run.items if isinstance(item, Mark)] == [
        "error",
        "abort",
    ]
    assert [run.state for run in state.runs] == ["failed", "aborted"]


def test_minimal_foreign_log(feed):
    """Reference §20: a log without turns, deliveries or ids still reads as a conversation."""
    feed("user.message", content="U1")
    feed("assistant.message", messageId="1", content="A1")
    feed("user.message", content="U2")
    feed("assistant.message", messageId="2", content="", toolRequests=[])
    feed("tool.execution_complete", toolCallId="never started", success=True)
    state = feed("assistant.message", messageId="3", content="A2")
    assert [len(run.turns) for run in state.runs] == [1, 2]
    assert state.last_answer == "A2"


@pytest.mark.parametrize("type", [
    "user.message", "assistant.message", "assistant.message_delta", "assistant.turn_end", "assistant.usage",
    "tool.execution_start", "tool.execution_complete", "permission.requested", "permission.completed",
    "session.error", "session.idle", "session.start", "jupyter.queue", "jupyter.limit", "abort",
    "user_input.requested", "session.compaction_complete", "somebody.elses"])  # fmt: skip
def test_empty_data_never_raises(feed, type):
    """One odd line must not take the whole view down."""
    feed(type)
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    feed(type)
    feed.state.describe()


def test_sub_agents_do_not_mix_into_the_turns(feed):
    """Field case 40: what an agent within the agent says belongs to nobody's turn."""
    feed.user("go")
    feed("assistant.turn_start", turnId="0")
    event = feed.source.stored("assistant.message", {"messageId": "m", "content": "inner"})
    feed.state.apply(Event(event.type, event.data, event.id, event.timestamp, event.parent_id, "agent-1"))
    assert feed.state.turn.said_at is None


def test_rebuild_starts_over(feed):
    """A rewind removes lines: what they had made must go too, and views must notice."""
    feed.user("one")
    feed.turn("A")
    kept = SessionState()
    feed.user("two", "queued")
    feed.turn("B")
    assert isinstance(feed.state.turns[1], Turn)
    generation = feed.state.generation
    feed.state.rebuild([])
    assert feed.state.generation == generation + 1
    assert vars(feed.state).keys() == vars(kept).keys()
    assert not feed.state.runs
