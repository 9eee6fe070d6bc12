"""Progress where there is no panel: a line in a terminal, and one line for a waiting cell."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
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


class WaitLine:
    """One line under a waiting cell that says what goes on; it disappears at the end.

    Parameters
    ----------
    session
        What is waited for.
    after
        Seconds before the line appears: short waits stay silent.
    """

    def __init__(self, session: Session, after: float = 1.0) -> None:
        self.session = session
        self.after = after
        self._handle: Any = None
        self._text = ""

    async def show(self) -> None:
        """Keep the line up to date until cancelled."""
        from IPython import display

        show: Any = display.display
        await asyncio.sleep(self.after)
        try:
            while True:
                text = self.session.state.describe()
                if text != self._text:
                    self._text = text
                    data = {"text/plain": text}
                    if self._handle is None:
                        self._handle = show(data, raw=True, display_id=True)
                    else:
                        self._handle.update(data, raw=True)
                await asyncio.sleep(1.0)
        finally:
            if self._handle is not None:
                self._handle.update({"text/plain": self.session.state.describe()}, raw=True)


@contextlib.asynccontextmanager
async def wait_line(session: Session) -> Any:
    """The line for a waiting cell: ``async with wait_line(session): await session.wait()``."""
    task = asyncio.create_task(WaitLine(session).show())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
