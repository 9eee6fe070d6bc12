"""What a panel can show, and the facts about it that no event tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from copilot_nb.events import JSON, Event
from copilot_nb.state import SessionState
from copilot_nb.widgets import view


class Source(Protocol):
    """What a panel shows: a `Session`, or a log that was read from a file."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> SessionState: ...
    @property
    def log(self) -> Any: ...
    @property
    def runtime_name(self) -> str: ...
    @property
    def model_label(self) -> str: ...
    @property
    def model_kind(self) -> str: ...
    @property
    def closed(self) -> bool: ...

    def on(self, handler: Callable[[Event], None]) -> Callable[[], None]:
        """Call back for every event, after the state took it in."""


def facts_of(source: Source) -> JSON:
    """The head of a panel: what is true now, and whose session it is."""
    return {
        **view.head_json(source.state),
        "session": source.id,
        "model": source.model_label,
        "kind": source.model_kind,
        "runtimeName": source.runtime_name,
        "readonly": not hasattr(source, "send"),
        "closed": source.closed,
    }
