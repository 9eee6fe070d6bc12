"""The adapter on the real CLI: runs, both lanes, abort, permissions, questions."""

from __future__ import annotations

import asyncio

import pytest
from copilot_rig import call

from copilot_nb.errors import UsageError
from copilot_nb.permissions import Decision, Policy
from copilot_nb.runtimes.base import Answer, Message


async def test_events_arrive_whole_and_in_order(rig):
    """The SDK drops what it cannot parse (reference §19); the adapter takes events off the wire."""
    r = rig([{"text": ["Hel", "lo"]}])
    message_id = await r.send("hi")
    await r.idle()
    types = [event.type for event in r.events]
    core = [
        t for t in types if t.split(".")[0] in ("user", "assistant") or t in ("session.start", "session.idle")
    ]
    core = [t for t in core if t not in ("assistant.usage", "assistant.streaming_delta")]
    assert core == [
        "session.start",
        "user.message",
        "assistant.turn_start",
        "assistant.message_start",
        "assistant.message_delta",
        "assistant.message_delta",
        "assistant.message",
        "assistant.turn_end",
        "assistant.idle",
        "session.idle",
    ]
    assert r.of("user.message")[0]["messageId"] == message_id
    assert [d["state"] for d in r.of("jupyter.runtime")] == ["starting", "ready"]
    assert types[0] == "jupyter.runtime"  # said at once, before the SDK's import


async def test_sends_during_the_start_keep_their_order(rig):
    r = rig([{"text": [str(n)]} for n in range(4)])
    await asyncio.gather(*(r.send(f"m{n}") for n in range(4)))
    await r.idle()
    assert [d["content"] for d in r.of("user.message")] == ["m0", "m1", "m2", "m3"]


async def test_steer_and_queue_while_a_tool_runs(rig):
    """Reference §6: steers join the run, queued messages wait; the lanes are told as events."""
    r = rig([call("c1", "gate"), {"text": ["one"]}, {"text": ["two"]}])
    await r.send("go")
    await r.in_tool.wait()
    await r.send("queued A")
    await r.send("steer S", "immediate")
    r.gate.set()
    await r.idle()
    assert [(d["content"], d["delivery"]) for d in r.of("user.message")] == [
        ("go", "idle"),
        ("steer S", "steering"),
        ("queued A", "queued"),
    ]
    assert r.lane_ops == [("add", "queue", "queued A", 0), ("add", "steering", "steer S", 0)]
    assert len(r.of("session.idle")) == 1


async def test_a_missed_steer_moves_to_the_front_of_the_queue(rig):
    """Reference §4; claude-code#43285: a steer after the last request was lost."""
    r = rig([{"text": ["a", "b"], "gate_after_chunk": {"1": "g"}}, {"text": ["two"]}, {"text": ["three"]}])
    await r.send("go")
    await r.event("assistant.message_delta")
    await r.send("queued")
    await r.send("late steer", "immediate")
    r.model.gate("g").set()
    await r.idle()
    assert [d["content"] for d in r.of("user.message")] == ["go", "late steer", "queued"]
    assert ("move", "queue", 0, "missed") in r.lane_ops


async def test_abort_empties_both_lanes(rig):
    """Reference §8."""
    r = rig([call("c1", "gate"), {"text": ["after"]}])
    await r.send("go")
    await r.in_tool.wait()
    await r.send("queued")
    await r.send("steer", "immediate")
    await r.runtime.abort()
    idle = await r.idle()
    assert idle["aborted"] is True
    await asyncio.wait_for(r.cancelled.wait(), 10)
    assert sorted(op for op in r.lane_ops if op[0] == "remove") == [
        ("remove", "aborted"),
        ("remove", "aborted"),
    ]
    r.in_tool.clear()
    await r.send("again")
    await r.idle(2)
    assert [d["content"] for d in r.of("user.message")] == ["go", "again"]


async def test_abort_can_keep_the_queue(rig):
    """copilot-cli#3692: an abort drops what people had queued; ours can keep it, paused."""
    r = rig([call("c1", "gate"), {"text": ["s"]}, {"text": ["q"]}])
    await r.send("go")
    await r.in_tool.wait()
    await r.send("queued")
    await r.send("steer", "immediate")
    await r.runtime.abort(keep_queue=True)
    await r.idle()
    await r.until(lambda: len(r.lane_ops) == 4)  # the lanes are asked for once the events are through
    assert r.lane_ops[2:] == [("pause", True), ("move", "queue", 0, "missed")]
    items = (await r.runtime.queue.pending_items())["items"]
    assert [item["displayText"] for item in items] == ["steer", "queued"]
    await r.runtime.queue.set_drain_paused(False)
    await r.idle(2)
    assert [d["content"] for d in r.of("user.message")] == ["go", "steer", "queued"]
    assert not [op for op in r.lane_ops if op[0] == "remove"]


async def test_queue_edits_are_told_as_events(rig):
    """copilot-cli#1857: items of the queue can be taken out, moved and changed one by one."""
    r = rig([call("c1", "gate"), *({"text": ["x"]} for _ in range(6))])
    queue = r.runtime.queue
    await r.send("go")
    await r.in_tool.wait()
    for name in "ABC":
        await r.send(name)

    async def ids() -> list[str]:
        return [item["id"] for item in (await queue.pending_items())["items"]]

    a, b, c = await ids()
    assert await queue.move_item(c, 0) is True
    assert await queue.update_text(a, "A2") is True
    assert await queue.remove_at(b) is True
    await queue.duplicate_at(a)
    await queue.insert_at(0, Message("I"))
    assert await queue.remove_most_recent() is True
    assert await queue.send_now(c) is True
    with pytest.raises(UsageError):
        await queue.remove_at("no such id")
    with pytest.raises(UsageError):
        await queue.set_drain_paused(True)
        await queue.set_drain_paused(True)
    await queue.set_drain_paused(False)
    assert r.lane_ops[3:10] == [
        ("move", "queue", 0),
        ("edit", "A2"),
        ("remove", "removed"),
        ("add", "queue", "A2", 2),
        ("add", "queue", "I", 0),
        ("remove", "removed"),
        ("move", "steering", 0),
    ]
    r.gate.set()
    await r.idle()
    assert [d["content"] for d in r.of("user.message")] == ["go", "C", "A2", "A2"]
    removed = [d["messageId"] for d in r.of("jupyter.queue") if d["op"] == "remove"]
    added = [d["messageId"] for d in r.of("jupyter.queue") if d["op"] == "add"]
    assert {d["messageId"] for d in r.of("user.message")[1:]} == set(added) - set(removed)


async def test_withdraw(rig):
    """Reference §15."""
    r = rig([call("c1", "gate"), {"text": ["x"]}])
    await r.send("go")
    await r.in_tool.wait()
    message_id = await r.send("oops")
    assert (await r.runtime.withdraw(message_id, "oops"))["removed"] is True
    r.gate.set()
    await r.idle()
    assert r.lane_ops == [("add", "queue", "oops", 0), ("remove", "withdrawn")]


async def test_permissions_wait_for_the_person(rig):
    """Reference §10: allow once, allow for the session, refuse with and without a word."""
    script = [call("c1", "gate"), call("c2", "gate"), call("c3", "gate"), {"text": ["done"]}]
    r = rig(script, skip_permission=False)
    r.gate.set()
    await r.send("go")
    first = await r.event("permission.requested")
    assert first["permissionRequest"]["toolName"] == "gate"
    await r.runtime.respond(first["requestId"], Decision("approve-once"))
    second = await r.event("permission.requested", 2)
    await r.runtime.respond(second["requestId"], Decision("approve-for-session"))
    await r.idle()
    assert len(r.of("permission.requested")) == 2
    kinds = [d["result"]["kind"] for d in r.of("permission.completed")]
    assert kinds == ["approved", "approved-for-session"]
    with pytest.raises(UsageError):
        await r.runtime.respond(second["requestId"], Decision("approve-once"))


async def test_a_bare_refusal_ends_the_run_and_says_why_the_lanes_are_empty(rig):
    r = rig([call("c1", "gate"), {"text": ["never"]}], skip_permission=False)
    await r.send("go")
    request = await r.event("permission.requested")
    await r.send("queued")
    await r.runtime.respond(request["requestId"], Decision("reject"))
    await r.idle()
    assert r.lane_ops == [("add", "queue", "queued", 0), ("remove", "rejected")]


async def test_rules_answer_before_the_person(rig):
    """A rule that raises denies, and the run goes on (reference §10)."""

    def rule(request: dict) -> Decision:
        if request["toolCallId"] == "c2":
            raise RuntimeError("broken rule")
        return Decision("reject", "not that")

    r = rig(
        [call("c1", "gate"), call("c2", "gate"), {"text": ["x"]}],
        skip_permission=False,
        policy=Policy(handlers=[rule]),
    )
    await r.send("go")
    await r.idle()
    results = [d["result"] for d in r.of("permission.completed")]
    assert results[0]["feedback"] == "not that"
    assert results[1]["kind"] == "denied-no-approval-rule-and-could-not-request-from-user"


async def test_the_clis_own_tools_show_their_command_and_diff(rig, tmp_path):
    file = tmp_path / "work" / "new.txt"
    script = [
        call("c1", "bash", command="echo hello", description="say hello"),
        call("c2", "create", path=str(file), file_text="one\n"),
        {"text": ["done"]},
    ]
    r = rig(script, builtin=["bash", "create"])
    await r.send("go")
    shell = await r.event("permission.requested")
    assert shell["permissionRequest"]["kind"] == "shell"
    assert shell["permissionRequest"]["fullCommandText"] == "echo hello"
    await r.runtime.respond(shell["requestId"], Decision("approve-once"))
    write = await r.event("permission.requested", 2)
    assert write["permissionRequest"]["kind"] == "write"
    assert "+one" in write["permissionRequest"]["diff"]
    await r.runtime.respond(write["requestId"], Decision("approve-for-session"))
    await r.idle()
    assert file.read_text() == "one\n"


async def test_allow_names_the_clis_tools_too(rig):
    """``--allow bash`` (the tool) and ``--allow shell`` (the kind) both let the shell run unasked."""
    for name in ("bash", "shell"):
        script = [call("c1", "bash", command="touch x", description="x"), {"text": ["done"]}]
        r = rig(script, builtin=["bash"], policy=Policy(allow={name}), session_id=f"allow-{name}")
        await r.send("go")
        await r.idle()
        assert [d["result"]["kind"] for d in r.of("permission.completed")] == ["approved"]


async def test_questions_are_answered_by_the_person(rig):
    script = [call("c1", "ask_user", question="Which?", choices=["a", "b"]), {"text": ["done"]}]
    r = rig(script, builtin=["ask_user"])
    await r.send("go")
    asked = await r.event("user_input.requested")
    assert asked["choices"] == ["a", "b"]
    with pytest.raises(UsageError):
        await r.runtime.respond(asked["requestId"], Decision("approve-once"))
    await r.runtime.respond(asked["requestId"], Answer({"answer": "b"}))
    await r.idle()
    assert r.of("tool.execution_complete")[0]["result"]["content"] == "User selected: b"


async def test_questions_do_not_hang_when_nobody_is_there(rig):
    script = [call("c1", "ask_user", question="Which?"), {"text": ["done"]}]
    r = rig(script, builtin=["ask_user"], policy=Policy(can_ask=lambda: False))
    await r.send("go")
    await r.idle()
    assert "Nobody is there" in r.of("tool.execution_complete")[0]["result"]["content"]


async def test_leaving_plan_mode_is_asked(rig):
    script = [call("c1", "exit_plan_mode", summary="the plan"), {"text": ["done"]}]
    r = rig(script, builtin=["exit_plan_mode"])
    await r.runtime.set_mode("plan")
    await r.send("go")
    asked = await r.event("exit_plan_mode.requested")
    await r.runtime.respond(asked["requestId"], Answer({"selectedAction": "interactive"}))
    await r.idle()
    assert [d["newMode"] for d in r.of("session.mode_changed")] == ["plan", "interactive"]
