"""Sessions: the object a user holds, and how one is opened."""

from copilot_nb.session.opening import (
    choose,
    current,
    open_session,
    recorded_by,
    resume_session,
    sessions,
)
from copilot_nb.session.session import Session
from copilot_nb.session.waits import WaitResult

__all__ = [
    "Session",
    "WaitResult",
    "choose",
    "current",
    "open_session",
    "recorded_by",
    "resume_session",
    "sessions",
]
