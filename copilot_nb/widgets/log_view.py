"""A log as something to look at: the same panel as a running session's, read-only."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from copilot_nb.events import Event
from copilot_nb.frames import Log, read_log
from copilot_nb.frames.log import Tables
from copilot_nb.record import bundle, export
from copilot_nb.state import SessionState

if TYPE_CHECKING:
    import pandas as pd

    from copilot_nb.frames.base import Columns
    from copilot_nb.widgets.panel import Panel


class LogView(Tables):
    """A session's log: tables, panel and record, for looking at.

    Attributes
    ----------
    log
        The `Log` that the tables come from.
    state
        The fold of its events.
    """

    runtime_name = "log"
    model_kind = "provider"
    closed = False

    def __init__(self, log: Log) -> None:
        self.log = log
        self.state = SessionState.from_events(log.all_events())
        self.id = self.state.session_id or Path(log.source.name).stem
        turn = self.state.turn
        self.model_label = (turn and turn.model) or self.state.model or ""

    def __repr__(self) -> str:
        return f"<copilot_nb log {self.id}: {len(self.state.runs)} runs, {len(self.state.turns)} turns>"

    def _columns(self) -> Columns:
        return self.log._columns()

    def on(self, handler: Callable[[Event], None]) -> Callable[[], None]:
        """Nothing more happens in a log that was read."""
        return lambda: None

    def panel(self, tab: str = "conversation") -> Panel:
        """The panel, read-only."""
        from copilot_nb.widgets.panel import Panel

        return Panel(self, tab=tab)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the record as ``.html``, ``.md`` or ``.ipynb``, by the name's ending."""
        return export(self, path)

    @property
    def problems(self) -> pd.DataFrame:
        """Lines of the file that are no events."""
        return self.log.problems

    def _ipython_display_(self) -> None:
        from IPython import display

        show: Any = display.display
        show(self.panel())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return bundle(self.state, self.state.runs, model=self.model_label)


def open_log(log: str | Path | IO[bytes] | IO[str], home: str | os.PathLike[str] | None = None) -> LogView:
    """Open a session's log to look at: as the last value of a cell it shows the panel, read-only.

    Parameters
    ----------
    log
        A path (``.jsonl``, also compressed), a session's folder, or a session id.
    home
        Where ids are looked up; default ``$COPILOT_HOME`` or ``~/.copilot``.

    Raises
    ------
    SessionNotFound
        There is no such file or session.
    StoreError
        It cannot be read.
    """
    return LogView(read_log(log, Path(home) if home is not None else None))
