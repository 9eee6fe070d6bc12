"""Progress where there is no panel: one line in a terminal, and one line under a cell."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from copilot_nb.session import Session

RATE = 8  # a second, in a terminal
EVERY = 1.0  # seconds, under a cell


@contextlib.contextmanager
def progress(session: Session) -> Iterator[None]:
    """Show what a session does while the block runs, on one line.

    A terminal needs ``rich``, which comes with JupyterLab's and many other installations. Under a cell the
    line is plain text, because rich's live display is an ``Output`` widget there, which loses what background
    work writes (field case 22) and is dead in a saved notebook (45).

    Raises
    ------
    ImportError
        In a terminal without ``rich``.
    """
    with _cell_line(session, 0.0) if _in_kernel() else _terminal_line(session):
        yield


@contextlib.contextmanager
def wait_line(session: Session, after: float = 1.0) -> Iterator[None]:
    """The line of ``%copilot wait``.

    Parameters
    ----------
    after
        Seconds before it appears under a cell: short waits stay silent.
    """
    with contextlib.ExitStack() as stack:
        if _in_kernel():
            stack.enter_context(_cell_line(session, after))
        else:
            with contextlib.suppress(ImportError):  # without rich a terminal waits in silence
                stack.enter_context(_terminal_line(session))
        yield


def _in_kernel() -> bool:
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    return hasattr(shell, "kernel")


@contextlib.contextmanager
def _terminal_line(session: Session) -> Iterator[None]:
    try:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text
    except ImportError as error:
        raise ImportError("session.progress() needs rich: pip install rich") from error
    console = Console()
    spinner = Spinner("dots")

    def line() -> Any:
        text = Text(f"{session.id}: {session.state.describe()}", overflow="ellipsis", no_wrap=True)
        spinner.update(text=text)
        return spinner if session.state.busy else text

    with Live(
        get_renderable=line, console=console, refresh_per_second=RATE, transient=not console.is_terminal
    ):
        yield


@contextlib.contextmanager
def _cell_line(session: Session, after: float) -> Iterator[None]:
    """A display of the running cell, kept up to date by a task while the cell awaits."""
    from IPython import display

    began = time.monotonic()
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        if handle is None:
            handle = display.display({"text/plain": text}, raw=True, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            handle.update({"text/plain": text}, raw=True)

    async def keep() -> None:
        await asyncio.sleep(after)
        shown = ""
        while True:
            if (text := session.state.describe()) != shown:
                show(shown := text)
            await asyncio.sleep(EVERY)

    task = asyncio.get_running_loop().create_task(keep())
    try:
        yield
    finally:  # in the cell itself: what a task displays after a cell's end may land in another
        task.cancel()
        if handle is not None:
            show(f"waited {time.monotonic() - began:.0f} s: {session.state.describe()}")
