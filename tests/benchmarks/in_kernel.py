"""The rows that are measured in real kernels: loading, the first cell, memory after a run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import table
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from peers import COPILOT, JUPYTER_AI, ROOT
from table import Row

#: what the kernel itself measures of each cell: CPU between its first and its last statement
WATCH = """
import time, gc
_cell = {"at": 0.0}
_on = get_ipython().events.register
_on("pre_run_cell", lambda info: _cell.update(at=time.process_time()))
_on("post_run_cell", lambda result: _cell.update(cpu=time.process_time() - _cell["at"]))
"""
IDLE = "__import__('copilot_nb').current().busy"


@dataclass
class Cost:
    """Of one cell, in milliseconds: CPU in the kernel; wall time until a front end hears that it is done."""

    cpu: float
    wall: float


class Kernel:
    """A fresh kernel that has run one cell already."""

    def __init__(self, python: str, home: Path) -> None:
        self.manager = KernelManager()
        argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager._kernel_spec = KernelSpec(argv=argv, display_name="benchmark", language="python")
        drop = ("COPILOT_NB_", "OPENAI_", "JUPYTER_", "PYTHONDONTWRITE")  # a user's kernel has its .pyc files
        keep = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
        folders = {
            "HOME": str(home),
            "IPYTHONDIR": str(home / "ipython"),
            "COPILOT_HOME": str(home / "copilot"),
        }
        env = {**keep, **folders, "PYTHONPATH": str(ROOT), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        self.manager.start_kernel(env=env, cwd=str(home), stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)
        self.run(WATCH)
        self.run("1 + 1")

    def run(self, code: str) -> Cost:
        """Run a cell as a front end does."""
        begun = time.perf_counter()
        self._execute(code)
        wall = time.perf_counter() - begun
        cell = self.value("_cell") if code != WATCH else {}
        return Cost(cell.get("cpu", 0.0) * 1e3, wall * 1e3)

    def value(self, expression: str) -> Any:
        """What an expression is in the kernel."""
        message = self.client.execute("", silent=True, user_expressions={"it": expression})
        while True:
            reply = self.client.get_shell_msg(timeout=120)
            if reply["parent_header"].get("msg_id") == message:
                it = reply["content"]["user_expressions"]["it"]
                if it["status"] != "ok":
                    raise RuntimeError(f"{expression}: {it['evalue']}")
                return ast.literal_eval(it["data"]["text/plain"])

    def _execute(self, code: str) -> None:
        message = self.client.execute(code)
        while True:
            heard = self.client.get_iopub_msg(timeout=120)
            if heard["parent_header"].get("msg_id") != message:
                continue
            if heard["msg_type"] == "error":
                told = heard["content"]
                raise RuntimeError(f"{code.splitlines()[0]}: {told['ename']}: {told['evalue']}")
            if heard["msg_type"] == "status" and heard["content"]["execution_state"] == "idle":
                return

    def settle(self) -> None:
        """Wait for the end of the agent's run."""
        while self.value(IDLE):
            time.sleep(0.1)

    def memory(self) -> float:
        """Resident megabytes, after a garbage collection."""
        self.run("gc.collect()")
        pid = self.manager.provisioner.process.pid
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def kernel(python: str = sys.executable) -> Iterator[Kernel]:
    """A kernel in a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        one = Kernel(python, Path(home))
        try:
            yield one
        finally:
            one.client.stop_channels()
            one.manager.shutdown_kernel(now=True)


def loading(quick: bool, skipped: dict[str, str]) -> Iterable[Row]:
    """``%load_ext`` and the first cell, in fresh kernels taken in turn."""
    others = [(peer, code) for peer, code in _OTHERS if _can_run(peer, skipped)]
    loads, firsts, both, found = [], [], [], {peer.name: [] for peer, _ in others}
    for _ in range(4 if quick else 10):
        with kernel() as ours:
            loads.append(ours.run("%load_ext copilot_nb"))
            time.sleep(1.0)  # a person writes a prompt; meanwhile the kernel brings in the rest
            firsts.append(ours.run("%%copilot\nhello"))
            ours.settle()
        with kernel() as ours:  # nobody waits: "Run All"
            load, first = ours.run("%load_ext copilot_nb"), ours.run("%%copilot\nhello")
            both.append(Cost(load.cpu + first.cpu, load.wall + first.wall))
            ours.settle()
        for peer, code in others:
            with kernel(str(peer.python())) as theirs:
                found[peer.name].append(theirs.run(code))
    for costs in (loads, firsts, both, *found.values()):
        del costs[0]  # it compiled the modules and filled the disk's cache
    for measure in ("cpu", "wall"):
        mine = [getattr(cost, measure) for cost in loads]
        yield table.value_row("%load_ext copilot_nb", mine, 150, "ms", measure=measure)
        first = [getattr(cost, measure) for cost in firsts]
        yield table.value_row("first %%copilot cell", first, 50, "ms", measure=measure)
        at_once = [getattr(cost, measure) for cost in both]
        yield table.value_row("%load_ext and first cell at once", at_once, 200, "ms", measure=measure)
        for peer, code in others:
            theirs_ = [getattr(cost, measure) for cost in found[peer.name]]
            goal = 5.0 if peer is JUPYTER_AI else None
            yield table.rival_row(
                "%load_ext copilot_nb", code, mine, theirs_, goal, unit="ms", measure=measure
            )


_OTHERS = ((JUPYTER_AI, "%load_ext jupyter_ai_magic_commands"), (COPILOT, "import copilot"))


def _can_run(peer: Any, skipped: dict[str, str]) -> bool:
    if peer.python() is None:
        skipped[f"{peer.name}, loading"] = "not installed: run --setup"
    return peer.python() is not None


def memory(quick: bool, base_url: str) -> Iterable[Row]:
    """What a run leaves in the kernel, above a kernel with ipywidgets."""
    cells = {
        "demo model": "%%copilot\nhello",
        "openai model": f"%%copilot -m openai:n3 --base-url {base_url}\ngo",
    }
    for model, cell in cells.items():
        added = []
        for _ in range(2 if quick else 5):
            with kernel() as bare:
                bare.run("import ipywidgets")
                without = bare.memory()
            with kernel() as used:
                used.run("import ipywidgets")
                used.run("%load_ext copilot_nb")
                used.run(cell)
                used.settle()
                used.run("1 + 1")
                added.append(used.memory() - without)
        yield table.value_row("memory after one run", added, 45, "MB", measure="memory", note=model)
