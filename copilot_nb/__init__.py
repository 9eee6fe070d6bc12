"""Run a coding agent from a notebook, steer it while it works, and look at what it did as data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from copilot_nb.version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: public name -> the module it lives in; imported when first used, so that ``%load_ext`` stays light
_PUBLIC = {
    "CopilotNbError": "errors",
    "Session": "session",
    "compare": "frames.compare",
    "compare": "frames",
    "current": "session",
    "open_log": "widgets.log_view",
    "open_session": "session",
    "read_log": "frames.log",
    "read_logs": "frames.fleet",
    "resume_session": "session",
    "sessions": "frames.homes",
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
