"""The tables of a live session, by the same names as those of a log that is read from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from copilot_nb.frames import LiveLog


class Tables:
    """DataFrames of the event log; see `copilot_nb.frames` for their columns. `log` holds the events."""

    log: LiveLog

    def events(self) -> pd.DataFrame:
        """One row per event."""
        return self.log.table("events")

    def messages(self) -> pd.DataFrame:
        """One row per message that a person or the autopilot sent."""
        return self.log.table("messages")

    def runs(self) -> pd.DataFrame:
        """One row per run."""
        return self.log.table("runs")

    def turns(self) -> pd.DataFrame:
        """One row per turn: a model call, with its retries, and the tools it asked for."""
        return self.log.table("turns")

    def tools(self) -> pd.DataFrame:
        """One row per tool call."""
        return self.log.table("tools")

    def permissions(self) -> pd.DataFrame:
        """One row per permission request."""
        return self.log.table("permissions")

    def usage(self) -> pd.DataFrame:
        """One row per model call: tokens and time."""
        return self.log.table("usage")

    def errors(self) -> pd.DataFrame:
        """One row per error."""
        return self.log.table("errors")
