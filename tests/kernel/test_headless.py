"""Notebooks without a person: nbclient, `jupyter execute` (jupyter facts Q1, Q4; field case M14)."""

import os
import subprocess
import sys

import nbformat
import pytest
import venvs
from nbformat.v4 import new_code_cell, new_notebook
from test_steering import SESSION

VERSIONS = ["6.29.5", "7.4.0"]


def execute(version, home, cells):
    """Run the cells as `jupyter execute` does, and return the notebook that it saved."""
    venvs.needs_venv(version)
    path = home / "notebook.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in cells]), path)
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("COPILOT_", "OPENAI_", "JUPYTER_"))}
    folders = {"HOME": home, "IPYTHONDIR": home / "ipython", "JUPYTER_PATH": venvs.kernelspecs(version)}
    env = keep | {name: str(folder) for name, folder in folders.items()} | {"COPILOT_NB_DEMO_PACE": "0.2"}
    command = [
        sys.executable,
        "-m",
        "jupyter",
        "execute",
        "--inplace",
        "--startup_timeout=180",
        "--allow-errors",
        str(path),
    ]
    done = subprocess.run(
        [*command, f"--kernel_name=ipykernel-{version}"], env=env, cwd=home, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return nbformat.read(path, 4)


def text(cell):
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        parts += [
            output.get("text", ""),
            data.get("text/plain", ""),
            data.get("text/html", ""),
            output.get("evalue", ""),
        ]
    return "\n".join(parts)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_headless_cell_waits_and_keeps_its_answer(version, tmp_path):
    cells = [
        "%load_ext copilot_nb",
        SESSION + "gate.set()",
        "%%copilot\nstart",
        "print(session.state.last_answer)",
    ]
    saved = execute(version, tmp_path, cells)
    assert "the answer" in text(saved.cells[2])
    assert saved.cells[3].outputs[0]["text"] == "the answer\n"
    assert all("widget-view" not in kind for o in saved.cells[2].outputs for kind in o.get("data", {}))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_waiting_cell_completes_the_outputs_of_earlier_cells(version, tmp_path):
    cells = [
        "%load_ext copilot_nb",
        SESSION,
        "%%copilot --no-wait\nstart",
        "%steer use the median",
        "%enqueue next",
        "gate.set()",
        "%copilot wait",
    ]
    saved = execute(version, tmp_path, cells)
    shown = text(saved.cells[2])
    assert "the answer" in shown and "use the median" in shown
    assert len(saved.cells[2].outputs) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_can_be_asked_headless(version, tmp_path):
    """The answer is no, with an event that says why; nothing hangs."""
    cells = ["%load_ext copilot_nb", SESSION.replace('allow=["hold"]', "allow=[]"), "%%copilot\nstart"]
    cells.append("print([e.data['result'] for e in events('permission.completed')])")
    saved = execute(version, tmp_path, cells)
    assert "could-not-request-from-user" in saved.cells[3].outputs[0]["text"]


def test_the_environment_can_ask_for_waiting_too(start):
    kernel = start("7.4.0", COPILOT_NB_WAIT="1")
    kernel.ok("%load_ext copilot_nb")
    kernel.ok(SESSION + "gate.set()")
    kernel.ok("%%copilot\nstart")
    assert kernel.value("session.state.last_answer") == "the answer"
