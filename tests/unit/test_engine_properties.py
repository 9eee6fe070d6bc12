"""Properties of the engine that hold in every schedule (hypothesis; scripted model, real files, real loop).

Faults of this kind that people met in other tools: a steer vanishes or arrives twice (vscode#317129,
claude-code#43285, kanna#111), idle never comes or comes too early (copilot-sdk#794, #991), the queue stops
draining (copilot-cli#4824), a tool call stays unanswered and every later request is refused
(copilot-cli#3183), events of an old turn come late (claude-agent-sdk-typescript#425).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import tempfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from copilot_nb.errors import UsageError
from copilot_nb.models.scripted import ScriptedModel
from copilot_nb.permissions import Decision
from copilot_nb.session import Session, open_session
from copilot_nb.tools.base import Tool, ToolContext, ToolResult

EXAMPLES = 2000

# --- what is drawn ------------------------------------------------------------------------------

call = st.sampled_from(["gate", "gate", "echo", "boom", "ask", "ask", "nosuch", "task_complete", "bad json"])
text_reply = st.fixed_dictionaries(
    {"text": st.just(["one ", "two"])}, optional={"pre": st.just(1), "mid": st.just(1)}
)
tool_reply = st.fixed_dictionaries(
    {"calls": st.lists(call, min_size=1, max_size=3)}, optional={"pre": st.just(1), "text": st.just(["so "])}
)
odd_reply = st.sampled_from(
    [
        {"http_error": {"status": 400, "message": "bad request"}},
        {"http_error": {"status": 500, "message": "server error"}},
        {"text": ["cut ", "off"], "disconnect_after_chunks": 1},
        {"text": ["long"], "finish": "length"},
        {"text": []},
        {"no_choices": True},
    ]
)
replies = st.lists(st.one_of(text_reply, tool_reply, odd_reply), min_size=1, max_size=8)

number = st.integers(0, 3)
step = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(["enqueue", "immediate"])),
    st.tuples(st.just("send"), st.sampled_from(["enqueue", "immediate"])),
    st.tuples(st.just("ticks"), st.sampled_from([1, 2, 3, 5, 8, 20, 60])),
    st.tuples(st.just("ticks"), st.sampled_from([1, 2, 3, 5, 8, 20, 60])),
    st.tuples(st.just("release"), number),
    st.tuples(st.just("finish"), number),
    st.tuples(
        st.just("answer"), st.sampled_from(["approve-once", "approve-for-session", "reject", "feedback"])
    ),
    st.tuples(
        st.just("edit"),
        st.sampled_from(["move", "remove", "text", "copy", "insert", "now", "recent"]),
        number,
    ),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("mode"), st.sampled_from(["autopilot", "interactive"])),
    st.tuples(st.just("end"), st.sampled_from(["abort", "abort", "keep", "interrupt", "clear", "withdraw"])),
)
steps = st.lists(step, min_size=1, max_size=25)


# --- what is run --------------------------------------------------------------------------------


class Play:
    """One schedule on one session."""

    def __init__(self, drawn: list[Any], home: str) -> None:
        self.gates: dict[str, asyncio.Future[str]] = {}
        self.sent: list[str] = []
        self.events: list[Any] = []
        self.model = ScriptedModel(script(drawn))
        self.open_gates = [gate for reply in self.model._replies for gate in gates_of(reply)]
        free = [Tool(name, name, handler, skip_permission=True) for name, handler in self.handlers()]
        asking = Tool("ask", "asks for permission", lambda arguments, context: ToolResult("asked"))
        self.session: Session = open_session(
            self.model,
            tools=[*free, asking],
            home=home,
            ask=True,
            kernel=False,
            retry_scale=0,
            max_continues=2,
        )
        self.session.on(self.events.append)

    def handlers(self) -> Any:
        async def gate(arguments: Any, context: ToolContext) -> ToolResult:
            future = self.gates[context.call_id] = asyncio.get_running_loop().create_future()
            try:
                return ToolResult(await future)
            finally:
                del self.gates[context.call_id]

        def boom(arguments: Any, context: ToolContext) -> ToolResult:
            raise ValueError("kaboom")

        return [("gate", gate), ("echo", lambda arguments, context: ToolResult("echo")), ("boom", boom)]

    async def do(self, what: tuple[Any, ...]) -> None:
        session = self.session
        match what:
            case ("send", mode):
                self.sent.append(await session.send(f"message {len(self.sent)}", mode))
            case ("ticks", count):
                for _ in range(count):
                    await asyncio.sleep(0)
            case ("release", place) if self.open_gates:
                self.model.gate(self.open_gates.pop(place % len(self.open_gates))).set()
            case ("finish", place) if self.gates:
                future = list(self.gates.values())[place % len(self.gates)]
                if not future.done():
                    future.set_result("finished")
            case ("answer", kind) if session.state.permissions:
                decision = Decision("reject", feedback="no") if kind == "feedback" else Decision(kind)
                await session.respond(next(iter(session.state.permissions)), decision)
            case ("edit", how, place):
                await self.edit(how, place)
            case ("pause", paused):
                await session.queue.set_drain_paused(paused)
            case ("mode", mode):
                await session.set_mode(mode)
            case ("end", "withdraw") if self.sent:
                await session.withdraw(self.sent[-1], f"message {len(self.sent) - 1}")
            case ("end", "clear"):
                await session.queue.clear()
            case ("end", "interrupt"):
                await session.interrupt()
            case ("end", how) if how != "withdraw":
                await session.abort(keep_queue=how == "keep")

    async def edit(self, how: str, place: int) -> None:
        queue = self.session.queue
        items = (await queue.pending_items())["items"]
        if how == "recent":
            await queue.remove_most_recent()
        elif how == "insert":
            await queue.insert_at(place, f"message {len(self.sent)}")
            self.sent.append(self.item_ids_added(items, (await queue.pending_items())["items"]))
        elif items:
            item = items[place % len(items)]["id"]
            if how == "move":
                await queue.move_item(item, place)
            elif how == "remove":
                await queue.remove_at(item)
            elif how == "text":
                await queue.update_text(item, "another text")
            elif how == "copy":
                await queue.duplicate_at(item)
                self.sent.append(self.item_ids_added(items, (await queue.pending_items())["items"]))
            else:
                await queue.send_now(item)

    @staticmethod
    def item_ids_added(before: list[Any], after: list[Any]) -> str:
        known = {item["messageId"] for item in before}
        return next(item["messageId"] for item in after if item["messageId"] not in known)

    async def settle(self) -> None:
        """Let everything go on to its end."""
        session = self.session
        for _ in range(3000):
            for gate in self.open_gates:
                self.model.gate(gate).set()
            for future in list(self.gates.values()):
                if not future.done():
                    future.set_result("finished")
            for request in list(session.state.permissions):
                with contextlib.suppress(UsageError):  # answered, but not told yet
                    await session.respond(request, Decision("approve-once"))
            if session.state.queue_paused:
                await session.queue.set_drain_paused(False)
            await asyncio.sleep(0 if session.busy else 0.001)
            if not session.busy and not session.state.busy and session._runtime._loop.task is None:
                return
        raise AssertionError(f"never idle: {session.state.describe()}")


def script(drawn: list[Any]) -> list[Any]:
    """The model script of what was drawn, with ids and gates named."""
    numbers = itertools.count(1)
    result = []
    for k, reply in enumerate(drawn):
        reply = dict(reply)
        if reply.pop("pre", None):
            reply["gate"] = f"pre {k}"
        if reply.pop("mid", None):
            reply["gate_after_chunk"] = {"1": f"mid {k}"}
        if calls := reply.pop("calls", None):
            reply["tool_calls"] = [tool_call(name, f"c{next(numbers)}") for name in calls]
        result.append(reply)
    return result


def tool_call(name: str, call_id: str) -> Any:
    if name == "bad json":
        return {"id": call_id, "name": "echo", "args_raw": '{"text": "cut'}
    return {"id": call_id, "name": name, "args": {"summary": "done"} if name == "task_complete" else {}}


def gates_of(reply: Any) -> list[str]:
    return [*([reply["gate"]] if "gate" in reply else []), *reply.get("gate_after_chunk", {}).values()]


async def play(drawn: list[Any], todo: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        game = Play(drawn, home)
        for what in todo:
            try:
                await game.do(what)
            except UsageError:
                continue  # refused in words: pausing twice, an item that has gone meanwhile
        await game.settle()
        await game.session.close()
        count = len(game.events)
        await asyncio.sleep(0.002)
        assert len(game.events) == count, "no event after close"
        check(game)


# --- what must hold -----------------------------------------------------------------------------


def check(game: Play) -> None:
    events = game.events
    accounted(game.sent, events)
    lanes_in_order(events)
    turns_pair(events)
    idle_only_when_quiet(events)
    calls_answered(game.model.requests, events)
    deltas_make_messages(events)
    log_is_what_was_delivered(game, events)


def accounted(sent: list[str], events: list[Any]) -> None:
    """Each accepted message: exactly one user.message, or one named event that discarded it."""
    landed = Counter(e.data["messageId"] for e in events if e.type == "user.message")
    gone = Counter(e.data["messageId"] for e in events if is_queue(e, "remove"))
    reasons = {e.data["reason"] for e in events if is_queue(e, "remove")}
    assert reasons <= {"removed", "cleared", "aborted", "rejected", "withdrawn"}
    for message_id in sent:
        assert landed[message_id] + gone[message_id] == 1, (landed[message_id], gone[message_id])


def is_queue(event: Any, op: str) -> bool:
    return bool(event.type == "jupyter.queue" and event.data["op"] == op)


def lanes_in_order(events: list[Any]) -> None:
    """Fold the journal of the lanes: what lands is always the first of its lane."""
    lanes: dict[str, list[str]] = {"queue": [], "steering": []}
    for event in events:
        data = event.data
        if event.type == "user.message" and data.get("source") != "autopilot":
            lane = "steering" if data["delivery"] == "steering" else "queue"
            waiting = [name for name, ids in lanes.items() if data["messageId"] in ids]
            if waiting:
                assert waiting == [lane] and lanes[lane].pop(0) == data["messageId"]
            else:
                assert data["delivery"] == "idle", data
        elif event.type == "jupyter.queue" and data["op"] in ("remove", "move"):
            for ids in lanes.values():
                if data["messageId"] in ids:
                    ids.remove(data["messageId"])
        if event.type == "jupyter.queue" and data["op"] in ("add", "move"):
            lanes[data["lane"]].insert(data["position"], data["messageId"])
    assert lanes == {"queue": [], "steering": []}


def turns_pair(events: list[Any]) -> None:
    """turn_start and turn_end alternate, with the same id."""
    turns = [e for e in events if e.type in ("assistant.turn_start", "assistant.turn_end")]
    assert len(turns) % 2 == 0
    for start, end in zip(turns[::2], turns[1::2], strict=True):
        assert (start.type, end.type) == ("assistant.turn_start", "assistant.turn_end")
        assert start.data["turnId"] == end.data["turnId"]


def idle_only_when_quiet(events: list[Any]) -> None:
    """One session.idle per drain, and nothing open when it comes."""
    open_turn = busy = accepted = False
    started: set[str] = set()
    asking: set[str] = set()
    for event in events:
        match event.type:
            case "pending_messages.modified":
                accepted = True  # a message taken back before its run began is a drain of its own
            case "jupyter.queue" if event.data["op"] == "pause" and not event.data["paused"]:
                accepted = True  # a release starts a drain, also when a pause follows at once
            case "user.message" | "assistant.turn_start" | "abort":
                busy = True
                open_turn = open_turn or event.type == "assistant.turn_start"
            case "assistant.turn_end":
                open_turn = False
                started.clear()  # calls of an aborted turn have no result event (reference §8)
            case "tool.execution_start":
                started.add(event.data["toolCallId"])
            case "tool.execution_complete":
                started.discard(event.data["toolCallId"])
            case "permission.requested":
                asking.add(event.data["requestId"])
            case "permission.completed":
                asking.discard(event.data["requestId"])
            case "session.idle":
                assert busy or accepted, "idle twice"
                assert not open_turn and not started and not asking
                busy = accepted = False
    assert not busy, "the last drain ended without idle"


def calls_answered(requests: list[Any], events: list[Any]) -> None:
    """Each call has at most one result event, and in every request exactly one result, in call order."""
    done = Counter(e.data["toolCallId"] for e in events if e.type == "tool.execution_complete")
    assert all(count == 1 for count in done.values()), done
    for request in requests:
        messages = list(request["messages"])
        for k, message in enumerate(messages):
            if calls := message.get("tool_calls"):
                answers = messages[k + 1 : k + 1 + len(calls)]
                assert [c["id"] for c in calls] == [a.get("tool_call_id") for a in answers]
        expected = sum(len(m.get("tool_calls") or ()) for m in messages)
        assert expected == sum(m["role"] == "tool" for m in messages)


def deltas_make_messages(events: list[Any]) -> None:
    """The deltas of a message, joined, are its content."""
    deltas: dict[str, str] = {}
    for event in events:
        if event.type == "assistant.message_delta":
            deltas[event.data["messageId"]] = (
                deltas.get(event.data["messageId"], "") + event.data["deltaContent"]
            )
        elif event.type == "assistant.message" and event.data["messageId"] in deltas:
            assert deltas[event.data["messageId"]] == event.data["content"]


def log_is_what_was_delivered(game: Play, events: list[Any]) -> None:
    """The log holds the stored events in the order they were delivered; each names the one before."""
    lines = [json.loads(line) for line in game.session.log_path.read_bytes().splitlines()]
    delivered = [event.id for event in events if event.stored]
    if all(event.type != "session.snapshot_rewind" for event in events):
        assert [line["id"] for line in lines][1:] == delivered  # session.start came before the handler
        assert [line["parentId"] for line in lines] == [None, *(line["id"] for line in lines[:-1])]
    else:
        places = {event_id: place for place, event_id in enumerate(delivered)}
        kept = [places[line["id"]] for line in lines[1:]]
        assert kept == sorted(kept)


@pytest.mark.timeout(1800)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(replies, steps)
def test_every_schedule_keeps_the_properties(drawn: list[Any], todo: list[tuple[Any, ...]]) -> None:
    asyncio.run(play(drawn, todo))
