"""What the engine's parts share: the session's state in the loop, and the one way to say an event."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from copilot_nb.events import JSON, Event, EventSource
from copilot_nb.runtimes.base import Emit, Mode
from copilot_nb.runtimes.engine.config import EngineConfig
from copilot_nb.runtimes.engine.history import History
from copilot_nb.runtimes.engine.lanes import Lanes
from copilot_nb.store import EventStore


class Core(Struct):
    """One session's moving parts.

    Attributes
    ----------
    processing
        Whether a run is going on: an *immediate* message joins it; otherwise it is an ordinary queue item.
    last_system
        The system prompt that the log holds; it is stored again only when it changes (reference §1).
    run_events
        What the running run has stored so far.
    steer_listeners
        Running calls that want to know of a steer (the built-in shell, reference §3).
    """

    session_id: str
    config: EngineConfig
    store: EventStore
    source: EventSource
    deliver: Emit
    history: History
    lanes: Lanes = field(default_factory=Lanes)
    mode: Mode = "interactive"
    processing: bool = False
    closed: bool = False
    last_system: str | None = None
    run_events: list[Event] = field(default_factory=list)
    steer_listeners: list[Callable[[], None]] = field(default_factory=list)

    def stored(self, type: str, data: JSON, *, deliver: bool = True) -> Event:
        """Store an event, then deliver it (a few belong on disk alone, reference §21)."""
        event = self.source.stored(type, data)
        if not self.closed:
            offset = self.store.append(event)
            self.run_events.append(event)
            if deliver:
                self.deliver(event, offset)
        return event

    def ephemeral(self, type: str, data: JSON) -> None:
        """Deliver an event that is never stored."""
        if not self.closed:
            self.deliver(self.source.ephemeral(type, data))

    def pending_modified(self) -> None:
        """Say that a lane changed; whoever cares asks what it holds (reference §15)."""
        self.ephemeral("pending_messages.modified", {})

    def journal(self, op: str, **what: object) -> None:
        """Record a change of the lanes as this project's own event."""
        if self.config.extras:
            self.stored("jupyter.queue", {"op": op, **what})
