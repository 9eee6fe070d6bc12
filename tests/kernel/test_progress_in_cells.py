"""The one-line status under a waiting cell, on both sides of ipykernel 7. Field cases 21, 22 and 45."""

import re

import pytest
from test_steering import SESSION


@pytest.fixture
def running(kernel):
    """A run that is in its waiting tool."""
    kernel.ok(SESSION)
    kernel.ok("%%copilot --no-wait\nstart")
    kernel.until("[t.name for t in session.state.running_tools()] == ['hold']")
    return kernel


def shown(cell) -> list[dict]:
    return [output["data"] for output in cell.outputs if "data" in output]


@pytest.mark.parametrize("code", ["%copilot wait", "with session.progress():\n    await session.wait()"])
def test_one_line_that_is_kept_up_to_date(running, code):
    """Text alone, in the waiting cell: no widget that is dead in the saved notebook, no line per second."""
    running.ok("import asyncio; asyncio.get_running_loop().call_later(3.5, gate.set);")
    waiting = running.start(code)
    running.listen(2.5)
    (during,) = shown(waiting)
    assert set(during) == {"text/plain"}
    assert re.fullmatch(r"turn 1, running hold for \d+\.\d s", during["text/plain"])
    running.finish(waiting)
    running.listen(1)
    assert waiting.status == "ok"
    line, *more = shown(waiting)
    assert re.fullmatch(r"waited \d+ s: idle", line["text/plain"])
    assert "widget" not in str(more)
    other = running.ok("1 + 1")
    running.listen(1)
    assert len(shown(other)) == 1, "nothing of it lands in the next cell"


def test_a_short_wait_says_nothing(running):
    running.ok("gate.set()")
    running.until("not session.busy")
    assert shown(running.ok("%copilot wait")) == []


def test_an_interrupted_wait_leaves_a_true_line(running):
    """The run goes on: the line must not say that it is idle."""
    waiting = running.start("%copilot wait")
    running.listen(2)
    running.interrupt()
    running.finish(waiting)
    assert waiting.status == "error"
    assert re.search(r"waited \d+ s: turn 1, running hold", shown(waiting)[0]["text/plain"])
    running.ok("gate.set()")
    running.ok("%copilot wait")
