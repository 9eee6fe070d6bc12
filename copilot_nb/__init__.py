"""Run a coding agent from a notebook, steer it while it works, and look at what it did as data."""

__version__ = "0.1.0"
