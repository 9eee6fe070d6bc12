"""The log as data: tables of one session, of a running one, or of a fleet."""

from copilot_nb.frames.log import LiveLog, Log, read_log
from copilot_nb.frames.window import EventWindow

__all__ = ["EventWindow", "LiveLog", "Log", "read_log"]
