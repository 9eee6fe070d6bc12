"""``session.queue``: the lanes to edit, and, when called, their history as a table."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from copilot_nb import loops
from copilot_nb.events import JSON
from copilot_nb.runtimes.base import Message, Queue, as_message

if TYPE_CHECKING:
    import pandas as pd

    from copilot_nb.session.session import Session

T = TypeVar("T")


class SessionQueue:
    """Both lanes of a session (reference §15); every method may be awaited on any loop.

    ``session.queue()`` is the table of all changes of the lanes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self) -> pd.DataFrame:
        """One row per change of the lanes."""
        return self._session.log.table("queue")

    @property
    def _queue(self) -> Queue:
        return self._session.runtime.queue

    async def _on(self, work: Coroutine[Any, Any, T]) -> T:
        return await loops.on(self._session.loop, work)

    async def pending_items(self) -> JSON:
        """See `Queue.pending_items`: ``{items: [{id, messageId, …}], steeringMessages: [text], …}``."""
        return await self._on(self._queue.pending_items())

    async def move_item(self, id: str, to_position: int) -> bool:
        """Move a queue item to a place (from 0); False when it was there already."""
        return await self._on(self._queue.move_item(id, to_position))

    async def remove_at(self, id: str) -> bool:
        """Remove a queue item."""
        return await self._on(self._queue.remove_at(id))

    async def update_text(self, id: str, prompt: str) -> bool:
        """Change a queue item's text."""
        return await self._on(self._queue.update_text(id, prompt))

    async def duplicate_at(self, id: str) -> str:
        """Copy an item to the place after it; the new id."""
        return await self._on(self._queue.duplicate_at(id))

    async def insert_at(self, position: int, message: str | Message) -> str:
        """Put a new message at a place (from 0); the new id."""
        new = message if isinstance(message, Message) else as_message(message)
        return await self._on(self._queue.insert_at(position, new))

    async def send_now(self, id: str) -> bool:
        """Turn a queue item into a steer of the running run; False when nothing runs."""
        return await self._on(self._queue.send_now(id))

    async def remove_most_recent(self) -> bool:
        """Remove what was sent last, of both lanes; False when both are empty."""
        return await self._on(self._queue.remove_most_recent())

    async def clear(self) -> None:
        """Empty both lanes; the run goes on."""
        await self._on(self._queue.clear())

    async def set_drain_paused(self, paused: bool) -> None:
        """Freeze or release the queue."""
        await self._on(self._queue.set_drain_paused(paused))
