"""Looking at and editing the lanes, as the SDK's ``session.queue.*`` does (reference §15)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON, new_id
from copilot_nb.runtimes.base import Message
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.lanes import Item


class EngineQueue:
    """The `Queue` of an engine session. Each change is one ``pending_messages.modified``."""

    def __init__(self, core: Core, wake: Callable[[], None]) -> None:
        self._core = core
        self._wake = wake
        self.running: str | None = None  # the run's message while it is unanswered

    def answer_begins(self) -> None:
        """The running message can no longer be withdrawn."""
        self.running = None

    async def pending_items(self) -> JSON:
        """See `Queue`."""
        lanes = self._core.lanes
        items = [self._describe(item) for item in lanes.queue if item.notice is None]
        steers = [item.text for item in lanes.in_flight + lanes.steering]
        result: JSON = {
            "items": items,
            "steeringMessages": steers,
            "inFlightSteeringCount": len(lanes.in_flight),
        }
        if self.running:
            result["withdrawableTurnMessageId"] = self.running
        return result

    def _describe(self, item: Item) -> JSON:
        message = item.messages[0][1] if item.messages else Message("")
        shown: JSON = {
            "id": item.id,
            "messageId": item.message_id,
            "kind": "message",
            "displayText": message.display_prompt or message.prompt,
            "agentMode": message.agent_mode or self._core.mode,
        }
        return shown if message.source is None else {**shown, "source": message.source}

    async def move_item(self, id: str, to_position: int) -> bool:
        """See `Queue`."""
        lanes = self._core.lanes
        place = lanes.find(id)
        target = max(0, min(to_position, len(lanes.queue) - 1))
        if target == place:
            return False
        item = lanes.queue.pop(place)
        lanes.queue.insert(target, item)
        self._say_placed(item, "queue", lanes.shown_place(lanes.queue, target))
        self._core.pending_modified()
        return True

    async def remove_at(self, id: str) -> bool:
        """See `Queue`."""
        lanes = self._core.lanes
        item = lanes.queue.pop(lanes.find(id))
        self._core.journal("remove", messageId=item.message_id, reason="removed")
        self._core.pending_modified()
        return True

    async def update_text(self, id: str, prompt: str) -> bool:
        """See `Queue`."""
        if not prompt.strip():
            raise UsageError("The new text is empty: remove the item instead.")
        lanes = self._core.lanes
        item = lanes.queue[lanes.find(id)]
        message_id, message = item.messages[0]
        item.messages[0] = (message_id, replace(message, prompt=prompt, display_prompt=None))
        self._core.journal("edit", messageId=message_id, prompt=prompt)
        self._core.pending_modified()
        return True

    async def duplicate_at(self, id: str) -> str:
        """See `Queue`."""
        lanes = self._core.lanes
        place = lanes.find(id)
        return self._insert(place + 1, [message for _, message in lanes.queue[place].messages])

    async def insert_at(self, position: int, message: Message) -> str:
        """See `Queue`."""
        return self._insert(position, [replace(message, agent_mode=message.agent_mode or self._core.mode)])

    def _insert(self, position: int, messages: list[Message]) -> str:
        lanes = self._core.lanes
        item = lanes.make(*messages, from_idle=not self._core.processing and not lanes)
        place = max(0, min(position, len(lanes.queue)))
        lanes.queue.insert(place, item)
        item.silent = item.from_idle and not lanes.paused
        if not item.silent:
            self._say("add", item, "queue", lanes.shown_place(lanes.queue, place))
        self._core.pending_modified()
        self._wake()
        return item.id

    def _say_placed(self, item: Item, lane: str, place: int) -> None:
        """Say where an entry waits now; one that was about to start was not spoken of before."""
        op, item.silent = "add" if item.silent else "move", False
        self._say(op, item, lane, place)

    def _say(self, op: str, item: Item, lane: str, place: int) -> None:
        more = {"prompt": item.text} if op == "add" else {}
        self._core.journal(op, lane=lane, messageId=item.message_id, position=place, **more)

    async def send_now(self, id: str) -> bool:
        """See `Queue`."""
        lanes = self._core.lanes
        place = lanes.find(id)
        item = lanes.queue.pop(place)
        if not self._core.processing:  # it runs at once, also when the queue is paused
            item.from_idle, item.announced, lanes.now = item.silent, True, item
            if not item.silent:
                self._say("move", item, "queue", 0)
            self._core.pending_modified()
            self._wake()
            return True
        lanes.steering.append(item)
        lanes.touch(item)
        self._say_placed(item, "steering", len(lanes.steering) - 1)
        self._core.pending_modified()
        for listener in list(self._core.steer_listeners):
            listener()
        return True

    async def remove_most_recent(self) -> bool:
        """See `Queue`."""
        found = self._core.lanes.most_recent()
        if found is None:
            return False
        self.take_out(*found, reason="removed")
        return True

    def take_out(self, lane: str, item: Item, *, reason: str) -> None:
        """Remove a waiting entry of either lane."""
        lanes = self._core.lanes
        (lanes.queue if lane == "queue" else lanes.steering).remove(item)
        self._core.journal("remove", messageId=item.message_id, reason=reason)
        self._core.pending_modified()

    async def clear(self) -> None:
        """See `Queue`."""
        self.discard_all("cleared")
        self._core.pending_modified()

    def discard_all(self, reason: str) -> None:
        """Empty both lanes; each discarded message is named by an event."""
        for item in self._core.lanes.clear():
            self._core.journal("remove", messageId=item.message_id, reason=reason)

    async def set_drain_paused(self, paused: bool) -> None:
        """See `Queue`."""
        if self._core.lanes.paused == paused:
            raise UsageError(f"The queue is {'already' if paused else 'not'} paused.")
        self.pause(paused)
        if not paused:
            self._wake()

    def pause(self, paused: bool) -> None:
        """Freeze or release the queue, without starting anything."""
        lanes = self._core.lanes
        lanes.paused = paused
        for place, item in enumerate(lanes.queue):
            if item.silent:
                self._say_placed(item, "queue", lanes.shown_place(lanes.queue, place))
        self._core.journal("pause", paused=paused)

    def forget(self, prompts: list[JSON]) -> None:
        """Say that what waited when the session was last open is gone."""
        for entry in prompts:
            self._core.journal("remove", messageId=entry["messageId"], reason="restart")

    def restore(self, prompts: list[JSON]) -> None:
        """Put back what waited when the session was last open, paused: it never runs by itself."""
        lanes = self._core.lanes
        for entry in prompts:
            item = lanes.make(Message(str(entry["prompt"])))
            item.messages[0] = (str(entry.get("messageId") or new_id()), item.messages[0][1])
            lanes.queue.append(item)
        lanes.paused = True
        items = [{"messageId": i.message_id, "prompt": i.text, "lane": "queue"} for i in lanes.queue]
        self._core.journal("restored", items=items)
        self._core.journal("pause", paused=True)
        self._core.pending_modified()
