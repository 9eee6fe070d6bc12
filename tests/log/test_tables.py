"""What the tables say, rule by rule."""

from __future__ import annotations

import pandas as pd
import pytest
from logs import LogWriter, usage

from copilot_nb.errors import UsageError
from copilot_nb.frames import read_log, schema


def table(writer: LogWriter, tmp_path, name: str) -> pd.DataFrame:
    """A table of the lines so far; its dtypes are as documented."""
    frame = read_log(writer.write(tmp_path / "log.jsonl")).table(name)
    if name != "events":
        assert frame.dtypes.to_dict() == schema.dtypes(name)
    return frame


def one(frame: pd.DataFrame) -> dict:
    assert len(frame) == 1
    return frame.iloc[0].to_dict()


def test_a_turn_without_an_end_is_open(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    turn = one(table(log, tmp_path, "turns"))
    assert turn["status"] == "open" and turn["ended"] is pd.NaT and turn["duration"] is pd.NaT
    run = one(table(log, tmp_path, "runs"))
    assert run["status"] == "open" and run["ended"] is pd.NaT and run["duration"] is pd.NaT


def test_an_end_without_a_start_has_no_duration(tmp_path):
    log = LogWriter()  # the log's beginning was cut off
    log.add("assistant.turn_end", {"turnId": "3"})
    turn = one(table(log, tmp_path, "turns"))
    assert (turn["turn"], turn["started"], turn["duration"]) == (3, pd.NaT, pd.NaT)


def test_open_tools_are_normal_rows(tmp_path):
    """4,988 starts and 4,984 ends on a public statistics page of real logs (field case 43)."""
    log = LogWriter().start()
    log.user("hi")
    log.turn(calls=("c1", "c2"))
    log.add("tool.execution_start", {"toolCallId": "c3", "toolName": "bash", "arguments": {}, "turnId": "0"})
    tools = table(log, tmp_path, "tools")
    assert list(tools["status"]) == ["ok", "ok", "open"]
    assert list(tools["duration"].dt.total_seconds().fillna(-1)) == [1, 1, -1]
    assert list(tools["turn"]) == [0, 0, 0]


def test_parallel_tools_end_in_any_order(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    for call in "abc":
        log.add("tool.execution_start", {"toolCallId": call, "toolName": call * 2, "turnId": "0"})
    for call in "cab":
        log.add("tool.execution_complete", {"toolCallId": call, "success": True, "result": {"content": call}})
    tools = table(log, tmp_path, "tools")
    assert list(tools["tool"]) == ["aa", "bb", "cc"]
    assert list(tools["result"]) == ["a", "b", "c"]
    assert list(tools["duration"].dt.total_seconds()) == [4, 4, 1]


def test_tools_belong_to_turns_by_id_not_by_time(tmp_path):
    """A tool that ends after its turn, while the next one runs (cli-continues PR#47)."""
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    asks = {"messageId": "a", "content": "", "toolRequests": [{"toolCallId": "slow", "name": "bash"}]}
    log.add("assistant.message", asks | {"turnId": "0", "interactionId": "i1"})
    log.add("assistant.turn_end", {"turnId": "0"})
    log.add("assistant.turn_start", {"turnId": "1", "interactionId": "i1"})
    log.add("tool.execution_start", {"toolCallId": "slow", "toolName": "bash"})  # says no turn
    log.add("tool.execution_complete", {"toolCallId": "slow", "success": True})
    log.add("assistant.turn_end", {"turnId": "1"})
    assert list(table(log, tmp_path, "tools")["turn"]) == [0]
    assert list(table(log, tmp_path, "turns")["tools"]) == [1, 0]


def test_call_ids_that_come_again_in_another_run(tmp_path):
    log = LogWriter().start()
    for run in ("i1", "i2"):
        log.user("hi", run=run)
        log.turn("0", run, calls=("c1",))
    tools = table(log, tmp_path, "tools")
    assert list(tools["run"]) == [0, 1]
    assert list(table(log, tmp_path, "turns")["tools"]) == [1, 1]


def test_the_same_call_id_twice_in_one_turn(tmp_path):
    """Both are started (reference §12)."""
    log = LogWriter().start()
    log.user("hi")
    log.turn(calls=("c1", "c1"))
    tools = table(log, tmp_path, "tools")
    assert list(tools["status"]) == ["ok", "ok"]
    assert list(tools["turn"]) == [0, 0]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"success": False, "error": {"message": "no", "code": "denied"}}, "denied"),
        ({"success": False, "error": {"message": "no", "code": "rejected"}}, "rejected"),
        ({"success": False, "error": {"message": "no", "code": "failure"}}, "failed"),
        ({"success": False}, "failed"),
        (
            {"success": False, "error": {"message": "no", "code": "interrupted"}, "model": "resumed"},
            "interrupted",
        ),
        ({"success": True}, "ok"),
        ({}, "unknown"),
    ],
)
def test_states_of_tools(tmp_path, data, status):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    log.add("tool.execution_start", {"toolCallId": "c", "toolName": "bash", "arguments": {"a": 1}})
    log.add("tool.execution_complete", {"toolCallId": "c", **data})
    tool = one(table(log, tmp_path, "tools"))
    assert (tool["status"], tool["arguments"]) == (status, '{"a":1}')
    assert len(table(log, tmp_path, "errors")) == (data.get("success") is False)


def test_a_tool_that_was_refused_before_it_started(tmp_path):
    """Arguments that are no object: no start, only a failed end (reference §12)."""
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    log.add("tool.execution_complete", {"toolCallId": "c", "success": False, "turnId": "0"})
    tool = one(table(log, tmp_path, "tools"))
    assert (tool["status"], tool["turn"], tool["started"], tool["duration"]) == ("failed", 0, pd.NaT, pd.NaT)


def test_sub_agents_have_turns_of_their_own(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    log.turn("0", calls=("inner",), agentId="helper")
    log.turn("1", agentId="helper")
    log.add(
        "assistant.message", {"turnId": "0", "interactionId": "i1", "content": "done", "toolRequests": []}
    )
    log.add("assistant.turn_end", {"turnId": "0"})
    turns = table(log, tmp_path, "turns")
    assert list(turns["agent_id"].fillna("main")) == ["main", "helper", "helper"]
    assert list(turns["tools"]) == [0, 1, 0]
    assert list(turns["model_calls"]) == [0, 1, 1]
    run = one(table(log, tmp_path, "runs"))
    assert (run["turns"], run["tools"], run["status"]) == (3, 1, "completed")
    assert one(table(log, tmp_path, "tools"))["agent_id"] == "helper"


def test_a_retry_is_one_turn_with_attempts(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    for _ in range(2):
        failure = {"errorMessage": "no", "failureKind": "api", "statusCode": 500}
        log.add("model.call_failure", failure, ephemeral=True)
        log.add("assistant.turn_retry", {"turnId": "0", "reason": "api_error"}, ephemeral=True)
    log.add("assistant.turn_end", {"turnId": "0"})
    turn = one(table(log, tmp_path, "turns"))
    assert turn["attempts"] == 3
    errors = table(log, tmp_path, "errors")
    assert list(errors["source"]) == ["model call"] * 2
    assert list(errors["status_code"]) == [500, 500]
    assert list(errors["message"]) == ["no", "no"]
    assert list(errors["turn"]) == [0, 0]


def test_attempts_are_unknown_without_ephemeral_events(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.turn()
    assert pd.isna(one(table(log, tmp_path, "turns"))["attempts"])


def test_usage_counts_once_per_model_call(tmp_path):
    """As it happened and for the record; repeated per content block (claude-code#87303)."""
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    log.add("assistant.usage", usage("x", 100, 10, timeToFirstTokenMs=1.5), ephemeral=True)
    log.add("session.usage_record", {"usage": usage("x", 100, 10, timeToFirstTokenMs=1.5)})
    log.add("session.usage_record", {"usage": usage("x", 100, 30, timeToFirstTokenMs=1.5)})
    log.add("session.usage_record", {"usage": usage("y", 7, 1)})
    log.add("assistant.turn_end", {"turnId": "0"})
    rows = table(log, tmp_path, "usage")
    assert list(rows["api_call_id"]) == ["x", "y"]
    assert list(rows["output_tokens"]) == [30, 1]
    assert rows["first_token"].iloc[0] == pd.Timedelta(microseconds=1500)
    assert rows["cost"].sum() == 2.0
    turn = one(table(log, tmp_path, "turns"))
    assert (turn["model_calls"], turn["input_tokens"], turn["output_tokens"]) == (2, 107, 31)
    assert turn["model_time"] == pd.Timedelta(milliseconds=500)


def test_usage_belongs_to_the_turn_that_names_the_call(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    log.add("assistant.turn_end", {"turnId": "0"})
    log.add("session.usage_record", {"usage": usage("late", 5, 5)})  # written behind
    log.add("assistant.message", {"turnId": "0", "interactionId": "i1", "content": "x", "apiCallId": "late"})
    assert one(table(log, tmp_path, "usage"))["turn"] == 0


def test_usage_without_numbers_is_missing_not_zero(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    log.add("assistant.turn_end", {"turnId": "0"})
    assert pd.isna(one(table(log, tmp_path, "turns"))["input_tokens"])
    assert pd.isna(one(table(log, tmp_path, "runs"))["input_tokens"])


def lanes() -> LogWriter:
    """A run with two steers and two queued messages, one of them removed."""
    log = LogWriter().start()
    log.user("start")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    for place, (message, lane) in enumerate(
        (("s", "steering"), ("q1", "queue"), ("q2", "queue"), ("late", "steering"))
    ):
        add = {
            "op": "add",
            "lane": lane,
            "messageId": message,
            "prompt": f"text {message}",
            "position": place,
        }
        log.add("jupyter.queue", add)
    log.add("assistant.turn_end", {"turnId": "0"})
    log.add("assistant.turn_start", {"turnId": "1", "interactionId": "i1"})
    log.user("text s", "steering", "1", messageId="s")
    log.add("jupyter.queue", {"op": "remove", "messageId": "q2", "reason": "removed"})
    log.add("jupyter.queue", {"op": "edit", "messageId": "q1", "prompt": "better"})
    log.add(
        "assistant.message", {"turnId": "1", "interactionId": "i1", "content": "done", "toolRequests": []}
    )
    log.add("assistant.turn_end", {"turnId": "1"})
    moved = {"op": "move", "messageId": "late", "lane": "queue", "position": 0, "reason": "missed"}
    log.add("jupyter.queue", moved)
    log.user("text late", "queued", "0", "i2", messageId="late")
    log.turn("0", "i2")
    return log


def test_messages_say_when_they_were_sent_and_landed(tmp_path):
    messages = table(lanes(), tmp_path, "messages").set_index("message_id")
    assert list(messages["status"]) == ["landed", "landed", "pending", "discarded", "landed"]
    steer, late = messages.loc["s"], messages.loc["late"]
    assert steer["waited"] == steer["landed_at"] - steer["sent_at"] == pd.Timedelta(seconds=6)
    assert (steer["delivery"], steer["lane"], steer["run"], steer["turn"]) == ("steering", "steering", 0, 1)
    assert (late["delivery"], late["lane"], late["run"]) == ("queued", "queue", 1)
    assert messages.loc["q2", "reason"] == "removed"
    assert messages.loc["q1", "text"] == "better" and pd.isna(messages.loc["q1", "landed_at"])
    first = messages.iloc[0]
    assert first["sent_at"] == first["landed_at"] and first["waited"] == pd.Timedelta(0)
    assert one(table(lanes(), tmp_path, "runs").iloc[:1])["steers"] == 1
    assert list(table(lanes(), tmp_path, "turns")["steers"]) == [0, 1, 0]


def test_every_accepted_message_is_landed_pending_or_discarded(tmp_path):
    """Nothing is lost (vscode#317129)."""
    messages = table(lanes(), tmp_path, "messages")
    queue = table(lanes(), tmp_path, "queue")
    accepted = set(queue.loc[queue["op"] == "add", "message_id"])
    assert accepted <= set(messages["message_id"]) and messages["message_id"].is_unique


def test_queue_tells_every_change_and_what_waits_after_it(tmp_path):
    queue = table(lanes(), tmp_path, "queue")
    assert list(queue["op"]) == ["add"] * 4 + ["land", "remove", "edit", "move", "land"]
    assert list(queue["queued"]) == [0, 1, 2, 2, 2, 1, 1, 2, 1]
    assert list(queue["steering"]) == [1, 1, 1, 2, 1, 1, 1, 0, 0]
    assert list(queue["reason"].dropna()) == ["removed", "missed"]


def test_a_restored_message_waits_again(tmp_path):
    log = LogWriter().start()
    log.add("jupyter.queue", {"op": "add", "lane": "queue", "messageId": "q", "prompt": "p", "position": 0})
    log.add("session.shutdown", {})
    log.add("session.resume", {})
    log.add(
        "jupyter.queue", {"op": "restored", "items": [{"messageId": "q", "prompt": "p", "lane": "queue"}]}
    )
    log.add("jupyter.queue", {"op": "pause", "paused": True})
    message = one(table(log, tmp_path, "messages"))
    assert (message["status"], message["text"]) == ("pending", "p")
    assert bool(table(log, tmp_path, "queue")["paused"].iloc[-1])


def test_states_of_runs(tmp_path):
    log = LogWriter().start()
    log.user("completed", run="i1")
    log.turn("0", "i1")
    log.user("aborted", "queued", run="i2")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i2"})
    log.add("abort", {"reason": "user_initiated"})
    log.add("assistant.turn_end", {"turnId": "0"})
    log.user("error", "queued", run="i3")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i3"})
    log.add("assistant.turn_end", {"turnId": "0"})
    log.add("session.error", {"errorType": "query", "message": "bad", "statusCode": 400})
    log.user("", "idle", run="i4", source="autopilot")
    log.turn("0", "i4", calls=("c",))
    runs = table(log, tmp_path, "runs")
    assert list(runs["status"]) == ["completed", "aborted", "error", "open"]
    assert list(runs["source"]) == ["user", "user", "user", "autopilot"]
    assert list(runs["errors"]) == [0, 0, 1, 0]
    assert list(table(log, tmp_path, "turns")["status"]) == ["completed", "aborted", "error", "completed"]
    errors = table(log, tmp_path, "errors")
    assert (errors["message"].iloc[0], errors["run"].iloc[0], errors["status_code"].iloc[0]) == (
        "bad",
        2,
        400,
    )
    log.add("session.shutdown", {})  # now it is known that no further turn follows the tool's
    assert list(table(log, tmp_path, "runs")["status"])[-1] == "completed"


def test_several_messages_for_one_turn_are_one_run(tmp_path):
    """``session.sendMessages`` (reference §15)."""
    log = LogWriter().start()
    log.user("one")
    log.user("two")
    log.turn()
    run = one(table(log, tmp_path, "runs"))
    assert (run["prompt"], run["turns"]) == ("one", 1)
    assert list(table(log, tmp_path, "messages")["run"]) == [0, 0]


def test_a_background_command_starts_a_run(tmp_path):
    """The run started by a notification shares the interaction id of the one before (reference §0.6)."""
    log = LogWriter().start()
    log.user("hi")
    log.turn()
    log.add("system.notification", {"content": "shell ended", "kind": {"type": "shell_completed"}})
    log.turn(text="seen")
    runs = table(log, tmp_path, "runs")
    assert list(runs["source"]) == ["user", "notification"]
    assert list(runs["turns"]) == [1, 1]
    assert list(runs["answer"]) == ["ok", "seen"]


def test_permissions(tmp_path):
    log = LogWriter().start()
    log.user("hi")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i1"})
    answers = ("approved", "approved-for-session", "denied-interactively-by-user", "cancelled", None)
    for place, kind in enumerate(answers):
        call = f"c{place}"
        log.add("tool.execution_start", {"toolCallId": call, "toolName": "bash", "turnId": "0"})
        request = {"kind": "shell", "toolCallId": call}
        log.add("permission.requested", {"requestId": f"r{place}", "permissionRequest": request}, after=2)
        if kind:
            result = {"kind": kind, "feedback": "no thanks"} if "denied" in kind else {"kind": kind}
            answer = {"requestId": f"r{place}", "toolCallId": call, "result": result}
            log.add("permission.completed", answer, after=3)
            log.add("tool.execution_complete", {"toolCallId": call, "success": True})
    permissions = table(log, tmp_path, "permissions")
    assert list(permissions["status"]) == ["granted", "granted", "denied", "cancelled", "open"]
    assert list(permissions["tool"]) == ["bash"] * 5
    assert list(permissions["waited"].dt.total_seconds().fillna(-1)) == [3, 3, 3, 3, -1]
    assert permissions["feedback"].iloc[2] == "no thanks"
    tools = table(log, tmp_path, "tools")
    assert list(tools["asked"].dt.total_seconds().fillna(-1)) == [3, 3, 3, 3, -1]
    assert list(tools["duration"].dt.total_seconds().fillna(-1)) == [6, 6, 6, 6, -1]


def test_a_log_of_an_unknown_future_version(tmp_path):
    log = LogWriter().start()
    log.add("future.thing", {"content": "text", "whatever": [1]}, extra="key")
    log.user("hi", futureKey={"a": 1})
    log.turn()
    events = table(log, tmp_path, "events")
    assert events["type"].iloc[1] == "future.thing" and events["text"].iloc[1] == "text"
    assert len(table(log, tmp_path, "runs")) == 1


def test_minimal_logs_have_runs_without_turns(tmp_path):
    """The smallest file that the real CLI resumes (reference §20)."""
    log = LogWriter().start()
    log.add("user.message", {"content": "U1"})
    log.add("assistant.message", {"messageId": "m1", "content": "A1"})
    run = one(table(log, tmp_path, "runs"))
    assert (run["prompt"], run["answer"], run["status"]) == ("U1", "A1", "completed")
    assert table(log, tmp_path, "turns").empty


def test_every_column_is_documented_and_every_table_has_its_dtypes_when_empty():
    for name, columns in schema.TABLES.items():
        assert schema.empty(name).dtypes.to_dict() == schema.dtypes(name)
        assert len({column.name for column in columns}) == len(columns)
        assert all(column.source for column in columns)
    assert set(schema.reference()["table"]) == set(schema.TABLES)


def test_an_unknown_table_or_event_says_what_there_is(tmp_path):
    log = read_log(LogWriter().start().write(tmp_path / "log.jsonl"))
    with pytest.raises(UsageError, match="there are events, messages"):
        log.table("turnz")
    with pytest.raises(UsageError, match="no event with id"):
        log.event("nope")
    with pytest.raises(UsageError, match="the log has 1"):
        log.event(5)
