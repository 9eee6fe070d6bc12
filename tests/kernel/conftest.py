"""Fixtures: a fresh kernel of each version in a home of its own."""

import pytest
from kernels import Kernel
from venvs import needs_venv

#: both sides of the border that moved the output of background tasks, and the newest
BOTH = ("6.29.5", "7.4.0")
ALL = ("6.29.5", "7.0.1", "7.2.0", "7.3.0", "7.4.0")


@pytest.fixture(params=BOTH, scope="module")
def shared_kernel(request, tmp_path_factory):
    """One kernel for the tests of a module: to start one takes longer than most tests."""
    needs_venv(request.param)
    with Kernel(request.param, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def kernel(shared_kernel):
    """A kernel with the extension loaded and no session open."""
    shared_kernel.ok("%load_ext copilot_nb")
    yield shared_kernel
    shared_kernel.ok(
        "from copilot_nb.session import sessions\nfor one in list(sessions.values()):\n    await one.close()"
    )


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
