"""A moment that several tasks may wait for."""

from __future__ import annotations

import asyncio


class Broadcast:
    """Wakes everybody who waits, each time it happens."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next time."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def happen(self) -> None:
        """It happens now."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
