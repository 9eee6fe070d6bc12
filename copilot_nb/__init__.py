"""Run a coding agent from a notebook, steer it while it works, and look at what it did as data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from copilot_nb.version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from copilot_nb.errors import CopilotNbError as CopilotNbError
    from copilot_nb.frames import compare as compare
    from copilot_nb.frames import read_log as read_log
    from copilot_nb.frames import read_logs as read_logs
    from copilot_nb.frames import sessions as sessions
    from copilot_nb.session import Session as Session
    from copilot_nb.session import current as current
    from copilot_nb.session import open_session as open_session
    from copilot_nb.session import resume_session as resume_session
    from copilot_nb.widgets.log_view import open_log as open_log

#: public name -> the module it lives in; imported when first used, so that ``%load_ext`` stays light
_PUBLIC = {
    "CopilotNbError": "errors",
    "Session": "session",
    "compare": "frames",
    "current": "session",
    "open_log": "widgets.log_view",
    "open_session": "session",
    "read_log": "frames",
    "read_logs": "frames",
    "read_parquet": "frames",
    "resume_session": "session",
    "sessions": "frames",
}

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension", *_PUBLIC]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext copilot_nb``."""
    from copilot_nb.magics import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext copilot_nb``: magics, hooks and completion go, runs end."""
    from copilot_nb.magics import unload

    unload(shell)
