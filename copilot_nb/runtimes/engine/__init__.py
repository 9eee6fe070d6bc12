"""The loop of the reference, in the kernel: runs, turns, lanes, autopilot, permissions, history."""

from copilot_nb.runtimes.engine.config import EngineConfig, Limits
from copilot_nb.runtimes.engine.engine import Engine

__all__ = ["Engine", "EngineConfig", "Limits"]
