"""Faults that people met in tools of this kind, each with the right behaviour here.

The numbers are those of the project's list of field cases; the reports are named at each test. The scripted
model makes the moment of every action certain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from copilot_nb.errors import UsageError, WaitTimeout
from copilot_nb.models.scripted import ScriptedModel
from copilot_nb.permissions import Decision
from copilot_nb.session import Session, open_session, resume_session
from copilot_nb.tools import shell_tools
from copilot_nb.tools.base import Tool, ToolContext, ToolResult


class Desk:
    """A session with a gated tool, and everything it said."""

    def __init__(self, home: Path, *replies: Any, tools: Any = (), **settings: Any) -> None:
        self.started: dict[str, asyncio.Event] = {}
        self.doors: dict[str, asyncio.Event] = {}
        self.events: list[Any] = []
        self.model = ScriptedModel(replies)
        self.gate = Tool("gate", "waits for its door", self._gate, skip_permission=True)
        opener = settings.pop("opener", open_session)
        self.session: Session = opener(
            model=self.model, tools=[self.gate, *tools], home=home, kernel=False, retry_scale=0, **settings
        )
        self.session.on(self.events.append)

    async def _gate(self, arguments: Any, context: ToolContext) -> ToolResult:
        self.event(self.started, context.call_id).set()
        await self.event(self.doors, context.call_id).wait()
        return ToolResult(f"result {context.call_id}")

    @staticmethod
    def event(events: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return events.setdefault(name, asyncio.Event())

    async def running(self, call_id: str) -> None:
        async with asyncio.timeout(30):
            await self.event(self.started, call_id).wait()

    def finish(self, call_id: str) -> None:
        self.event(self.doors, call_id).set()

    async def seen(self, type: str, count: int = 1) -> None:
        async with asyncio.timeout(30):
            while len(self.of(type)) < count:
                await asyncio.sleep(0.002)

    def of(self, type: str) -> list[Any]:
        return [event for event in self.events if event.type == type]

    @property
    def users(self) -> list[tuple[str, str]]:
        return [(e.data["content"], e.data["delivery"]) for e in self.of("user.message")]

    def said(self, request: int) -> list[tuple[str, str]]:
        """Role and the last line of each message of a model request, the system prompt left out."""
        messages = self.model.requests[request]["messages"]
        texts = [(m["role"], str(m["content"]).splitlines()[-1] if m["content"] else "") for m in messages]
        return [pair for pair in texts if pair[0] != "system"]


def gate(*ids: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": call_id, "name": "gate"} for call_id in ids]}


def echo(call_id: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": call_id, "name": "echo"}]}


@pytest.fixture
async def desk(tmp_path: Path) -> Any:
    opened: list[Desk] = []

    def make(*replies: Any, **settings: Any) -> Desk:
        opened.append(Desk(settings.pop("home", tmp_path), *replies, **settings))
        return opened[-1]

    yield make
    for one in opened:
        await one.session.close()


Make = Callable[..., Desk]


async def test_1_two_steers_keep_their_order(desk: Make) -> None:
    """copilot-cli#4372: the second steer overtook the first."""
    d = desk(gate("c1"), "done")
    await d.session.send("work")
    await d.running("c1")
    await d.session.steer("A")
    await d.session.steer("B")
    d.finish("c1")
    await d.session.wait(timeout=30)
    assert d.users == [("work", "idle"), ("A", "steering"), ("B", "steering")]
    assert d.said(1)[-2:] == [("user", "A"), ("user", "B")]
    stored = [e.data["delivery"] for e in await d.session.get_events() if e.type == "user.message"]
    assert stored == ["idle", "steering", "steering"]


async def test_2_no_steer_is_overwritten_by_the_next(desk: Make) -> None:
    """vscode#317129: a single slot for steers; the first was never in events.jsonl."""
    d = desk(gate("c1"), "done")
    await d.session.send("work")
    await d.running("c1")
    ids = [await d.session.steer(text) for text in ("A", "B", "C")]
    assert (await d.session.queue.pending_items())["steeringMessages"] == ["A", "B", "C"]
    d.finish("c1")
    await d.session.wait(timeout=30)
    landed = [e.data["messageId"] for e in d.of("user.message")]
    assert [landed.count(message_id) for message_id in ids] == [1, 1, 1]
    assert not d.session.state.steers


async def test_4_a_steer_that_came_too_late_runs_before_the_queue(desk: Make) -> None:
    """claude-code#43285, #78338: accepted, the run ended before it was injected, and it was lost."""
    d = desk({"text": ["half", " and half"], "gate_after_chunk": {"1": "mid"}}, "steered", "queued")
    await d.session.send("work")
    await d.seen("assistant.message_delta")
    await d.session.enqueue("Q1")
    await d.session.steer("late")
    d.model.gate("mid").set()
    await d.session.wait(timeout=30)
    assert d.users == [("work", "idle"), ("late", "queued"), ("Q1", "queued")]


async def test_4_a_late_steer_survives_a_model_error(desk: Make) -> None:
    d = desk({"gate": "pre", "http_error": {"status": 400, "message": "no"}}, "steered")
    await d.session.send("work")
    await d.model.wait_request(1)
    await d.session.steer("late")
    d.model.gate("pre").set()
    await d.session.wait(timeout=30)
    assert d.users == [("work", "idle"), ("late", "queued")]


@pytest.mark.parametrize("mode", ["immediate", "enqueue"])
async def test_5_when_idle_both_modes_start_a_run_at_once(desk: Make, mode: Any) -> None:
    """hermes-agent#64578: a steer sent when nothing runs was stranded."""
    d = desk("one", "two")
    await d.session.send("first")
    await d.session.wait(timeout=30)
    await d.session.send("second", mode)
    await d.session.wait(timeout=30)
    assert d.users == [("first", "idle"), ("second", "idle")]


async def test_6_a_steer_does_not_end_the_task(desk: Make) -> None:
    """codex#11062: after answering the steer the agent dropped the original task."""
    d = desk(gate("c1"), gate("c2"), "done")
    await d.session.send("the task")
    await d.running("c1")
    await d.session.steer("also this")
    d.finish("c1")
    await d.running("c2")  # the loop goes on with tools after the steer
    d.finish("c2")
    await d.session.wait(timeout=30)
    assert [pair[0] for pair in d.said(2)] == ["user", "assistant", "tool", "user", "assistant", "tool"]
    assert d.said(2)[0] == ("user", "the task") and d.said(2)[3] == ("user", "also this")
    assert len({e.data["interactionId"] for e in d.of("user.message")}) == 1


async def test_8_a_steer_during_a_permission_prompt_waits_and_says_so(desk: Make) -> None:
    """vscode#295697: nothing happened, it looked hung."""
    tool = Tool("echo", "says it", lambda arguments, context: ToolResult("hi"))
    d = desk(echo("c1"), "done", tools=[tool], ask=True)
    await d.session.send("work")
    await d.seen("permission.requested")
    await d.session.steer("hurry")
    assert "waiting for your answer about echo" in d.session.state.describe()
    assert "1 steer" in d.session.state.describe()
    await d.session.deny(feedback="not this one")  # deny and steer in one act: the run goes on
    await d.session.wait(timeout=30)
    assert d.users == [("work", "idle"), ("hurry", "steering")]
    assert d.said(1)[-1] == ("user", "hurry") and "not this one" in d.said(1)[-2][1]


async def test_9_an_error_in_the_queue_leaves_the_rest_running_and_idle_comes(desk: Make) -> None:
    """copilot-sdk#794: an exception in queue processing, and session.idle never fired."""
    d = desk(gate("c1"), "r0", {"http_error": {"status": 400, "message": "no"}}, "r2", "r3")
    await d.session.send("work")
    await d.running("c1")
    for text in ("Q1", "Q2", "Q3"):
        await d.session.enqueue(text)
    with pytest.raises(WaitTimeout) as caught:  # the message names what is going on
        await d.session.wait(timeout=0.05)
    assert "gate" in str(caught.value) and "3 queued" in str(caught.value)
    d.finish("c1")
    result = await d.session.wait(timeout=30)
    assert [text for text, _ in d.users] == ["work", "Q1", "Q2", "Q3"]
    assert len(d.of("session.error")) == 1 and len(d.of("session.idle")) == 1 and result.idle


async def test_9_a_fault_of_the_model_object_is_an_error_and_not_silence(tmp_path: Path) -> None:
    class Broken(ScriptedModel):
        async def reply(self, request: Any, sink: Any) -> Any:
            raise RuntimeError("a bug in a model")

    session = open_session(Broken([]), home=tmp_path, kernel=False)
    result = await session.send_and_wait("work", timeout=30)
    assert result is None and "a bug in a model" in str(session.state.errors)
    await session.close()


async def test_10_wait_does_not_end_while_background_work_runs(desk: Make, tmp_path: Path) -> None:
    """copilot-sdk#991: wait resolved on an idle while a background task ran (reference §3)."""
    command = {"command": "sleep 0.7; echo hi", "description": "say hi"}
    d = desk(
        {"tool_calls": [{"id": "c1", "name": "bash", "args": command}]},
        "steered",
        "noticed",
        tools=shell_tools(cwd=str(tmp_path)),
        yolo=True,
    )
    await d.session.send("run it")
    await d.seen("tool.execution_start")
    await asyncio.sleep(0.2)
    await d.session.steer("look up")
    await d.session.wait(timeout=60)
    assert d.of("system.notification") and len(d.of("session.idle")) == 1
    assert d.events[-1].type == "session.idle" or d.events.index(d.of("system.notification")[0]) < len(
        d.events
    )


async def test_12_the_queue_drains_whatever_ends_a_run(desk: Make) -> None:
    """copilot-cli#4824, #4078: items stayed in the queue after another trigger had run in between."""
    d = desk(gate("c1"), "r0", "r1", {"http_error": {"status": 400, "message": "no"}}, "r3", "r4", "r5", "r6")
    await d.session.send("work")
    await d.running("c1")
    for n in range(5):
        await d.session.enqueue(f"Q{n}")
    await d.session.send_messages(["trigger"])
    d.finish("c1")
    await d.session.wait(timeout=30)
    assert [text for text, _ in d.users] == ["work", *(f"Q{n}" for n in range(5)), "trigger"]
    assert len(d.of("session.idle")) == 1


async def test_13_abort_clears_as_the_reference_does_and_names_what_it_dropped(desk: Make) -> None:
    """copilot-cli#3692, #2972: what an abort dropped was not said."""
    d = desk(gate("c1"), "never")
    await d.session.send("work")
    await d.running("c1")
    queued, steered = await d.session.enqueue("Q"), await d.session.steer("S")
    await d.session.abort()
    gone = {e.data["messageId"]: e.data["reason"] for e in removed(d)}
    assert gone == {queued: "aborted", steered: "aborted"}
    assert (await d.session.queue.pending_items())["items"] == [] and len(d.model.requests) == 1


async def test_13_stop_keeps_the_queue_paused(desk: Make) -> None:
    d = desk(gate("c1"), "r1", "r2")
    await d.session.send("work")
    await d.running("c1")
    await d.session.enqueue("Q")
    await d.session.steer("S")
    await d.session.abort(keep_queue=True)
    assert d.session.state.queue_paused and not removed(d)
    items = (await d.session.queue.pending_items())["items"]
    assert [item["displayText"] for item in items] == ["S", "Q"]
    await d.session.queue.set_drain_paused(False)
    await d.session.wait(timeout=30)
    assert d.users == [("work", "idle"), ("S", "queued"), ("Q", "queued")]


def removed(d: Desk) -> list[Any]:
    return [e for e in d.of("jupyter.queue") if e.data["op"] == "remove"]


async def before_the_first_request(d: Desk) -> None:
    """Nothing to wait for: the message was only just accepted."""


async def in_mid_stream(d: Desk) -> None:
    await d.seen("assistant.message_delta")


async def in_mid_tool(d: Desk) -> None:
    await d.running("c1")


@pytest.mark.parametrize("moment", [before_the_first_request, in_mid_stream, in_mid_tool])
async def test_14_abort_settles_at_any_moment(desk: Make, moment: Callable[[Desk], Awaitable[None]]) -> None:
    """claude-agent-sdk-typescript#425, claude-code#20648: an interrupt that never settles, or is a no-op."""
    stream = {"text": ["half", "whole"], "gate_after_chunk": {"1": "never"}}
    d = desk(gate("c1") if moment is in_mid_tool else stream, "fine")
    await d.session.send("work")
    await moment(d)
    async with asyncio.timeout(10):
        await d.session.abort()
    kinds = [e.type for e in d.events]
    assert kinds.count("abort") == 1 and kinds.count("session.idle") == 1
    assert d.of("session.idle")[0].data["aborted"] is True
    count = len(d.events)
    d.finish("c1")
    d.model.gate("never").set()
    await asyncio.sleep(0.05)
    assert len(d.events) == count, "an event of the aborted run came late"
    answer = await d.session.send_and_wait("again", timeout=30)  # not "one message behind"
    expected = "fine" if len(d.model.requests) == 2 else "halfwhole"
    assert answer is not None and answer.data["content"] == expected


async def test_16_turning_an_item_into_a_steer_is_one_step(desk: Make) -> None:
    """kanna#111, claudette#629: the item was sent twice, or was "not found", while the run ended."""
    for ticks in range(0, 40, 3):
        d = desk({"text": ["half", " and half"], "gate_after_chunk": {"1": "mid"}}, "r1", "r2")
        await d.session.send("work")
        await d.seen("assistant.message_delta")
        await d.session.enqueue("Q")
        item = (await d.session.queue.pending_items())["items"][0]["id"]
        d.model.gate("mid").set()
        for _ in range(ticks):
            await asyncio.sleep(0)
        try:
            await d.session.queue.send_now(item)
        except UsageError as error:
            assert "No queue item" in str(error)  # it had started already
        await d.session.wait(timeout=30)
        assert [text for text, _ in d.users] == ["work", "Q"], f"after {ticks} ticks"
        await d.session.close()


async def test_17_nudging_has_an_end(desk: Make) -> None:
    """copilot-cli#1522, #2374, #3010: endless nudges, billed."""
    d = desk(*(f"stop {n}" for n in range(20)))
    await d.session.set_mode("autopilot")
    await d.session.send("do it")
    await d.session.wait(timeout=30)
    nudges = [e for e in d.of("user.message") if e.data.get("isAutopilotContinuation")]
    assert len(nudges) == 5 and all(e.data["content"] == "" for e in nudges)
    assert [e.data["reason"] for e in d.of("session.autopilot_stopped")] == ["cap_reached"]


async def test_17_no_nudge_after_an_error_or_without_task_complete(desk: Make) -> None:
    d = desk({"http_error": {"status": 400, "message": "no"}})
    await d.session.set_mode("autopilot")
    await d.session.send("do it")
    await d.session.wait(timeout=30)
    assert len(d.model.requests) == 1
    assert [e.data["reason"] for e in d.of("session.autopilot_stopped")] == ["error"]


async def test_18_an_aborted_call_is_answered_in_the_next_request(desk: Make) -> None:
    """copilot-cli#3183, #3366: a call without result; every later request was refused with 400."""
    d = desk(gate("c1", "c2"), "fine")
    await d.session.send("work")
    await d.running("c1")
    await d.running("c2")
    d.finish("c2")
    await d.seen("tool.execution_complete")
    await d.session.abort()
    await d.session.send_and_wait("go on", timeout=30)
    assert [role for role, _ in d.said(1)] == ["user", "assistant", "tool", "tool", "user"]
    assert "interrupted" in d.said(1)[2][1] and d.said(1)[3] == ("tool", "result c2")


async def test_18_so_is_one_that_a_killed_process_left(desk: Make, tmp_path: Path) -> None:
    d = desk(gate("c1"), home=tmp_path / "first")
    await d.session.send("work")
    await d.running("c1")
    log = d.session.log_path.read_bytes()  # what a kill -9 leaves: no end, no shutdown
    folder = tmp_path / "second" / "session-state" / d.session.id
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(log)
    await d.session.close()
    again = desk("fine", home=tmp_path / "second", opener=resume_session, session_id=d.session.id)
    await again.session.send_and_wait("go on", timeout=30)
    assert [role for role, _ in again.said(0)] == ["user", "assistant", "tool", "user"]
    assert "interrupted" in again.said(0)[2][1]
    assert [e.data["error"]["code"] for e in again.of("tool.execution_complete")] == ["interrupted"]


class LateLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward: every timer that is running becomes due."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def test_19_neither_a_working_nor_an_idle_session_is_reaped(tmp_path: Path) -> None:
    """copilot-sdk#212, #824: the session was closed after 35 minutes, even while it worked."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LateLoop)
        d = Desk(tmp_path, gate("c1"), "done", "two")
        await d.session.send("work")
        await d.running("c1")
        loop.ahead += 3 * 3600
        await asyncio.sleep(0.05)
        assert not d.session.closed and not d.of("session.idle")
        d.finish("c1")
        result = await d.session.wait()
        assert result.idle and result.answer == "done"
        loop.ahead += 3 * 3600
        await asyncio.sleep(0.05)
        answer = await d.session.send_and_wait("second")
        assert answer is not None and answer.data["content"] == "two"
        await d.session.close()

    with asyncio.Runner(loop_factory=LateLoop) as runner:
        runner.run(story())


async def test_rejecting_without_a_word_ends_the_run_and_names_what_was_dropped(desk: Make) -> None:
    """Reference §10: a bare rejection acts as an abort; 13 asks that nothing is dropped in silence."""
    tool = Tool("echo", "says it", lambda arguments, context: ToolResult("hi"))
    d = desk(echo("c1"), "never", tools=[tool], ask=True)
    await d.session.send("work")
    await d.seen("permission.requested")
    queued = await d.session.enqueue("Q")
    request = d.of("permission.requested")[0].data["requestId"]
    await d.session.respond(request, Decision("reject"))
    await d.session.wait(timeout=30)
    assert [(e.data["messageId"], e.data["reason"]) for e in removed(d)] == [(queued, "rejected")]
    assert len(d.model.requests) == 1
