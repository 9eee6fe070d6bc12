"""The documentation's notebooks run as the README says, and hold what they promise (issue 2, Must show 1)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from kernels import own_kernelspec

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def execute(name, home):
    """The README's headless command on a copy of the notebook; the saved result."""
    path = home / name
    path.write_text((NOTEBOOKS / name).read_text())
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("COPILOT_", "OPENAI_", "JUPYTER_"))}
    folders = {"HOME": home, "IPYTHONDIR": home / "ipython", "JUPYTER_PATH": own_kernelspec(home)}
    env = keep | {key: str(value) for key, value in folders.items()}
    command = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--startup_timeout=180", str(path)]
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def shown(cells, start):
    """The text of the outputs of the cell that starts so."""
    cell = next(cell for cell in cells if cell.source.startswith(start))
    parts = [
        o.get("text") or o.get("data", {}).get("text/plain") or o.get("evalue") or "" for o in cell.outputs
    ]
    return "\n".join(parts)


def test_quickstart(tmp_path):
    cells = execute("01_quickstart.ipynb", tmp_path)
    record = shown(cells, "%%copilot")
    assert "demo model, no LLM" in record
    runs = re.split(r"^Run \d", record, flags=re.M)[1:]
    assert len(runs) == 3
    assert "You steered: use the median" in runs[0]  # the steer changed the run that was going on …
    assert "median 12.25" in runs[0] and "mean" not in runs[0].split("**`sales`**")[1]
    assert "You: only the column price" in runs[1]  # … and the queue ran in order after it
    assert "You: stop after the summary" in runs[2]
    deliveries = re.findall(r"\b(idle|steering|queued)\b", shown(cells, "import copilot_nb"))
    assert deliveries == ["idle", "steering", "queued", "queued"]
    medians = dict(re.findall(r"^(\w+) +([\d.]+)$", shown(cells, "print(session"), re.M))
    assert medians == {"north": "12.0", "south": "13.0", "west": "11.0"}
    said = dict(re.findall(r"^\| (\w+) \| ([\d.]+) \|", runs[0], re.M))
    assert {region: float(value) for region, value in said.items()} == {"north": 12, "south": 13, "west": 11}
    turns = int(re.search(r"holds (\d+) turns", shown(cells, "text = session")).group(1))
    assert turns == len(re.findall(r"^  Turn \d", record, re.M))
    table = shown(cells, "session.turns()")
    assert len(re.findall(r"completed", table)) == turns


@pytest.mark.parametrize("name", ["05_how_it_behaves.ipynb"])
def test_other_pages_run(name, tmp_path):
    for cell in execute(name, tmp_path):
        assert not any(output.output_type == "error" for output in cell.outputs)
