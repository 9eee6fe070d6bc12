"""Taking the end of a session back: the log's lines are removed and the history follows (reference §18)."""

from __future__ import annotations

from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.history import rebuild


def rewind(core: Core, event_id: str, *, delivered: bool = False) -> int:
    """Remove that event and all after it; how many the reference would say.

    A rewind counts the lines, a withdrawal what was `delivered`: the run's system prompt too, also when it
    had not changed and so was not stored again.
    """
    removed = core.store.keep_before(event_id)
    kept = core.store.read()
    core.history = rebuild(kept, reasoning=True)
    core.source.last_stored = kept[-1].id if kept else None
    core.last_system = None
    types = [event.type for event in removed if not event.type.startswith("jupyter.")]
    count = len(types) + (delivered and "system.message" not in types)
    ids = [event.id for event in removed]
    core.ephemeral(
        "session.snapshot_rewind", {"upToEventId": event_id, "eventsRemoved": count, "eventIds": ids}
    )
    return count
