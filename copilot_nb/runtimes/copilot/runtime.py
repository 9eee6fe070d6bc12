"""The adapter: a session on the real Copilot CLI, as the `Runtime` that `Session` knows."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from copilot_nb.errors import CopilotNbError, RuntimeUnavailable, SessionClosed, SessionError, UsageError
from copilot_nb.events import JSON, Event, EventSource, new_id
from copilot_nb.permissions import Decision
from copilot_nb.runtimes.base import Answer, Emit, Message, Mode
from copilot_nb.runtimes.copilot import advice, cli
from copilot_nb.runtimes.copilot.asks import PERMISSION, QUESTIONS, Asks
from copilot_nb.runtimes.copilot.client import Client, connect
from copilot_nb.runtimes.copilot.lanes import Lane, Lanes
from copilot_nb.runtimes.copilot.options import CopilotOptions
from copilot_nb.runtimes.copilot.queue import CopilotQueue, wire
from copilot_nb.runtimes.copilot.tools import Runner, offered


class CopilotRuntime:
    """One session on the CLI. Construct and use it on one loop.

    Parameters
    ----------
    emit
        Receives every event, in order: the CLI's as they came off the wire, and ours
        (``jupyter.runtime``, ``jupyter.queue`` …), which are ephemeral.
    """

    name = "copilot"

    def __init__(self, emit: Emit, options: CopilotOptions) -> None:
        self.options = options
        self.session_id = options.session_id
        self.model_label = options.label
        self._emit = emit
        self._source = EventSource()
        self._context = contextvars.copy_context()  # output of tools goes to the cell that opened the session
        self._lanes = Lanes(lambda data: self._note("jupyter.queue", data))
        self.queue = CopilotQueue(self._call, self._lanes)
        self._asks = Asks(self._call, options.policy, self._context)
        self._tools = Runner(options.tools, self._call, self._note, self._context)
        self._order = asyncio.Lock()  # sends reach the CLI in the order they were made
        self._client: Client | None = None
        self._opening: asyncio.Task[Client] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._stale = False  # the lanes changed since they were last asked for
        self._sent: dict[str, Message] = {}  # accepted, not landed
        self._own_question: tuple[str, asyncio.Future[JSON]] | None = None
        self._busy = False  # between a message and session.idle
        self._processing = False  # a run is going on: an immediate message is a steer
        self._turn: str | None = None
        self._mode: str = "interactive"
        self._keeping = False  # an abort that keeps the lanes is under way
        self._paused_by_death = False
        self._opened_before = False
        self._closed = False

    # --- starting --------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the CLI if need be and open the session there.

        Raises
        ------
        RuntimeUnavailable
            The CLI is missing, does not start, or is not logged in; the message says what to type. The same
            is told as a ``jupyter.runtime`` event with the state ``failed``.
        """
        await self._ready()

    def start(self) -> None:
        """Begin to open in the background; a failure is told as an event, and again by the next send."""
        self._begin().add_done_callback(lambda task: None if task.cancelled() else task.exception())

    def _begin(self) -> asyncio.Task[Client]:
        if self._opening is None or self._opening.done():
            loop = asyncio.get_running_loop()
            self._opening = loop.create_task(self._open(), context=self._context)
        return self._opening

    async def _ready(self) -> Client:
        if self._closed:
            raise SessionClosed("This session was closed; open or resume one.")
        if self._client is not None and not self._client.ended:
            return self._client
        return await asyncio.shield(self._begin())

    async def _open(self) -> Client:
        self._state("starting", "starting Copilot CLI …")
        try:
            client = await connect(await self._find_cli(), self.options.home)
            client.listeners[self.session_id] = self
            try:
                await self._open_on(client)
            except BaseException:
                await client.close_session(self.session_id)
                raise
        except CopilotNbError as error:
            self._state("failed", str(error))
            raise
        self._client = client
        self._opened_before = True
        await self._put_back(client)
        self._state("ready", f"Copilot CLI is ready (process {client.pid})")
        return client

    async def _find_cli(self) -> cli.Cli:
        found = await asyncio.to_thread(cli.find, self.options.cli_path)
        if found is not None:
            return found
        missing = f"The Copilot CLI is not on this machine. {advice.INSTALL}"
        if not self.options.policy.can_ask():
            raise RuntimeUnavailable(missing)
        answer = await self._ask(advice.DOWNLOAD, ["Download", "Do not download"])
        if str(answer.get("answer")).strip().lower() not in ("download", "yes", "y"):
            raise RuntimeUnavailable(missing)
        loop = asyncio.get_running_loop()

        def progress(text: str) -> None:  # on the downloading thread
            loop.call_soon_threadsafe(self._state, "starting", text)

        return await asyncio.to_thread(cli.download, progress)

    async def _ask(self, question: str, choices: list[str]) -> JSON:
        request_id = new_id()
        self._own_question = (request_id, asyncio.get_running_loop().create_future())
        data = {"requestId": request_id, "question": question, "choices": choices, "allowFreeform": False}
        self._note("user_input.requested", data)
        try:
            return await self._own_question[1]
        finally:
            self._own_question = None
            self._note("user_input.completed", {"requestId": request_id})

    async def _open_on(self, client: Client) -> None:
        from copilot import PermissionNoResult

        options = self.options
        if options.provider is None:
            login = await client.request("auth.getStatus", {})
            if not login.get("isAuthenticated"):
                raise RuntimeUnavailable(advice.NOT_LOGGED_IN)
        more: JSON = {} if options.provider is None else {"provider": options.provider.for_sdk()}
        log = options.home / "session-state" / self.session_id / "events.jsonl"
        await client.open_session(
            self.session_id,
            resume=options.resume or (self._opened_before and log.exists()),
            # requests are answered from the events off the wire (see asks.py), not by the SDK
            on_permission_request=lambda request, context: PermissionNoResult(),
            model=options.model,
            working_directory=options.working_directory,
            streaming=options.streaming,
            tools=offered(options.tools),
            client_name="copilot_nb",
            **more,
            **options.sdk,
        )
        for type in QUESTIONS:  # without a listener the CLI does not offer ask_user and its like
            params = {"sessionId": self.session_id, "eventType": type}
            await client.request("session.eventLog.registerInterest", params)

    async def _put_back(self, client: Client) -> None:
        """After a death: the messages that had not landed go back to the queue, which stays paused."""
        kept, sent = self._lanes.all, self._sent
        if not kept:
            return
        await client.request("session.queue.setDrainPaused", {"sessionId": self.session_id, "paused": True})
        self._sent, items = {}, []
        for waiting in kept:
            message = replace(sent.get(waiting.message_id, Message(waiting.prompt)), mode="enqueue")
            if waiting.message_id not in sent or _shown(message) != waiting.prompt:  # it was edited
                message = replace(message, prompt=waiting.prompt, display_prompt=None)
            result = await client.request("session.send", {"sessionId": self.session_id, **wire(message)})
            self._sent[result["messageId"]] = message
            items.append({"messageId": result["messageId"], "prompt": waiting.prompt, "lane": "queue"})
        self._lanes.restore(items)

    # --- the Runtime protocol --------------------------------------------------------------------

    async def send(self, message: Message) -> str:
        """Accept a message; while the CLI starts, messages wait here in order."""
        async with self._order:
            await self._ready()
            result = await self._call("session.send", wire(message))
            message_id = str(result["messageId"])
            self._accepted(message_id, message)
            await self._release()
        return message_id

    async def send_messages(self, messages: Sequence[Message]) -> list[str]:
        """Several messages, one turn."""
        async with self._order:
            await self._ready()
            items = [wire(replace(message, mode="enqueue", agent_mode=None)) for message in messages]
            params: JSON = {"messages": items}
            if messages and messages[-1].mode != "enqueue":
                params["mode"] = messages[-1].mode
            if messages and messages[-1].agent_mode:
                params["agentMode"] = messages[-1].agent_mode
            result = await self._call("session.sendMessages", params)
            ids = [str(id) for id in result.get("messageIds") or ()]
            for message_id, message in zip(ids, messages, strict=False):
                self._accepted(message_id, message)
            await self._release()
        return ids

    def _accepted(self, message_id: str, message: Message) -> None:
        if message_id in self._lanes.landed:
            return
        self._sent[message_id] = message
        if not self._busy and not self._lanes.paused:
            self._busy = True  # it starts a run at once and waits in no lane
            return
        lane: Lane = "steering" if message.mode == "immediate" and self._processing else "queue"
        self._lanes.accepted(message_id, _shown(message), lane)
        if lane == "steering":
            self._tools.steered()

    async def _release(self) -> None:
        if self._paused_by_death:
            self._paused_by_death = False
            await self.queue.set_drain_paused(False)

    async def abort(self, *, keep_queue: bool = False) -> None:
        """End the run. `keep_queue` pauses the queue; steers that had not landed go to its front."""
        if self._client is None:
            return
        if not keep_queue:
            await self._call("session.abort")
            return
        if not self._lanes.paused:
            await self.queue.set_drain_paused(True)
        self._keeping = True
        result = await self._call("session.interruptMainTurn", {"flushQueued": True})
        if not result.get("interrupted"):
            self._keeping = False
        await self.queue.refresh()

    async def interrupt(self) -> None:
        """The SDK's ``interruptMainTurn``."""
        if self._client is not None:
            await self._call("session.interruptMainTurn")

    async def respond(self, request_id: str, answer: Decision | Answer) -> None:
        """Answer a permission request or a question."""
        if self._own_question is not None and self._own_question[0] == request_id:
            if isinstance(answer, Decision):
                raise UsageError("This is a question, not a permission: answer it with its text.")
            if not self._own_question[1].done():
                self._own_question[1].set_result(answer.data)
            return
        await self._asks.respond(request_id, answer)

    async def set_mode(self, mode: Mode) -> None:
        """Change the session mode."""
        await self._call("session.mode.set", {"mode": mode})

    async def compact(self, instructions: str | None = None) -> JSON:
        """Replace the history by a summary."""
        params = {"customInstructions": instructions} if instructions else {}
        result: JSON = await self._call("session.history.compact", params)
        return result

    async def truncate(self, event_id: str) -> int:
        """Remove that event and all after it from the log."""
        return int((await self._call("session.history.truncate", {"eventId": event_id}))["eventsRemoved"])

    async def rewind(self, event_id: str) -> JSON:
        """Like `truncate`, as ``history.rewind`` answers."""
        params = {"eventId": event_id, "mode": "conversation"}
        result: JSON = await self._call("session.history.rewind", params)
        return result

    async def fork(self, to_event_id: str | None = None, *, name: str | None = None) -> str:
        """Copy the log before that event to a new session; its id."""
        params: JSON = {"toEventId": to_event_id} if to_event_id else {}
        if name:
            params["name"] = name
        return str((await self._call("sessions.fork", params))["sessionId"])

    async def withdraw(self, message_id: str, expected_prompt: str) -> JSON:
        """Take a message back."""
        params = {"messageId": message_id, "expectedPrompt": expected_prompt}
        result: JSON = await self._call("session.queue.withdrawMessage", params)
        if result.get("removed"):
            self._lanes.remove(message_id, "withdrawn")
        return result

    async def close(self) -> None:
        """End the run and let go of the session; the CLI stops with its last one."""
        if self._closed:
            return
        self._closed = True
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._client is not None:
            if self._busy:
                with contextlib.suppress(RuntimeUnavailable, SessionError):  # it ended by itself
                    await self._client.request("session.abort", {"sessionId": self.session_id})
            await self._client.close_session(self.session_id)
        self._tools.cancel()
        self._asks.cancel()

    async def _call(self, method: str, params: JSON | None = None) -> Any:
        client = await self._ready()
        return await client.request(method, {"sessionId": self.session_id, **(params or {})})

    # --- events ----------------------------------------------------------------------------------

    def on_wire(self, event: Event) -> None:
        """An event of the CLI's."""
        type, data = event.type, event.data
        if event.stored:
            self._source.last_stored = event.id
        if type == "user.message":
            self._busy = self._processing = True
            self._sent.pop(data.get("messageId", ""), None)
            self._lanes.landing(data.get("messageId", ""), data.get("delivery"))
        self._emit(event)
        self._asks.on_event(type, data)
        self._tools.on_event(type, data)
        if type == "pending_messages.modified":
            self._refresh_soon()
        elif type == "assistant.turn_start":
            self._turn = data.get("turnId")
        elif type == "assistant.turn_end":
            self._turn = None
        elif type == "assistant.idle":
            self._processing = False
        elif type == "session.mode_changed":
            self._mode = data.get("newMode", self._mode)
        elif type == "session.error" and data.get("errorType") in advice.ERRORS:
            self._note("jupyter.notice", {"level": "error", "message": advice.ERRORS[data["errorType"]]})
        elif type == "abort":
            self._on_abort()
        elif type == "session.idle":
            self._busy = self._processing = self._keeping = False
            self._refresh_soon(None if self._lanes.paused else "aborted")

    def _on_abort(self) -> None:
        reason = "rejected" if self._asks.rejected else "aborted"
        self._asks.rejected = False
        if not self._keeping:
            self._lanes.empty(reason)
            self._sent.clear()
        self._keeping = False

    def _refresh_soon(self, gone: str | None = None) -> None:
        """Look at the lanes once the events at hand are through; nothing to do while both are empty."""
        self._stale = True
        if self._lanes and (gone or self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.create_task(self._refresh(gone), context=self._context)

    async def _refresh(self, gone: str | None) -> None:
        with contextlib.suppress(RuntimeUnavailable, SessionError):  # it died or was closed: told elsewhere
            while self._stale and self._client is not None and not self._client.ended and not self._closed:
                self._stale = False  # what changes from here on may be missing in the answer: asked again
                await self.queue.refresh(gone)
                gone = None

    def on_death(self, message: str) -> None:
        """The process ended in the middle: end the run, keep the lanes, leave nothing open."""
        self._client = None
        self._tools.cancel()
        for request_id, (type, data) in self._asks.cancel().items():
            end: JSON = {"requestId": request_id}
            if type == PERMISSION:
                call = (data.get("permissionRequest") or {}).get("toolCallId")
                end |= {"toolCallId": call, "result": {"kind": "cancelled", "reason": message}}
            self._note(type.replace(".requested", ".completed"), end)
        self._state("died", f"{message} The next prompt starts it again.")
        if self._lanes and not self._lanes.paused:
            self._paused_by_death = True
            self._lanes.pause(True)
        if self._busy:
            self._busy = self._processing = False
            if self._turn is not None:
                self._note("assistant.turn_end", {"turnId": self._turn})
                self._turn = None
            self._note("session.error", {"errorType": "runtime", "message": message})
            self._note("assistant.idle", {})
            self._note("session.idle", {"mode": self._mode})

    def _note(self, type: str, data: JSON) -> None:
        self._emit(self._source.ephemeral(type, data))

    def _state(self, state: str, message: str) -> None:
        self._note("jupyter.runtime", {"runtime": self.name, "state": state, "message": message})


def _shown(message: Message) -> str:
    return message.display_prompt or message.prompt
