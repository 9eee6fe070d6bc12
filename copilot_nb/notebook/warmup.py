"""Brings in what the first cell needs, while the kernel has nothing else to do.

``ipywidgets`` alone takes longer to import than all of this package. Whoever loads the extension and thinks
about a prompt pays for neither; in "Run All" the first cell imports what is still missing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from importlib import import_module

FIRST_CELL = (
    "copilot_nb.session",
    "copilot_nb.models.demo",
    "copilot_nb.tools.python",
    "copilot_nb.frames",
    "ipywidgets",
    "anywidget",
    "copilot_nb.widgets.cell",
)
PAUSE = 0.02  # seconds between two of them, in which the kernel takes its messages


def begin(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Import the modules one by one on the kernel's loop.

    Returns
    -------
    A function that leaves the rest.
    """
    modules = list(FIRST_CELL)

    def one() -> None:
        if not modules:  # left
            return
        with contextlib.suppress(Exception):  # told where it is missed: in the cell that needs it
            import_module(modules.pop(0))
        if modules:
            loop.call_later(PAUSE, one)

    loop.call_later(PAUSE, one)
    return modules.clear
