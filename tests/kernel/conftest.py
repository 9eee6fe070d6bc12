"""Fixtures: a fresh kernel of each version in a home of its own."""

import pytest
from kernels import Kernel
from venvs import needs_venv

#: both sides of the border that moved the output of background tasks, and the newest
BOTH = ("6.29.5", "7.4.0")
ALL = ("6.29.5", "7.0.1", "7.2.0", "7.3.0", "7.4.0")


@pytest.fixture(params=BOTH)
def kernel(request, tmp_path):
    """A fresh kernel with the extension loaded."""
    needs_venv(request.param)
    with Kernel(request.param, tmp_path) as running:
        running.ok("%load_ext copilot_nb")
        yield running


@pytest.fixture
def start(tmp_path):
    """A function that starts a bare kernel: ``start("7.4.0", COPILOT_NB_WAIT="1")``."""
    running = []

    def make(version="7.4.0", **more):
        needs_venv(version)
        running.append(Kernel(version, tmp_path, **more).__enter__())
        return running[-1]

    yield make
    for one in running:
        one.__exit__()
