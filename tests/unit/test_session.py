"""The session a user holds: sending, waiting, limits, endings, and what is better than the reference."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from copilot_nb.errors import SessionClosed, SessionError, StoreError, UsageError, WaitTimeout
from copilot_nb.events import Event
from copilot_nb.models.scripted import ScriptedModel
from copilot_nb.permissions import Decision
from copilot_nb.session import Session, current, open_session, resume_session

Opener = Callable[..., Session]
CALL = {"tool_calls": [{"id": "c1", "name": "work", "args": {}}]}


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opener]:
    """Opens sessions in a fresh home, and closes them."""
    sessions: list[Session] = []

    def opener(replies: Any, **more: Any) -> Session:
        model = replies if isinstance(replies, ScriptedModel) else ScriptedModel(replies)
        more = {"home": tmp_path, "kernel": False, "yolo": True, "retry_scale": 0.0, **more}
        session = open_session(model, **more)
        sessions.append(session)
        return session

    yield opener
    for session in sessions:
        await session.close()


def heard(session: Session, *types: str) -> list[Event]:
    events: list[Event] = []
    session.on(lambda event: events.append(event) if not types or event.type in types else None)
    return events


async def test_send_and_wait_gives_the_answer(opened: Opener) -> None:
    session = opened(["Hello."])
    answer = await session.send_and_wait("hi", timeout=30)
    assert answer is not None and answer.data["content"] == "Hello."
    assert session.state.last_answer == "Hello." and not session.busy
    assert current() is session


async def test_the_message_id_of_send_is_the_one_of_user_message(opened: Opener) -> None:
    session = opened(["a", "b"])
    messages = heard(session, "user.message")
    ids = [await session.send("one"), await session.enqueue("two")]
    await session.wait(timeout=30)
    assert [event.data["messageId"] for event in messages] == ids


@pytest.mark.parametrize(("prompt", "mode"), [("", None), ("  \n", None), ("x", "later")])
async def test_wrong_words_are_refused_and_nothing_is_sent(opened: Opener, prompt: str, mode: Any) -> None:
    session = opened([])
    events = heard(session)
    with pytest.raises(UsageError):
        await session.send(prompt, mode)
    assert not events and not session.busy


async def test_unknown_settings_and_runtimes_say_what_exists(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="max_continues"):
        open_session("demo", home=tmp_path, max_contines=3)
    with pytest.raises(UsageError, match="engine or copilot"):
        open_session("demo", home=tmp_path, runtime="other")  # type: ignore[arg-type]
    assert not list(tmp_path.rglob("events.jsonl"))


async def test_a_timeout_names_the_state_and_leaves_the_run_alone(opened: Opener) -> None:
    """copilot-sdk#794: a timeout without a clue."""
    gate = asyncio.Event()

    async def work() -> str:
        """Work."""
        await gate.wait()
        return "done"

    session = opened([CALL, "fine", "two"], tools=[work])
    await session.send("go")
    await session.enqueue("next")
    with pytest.raises(WaitTimeout, match=r"running work.*1 queued") as caught:
        await session.wait(timeout=1.5)
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(WaitTimeout, match="nothing happened"):
        await session.wait(idle_timeout=0.2)
    gate.set()
    assert (await session.wait(timeout=30)).idle


async def test_cancelling_a_wait_does_not_touch_the_run(opened: Opener) -> None:
    """jupyter-facts Q5: an interrupted cell cancels what it awaits."""
    model = ScriptedModel([{"text": ["ok"], "gate": "g"}])
    session = opened(model)
    await session.send("go")
    waiting = asyncio.create_task(session.wait())
    await model.wait_request(1)
    waiting.cancel()
    await asyncio.wait([waiting])
    model.gate("g").set()
    assert (await session.wait(timeout=30)).answer == "ok"


async def test_wait_tells_errors_and_task_complete(opened: Opener) -> None:
    done = {"tool_calls": [{"id": "t", "name": "task_complete", "args": {"summary": "all done"}}]}
    session = opened([{"http_error": {"status": 400, "message": "no such model"}}, done], mode="autopilot")
    await session.send("one")
    result = await session.wait(timeout=30)
    assert result.idle and not result.task_complete and "no such model" in result.errors[0]
    await session.send("two")
    assert (await session.wait("task_complete", timeout=30)).task_complete
    await session.wait(timeout=30)


async def test_closing_ends_a_wait_with_a_clear_error(opened: Opener) -> None:
    model = ScriptedModel([{"text": ["ok"], "gate": "g"}])
    session = opened(model)
    await session.send("go")
    waiting = asyncio.create_task(session.wait())
    await model.wait_request(1)
    await session.close()
    with pytest.raises(SessionClosed):
        await waiting
    with pytest.raises(SessionClosed):
        await session.send("more")


async def test_no_event_comes_after_close_and_the_log_just_stops(opened: Opener) -> None:
    """Reference §13: a stopped client writes session.shutdown; the open call is found at the resume."""
    started = asyncio.Event()

    async def work() -> str:
        """Work."""
        started.set()
        await asyncio.sleep(60)
        return "never"

    model = ScriptedModel([CALL])
    session = opened(model, tools=[work], session_id="s1")
    await session.send("go")
    await started.wait()
    await session.enqueue("never asked")
    await session.close()
    events = heard(session)
    await asyncio.sleep(0.1)
    assert len(model.requests) == 1  # nothing goes on behind a closed session
    types = [json.loads(line)["type"] for line in session.log_path.read_bytes().splitlines()]
    assert not events
    assert types[-3:] == ["external_tool.requested", "jupyter.queue", "session.shutdown"]
    again = opened(["fine"], session_id="s1")
    told = heard(again, "tool.execution_complete", "session.warning")
    await again.send_and_wait("go on", timeout=30)
    assert [e.type for e in told] == ["tool.execution_complete", "session.warning"]
    assert told[0].data["error"]["code"] == "interrupted"


async def test_a_handler_that_fails_stops_nothing(opened: Opener) -> None:
    session = opened(["ok"])

    def broken(event: Event) -> None:
        raise RuntimeError("the handler's own fault")

    session.on(broken)
    answer = await session.send_and_wait("go", timeout=30)
    assert answer is not None


@pytest.mark.parametrize(("limit", "value"), [("max_turns", 2), ("max_tokens", 30), ("max_seconds", 0.3)])
async def test_a_limit_ends_the_run_and_the_queue_goes_on(opened: Opener, limit: str, value: float) -> None:
    async def work() -> str:
        """Work."""
        await asyncio.sleep(0.2)
        return "ok"

    calls = [{"tool_calls": [{"id": f"c{n}", "name": "work", "args": {}}]} for n in range(40)]
    session = opened(calls, tools=[work], **{limit: value})
    limits = heard(session, "jupyter.limit")
    await session.send("one")
    await session.enqueue("two")
    await session.wait(timeout=60)
    assert [e.data["limit"] for e in limits] == [limit.removeprefix("max_")] * 2
    assert [m.state for m in session.state.messages.values()] == ["landed", "landed"]


async def test_a_limit_can_stop_the_queue(opened: Opener) -> None:
    async def work() -> str:
        """Work."""
        return "ok"

    calls = [{"tool_calls": [{"id": f"c{n}", "name": "work", "args": {}}]} for n in range(9)]
    session = opened(calls, tools=[work], max_turns=1, limits_stop_queue=True)
    await session.send("one")
    await session.enqueue("two")
    await session.wait(timeout=30)
    assert session.state.queue_paused and [m.text for m in session.state.queue] == ["two"]


async def test_stop_keeps_the_queue_paused_and_abort_clears_it(opened: Opener) -> None:
    """copilot-cli#3692: an abort dropped the queued prompt. Field case 13: both wishes, said explicitly."""
    model = ScriptedModel([{"text": ["a"], "gate": "g"}, "steered", "queued", {"text": ["b"], "gate": "g"}])
    session = opened(model)
    await session.send("one")
    await model.wait_request(1)
    await session.enqueue("later")
    await session.steer("now")
    await session.abort(keep_queue=True)
    assert [m.text for m in session.state.queue] == ["now", "later"]
    assert session.state.queue_paused and not session.busy
    await session.queue.set_drain_paused(False)
    await session.wait(timeout=30)
    asked = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "user"]
    assert [text.rpartition("\n")[2] for text in asked] == ["one", "now", "later"]
    removed = heard(session, "jupyter.queue")
    model.gate("g").clear()
    await session.send("two")
    await model.wait_request(4)
    await session.enqueue("gone")
    await session.abort()
    assert removed[-1].data | {"messageId": ""} == {"op": "remove", "messageId": "", "reason": "aborted"}
    assert not session.state.queue


async def test_the_queue_survives_a_restart_paused(opened: Opener) -> None:
    model = ScriptedModel([{"text": ["a"], "gate": "g"}])
    session = opened(model, session_id="s1")
    await session.send("one")
    await model.wait_request(1)
    await session.enqueue("second")
    await session.enqueue("third")
    await session.steer("steer")
    await session.close()
    again = opened(["x", "y", "z"], session_id="s1", restore_queue=True)
    assert [m.text for m in again.state.queue] == ["steer", "second", "third"]
    assert again.state.queue_paused
    await asyncio.sleep(0.1)
    assert not again.busy  # never run by itself
    await again.queue.set_drain_paused(False)
    await again.wait(timeout=30)
    asked = [m for m in again.runtime.config.model.requests[-1]["messages"] if m["role"] == "user"]  # type: ignore[attr-defined]
    assert [m["content"].rpartition("\n")[2] for m in asked] == ["one", "steer", "second", "third"]


async def test_without_the_switch_a_restart_forgets_the_queue_and_names_it(opened: Opener) -> None:
    """Reference §13: queued items are lost on stop; here an event says so."""
    model = ScriptedModel([{"text": ["a"], "gate": "g"}])
    session = opened(model, session_id="s1")
    await session.send("one")
    await model.wait_request(1)
    await session.enqueue("second")
    await session.close()
    again = opened(["x"], session_id="s1")
    assert not again.state.queue and again.state.removed[-1].reason == "restart"
    answer = await again.send_and_wait("new", timeout=30)
    assert answer is not None and answer.data["content"] == "x"


async def test_an_aborted_text_is_kept_and_extras_can_be_switched_off(opened: Opener) -> None:
    reply = {"text": ["part ", "rest"], "gate_after_chunk": {"1": "g"}}
    for extras in (True, False):
        session = opened([reply], extras=extras)
        kept = heard(session, "jupyter.partial", "jupyter.queue")
        deltas = heard(session, "assistant.message_delta")
        await session.send("go")
        while not deltas:
            await asyncio.sleep(0.01)
        await session.enqueue("next")
        await session.abort()
        texts = [e.data["content"] for e in kept if e.type == "jupyter.partial"]
        assert texts == (["part "] if extras else [])
        assert bool(kept) is extras


async def test_keys_of_the_environment_stay_out_of_log_and_request(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 52: secrets in outputs (nteract#1557)."""
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value")

    def work() -> str:
        """Work."""
        return f"the key is {os.environ['MY_API_KEY']}"

    session = opened([CALL, "ok"], tools=[work])
    await session.send_and_wait("go", timeout=30)
    assert b"sk-very-secret-value" not in session.log_path.read_bytes()
    assert "[value of MY_API_KEY]" in session.runtime.config.model.requests[1]["messages"][-1]["content"]  # type: ignore[attr-defined]


async def test_a_full_disk_loses_nothing_and_says_so(opened: Opener) -> None:
    session = opened(["one", "two"])
    await session.send_and_wait("first", timeout=30)
    notices = heard(session, "jupyter.notice")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (session.log_path.stat().st_size + 50, limit[1]))
    try:
        answer = await session.send_and_wait("second", timeout=30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert answer is not None and answer.data["content"] == "two"
    assert notices and notices[0].data["level"] == "error"
    await session.close()
    said = [e.data["content"] for e in await session.get_events() if e.type == "assistant.message"]
    assert said == ["one", "two"]


async def test_a_home_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "session-state").write_text("in the way")
    with pytest.raises(StoreError, match="COPILOT_HOME"):
        open_session("demo", home=tmp_path)


async def test_permission_by_person_rule_and_nobody(opened: Opener) -> None:
    async def work() -> str:
        """Work."""
        return "ok"

    call = [CALL, "done"]
    asked = opened(call, tools=[work], yolo=False, ask=True)
    done = heard(asked, "permission.completed")
    await asked.send("go")
    while not asked.state.permissions:
        await asyncio.sleep(0.01)
    with pytest.raises(UsageError):
        await asked.respond("no-such-request", Decision("approve-once"))
    await asked.allow()
    await asked.wait(timeout=30)
    nobody = opened(call, tools=[work], yolo=False, ask=False)
    done_nobody = heard(nobody, "permission.completed")
    await nobody.send_and_wait("go", timeout=30)
    ruled = opened(call, tools=[work], yolo=False, allow=["work"])
    done_ruled = heard(ruled, "permission.completed")
    await ruled.send_and_wait("go", timeout=30)
    kinds = [events[0].data["result"]["kind"] for events in (done, done_nobody, done_ruled)]
    assert kinds == ["approved", "denied-no-approval-rule-and-could-not-request-from-user", "approved"]
    assert "nobody" in done_nobody[0].data["result"]["reason"]


async def test_opening_an_open_session_gives_it_back_and_resuming_goes_on(opened: Opener) -> None:
    session = opened(["one"], session_id="s1")
    assert open_session("demo", session_id="s1", home=session.home) is session
    await session.send_and_wait("hi", timeout=30)
    size = session.log_path.stat().st_size
    await session.close()
    again = resume_session("s1", home=session.home, model=ScriptedModel(["two"]), kernel=False)
    await again.send_and_wait("more", timeout=30)
    assert again.log_path.stat().st_size > size  # copilot-cli#2118: a resumed session stopped appending
    assert [run.n for run in again.state.runs] == [1, 2]
    await again.close()


async def test_a_failed_background_action_becomes_a_notice(opened: Opener) -> None:
    session = opened([])
    notices = heard(session, "jupyter.notice")
    assert await session.schedule(session.send("")) is None  # type: ignore[misc]
    assert "prompt is empty" in notices[0].data["message"]


def test_plain_synchronous_code_runs_on_a_loop_of_its_own(tmp_path: Path) -> None:
    """jupyter-facts Q1: in plain IPython no loop runs between inputs."""
    session = open_session(ScriptedModel(["one", "two"]), home=tmp_path, kernel=False)
    seen: set[int] = set()
    session.on(lambda event: seen.add(threading.get_ident()))
    assert [session.run(prompt, timeout=30) for prompt in ("a", "b")] == ["one", "two"]
    assert seen and threading.get_ident() not in seen

    async def from_another_loop() -> str:
        await session.send("c")
        return (await session.wait(timeout=30)).answer

    assert asyncio.run(from_another_loop()) == "(exhausted)"
    asyncio.run(session.close())


def test_run_raises_what_went_wrong(tmp_path: Path) -> None:
    failing = ScriptedModel([{"http_error": {"status": 400, "message": "bad"}}])
    session = open_session(failing, home=tmp_path, kernel=False)
    with pytest.raises(SessionError, match="bad"):
        session.run("go", timeout=30)
    asyncio.run(session.close())


async def test_a_tool_that_swallows_its_cancellation_does_not_hold_up_an_abort(opened: Opener) -> None:
    """claude-agent-sdk-typescript#425: an interrupt that never settles."""
    started = asyncio.Event()

    async def work() -> str:
        """Work."""
        started.set()
        while True:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(1.5)
                return "late"

    session = opened([CALL, "next"], tools=[work])
    await session.send("go")
    await started.wait()
    await asyncio.wait_for(session.abort(), 10)
    stale = heard(session, "tool.execution_complete", "external_tool.completed")
    answer = await session.send_and_wait("again", timeout=30)
    await asyncio.sleep(2)
    assert answer is not None and not stale


async def test_a_fault_of_a_model_ends_the_run_not_the_session(opened: Opener) -> None:
    class Broken(ScriptedModel):
        async def reply(self, request: Any, sink: Any) -> Any:
            self.requests.append({})
            if len(self.requests) == 1:
                raise KeyError("a bug")
            return await super().reply(request, sink)

    session = opened(Broken([{"text": ["x"]}, {"text": ["fine"]}, {"text": ["fine"]}]))
    errors = heard(session, "session.error")
    await session.send("one")
    await session.enqueue("two")
    result = await session.wait(timeout=30)
    assert errors[0].data["errorType"] == "internal" and "a bug" in result.errors[0]
    assert result.answer
