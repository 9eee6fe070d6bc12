"""Limits that a person sets for one run: turns, tokens, seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from copilot_nb.runtimes.engine import words
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.queue import EngineQueue
from copilot_nb.runtimes.engine.speech import Run


def turn_limit(core: Core, queue: EngineQueue, run: Run) -> bool:
    """Whether another turn would break a limit; says so."""
    limits = core.config.limits
    if limits.turns is not None and run.turn >= limits.turns:
        limit_reached(core, queue, "turns", limits.turns)
        return True
    if limits.tokens is not None and run.tokens >= limits.tokens:
        limit_reached(core, queue, "tokens", limits.tokens)
        return True
    return False


def time_limit(core: Core, cancel: Callable[[str], None]) -> asyncio.Handle:
    """Cancel the run when its time is up; the handle cancels that."""
    loop, seconds = asyncio.get_running_loop(), core.config.limits.seconds
    if seconds is None:
        return asyncio.Handle(cancel, (), loop)  # belongs to no clock: cancelling it does nothing
    return loop.call_later(seconds, cancel, "seconds")


def limit_reached(core: Core, queue: EngineQueue, limit: str, value: object) -> None:
    """Record that a limit ended a run; the queue goes on, or stops if the person asked for that."""
    core.stored(
        "jupyter.limit", {"limit": limit, "value": value, "message": words.limit_reached(limit, value)}
    )
    if core.config.limits.stop_queue and not core.lanes.paused:
        queue.pause(True)
