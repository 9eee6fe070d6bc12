"""Session: the one object a user holds; named like the official SDK's, so that people can move over."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from copilot_nb import loops
from copilot_nb.errors import CopilotNbError, SessionClosed, SessionError, UsageError
from copilot_nb.events import JSON, Event, EventSource
from copilot_nb.permissions import Decision, Policy
from copilot_nb.runtimes.base import Answer, Delivery, Message, Mode, Runtime, as_message
from copilot_nb.session.queue import SessionQueue
from copilot_nb.session.tables import Tables
from copilot_nb.session.waits import Wait, WaitResult
from copilot_nb.state import SessionState
from copilot_nb.store import EVENTS, session_folder
from copilot_nb.transcript import read_transcript

if TYPE_CHECKING:
    from copilot_nb.frames import LiveLog
    from copilot_nb.widgets.panel import Panel

T = TypeVar("T")
Handler = Callable[[Event], object]
_log = logging.getLogger("copilot_nb")


class Session(Tables):
    """One conversation with its own event log.

    Made by `copilot_nb.open_session`. Every coroutine may be awaited on any loop; the work happens on the
    session's own (`loop`).

    Attributes
    ----------
    id, home, log_path
        ``<home>/session-state/<id>/events.jsonl``.
    state
        What is true now: runs, turns, lanes, open questions (`SessionState`).
    runtime_name
        ``engine`` or ``copilot``.
    model, model_label, model_kind
        Who answers: as typed, as shown, and ``demo``, ``scripted`` or ``provider``.
    queue
        Both lanes, to look at and to edit; called, their history as a table.
    policy
        The permission rules; ``policy.allow.add("python")`` opens a tool up for the rest of the session.
    """

    def __init__(self, session_id: str, home: Path, loop: asyncio.AbstractEventLoop, policy: Policy) -> None:
        from copilot_nb.frames import LiveLog

        self.id = session_id
        self.home = home
        self.loop = loop
        self.policy = policy
        self.log_path = session_folder(session_id, home) / EVENTS
        self.state = SessionState()
        self.log: LiveLog = LiveLog(self.log_path)
        self.closed = False
        self.model = self.model_label = ""
        self.model_kind = "provider"
        self.tasks: set[asyncio.Task[Any]] = set()
        self.waits: set[Wait] = set()
        self.queue = SessionQueue(self)
        self._busy = False
        self._handlers: list[Handler] = []
        self._notes = EventSource()
        self._runtime: Runtime | None = None

    def attach(self, runtime: Runtime, past: Sequence[Event] = ()) -> None:
        """Give the session its runtime; `past` is what the log held before."""
        self._runtime = runtime
        self.model_label = self.model_label or runtime.model_label

    @property
    def runtime(self) -> Runtime:
        """Who runs the loop."""
        if self._runtime is None or self.closed:
            raise SessionClosed(f"Session {self.id} is closed: open or resume one.")
        return self._runtime

    @property
    def runtime_name(self) -> str:
        """``engine`` or ``copilot``."""
        return self._runtime.name if self._runtime is not None else ""

    @property
    def busy(self) -> bool:
        """Whether a message is on its way, a run goes on, or something waits that will run by itself."""
        return self._busy or bool(self.state.queue and not self.state.queue_paused)

    def __repr__(self) -> str:
        words = "closed" if self.closed else self.state.describe()
        return f"<copilot_nb.Session {self.id} ({self.runtime_name}, {self.model_label}): {words}>"

    # -- events in ---------------------------------------------------------------------------------------
    def replay(self, past: Sequence[Event]) -> None:
        """Fold what the log held before this session was opened."""
        self.state = SessionState.from_events(past)

    def receive(self, event: Event, offset: int = -1) -> None:
        """Take an event of the runtime: fold it, log it, hand it to the handlers."""
        if self.closed:
            return
        if event.type == "session.idle":
            self._busy = False
        elif event.type == "user.message" or event.type == "assistant.turn_start":
            self._busy = True
        self.state.apply(event)
        self.log.append(event, offset if offset >= 0 else None)
        for handler in tuple(self._handlers):
            try:
                handler(event)
            except Exception:  # a handler's fault is the handler's: the run goes on
                _log.exception("copilot_nb: an event handler failed on %s", event.type)

    def on(self, handler: Handler) -> Callable[[], None]:
        """Have every event handed to `handler`, on the session's loop, ephemeral ones included.

        Returns
        -------
        A function that unsubscribes.
        """
        self._handlers.append(handler)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._handlers.remove(handler)

        return unsubscribe

    def notice(self, message: str, level: Literal["info", "warning", "error"] = "error") -> None:
        """Tell the person something that belongs to no run."""
        self.receive(self._notes.ephemeral("jupyter.notice", {"level": level, "message": message}))

    async def get_events(self) -> list[Event]:
        """The stored events, from the log."""
        return read_transcript(self.log_path).events

    # -- messages ----------------------------------------------------------------------------------------
    async def send(
        self,
        prompt: str,
        mode: Delivery | None = None,
        *,
        attachments: Sequence[JSON] | None = None,
        agent_mode: Mode | None = None,
        display_prompt: str | None = None,
        source: str | None = None,
    ) -> str:
        """Send a message.

        Parameters
        ----------
        mode
            ``enqueue`` (default): it waits for a run of its own. ``immediate``: it joins the running run
            before its next model call; if the run ends first, it moves to the queue's front (reference §4).
            When idle, both start a run at once.

        Returns
        -------
        The message id; it is in the later ``user.message``'s ``messageId``.

        Raises
        ------
        UsageError
            Empty prompt or unknown mode.
        """
        more = {"agent_mode": agent_mode, "display_prompt": display_prompt, "source": source}
        message = as_message(prompt, mode, attachments=attachments, **more)
        return await loops.on(self.loop, self._send([message]))

    async def steer(self, prompt: str, *, attachments: Sequence[JSON] | None = None) -> str:
        """`send` with mode ``immediate``."""
        return await self.send(prompt, "immediate", attachments=attachments)

    async def enqueue(self, prompt: str, *, attachments: Sequence[JSON] | None = None) -> str:
        """`send` with mode ``enqueue``."""
        return await self.send(prompt, "enqueue", attachments=attachments)

    async def send_messages(self, prompts: Sequence[str | Message]) -> list[str]:
        """Several messages in one turn; none: one turn on the history as it is (reference §15)."""
        messages = [p if isinstance(p, Message) else as_message(p) for p in prompts]
        return await loops.on(self.loop, self._send(messages, together=True))

    async def _send(self, messages: list[Message], *, together: bool = False) -> Any:
        runtime, before = self.runtime, self._busy
        self._busy = before or not self.state.queue_paused
        try:
            if together:
                return await runtime.send_messages(messages)
            return await runtime.send(messages[0])
        except BaseException:
            self._busy = before and self._busy
            raise

    async def send_and_wait(self, prompt: str, timeout: float | None = None, **more: Any) -> Event | None:
        """Send, wait for idle, and give back the last ``assistant.message`` since; None if there was none."""
        answers: list[Event] = []
        off = self.on(lambda event: answers.append(event) if event.type == "assistant.message" else None)
        try:
            await self.send(prompt, **more)
            await self.wait(timeout=timeout)
        finally:
            off()
        return answers[-1] if answers else None

    def run(self, prompt: str, timeout: float | None = None) -> str:
        """Send, block until idle, and give back the answer: for plain synchronous code.

        The only user of nest-asyncio2, applied at the first call; everywhere else, use ``await``.

        Raises
        ------
        SessionError
            The run ended with an error.
        WaitTimeout
            It took longer than `timeout` seconds; it goes on.
        """
        if loops.running_loop() is self.loop:
            import nest_asyncio2  # type: ignore[import-untyped, unused-ignore]

            nest_asyncio2.apply(self.loop)
            return str(self.loop.run_until_complete(self._run(prompt, timeout)))
        return asyncio.run_coroutine_threadsafe(self._run(prompt, timeout), self.loop).result()

    async def _run(self, prompt: str, timeout: float | None) -> str:
        errors: list[str] = []
        off = self.on(
            lambda e: errors.append(str(e.data.get("message"))) if e.type == "session.error" else None
        )
        try:
            answer = await self.send_and_wait(prompt, timeout)
        finally:
            off()
        if errors:
            raise SessionError(errors[-1])
        return str(answer.data.get("content", "")) if answer else ""

    # -- waiting and ending ------------------------------------------------------------------------------
    async def wait(
        self,
        until: Literal["idle", "task_complete"] = "idle",
        timeout: float | None = None,
        idle_timeout: float | None = None,
    ) -> WaitResult:
        """Wait for the end; interrupting the wait does not touch the run.

        Parameters
        ----------
        until
            ``task_complete`` ends when the model says so, or at idle.
        timeout
            Seconds in all.
        idle_timeout
            Seconds without any event.

        Raises
        ------
        WaitTimeout
            The message says what is going on; the run itself goes on.
        """
        if until not in ("idle", "task_complete"):
            raise UsageError(f"Cannot wait until {until!r}: use 'idle' or 'task_complete'.")
        return await loops.on(self.loop, Wait(self, until).result(timeout, idle_timeout))

    async def abort(self, *, keep_queue: bool = False) -> None:
        """End the run. Both lanes are emptied, as the reference does; `keep_queue` keeps them, paused."""
        await loops.on(self.loop, self.runtime.abort(keep_queue=keep_queue))

    async def interrupt(self) -> None:
        """The SDK's ``interruptMainTurn``."""
        await loops.on(self.loop, self.runtime.interrupt())

    async def close(self) -> None:
        """End the run, write ``session.shutdown``, let go of the log."""
        if self.closed or self._runtime is None:
            return
        await loops.on(self.loop, self._runtime.close())
        self.closed = True
        self._busy = False
        for wait in tuple(self.waits):
            wait.wake()

    # -- answers -----------------------------------------------------------------------------------------
    async def respond(self, request_id: str, answer: Decision | Answer) -> None:
        """Answer a permission request (`Decision`) or a question (`Answer`)."""
        await loops.on(self.loop, self.runtime.respond(request_id, answer))

    async def allow(self, request_id: str | None = None, *, for_session: bool = False) -> None:
        """Allow a pending call (the oldest when no id is given), or every such call of the session."""
        kind: Literal["approve-for-session", "approve-once"] = (
            "approve-for-session" if for_session else "approve-once"
        )
        await self.respond(request_id or self._oldest_request(), Decision(kind))

    async def deny(self, feedback: str | None = None, request_id: str | None = None) -> None:
        """Deny a pending call. With feedback the run goes on; without, it ends and both lanes are emptied."""
        await self.respond(request_id or self._oldest_request(), Decision("reject", feedback=feedback))

    def _oldest_request(self) -> str:
        request = next(iter(self.state.permissions), None)
        if request is None:
            raise UsageError(f"Nothing asks for permission now ({self.state.describe()}).")
        return request

    # -- mode and history --------------------------------------------------------------------------------
    async def set_mode(self, mode: Mode) -> None:
        """``interactive``, ``plan`` or ``autopilot`` (reference §9)."""
        await loops.on(self.loop, self.runtime.set_mode(mode))

    async def compact(self, instructions: str | None = None) -> JSON:
        """Replace the history by a summary (reference §17)."""
        return await loops.on(self.loop, self.runtime.compact(instructions))

    async def truncate(self, event_id: str) -> int:
        """Remove that event and all after it from the log; how many (reference §18)."""
        return await loops.on(self.loop, self.runtime.truncate(event_id))

    async def rewind(self, event_id: str) -> JSON:
        """Like `truncate`, as the SDK's ``history.rewind`` answers."""
        return await loops.on(self.loop, self.runtime.rewind(event_id))

    async def fork(self, to_event_id: str | None = None, *, name: str | None = None) -> str:
        """Copy the log before that event (all of it when None) to a new session; its id, to be resumed."""
        return await loops.on(self.loop, self.runtime.fork(to_event_id, name=name))

    async def withdraw(self, message_id: str, expected_prompt: str) -> JSON:
        """Take a message back, if it is not answered yet: ``{removed, interrupted}``."""
        return await loops.on(self.loop, self.runtime.withdraw(message_id, expected_prompt))

    # -- views: the floor above, looked up only when a person asks for one -------------------------------
    def panel(self, tab: str = "conversation") -> Panel:
        """A live view that stays: bar, conversation, timeline, queue, events."""
        from copilot_nb.widgets.panel import Panel

        return Panel(self, tab=tab)

    def progress(self) -> AbstractContextManager[None]:
        """``with session.progress():`` shows what goes on in a terminal (needs ``rich``)."""
        from copilot_nb.widgets.progress import progress

        return progress(self)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the record of the session as ``.html``, ``.md`` or ``.ipynb``, by the name's ending."""
        from copilot_nb.record import export

        return export(self, path)

    # -- from synchronous code ---------------------------------------------------------------------------
    def schedule(
        self, coroutine: Coroutine[Any, Any, T]
    ) -> asyncio.Future[T | None] | concurrent.futures.Future[T | None]:
        """Run a coroutine on the session's loop, from any thread, without waiting.

        A failure becomes a ``jupyter.notice`` event, which the panel shows, and the future's value is None.
        """
        guarded = self._guard(coroutine)
        if loops.running_loop() is self.loop:
            task = self.loop.create_task(guarded)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            return task
        return asyncio.run_coroutine_threadsafe(guarded, self.loop)

    async def _guard(self, coroutine: Coroutine[Any, Any, T]) -> T | None:
        try:
            return await coroutine
        except CopilotNbError as error:
            self.notice(str(error))
        except Exception as error:
            _log.exception("copilot_nb: a background action failed")
            self.notice(f"{type(error).__name__}: {error}")
        return None
