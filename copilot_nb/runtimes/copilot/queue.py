"""Looking at and editing what waits, by the CLI's queue methods (reference §15)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON
from copilot_nb.runtimes.base import Message
from copilot_nb.runtimes.copilot.lanes import Lanes


class CopilotQueue:
    """The `Queue` of a session on the CLI. Each change is told in `lanes` before the call returns."""

    def __init__(self, request: Callable[[str, JSON], Awaitable[Any]], lanes: Lanes) -> None:
        self._request = request
        self._lanes = lanes

    async def pending_items(self) -> JSON:
        """What the CLI says is in both lanes."""
        pending: JSON = await self._call("pendingItems")
        return pending

    async def move_item(self, id: str, to_position: int) -> bool:
        """Move a queue item."""
        result = await self._call("moveItem", id=id, toPosition=to_position)
        await self.refresh()
        return bool(result["changed"])

    async def remove_at(self, id: str) -> bool:
        """Remove a queue item."""
        result = await self._call("removeAt", id=id)
        await self.refresh("removed")
        return bool(result["removed"])

    async def update_text(self, id: str, prompt: str) -> bool:
        """Change a queue item's text."""
        result = await self._call("updateText", id=id, prompt=prompt)
        await self.refresh()
        return bool(result["updated"])

    async def duplicate_at(self, id: str) -> str:
        """Copy an item to the place after it."""
        result = await self._call("duplicateAt", id=id)
        await self.refresh()
        return str(result["id"])

    async def insert_at(self, position: int, message: Message) -> str:
        """Put a new message at a place."""
        queued = wire(replace(message, mode="enqueue"))
        result = await self._call("insertAt", position=position, message=queued)
        await self.refresh()
        return str(result["id"])

    async def send_now(self, id: str) -> bool:
        """Turn a queue item into a steer."""
        result = await self._call("sendNow", id=id)
        await self.refresh()
        return bool(result["steered"])

    async def remove_most_recent(self) -> bool:
        """Remove what was sent last, of both lanes."""
        result = await self._call("removeMostRecent")
        if result["removed"]:
            await self.refresh("removed")
        return bool(result["removed"])

    async def clear(self) -> None:
        """Empty both lanes."""
        await self._call("clear")
        self._lanes.empty("cleared")

    async def set_drain_paused(self, paused: bool) -> None:
        """Freeze or release the queue."""
        if paused and self._lanes.paused:
            raise UsageError("The queue is paused already.")
        await self._call("setDrainPaused", paused=paused)
        self._lanes.pause(paused)

    async def refresh(self, gone: str | None = None) -> None:
        """Bring the lanes up to date; `gone` is why a message that is missing now went away."""
        self._lanes.reconcile(await self.pending_items(), gone)

    async def _call(self, method: str, **params: Any) -> Any:
        return await self._request(f"session.queue.{method}", params)


def wire(message: Message) -> JSON:
    """The parameters of ``session.send`` for a message, its mode left out when it is the default."""
    params: JSON = {"prompt": message.prompt}
    if message.mode != "enqueue":
        params["mode"] = message.mode
    if message.attachments:
        params["attachments"] = list(message.attachments)
    if message.agent_mode:
        params["agentMode"] = message.agent_mode
    if message.source:
        params["source"] = message.source
    if message.display_prompt:
        params["displayPrompt"] = message.display_prompt
    return params
