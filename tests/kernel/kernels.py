"""A real kernel of a chosen ipykernel version, driven as a front end drives it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

import venvs
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager


@dataclass
class Cell:
    """What one executed cell left behind; outputs that arrive later for it are added, too."""

    msg_id: str
    status: str = "pending"
    seconds: float = 0.0
    error: dict[str, Any] | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def stdout(self) -> str:
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        return self._stream("stderr")

    @property
    def text(self) -> str:
        """Everything a reader of the saved notebook can see as plain text."""
        bundles = [o["data"].get("text/plain", "") for o in self.outputs if "data" in o]
        return "\n".join([self.stdout, self.stderr, *bundles])

    @property
    def html(self) -> str:
        return "\n".join(o["data"].get("text/html", "") for o in self.outputs if "data" in o)

    def _stream(self, name: str) -> str:
        return "".join(o["text"] for o in self.outputs if o.get("name") == name)


class Kernel:
    """``with Kernel("6.29.5", home) as k: k.run("1 + 1")``."""

    def __init__(self, version: str, home: Path, *, allow_stdin: bool = True, **env: str) -> None:
        self.home = home
        python = str(venvs.python(version))
        self.manager = KernelManager()
        argv = [python, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager._kernel_spec = KernelSpec(argv=argv, display_name=version, language="python")
        folders = {"HOME": home, "IPYTHONDIR": home / "ipython", "COPILOT_HOME": home / "copilot"}
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("COPILOT_", "OPENAI_", "JUPYTER_"))}
        self.env = {
            **keep,
            **{k: str(v) for k, v in folders.items()},
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            **env,
        }
        self.allow_stdin = allow_stdin
        self.cells: dict[str, Cell] = {}
        self.displays: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Kernel:
        self.manager.start_kernel(env=self.env, cwd=str(self.home))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=180)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    # --- cells -------------------------------------------------------------------------------------

    def start(self, code: str) -> Cell:
        """Send a cell without waiting for it."""
        msg_id = self.client.execute(code, allow_stdin=self.allow_stdin)
        cell = self.cells[msg_id] = Cell(msg_id)
        return cell

    def run(self, code: str, timeout: float = 60) -> Cell:
        """Execute a cell and collect its outputs; `seconds` is the time to its reply."""
        began = time.monotonic()
        cell = self.start(code)
        self.finish(cell, timeout)
        cell.seconds = time.monotonic() - began
        return cell

    def ok(self, code: str, timeout: float = 60) -> Cell:
        """Like `run`, for a cell that must succeed."""
        cell = self.run(code, timeout)
        assert cell.status == "ok", f"{code}\n{cell.error or cell.text}"
        return cell

    def value(self, expression: str) -> Any:
        """The value of an expression whose repr is a Python literal."""
        import ast

        cell = self.run(expression)
        assert cell.status == "ok", cell.error
        return ast.literal_eval(cell.outputs[-1]["data"]["text/plain"])

    def finish(self, cell: Cell, timeout: float = 60) -> dict[str, Any]:
        """Wait for the reply of a started cell; other cells' replies on the way are noted."""
        end = time.monotonic() + timeout
        while True:
            reply = self.client.get_shell_msg(timeout=max(0.1, end - time.monotonic()))
            found = self.cells.get(reply["parent_header"].get("msg_id", ""))
            if found is not None:
                found.status = reply["content"]["status"]
            if found is cell:
                self._listen(cell, 20)
                return reply["content"]

    def until(self, expression: str, timeout: float = 30) -> None:
        """Evaluate an expression between cells until it is true."""
        end = time.monotonic() + timeout
        while True:
            msg_id = self.client.execute(
                "", silent=True, store_history=False, user_expressions={"x": expression}
            )
            asked = self.cells[msg_id] = Cell(msg_id)
            found = self.finish(asked)["user_expressions"]["x"]
            if found["status"] == "ok" and found["data"]["text/plain"] == "True":
                return
            assert time.monotonic() < end, f"{expression} did not become true: {found}"
            time.sleep(0.05)

    def listen(self, seconds: float) -> None:
        """Take in what the kernel sends by itself."""
        self._listen(None, seconds)

    def interrupt(self) -> None:
        """What the front end's stop button does."""
        self.manager.interrupt_kernel()

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer does it."""
        os.kill(self.pid, signal.SIGKILL)

    @property
    def pid(self) -> int:
        return self.manager.provisioner.process.pid

    # --- messages ----------------------------------------------------------------------------------

    def _listen(self, cell: Cell | None, seconds: float) -> None:
        """Take in messages until the cell's `idle`, or for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                message = self.client.get_iopub_msg(timeout=left)
            except Empty:
                break
            self._take(message)
            idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            if cell is not None and idle and message["parent_header"].get("msg_id") == cell.msg_id:
                return
        assert cell is None, "the kernel did not become idle"

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "update_display_data":
            target = self.displays.get(content["transient"]["display_id"])
            if target is not None:
                target["data"] = content["data"]
            return
        cell = self.cells.get(message["parent_header"].get("msg_id", ""))
        if cell is None:
            return
        if kind == "error":
            cell.error = content
        elif kind in ("stream", "display_data", "execute_result"):
            cell.outputs.append(content)
            display_id = content.get("transient", {}).get("display_id")
            if display_id:
                self.displays[display_id] = content


def own_kernelspec(home: Path) -> Path:
    """A folder for `JUPYTER_PATH` whose ``python3`` kernel is the interpreter that runs the tests."""
    folder = home / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    return home / "jupyter"
