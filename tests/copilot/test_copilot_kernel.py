"""Magics in a real kernel, with the real Copilot CLI as the runtime."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from copilot_rig import call
from kernels import Kernel
from model_server import ModelServer
from test_copilot_death import alive, gone

ROOT = Path(__file__).parents[2]
VERSION = "7.4.0"
PATIENCE = 200.0  # seconds, for a machine that is busy with other tests
SETUP = """
import asyncio, copilot_nb
gate = asyncio.Event()
async def hold() -> str:
    "Wait until the gate opens."
    await gate.wait()
    return "the gate is open"
def events(*types):
    return [e for e in copilot_nb.current().log.live_events() if e.type in types]
"""
OPEN = (
    "session = copilot_nb.open_session('fake-model', runtime='copilot', base_url={url!r}, "
    "wire_api='completions', tools=[hold], allow={allow!r})"
)


class Bench:
    """A kernel with a session on the CLI, and the scripted model behind it."""

    def __init__(self, kernel: Kernel, script: list, *allow: str) -> None:
        self.kernel = kernel
        self.model = ModelServer(script)
        kernel.ok("%load_ext copilot_nb")
        kernel.ok(SETUP)
        kernel.ok(OPEN.format(url=self.model.base_url, allow=list(allow)))

    def ok(self, code: str):
        """Run a cell that must succeed; the CLI may need a while to start."""
        return self.kernel.ok(code, timeout=PATIENCE)

    def until(self, expression: str) -> None:
        self.kernel.until(expression, timeout=PATIENCE)

    def users(self) -> list[list[str]]:
        landed = "[m for m in session.state.messages.values() if m.state == 'landed']"
        return self.kernel.value(f"[[m.text, m.delivery] for m in {landed}]")

    def close(self) -> None:
        self.model.close()


@pytest.fixture
def kernel(tmp_path, cli_path):
    with Kernel(VERSION, tmp_path, COPILOT_CLI_PATH=cli_path, COPILOT_NB_WAIT="0") as running:
        yield running


@pytest.fixture
def bench(kernel):
    made: list[Bench] = []

    def make(script: list, *allow: str) -> Bench:
        made.append(Bench(kernel, script, *allow))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_cell_returns_before_the_cli_has_started(bench):
    """The SDK takes a second to import and to start; neither holds up the cell or the loop."""
    b = bench([{"text": ["hello"]}])
    cell = b.ok("%%copilot\nhi")
    assert cell.seconds < 20
    b.ok("%copilot wait")
    assert b.kernel.value("session.state.last_answer") == "hello"
    states = b.kernel.value("session.runtime_name")
    assert states == "copilot"


def test_steer_queue_and_abort_from_cells(bench):
    b = bench(
        [call("c1", "hold"), {"text": ["one"]}, {"text": ["two"]}, call("c2", "hold"), {"text": ["x"]}],
        "hold",
    )
    b.ok("%%copilot\nstart")
    b.until("[t.name for t in session.state.running_tools()] == ['hold']")
    b.ok("%steer use the median")
    b.ok("%enqueue then this")
    b.until("len(session.state.steers) == 1 and len(session.state.queue) == 1")
    assert "then this" in b.ok("%copilot queue").text
    b.ok("gate.set()")
    b.ok("%copilot wait")
    assert b.users() == [["start", "idle"], ["use the median", "steering"], ["then this", "queued"]]
    b.ok("gate.clear()")
    b.ok("%%copilot\nagain")
    b.until("[t.name for t in session.state.running_tools()] == ['hold']")
    b.ok("%enqueue kept")
    b.until("len(session.state.queue) == 1")
    b.ok("%copilot abort")
    b.until("not session.busy")
    assert b.kernel.value("[m.text for m in session.state.queue]") == ["kept"]
    b.ok("%copilot queue resume")
    b.ok("%copilot wait")
    assert b.users()[-1] == ["kept", "queued"]


def test_permissions_from_cells(bench):
    b = bench(
        [
            call("c1", "hold"),
            call("c2", "bash", command="echo hi > f", description="write"),
            {"text": ["done"]},
        ]
    )
    b.ok("gate.set()")
    b.ok("%%copilot\nstart")
    b.until("len(session.state.permissions) == 1")
    b.ok("%allow")
    b.until("[p.data['kind'] for p in session.state.permissions.values()] == ['shell']")
    b.ok("%deny use python instead")
    b.ok("%copilot wait")
    assert b.kernel.value("session.state.last_answer") == "done"
    told = [m["content"] for m in b.model.requests[-1]["body"]["messages"] if m["role"] == "tool"]
    assert "the gate is open" in told[0] and "use python instead" in told[1]


def test_the_python_tool_runs_in_the_kernel(bench):
    b = bench([call("c1", "python", code="answer = 6 * 7\nprint(answer)"), {"text": ["done"]}], "python")
    b.ok("%%copilot\ncompute")
    b.ok("%copilot wait")
    assert b.kernel.value("answer") == 42
    told = [m["content"] for m in b.model.requests[-1]["body"]["messages"] if m["role"] == "tool"]
    assert "42" in told[0]


def test_the_cli_killed_in_mid_tool(bench):
    """`wait` returns with the error, and the next prompt works."""
    b = bench([call("c1", "hold"), {"text": ["after"]}], "hold")
    b.ok("%%copilot\nstart")
    b.until("[t.name for t in session.state.running_tools()] == ['hold']")
    os.kill(b.kernel.value("session.runtime._client.pid"), signal.SIGKILL)
    cell = b.kernel.run("result = await session.wait(timeout=150)", PATIENCE)
    assert cell.status == "ok"
    b.until("not session.busy")
    assert "SIGKILL" in b.kernel.value("session.state.errors[-1]['message']")
    b.ok("%%copilot\nnext")
    b.ok("%copilot wait")
    assert b.kernel.value("session.state.last_answer") == "after"


def test_a_kernel_interrupt_does_not_reach_the_cli(bench):
    """jupyter-facts Q5: an interrupt goes to the kernel's whole process group."""
    b = bench([{"text": ["one"]}, {"text": ["two"]}])
    b.ok("%%copilot\na")
    b.ok("%copilot wait")
    pid = b.kernel.value("session.runtime._client.pid")
    b.kernel.interrupt()
    time.sleep(1)
    assert alive(pid)
    b.ok("%%copilot\nb")
    b.ok("%copilot wait")
    assert b.kernel.value("session.state.last_answer") == "two"


def test_a_restarted_and_a_killed_kernel_leave_no_cli(bench):
    b = bench([{"text": ["one"]}])
    b.ok("%%copilot\na")
    b.ok("%copilot wait")
    pid = b.kernel.value("session.runtime._client.pid")
    b.kernel.kill()
    assert gone(pid, 30)


def test_the_quickstart_on_this_runtime(kernel):
    """The notebook as it stands, with the demo model behind the CLI: `python -m copilot_nb serve-demo`."""
    serve = subprocess.Popen(
        [sys.executable, "-m", "copilot_nb", "serve-demo", "--port", "0", "--pace", "0.5"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    with serve:
        try:
            line = serve.stdout.readline()
            url = next(word for word in line.split() if word.startswith("http"))
            kernel.ok("%load_ext copilot_nb")
            for name, value in (
                ("runtime", "copilot"),
                ("model", "demo"),
                ("base_url", url),
                ("allow", ["python"]),
            ):
                kernel.ok(f"%config CopilotMagics.{name} = {value!r}")
            cells = json.loads((ROOT / "notebooks" / "01_quickstart.ipynb").read_text())["cells"]
            for cell in (cell for cell in cells if cell["cell_type"] == "code"):
                kernel.ok("".join(cell["source"]), timeout=PATIENCE)
            assert kernel.value("session.runtime_name") == "copilot"
            assert kernel.value("[t.name for t in session.state.tools.values()]")
            assert (
                "median" in kernel.value("session.state.last_answer").lower()
                or kernel.value("len(session.state.runs)") == 3
            )
        finally:
            serve.terminate()
