"""What one piece of user code prints, displays and raises, kept from every other cell's output.

The code runs on the kernel's loop, where cells and other tasks run too, so the capture goes by context
(a `ContextVar`), not by time: a cell that prints while the code awaits still prints into its own output.
Nothing goes through the kernel's own streams, whose rules for background output differ between
ipykernel 6 and 7.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from copilot_nb.events import JSON

KEEP = 500_000  # characters kept of the beginning, and as many of the end
PROGRESS_SECONDS, PROGRESS_CHARS = 0.2, 4096

_ansi = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_current: ContextVar[Capture | None] = ContextVar("copilot_nb_capture", default=None)


class Capture:
    """The output of one call.

    Parameters
    ----------
    progress
        Told of pieces of output while the code runs, on the loop the capture was made on.

    Attributes
    ----------
    values
        Results of expressions, as the display hook got them.
    displays
        Mime bundles that were displayed.
    traceback
        The last traceback shown, plain text.
    """

    def __init__(self, progress: Callable[[str], None] | None = None) -> None:
        self.values: list[Any] = []
        self.displays: list[JSON] = []
        self.traceback = ""
        self.open = True
        self._progress = progress
        self._loop = asyncio.get_running_loop() if progress else None
        self._thread = threading.get_ident()
        self._before: set[threading.Thread] | None = None
        self._own: set[threading.Thread] = set()
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._head_size = self._tail_size = self._cut = 0
        self._pending: deque[str] = deque()
        self._pending_size = 0
        self._told = time.monotonic()
        self._timer = False

    def write(self, text: str) -> None:
        """Take printed text; called from any thread."""
        if self._head_size < KEEP:
            self._head.append(text)
            self._head_size += len(text)
        else:
            self._tail.append(text)
            self._tail_size += len(text)
            while self._tail_size - len(self._tail[0]) > KEEP:
                dropped = len(self._tail.popleft())
                self._tail_size -= dropped
                self._cut += dropped
        if self._loop is not None:
            self._pending.append(text)
            self._pending_size += len(text)
            if self._pending_size >= PROGRESS_CHARS or time.monotonic() - self._told >= PROGRESS_SECONDS:
                self.tell()
            elif not self._timer and not self._loop.is_closed():
                self._timer = True
                self._loop.call_soon_threadsafe(self._loop.call_later, PROGRESS_SECONDS, self.tell)

    def tell(self) -> None:
        """Report what was printed since the last report."""
        self._timer, self._pending_size, self._told = False, 0, time.monotonic()
        pieces = []
        while self._pending:  # other threads may add meanwhile
            pieces.append(self._pending.popleft())
        text = "".join(pieces)
        if self._progress is None or self._loop is None or not text:
            return
        if threading.get_ident() == self._thread:
            self._progress(text)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._progress, text)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Threads that start in here are the code's own (a context does not follow into plain threads)."""
        self._before = before = set(threading.enumerate())
        try:
            yield
        finally:
            self._before = None
            self._own |= set(threading.enumerate()) - before

    def owns_thread(self) -> bool:
        """Whether the code started the current thread."""
        me, before = threading.current_thread(), self._before
        return me in self._own or (before is not None and me not in before)

    @property
    def output(self) -> str:
        """Everything printed, in order; a very long middle is left out, with a mark."""
        head, tail = "".join(self._head), "".join(self._tail)
        mark = f"\n… {self._cut} characters left out …\n" if self._cut else ""
        return (head + mark + tail).replace("\r\n", "\n")


def active() -> Capture | None:
    """The capture that this code's output belongs to, if any."""
    capture = _current.get()
    if capture is not None:
        return capture if capture.open else None
    if threading.current_thread() is not threading.main_thread():
        for other in _routes.open:
            if other.owns_thread():
                return other
    return None


@contextmanager
def capturing(shell: Any = None, progress: Callable[[str], None] | None = None) -> Iterator[Capture]:
    """Capture what this context prints; with an IPython shell also what it displays and raises."""
    capture = Capture(progress)
    _routes.enter(capture, shell)
    token = _current.set(capture)
    try:
        yield capture
    finally:
        capture.tell()
        capture.open = False
        _current.reset(token)
        _routes.leave(capture)


class _Stream:
    """Stands for `sys.stdout` or `sys.stderr` while any capture is open."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def write(self, text: str) -> int:
        capture = active()
        if capture is None:
            return int(self._original.write(text) or 0)
        capture.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if active() is None:
            self._original.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Routes:
    """Puts the turn-outs into place for the first open capture, and removes them after the last."""

    def __init__(self) -> None:
        self.open: list[Capture] = []
        self._undo: list[Callable[[], None]] = []
        self._shells: list[Any] = []

    def enter(self, capture: Capture, shell: Any) -> None:
        if not self.open:
            for name in ("stdout", "stderr"):
                original = getattr(sys, name)
                self._replace(sys, name, _Stream(original), original)
        self.open.append(capture)
        if shell is not None and not any(known is shell for known in self._shells):
            self._shells.append(shell)
            self._route_shell(shell)

    def leave(self, capture: Capture) -> None:
        self.open.remove(capture)
        if not self.open:
            while self._undo:
                self._undo.pop()()
            self._shells.clear()

    def _replace(self, owner: Any, name: str, new: Any, old: Any) -> None:
        setattr(owner, name, new)

        def undo() -> None:
            if getattr(owner, name) is new:  # else somebody put theirs on top, and keeps a link to ours
                setattr(owner, name, old)

        self._undo.append(undo)

    def _route_shell(self, shell: Any) -> None:
        publish, clear = shell.display_pub.publish, shell.display_pub.clear_output
        show, hook = shell._showtraceback, shell.display_trap.hook

        def route_publish(data: JSON, metadata: JSON | None = None, *args: Any, **more: Any) -> None:
            capture = active()
            if capture is None:
                publish(data, metadata, *args, **more)
            else:
                capture.displays.append(dict(data))

        def route_clear(*args: Any, **more: Any) -> None:
            if active() is None:
                clear(*args, **more)

        def route_traceback(etype: Any, value: Any, lines: Any) -> None:
            capture = active()
            if capture is None:
                show(etype, value, lines)
            else:
                text = lines if isinstance(lines, str) else "\n".join(lines)
                capture.traceback = plain(text)

        def route_value(value: Any) -> None:
            capture = active()
            if capture is None:
                hook(value)
            elif value is not None:
                capture.values.append(value)

        self._replace(shell.display_pub, "publish", route_publish, publish)
        self._replace(shell.display_pub, "clear_output", route_clear, clear)
        self._replace(shell, "_showtraceback", route_traceback, show)
        self._replace(shell.display_trap, "hook", route_value, hook)
        if sys.displayhook is hook:  # a cell is open (it awaits): the trap is set already
            self._replace(sys, "displayhook", route_value, hook)


_routes = _Routes()


def plain(text: str) -> str:
    """Text without terminal colours."""
    return _ansi.sub("", text)
