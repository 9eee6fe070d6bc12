"""Work that outlives its tool call: ``session.idle`` waits for it, and its end is told (reference §3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from copilot_nb.runtimes.engine.core import Core
from copilot_nb.tools.base import BackgroundTask


class Background:
    """The running background tasks of a session. The end of one is an entry of the queue."""

    def __init__(self, core: Core, wake: Callable[[], None]) -> None:
        self._core = core
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def start(self, task: BackgroundTask) -> None:
        """Follow a task to its end."""
        self._tasks[task.id] = asyncio.get_running_loop().create_task(self._follow(task))
        self._core.ephemeral("session.background_tasks_changed", {})

    async def _follow(self, task: BackgroundTask) -> None:
        notice = await task.wait()
        self._tasks.pop(task.id, None)
        self._core.ephemeral("session.background_tasks_changed", {})
        if notice:
            item = self._core.lanes.make()
            item.notice = notice
            self._core.lanes.queue.append(item)
            self._core.pending_modified()
        self._wake()

    def cancel(self) -> None:
        """Stop following (the session closes)."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
