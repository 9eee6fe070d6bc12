"""Taking the end of a session back: the log's lines are removed and the history follows (reference §18)."""

from __future__ import annotations

from copilot_nb.events import Event
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.history import rebuild

_UNCOUNTED = ("session.usage_record", "system.message")


def rewind(core: Core, event_id: str) -> int:
    """Remove that event and all after it; how many the reference would count.

    It counts what it delivered: one system prompt per run, also when it was not stored again, and no usage
    records.
    """
    removed = core.store.keep_before(event_id)
    kept = core.store.read()
    core.history = rebuild(kept)
    core.source.last_stored = kept[-1].id if kept else None
    core.last_system = None
    count = sum(map(_counts, removed)) + _runs(removed)
    core.ephemeral(
        "session.snapshot_rewind",
        {"upToEventId": event_id, "eventsRemoved": count, "eventIds": [event.id for event in removed]},
    )
    return count


def _counts(event: Event) -> bool:
    return not event.type.startswith("jupyter.") and event.type not in _UNCOUNTED


def _runs(events: list[Event]) -> int:
    return sum(1 for e in events if e.type == "assistant.turn_start" and e.data.get("turnId") == "0")
