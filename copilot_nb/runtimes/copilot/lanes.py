"""Both lanes of a session on the CLI, told as ``jupyter.queue`` events.

The CLI says *that* its lanes changed (``pending_messages.modified``), and on request what is in them;
steers come as bare texts (reference §15). What changed is worked out here, so that state, tables and the
panel fold the lanes from events, as they do for the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from copilot_nb.events import JSON

Lane = Literal["queue", "steering"]


class Waiting(Struct):
    """A message that was accepted and has not landed."""

    message_id: str
    prompt: str


class Lanes:
    """What waits, and `note` for each change of it."""

    def __init__(self, note: Callable[[JSON], None]) -> None:
        self.steering: list[Waiting] = []
        self.queue: list[Waiting] = []
        self.landed: set[str] = set()
        self.paused = False
        self._note = note

    def __bool__(self) -> bool:
        return bool(self.steering or self.queue)

    @property
    def all(self) -> list[Waiting]:
        """Steers first, as they would run."""
        return self.steering + self.queue

    def accepted(self, message_id: str, prompt: str, lane: Lane, position: int | None = None) -> None:
        """A message went into a lane, unless it has landed meanwhile."""
        if message_id in self.landed or self._find(message_id):
            return
        items = self.queue if lane == "queue" else self.steering
        place = len(items) if position is None else min(position, len(items))
        items.insert(place, Waiting(message_id, prompt))
        self._note({"op": "add", "lane": lane, "messageId": message_id, "prompt": prompt, "position": place})

    def landing(self, message_id: str, delivery: str | None) -> None:
        """A ``user.message`` is about to be delivered."""
        self.landed.add(message_id)
        found = self._find(message_id)
        if found is None:
            return
        if found in self.steering and delivery == "queued":
            self._to_queue(found, 0)
        self._take(found)

    def remove(self, message_id: str, reason: str) -> None:
        """A message was taken out and will not land."""
        found = self._find(message_id)
        if found is not None:
            self._take(found)
            self._note({"op": "remove", "messageId": message_id, "reason": reason})

    def empty(self, reason: str) -> None:
        """Both lanes were emptied."""
        for waiting in self.all:
            self.remove(waiting.message_id, reason)

    def restore(self, items: list[JSON]) -> None:
        """What waited was sent anew: the old ids go, the new ones (``{messageId, prompt, lane}``) come."""
        for waiting in self.all:
            self.remove(waiting.message_id, "removed")
        self.queue = [Waiting(item["messageId"], item["prompt"]) for item in items]
        self._note({"op": "restored", "items": items})

    def pause(self, paused: bool) -> None:
        """The queue was frozen or released."""
        if paused != self.paused:
            self.paused = paused
            self._note({"op": "pause", "paused": paused})

    def reconcile(self, pending: JSON, gone: str | None = None) -> None:
        """Take over what ``queue.pendingItems`` answered.

        A message that is missing there is about to land, unless `gone` names the reason for its removal.
        """
        items = [item for item in pending.get("items", ()) if item.get("messageId")]
        ids = [item["messageId"] for item in items]
        texts = list(pending.get("steeringMessages", ()))[pending.get("inFlightSteeringCount", 0) :]
        for steer in [steer for steer in self.steering if steer.message_id in ids]:
            self._to_queue(steer, ids.index(steer.message_id))
        self._match_steers(texts, gone)
        for waiting in [waiting for waiting in self.queue if waiting.message_id not in ids]:
            if waiting.prompt in texts[len(self.steering) :]:
                self._to_steering(waiting)
            elif gone:
                self.remove(waiting.message_id, gone)
        self._match_queue(items)

    def _match_steers(self, texts: list[str], gone: str | None) -> None:
        if not gone:
            return
        left = list(texts)
        for steer in list(self.steering):
            if steer.prompt in left:
                left.remove(steer.prompt)
            else:
                self.remove(steer.message_id, gone)

    def _match_queue(self, items: list[JSON]) -> None:
        ids = {item["messageId"] for item in items}
        place = sum(waiting.message_id not in ids for waiting in self.queue)  # those are about to land
        for item in items:
            message_id, text = item["messageId"], item.get("displayText", "")
            if message_id in self.landed:
                continue
            found = self._find(message_id)
            if found is None:
                self.accepted(message_id, text, "queue", place)
            else:
                if found.prompt != text:
                    found.prompt = text
                    self._note({"op": "edit", "messageId": message_id, "prompt": text})
                at = self.queue.index(found)
                if at > place:
                    self.queue.insert(place, self.queue.pop(at))
                    self._note({"op": "move", "messageId": message_id, "lane": "queue", "position": place})
            place += 1

    def _to_queue(self, steer: Waiting, position: int) -> None:
        self._take(steer)
        place = min(position, len(self.queue))
        self.queue.insert(place, steer)
        where = {"messageId": steer.message_id, "lane": "queue", "position": place}
        self._note({"op": "move", **where, "reason": "missed"})

    def _to_steering(self, waiting: Waiting) -> None:
        self._take(waiting)
        self.steering.append(waiting)
        place = len(self.steering) - 1
        self._note({"op": "move", "messageId": waiting.message_id, "lane": "steering", "position": place})

    def _find(self, message_id: str) -> Waiting | None:
        return next((waiting for waiting in self.all if waiting.message_id == message_id), None)

    def _take(self, waiting: Waiting) -> None:
        (self.queue if waiting in self.queue else self.steering).remove(waiting)
