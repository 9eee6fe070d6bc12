"""The log as data: tables of one session, of a running one, or of a fleet."""

from copilot_nb.frames.compare import Comparison, compare
from copilot_nb.frames.fleet import read_logs
from copilot_nb.frames.homes import sessions
from copilot_nb.frames.live import LiveLog
from copilot_nb.frames.log import Log, read_log
from copilot_nb.frames.parquet import read as read_parquet
from copilot_nb.frames.svg import timeline_svg
from copilot_nb.frames.window import EventWindow

__all__ = [
    "Comparison",
    "EventWindow",
    "LiveLog",
    "Log",
    "compare",
    "read_log",
    "read_logs",
    "read_parquet",
    "sessions",
    "timeline_svg",
]
