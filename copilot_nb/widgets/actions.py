"""What a person does in the panel, done to the session. Each request gets one reply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from copilot_nb.errors import CopilotNbError, UsageError
from copilot_nb.events import JSON, clean
from copilot_nb.permissions import Decision
from copilot_nb.runtimes.base import Answer, Message
from copilot_nb.widgets import view
from copilot_nb.widgets.table import filter_of

if TYPE_CHECKING:
    from copilot_nb.widgets.panel import Panel

_Action = Callable[[Any, JSON], Awaitable[Any]]
_WRITES: set[str] = set()
_ACTIONS: dict[str, _Action] = {}


def _action(name: str, *, writes: bool = True) -> Callable[[_Action], _Action]:
    def register(function: _Action) -> _Action:
        _ACTIONS[name] = function
        if writes:
            _WRITES.add(name)
        return function

    return register


class Actions:
    """Performs the requests of one panel's views."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel

    async def perform(self, content: JSON) -> None:
        """Do what ``{"kind": "do", "id", "name", "args"}`` asks and send ``{"kind": "reply", "id", …}``."""
        reply: JSON = {"kind": "reply", "id": content.get("id")}
        try:
            reply["value"] = await self._call(str(content.get("name")), content.get("args") or {})
        except (CopilotNbError, ValueError, KeyError, LookupError, TypeError, OSError) as error:
            reply["error"] = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        except asyncio.CancelledError:
            reply["error"] = "cancelled"
        self.panel.send(reply)

    async def _call(self, name: str, args: JSON) -> Any:
        function = _ACTIONS.get(name)
        if function is None:
            raise UsageError(f"The panel does not know {name!r}.")
        if name in _WRITES and not hasattr(self.panel.source, "send"):
            raise UsageError("This is a log: it can be read, not continued. Resume the session instead.")
        return await function(self.panel, args)


# --- the run ---


@_action("send")
async def _send(panel: Panel, args: JSON) -> Any:
    return await _session(panel).send(args["text"], mode=args.get("mode", "enqueue"))


@_action("stop")
async def _stop(panel: Panel, args: JSON) -> None:
    await _session(panel).abort(keep_queue=True)


@_action("restart.text")
async def _restart_text(panel: Panel, args: JSON) -> JSON:
    """What a new start of the running run would say: its message and its steers, in order."""
    state = panel.source.state
    run = state.run
    if run is None or not state.busy:
        raise UsageError("Nothing runs that could be restarted.")
    steers = [m for m in state.messages.values() if m.run == run.n and m.delivery == "steering"]
    return {"run": run.n, "text": "\n\n".join([run.prompt, *(m.text for m in [*steers, *state.steers])])}


@_action("restart")
async def _restart(panel: Panel, args: JSON) -> None:
    """Stop the run and start anew with a text; what waits in the queue stays behind it."""
    session, state = _session(panel), panel.source.state
    if not str(args["text"]).strip():
        raise UsageError("The message is empty: write what the agent should do.")
    if not state.busy or state.run is None or state.run.n != args["run"]:
        raise UsageError(f"Run {args['run']} is over: send the text as a new message.")
    paused = state.queue_paused
    for steer in state.steers:
        await session.withdraw(steer.id, steer.text)
    await session.abort(keep_queue=True)
    if not state.queue_paused:
        await session.send(args["text"])
        return
    await session.queue.insert_at(0, Message(args["text"]))
    await session.queue.set_drain_paused(False)
    if paused:
        await session.queue.set_drain_paused(True)


@_action("mode")
async def _mode(panel: Panel, args: JSON) -> None:
    await _session(panel).set_mode(args["mode"])


@_action("respond")
async def _respond(panel: Panel, args: JSON) -> None:
    if "answer" in args:
        await _session(panel).respond(args["request"], Answer(args["answer"]))
        return
    decision = Decision(args["decision"], feedback=args.get("feedback"))
    await _session(panel).respond(args["request"], decision)


# --- the lanes: the front end names messages, the queue its own ids ---


async def _item_id(panel: Panel, message_id: str) -> str:
    items = (await _session(panel).queue.pending_items())["items"]
    for item in items:
        if item.get("messageId") == message_id:
            return str(item["id"])
    raise UsageError("That message is not in the queue any more.")


@_action("queue.move")
async def _move(panel: Panel, args: JSON) -> None:
    await _session(panel).queue.move_item(await _item_id(panel, args["message"]), int(args["to"]))


@_action("queue.edit")
async def _edit(panel: Panel, args: JSON) -> None:
    if not str(args["text"]).strip():
        raise UsageError("The message is empty: write what the agent should do, or remove it.")
    await _session(panel).queue.update_text(await _item_id(panel, args["message"]), args["text"])


@_action("queue.remove")
async def _remove(panel: Panel, args: JSON) -> None:
    await _session(panel).queue.remove_at(await _item_id(panel, args["message"]))


@_action("queue.duplicate")
async def _duplicate(panel: Panel, args: JSON) -> None:
    await _session(panel).queue.duplicate_at(await _item_id(panel, args["message"]))


@_action("queue.steer")
async def _steer_now(panel: Panel, args: JSON) -> None:
    await _session(panel).queue.send_now(await _item_id(panel, args["message"]))


@_action("queue.insert")
async def _insert(panel: Panel, args: JSON) -> None:
    waiting = len(panel.source.state.lanes["queue"])
    place = min(max(0, int(args.get("position", waiting))), waiting)
    await _session(panel).queue.insert_at(place, Message(args["text"]))


@_action("queue.pause")
async def _pause(panel: Panel, args: JSON) -> None:
    await _session(panel).queue.set_drain_paused(bool(args["paused"]))


@_action("queue.clear")
async def _clear(panel: Panel, args: JSON) -> None:
    """Empty the queue lane alone: the steers stay."""
    for message in panel.source.state.queue:
        await _session(panel).queue.remove_at(await _item_id(panel, message.id))


@_action("steer.withdraw")
async def _withdraw(panel: Panel, args: JSON) -> None:
    message = panel.source.state.messages[args["message"]]
    if message.state != "pending":
        raise UsageError("Too late: the steer has joined the run.")
    await _session(panel).withdraw(message.id, message.text)
    if args.get("text"):
        await _session(panel).send(args["text"], mode=args.get("mode", "immediate"))


# --- looking ---


@_action("earlier", writes=False)
async def _earlier(panel: Panel, args: JSON) -> JSON:
    return panel.feed.earlier(args["key"], int(args.get("count", 40)))


@_action("around", writes=False)
async def _around(panel: Panel, args: JSON) -> JSON:
    return panel.feed.around(args["key"])


@_action("tool", writes=False)
async def _tool(panel: Panel, args: JSON) -> JSON:
    tool = panel.source.state.tools[args["id"]]
    return {"text": view.cut(tool.detail or tool.result, 1_000_000)}


@_action("timeline", writes=False)
async def _timeline(panel: Panel, args: JSON) -> JSON:
    return panel.timeline.window(args.get("from"), args.get("to"), int(args.get("width", 700)))


@_action("events.types", writes=False)
async def _types(panel: Panel, args: JSON) -> JSON:
    return panel.table.types()


@_action("events.count", writes=False)
async def _count(panel: Panel, args: JSON) -> JSON:
    return {"count": panel.table.window.count(**filter_of(args))}


@_action("events.find", writes=False)
async def _find(panel: Panel, args: JSON) -> JSON:
    return {"index": panel.table.place(args)}


@_action("events.dataframe", writes=False)
async def _dataframe(panel: Panel, args: JSON) -> JSON:
    return panel.table.frame(args)


@_action("events.rows", writes=False)
async def _rows(panel: Panel, args: JSON) -> JSON:
    sort = (args["sort"][0], bool(args["sort"][1])) if args.get("sort") else ("seq", True)
    return {"rows": clean(panel.table.rows(int(args["start"]), int(args["stop"]), sort, args))}


@_action("event", writes=False)
async def _event(panel: Panel, args: JSON) -> Any:
    event = panel.source.log.event(args["id"])
    if event is None:
        raise UsageError("That event is not in the log any more.")
    return clean(event.to_dict() if hasattr(event, "to_dict") else event)


def _session(panel: Panel) -> Any:
    return panel.source
