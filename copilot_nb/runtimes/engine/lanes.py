"""The two waiting lists: steers join the running run, queue items wait for a run of their own.

Plain data, changed only on the engine's loop, without an ``await`` between looking and changing; a race
between an edit and the drain cannot happen (claudette#629, copilot-cli#4372).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON, new_id
from copilot_nb.runtimes.base import Message

Lane = Literal["queue", "steering"]


class Item(Struct):
    """One entry: usually one message; several or none from ``sendMessages``; or a background task's end.

    Attributes
    ----------
    from_idle
        Accepted while nothing ran and nothing waited: it is delivered as ``idle``.
    notice
        The end of a background task, in place of a message (reference §3).
    late
        Late results of tool calls that were open when the session was resumed (reference §13).
    announced
        That it leaves the queue was said already.
    silent
        It starts at once, so no event says that it waits.
    recency
        Grows with each acceptance, over both lanes.
    """

    id: str
    messages: list[tuple[str, Message]]
    from_idle: bool = False
    notice: JSON | None = None
    late: list[JSON] = field(default_factory=list)
    announced: bool = False
    silent: bool = False
    recency: int = 0

    @property
    def message_id(self) -> str:
        """The first message's id."""
        return self.messages[0][0] if self.messages else self.id

    @property
    def continues(self) -> bool:
        """Whether its run belongs to the interaction before it (reference §0.6)."""
        return bool(self.notice or self.late or any(m.source == "system" for _, m in self.messages))

    @property
    def text(self) -> str:
        """The first message's prompt."""
        return self.messages[0][1].prompt if self.messages else ""


class Lanes(Struct):
    """Both lanes, and the steers that the model has seen but not yet answered."""

    queue: list[Item] = field(default_factory=list)
    steering: list[Item] = field(default_factory=list)
    in_flight: list[Item] = field(default_factory=list)
    paused: bool = False
    now: Item | None = None
    _count: int = 0

    def __bool__(self) -> bool:
        return bool(self.queue or self.steering or self.now)

    def make(self, *messages: Message, from_idle: bool = False) -> Item:
        """A new entry, in neither lane yet."""
        self._count += 1
        return Item(str(self._count), [(new_id(), m) for m in messages], from_idle, recency=self._count)

    def touch(self, item: Item) -> None:
        """Make an entry the most recent one."""
        self._count += 1
        item.recency = self._count

    def take_next(self) -> Item | None:
        """The entry that was sent now, else the next of the queue, unless the queue is paused."""
        if self.now is not None:
            item, self.now = self.now, None
            return item
        return self.queue.pop(0) if self.queue and not self.paused else None

    def take_steers(self) -> list[Item]:
        """All pending steers, in order; they are in flight until the model has answered."""
        taken, self.steering = self.steering, []
        self.in_flight += taken
        return taken

    def promote(self, *, all_of_them: bool = False) -> list[Item]:
        """Move the first leftover steer (or all) to the front of the queue, in order (reference §4)."""
        count = len(self.steering) if all_of_them else min(1, len(self.steering))
        moved, self.steering = self.steering[:count], self.steering[count:]
        for item in moved:
            item.from_idle = False
        self.queue[:0] = moved
        return moved

    def clear(self) -> list[Item]:
        """Empty both lanes; what was in them."""
        gone = [item for item in self.steering + self.queue if item.notice is None]
        self.queue = [item for item in self.queue if item.notice is not None]
        self.steering = []
        return gone

    def shown_place(self, lane: list[Item], place: int) -> int:
        """The place among the entries that events speak of."""
        ahead = [self.now] if lane is self.queue and self.now is not None else []
        return sum(not item.silent for item in ahead + lane[:place])

    def find(self, id: str) -> int:
        """The place of a queue entry, by its id or its message's id."""
        for place, item in enumerate(self.queue):
            if id in (item.id, item.message_id):
                return place
        known = ", ".join(item.id for item in self.queue) or "none"
        raise UsageError(f"No queue item {id!r}; waiting are: {known}.")

    def locate(self, message_id: str) -> tuple[Lane, Item] | None:
        """The lane and entry of a waiting message."""
        for item in self.queue:
            if item.message_id == message_id:
                return "queue", item
        for item in self.steering:
            if item.message_id == message_id:
                return "steering", item
        return None

    def most_recent(self) -> tuple[Lane, Item] | None:
        """What was accepted last, of both lanes."""
        both: list[tuple[Lane, Item]] = [("queue", i) for i in self.queue if i.notice is None]
        both += [("steering", i) for i in self.steering]
        return max(both, key=lambda pair: pair[1].recency, default=None)
