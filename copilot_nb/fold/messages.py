"""What a person sends, and the two lanes it waits in (reference §3-§8, §15)."""

from __future__ import annotations

from copilot_nb.events import JSON, Event
from copilot_nb.fold.base import Fold, on
from copilot_nb.fold.items import Lane, Message


@on("user.message")
def _user_message(state: Fold, data: JSON, event: Event) -> None:
    at = state._at(event)
    delivery, interaction = data.get("delivery"), data.get("interactionId")
    key = data.get("messageId") or event.id
    message = state.messages.get(key) or Message(key, "", sent_at=at)
    state._leave(message)
    state.messages[key] = message
    message.text = str(data.get("displayContent") or data.get("content") or "")
    message.state, message.landed_at, message.delivery = "landed", at, delivery
    message.source, message.event_id = data.get("source"), event.id
    message.nudge = bool(data.get("isAutopilotContinuation"))
    message.attachments = list(data.get("attachments") or ())
    run, turn = state.run, state.turn
    if delivery == "steering" and run is not None and run.t1 is None:
        message.lane = "steering"
        run.steered += 1
        live = turn is not None and turn.run == run.n and turn.t1 is None and turn.said_at is None
        message.turn = turn.n if live and turn is not None else len(run.turns) + 1
        run.items.insert(len(run.items) - 1 if live and run.items[-1] is turn else len(run.items), message)
        state.in_flight.append(message)
    else:
        together = run is not None and run.t1 is None and not run.turns and run.interaction == interaction
        if run is None or not (together and interaction):  # sendMessages: several messages, one run [§15]
            run = state._new_run(at, interaction)
        run.items.append(message)
        message.turn = 1
    message.run = run.n
    state.busy = True
    state.touched = message


@on("jupyter.queue")
def _queue(state: Fold, data: JSON, event: Event) -> None:
    at, op = state._at(event), data.get("op")
    if op == "pause":
        state.queue_paused = bool(data.get("paused"))
        return
    if op == "restored":
        state.lanes["steering"].clear()  # it says what both lanes hold now
        state.lanes["queue"].clear()
        for item in data.get("items") or ():
            lane: Lane = "steering" if item.get("lane") == "steering" else "queue"
            known = state.messages.get(item["messageId"])
            restored = known or Message(item["messageId"], str(item.get("prompt", "")), sent_at=at)
            state._enter(restored, lane, None)
        return
    key = str(data.get("messageId"))
    to: Lane = "steering" if data.get("lane") == "steering" else "queue"
    if op == "add":
        state._enter(Message(key, str(data.get("prompt", "")), sent_at=at), to, data.get("position"))
        return
    message = state.messages.get(key)
    if message is None:
        return
    state.touched = message
    if op == "remove":
        state._leave(message)
        message.state, message.removed_at, message.reason = "removed", at, data.get("reason")
        state.removed.append(message)
    elif op == "move":
        state._leave(message)
        message.reason = data.get("reason")
        state._enter(message, to, data.get("position"))
    elif op == "edit":
        message.text = str(data.get("prompt", ""))


@on("session.idle")
def _idle(state: Fold, data: JSON, event: Event) -> None:
    state._at(event)
    state.aborted = bool(data.get("aborted"))
    state._close_run("aborted" if state.aborted else "done")
    state.busy = state.background = False
    state.in_flight.clear()
    state.mode = data.get("mode") or state.mode


@on("assistant.idle")
def _assistant_idle(state: Fold, data: JSON, event: Event) -> None:
    state._at(event)
    state._close_run("aborted" if data.get("aborted") else "done")


@on("session.background_tasks_changed")
def _background(state: Fold, data: JSON, event: Event) -> None:
    state.background = True
