"""Progress where there is no panel: a line in a terminal, and one line for a waiting cell."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from copilot_nb.session import Session

RATE = 8  # a second


@contextlib.contextmanager
def progress(session: Session) -> Iterator[None]:
    """Show what a session does while the block runs, on one line of a terminal.

    Needs ``rich``, which comes with JupyterLab's and many other installations.
    """
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
        spinner.update(
            text=Text(f"{session.id}: {session.state.describe()}", overflow="ellipsis", no_wrap=True)
        )
        return spinner if session.state.busy else spinner.text

    with Live(
        get_renderable=line, console=console, refresh_per_second=RATE, transient=not console.is_terminal
    ):
        yield


@contextlib.asynccontextmanager
async def wait_line(session: Session, after: float = 1.0) -> AsyncIterator[None]:
    """One line under a waiting cell that says what goes on: ``async with wait_line(session): …``.

    Parameters
    ----------
    after
        Seconds before it appears: short waits stay silent.
    """
    task = asyncio.create_task(_keep_line(session, after))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _keep_line(session: Session, after: float) -> None:
    from IPython import display

    show: Any = display.display
    began = time.monotonic()
    await asyncio.sleep(after)
    text = session.state.describe()
    handle = show({"text/plain": text}, raw=True, display_id=True)
    try:
        while True:
            await asyncio.sleep(1.0)
            if (now := session.state.describe()) != text:
                text = now
                handle.update({"text/plain": text}, raw=True)
    finally:
        words = f"waited {time.monotonic() - began:.0f} s: {session.state.describe()}"
        handle.update({"text/plain": words}, raw=True)
