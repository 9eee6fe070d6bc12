"""`ours`, with a panel attached: its messages are made and go to a front end that is not there."""

from __future__ import annotations

from drivers import ours
from drivers.ours import close, fresh, open, run, steer

ours.PANEL = True
__all__ = ["close", "fresh", "open", "run", "steer"]
