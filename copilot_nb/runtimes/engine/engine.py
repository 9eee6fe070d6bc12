"""The engine as a `Runtime`: what a session may ask of the loop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence

from msgspec.structs import replace

from copilot_nb.errors import SessionClosed, UsageError
from copilot_nb.events import JSON, Event, EventSource, new_id, now, to_line
from copilot_nb.models.base import Request
from copilot_nb.permissions import Decision
from copilot_nb.runtimes.base import Answer, Emit, Message, Mode
from copilot_nb.runtimes.engine.asks import Asks
from copilot_nb.runtimes.engine.attachments import check_attachments
from copilot_nb.runtimes.engine.config import EngineConfig
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.history import History, rebuild
from copilot_nb.runtimes.engine.loop import Loop
from copilot_nb.runtimes.engine.open_calls import OpenCalls
from copilot_nb.runtimes.engine.queue import EngineQueue
from copilot_nb.runtimes.engine.rewind import rewind
from copilot_nb.runtimes.engine.waiting import waiting_messages
from copilot_nb.store import EventStore, copy_session, holders
from copilot_nb.version import __version__

_MODES = ("interactive", "plan", "autopilot")


class Engine:
    """Our own loop, in the kernel. Make one with `create` or `resume`."""

    name = "engine"

    def __init__(self, session_id: str, store: EventStore, emit: Emit, config: EngineConfig) -> None:
        self.session_id = session_id
        self.config = config
        core = Core(session_id, config, store, EventSource(), emit, History(), mode=config.mode)
        self._core = core
        self._asks = Asks(core)
        self.queue = EngineQueue(core, lambda: self._loop.wake())
        self._loop = Loop(core, self.queue, self._asks)
        self._open_calls = OpenCalls(core)
        self._started = time.time()
        store.on_failure = self._disk

    @classmethod
    def create(
        cls, session_id: str, emit: Emit, config: EngineConfig, home: str | os.PathLike[str] | None = None
    ) -> Engine:
        """A new session: its folder, and ``session.start`` as the first line.

        Raises
        ------
        UsageError, StoreError
            The id is no id or taken; the home cannot be written.
        """
        engine = cls(session_id, EventStore.create(session_id, home), emit, config)
        engine._core.stored(
            "session.start",
            {
                "sessionId": session_id,
                "version": 1,
                "producer": "copilot_nb",
                "copilotVersion": __version__,
                "startTime": now(),
                "selectedModel": config.model.name,
                "contextTier": None,
                "context": {"cwd": config.working_directory},
                "remoteSteerable": False,
                "alreadyInUse": False,
            },
        )
        return engine

    @classmethod
    def resume(
        cls,
        session_id: str,
        emit: Emit,
        config: EngineConfig,
        home: str | os.PathLike[str] | None = None,
        *,
        recover: bool = True,
        continue_pending_work: bool = False,
    ) -> tuple[Engine, list[Event]]:
        """Go on with a recorded session, whoever recorded it (reference §13); also its events so far.

        With `continue_pending_work`, calls that were open wait for `handle_pending_tool_call`, and everything
        else waits for them; otherwise they are answered as interrupted before the next message.

        Raises
        ------
        SessionNotFound, CorruptLog, StoreError
        """
        store, transcript = EventStore.resume(session_id, home, recover=recover)
        engine = cls(session_id, store, emit, config)
        core, events = engine._core, transcript.events
        core.history = rebuild(events)
        core.source.last_stored = events[-1].id
        systems = [e.data.get("content") for e in events if e.type == "system.message"]
        core.last_system = systems[-1] if systems else None
        engine._open_calls.found(events, hold=continue_pending_work)
        engine._loop.held = bool(engine._open_calls)
        core.stored(
            "session.resume",
            {
                "resumeTime": now(),
                "eventCount": len(events),
                "selectedModel": config.model.name,
                "context": {"cwd": config.working_directory},
                "contextTier": None,
                "sessionLimits": None,
                "alreadyInUse": bool(holders(store.folder)),
                "sessionWasActive": False,
                "remoteSteerable": False,
                "eventsFileSizeBytes": store.size,
            },
        )
        if left := waiting_messages(events):
            engine.queue.restore(left) if config.restore_queue else engine.queue.forget(left)
        return engine, events

    @property
    def model_label(self) -> str:
        """What the panel shows as the model."""
        return self.config.model.label

    def deliver_to(self, emit: Emit) -> None:
        """Hand further events to another receiver (once a resumed session has its past)."""
        self._core.deliver = emit

    def _disk(self, problem: str | None) -> None:
        level, message = (
            ("info", "The session log can be written again.") if problem is None else ("error", problem)
        )
        self._core.ephemeral("jupyter.notice", {"level": level, "message": message})

    def _check_open(self) -> None:
        if self._core.closed:
            raise SessionClosed(f"Session {self.session_id} is closed: open or resume one.")

    def _check_quiet(self, what: str) -> None:
        self._check_open()
        if self._loop.task is not None:
            raise UsageError(f"Cannot {what} while a run is going on: wait for it, or abort it first.")

    # -- messages ----------------------------------------------------------------------------------------
    async def send(self, message: Message) -> str:
        """See `Runtime`."""
        return self._accept([message], message.mode)[0]

    async def send_messages(self, messages: Sequence[Message]) -> list[str]:
        """See `Runtime`."""
        return self._accept(list(messages), "enqueue")

    def _accept(self, messages: list[Message], mode: str) -> list[str]:
        """Put an entry in its lane; nothing is awaited between looking and changing."""
        self._check_open()
        for message in messages:
            check_attachments(message.attachments)
        self._open_calls.interrupt()
        core, lanes = self._core, self._core.lanes
        from_idle = not core.processing and not lanes and not self._loop.held
        mode_now = None if core.mode == "interactive" else core.mode
        messages = [replace(m, agent_mode=m.agent_mode or mode_now) for m in messages]  # decided now (§9)
        item = lanes.make(*messages, from_idle=from_idle)
        steer = mode == "immediate" and core.processing
        lane, waiting = ("steering", lanes.steering) if steer else ("queue", lanes.queue)
        waiting.append(item)
        item.silent = from_idle and not lanes.paused
        if not item.silent:
            place = lanes.shown_place(waiting, len(waiting) - 1)
            core.journal("add", lane=lane, messageId=item.message_id, prompt=item.text, position=place)
        core.pending_modified()
        if steer:
            for listener in list(core.steer_listeners):
                listener()
        self._loop.wake()
        return [message_id for message_id, _ in item.messages]

    def pending_tool_calls(self) -> list[JSON]:
        """Calls of a resumed session that wait for a late result (``continue_pending_work``, §13)."""
        return self._open_calls.pending()

    async def handle_pending_tool_call(self, request_id: str, result: str) -> None:
        """Give a late result; after the last one the run goes on, before what was sent meanwhile."""
        self._check_open()
        if late := self._open_calls.handle(request_id, result):
            item = self._core.lanes.make()
            item.late = late
            self._core.lanes.queue.insert(0, item)
            self._core.pending_modified()
            self._loop.held = False
            self._loop.wake()

    async def withdraw(self, message_id: str, expected_prompt: str) -> JSON:
        """See `Runtime`."""
        self._check_open()
        if (found := self._core.lanes.locate(message_id)) is not None:
            if found[1].text != expected_prompt:
                return {"removed": False, "interrupted": False}
            self.queue.take_out(*found, reason="withdrawn")
            return {"removed": True, "interrupted": False}
        if message_id != self.queue.running or self._core.lanes:
            return {"removed": False, "interrupted": False}
        self._core.pending_modified()
        self._loop.cancel_run("withdraw")
        await self._settled()
        return {"removed": True, "interrupted": True}

    # -- ending ------------------------------------------------------------------------------------------
    async def _settled(self) -> None:
        if self._loop.task is not None:
            await self._loop.settled.wait()

    async def abort(self, *, keep_queue: bool = False) -> None:
        """See `Runtime`; when idle, nothing happens (reference §8)."""
        self._check_open()
        if self._loop.task is None:
            return
        core, lanes = self._core, self._core.lanes
        core.stored("abort", {"reason": "user_initiated"})
        if keep_queue:
            for place, item in enumerate(lanes.promote(all_of_them=True)):
                core.journal(
                    "move", messageId=item.message_id, lane="queue", position=place, reason="aborted"
                )
            if lanes.queue and not lanes.paused:
                self.queue.pause(True)
        else:
            self.queue.discard_all("aborted")
        core.pending_modified()
        self._loop.cancel_run("abort")
        await self._settled()

    async def interrupt(self) -> None:
        """See `Runtime`."""
        self._check_open()
        if self._loop.run is None:
            return
        self.queue.discard_all("aborted")
        self._core.pending_modified()
        self._loop.cancel_run("interrupt")
        await self._settled()

    async def close(self) -> None:
        """See `Runtime`."""
        if self._core.closed:
            return
        self.shut_down()  # first: the log just stops there, and a resume finds what was open (§13)
        if (task := self._loop.task) is not None:
            self._loop.cancel_run("close")
            task.cancel()
            await asyncio.wait([task], timeout=2)
        await self.config.model.close()

    def shut_down(self) -> None:
        """Write ``session.shutdown`` and let go of the log; the part of `close` that needs no loop."""
        core = self._core
        if core.closed:
            return
        self._loop.background.cancel()
        self._loop.compaction.cancel()
        core.stored(
            "session.shutdown",
            {
                "shutdownType": "routine",
                "totalApiDurationMs": 0,
                "sessionStartTime": round(self._started * 1000),
                "eventsFileSizeBytes": core.store.size,
                "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModified": []},
                "modelMetrics": {},
                "currentModel": self.config.model.name,
            },
        )
        core.closed = True
        core.store.close()

    # -- answers, mode, history --------------------------------------------------------------------------
    async def respond(self, request_id: str, answer: Decision | Answer) -> None:
        """See `Runtime`."""
        self._check_open()
        if not isinstance(answer, Decision):
            raise UsageError(f"{request_id!r} is a permission request: answer it with a Decision.")
        self._asks.answer(request_id, answer)

    async def set_mode(self, mode: Mode) -> None:
        """See `Runtime`."""
        self._check_open()
        if mode not in _MODES:
            raise UsageError(f"Unknown mode {mode!r}: use {', '.join(_MODES)}.")
        if mode != self._core.mode:
            previous, self._core.mode = self._core.mode, mode
            self._core.stored("session.mode_changed", {"previousMode": previous, "newMode": mode})

    async def compact(self, instructions: str | None = None) -> JSON:
        """See `Runtime`."""
        self._check_quiet("compact the history")
        loop = self._loop
        messages = [loop.say.system_message(), *self._core.history.messages]
        request = Request(messages, loop.calls.specs(False), self.config.streaming)
        done = await loop.compaction.now(request, instructions)
        if done.get("outcome") == "nothing":
            raise UsageError("Nothing to compact: the history is empty.")
        return done

    async def truncate(self, event_id: str) -> int:
        """See `Runtime`."""
        self._check_quiet("truncate the log")
        return rewind(self._core, event_id)

    async def rewind(self, event_id: str) -> JSON:
        """See `Runtime`."""
        removed = await self.truncate(event_id)
        return {"outcome": "success", "eventsRemoved": removed, "restoredFiles": [], "skippedFiles": []}

    async def rewind_points(self) -> list[JSON]:
        """The messages a person can go back to: ``{eventId, content}``, oldest first."""
        events = self._core.store.read()
        return [
            {"eventId": e.id, "content": e.data.get("content")} for e in events if e.type == "user.message"
        ]

    async def fork(self, to_event_id: str | None = None, *, name: str | None = None) -> str:
        """See `Runtime`."""
        self._check_open()
        core, session_id = self._core, new_id()
        home = core.store.folder.parent.parent
        folder = copy_session(core.store.folder, session_id, home, before=to_event_id, name=name)
        where = f" before event {to_event_id}" if to_event_id else ""
        text = f"Forked from {self.session_id}{where} as {session_id}."
        with (folder / "events.jsonl").open("ab") as file:
            source = EventSource(core.source.last_stored)
            file.write(to_line(source.stored("session.info", {"infoType": "fork", "message": text})))
        core.stored("session.info", {"infoType": "fork", "message": text})
        return session_id
