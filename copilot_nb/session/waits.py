"""Waiting for a session, without holding on to its run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct, field

from copilot_nb.errors import SessionClosed, WaitTimeout
from copilot_nb.events import Event

if TYPE_CHECKING:
    from copilot_nb.session.session import Session


class WaitResult(Struct, frozen=True):
    """How a wait ended.

    Attributes
    ----------
    idle
        Nothing is left to do.
    task_complete
        The model said that the task is done (``session.task_complete``) while we waited.
    answer
        The last answer's text.
    errors
        Messages of the ``session.error`` events while we waited.
    """

    idle: bool
    task_complete: bool
    answer: str
    errors: list[str] = field(default_factory=list)


class Wait:
    """One wait. It only listens: cancelling it (an interrupted cell) leaves the run alone."""

    def __init__(self, session: Session, until: str) -> None:
        self._session = session
        self._until = until
        self._changed = asyncio.Event()
        self._errors: list[str] = []
        self._complete = False
        self._done = False

    def _hear(self, event: Event) -> None:
        if event.type == "session.error":
            self._errors.append(str(event.data.get("message", "")))
        elif event.type == "session.task_complete":
            self._complete = True
            self._done |= self._until == "task_complete"
        elif event.type == "session.idle":
            self._done = True
        self._changed.set()

    def wake(self) -> None:
        """Look again at how things stand."""
        self._changed.set()

    async def result(self, timeout: float | None, idle_timeout: float | None) -> WaitResult:
        """See `Session.wait`."""
        session, loop = self._session, asyncio.get_running_loop()
        ends = None if timeout is None else loop.time() + timeout
        off = session.on(self._hear)
        session.waits.add(self)
        try:
            while session.busy and not self._done:
                left = None if ends is None else ends - loop.time()
                waits = [seconds for seconds in (left, idle_timeout) if seconds is not None]
                self._changed.clear()
                try:
                    await asyncio.wait_for(self._changed.wait(), min(waits, default=None))
                except TimeoutError:
                    quiet = left is None or (idle_timeout is not None and idle_timeout < left)
                    what = (
                        f"nothing happened for {idle_timeout:g} s"
                        if quiet
                        else f"not idle after {timeout:g} s"
                    )
                    raise WaitTimeout(
                        f"Stopped waiting: {what} ({session.state.describe()}). The run goes on; "
                        "wait again, or abort it."
                    ) from None
            if session.closed and not self._done:
                raise SessionClosed(f"Session {session.id} was closed while it was waited for.")
        finally:
            off()
            session.waits.discard(self)
        return WaitResult(not session.busy, self._complete, session.state.last_answer, self._errors)
