"""The log as data: tables of one session, of a running one, or of a fleet."""

from copilot_nb.frames.log import LiveLog, Log, read_log

__all__ = ["LiveLog", "Log", "read_log"]
