"""Which event loop a session lives on, and how to reach it from anywhere.

In a kernel it is the kernel's own loop (jupyter-facts Q1), captured when the extension loads: a cell run in
a subshell sees another loop on another thread. In plain IPython, where no loop runs between inputs, it is
one loop on a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_captured: asyncio.AbstractEventLoop | None = None
_own: asyncio.AbstractEventLoop | None = None
_own_lock = threading.Lock()


def capture() -> None:
    """Take the loop that runs here as the one for all later sessions (when the extension loads)."""
    global _captured
    _captured = running_loop()


def release() -> None:
    """Forget the captured loop (when the extension is unloaded)."""
    global _captured
    _captured = None


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs on this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def session_loop() -> asyncio.AbstractEventLoop:
    """The loop for a new session."""
    if _captured is not None and _captured.is_running():
        return _captured
    return running_loop() or _thread_loop()


def _thread_loop() -> asyncio.AbstractEventLoop:
    global _own
    with _own_lock:
        if _own is None or _own.is_closed():
            _own = asyncio.new_event_loop()
            threading.Thread(target=_own.run_forever, name="copilot_nb loop", daemon=True).start()
        return _own


def call(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """Call a function on a loop's thread and wait for its value."""
    if running_loop() is loop:
        return function()
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # handed to the caller
            future.set_exception(error)

    loop.call_soon_threadsafe(run)
    return future.result()


async def on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine on a loop, from this or any other one."""
    if running_loop() is loop:
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))
