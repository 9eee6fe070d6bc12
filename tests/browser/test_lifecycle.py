"""A run on a page that is reloaded, looked at twice, re-run, restarted, saved and opened again.

Field cases 20 (clicks that are served late, or on another thread), 21 and 22 (output in the wrong cell),
45 (dead widgets in saved notebooks).
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from venvs import VERSIONS, kernelspecs, needs_venv

START = "session = held.start([held.streaming(350), 'Steered.', 'Second run.'])"
GATED = """first = held.streaming(350) | {'gate_after_chunk': {'300': 'page'}}
session = held.start([first, 'Steered.', 'Second run.'])"""
CELL = "%%copilot -s held\nWrite a lot."


def test_stream_steer_save_reload_record_and_reopen(notebook, server):
    """Run 1: the text streams, a steer is sent, the page is reloaded in mid-run and shows the whole text;
    then the record is written anew. Run 2: saved, and opened again without a kernel."""
    page = notebook([GATED, CELL])
    page.run(1)
    page.run(2)
    panel = page.show_panel(2)
    page.until(lambda: "word0040" in panel.inner_text(), "text streams")
    page.type(panel, "mind the gap", "Control+Enter")
    page.until(lambda: page.ops("add") and page.ops("add")[0]["lane"] == "steering", "steered")
    page.save()
    page.reload()
    panel = page.show_panel(2)
    page.until(lambda: "word0100" in panel.inner_text(), "the new page has the text so far")
    page.silently("session.runtime.config.model.gate('page').set()")
    page.until(lambda: "Idle" in panel.inner_text(), "the run ends, seen from the new page", 60)
    text = panel.inner_text()
    assert all(f"word{n:04d}" in text for n in range(350)), "no word is lost"
    record = page.execute("%copilot record")
    page.until(lambda: "Steered." in page.text(record), "the record of the last run")
    assert page.of("user.message")[1]["content"] == "mind the gap"

    cell = page.execute("%%copilot -s held\nAnd again.")
    page.until(lambda: "Second run." in page.text(cell), "run 2")
    page.until(lambda: not page.output(cell).locator(".cnb").count(), "the record is there, without a widget")
    saved = page.save()
    data = saved.cells[cell].outputs[0]["data"]
    assert set(data) == {"text/html", "text/markdown", "text/plain"}
    assert len(data["text/html"].encode()) < 200_000
    page.close()
    server.stop_kernels()
    again = page.browser.open(server, page.name, app="lab", wait_kernel=False)
    again.shows(cell, "Second run.")
    assert "Second run." in again.text(cell), "in its output, without a kernel"
    assert "model not found" not in again.page.inner_text("body")
    again.close()
    html = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--stdout", str(server.folder / page.name)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "Second run." in html


def test_two_views_a_second_run_of_the_cell_and_a_restarted_kernel(notebook):
    """Both views of one panel show the same; a cell that is run again shows its own; a restart is said."""
    page = notebook(
        [START + "\npanel = session.panel()\npanel", "panel", "session.schedule(session.send('go'));"]
    )
    page.run(1)
    page.run(2)
    page.run(3)
    first, second = page.show_panel(1), page.show_panel(2)
    page.until(lambda: "word0030" in first.inner_text() and "word0030" in second.inner_text())
    page.type(second, "from the second view", "Control+Enter")
    page.until(lambda: "from the second view" in first.inner_text(), "seen in the first")
    page.run(1)
    third = page.show_panel(1)
    page.until(lambda: "Idle" in third.inner_text() and "Idle" in second.inner_text(), "both end", 60)
    assert "the end." in second.inner_text()
    page.js(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
    )
    page.wait_idle()
    page.until(lambda: second.locator(".cnb-gone").is_visible(), "it says that the kernel is gone")
    assert "the end." in second.inner_text(), "and stays readable"


def test_output_of_the_run_stays_in_its_cell(notebook):
    """21, 22: cells that print while a run goes on keep what is theirs, and get nothing of the run's."""
    page = notebook(
        [
            START,
            CELL,
            "import asyncio\nfor n in range(4):\n    print('mine', n)\n    await asyncio.sleep(0.2)",
        ]
    )
    page.run(1)
    page.run(2)
    page.run(3)
    assert page.text(3).split() == ["mine", "0", "mine", "1", "mine", "2", "mine", "3"]
    page.until(lambda: "the end." in page.text(2) and not page.panel(2).count(), "the record comes", 60)
    assert "word" not in page.text(3)


@pytest.fixture(scope="session")
def other_kernels(server):
    """The server offers kernels of other versions."""
    for version in VERSIONS:
        needs_venv(version)
    folder = kernelspecs(*VERSIONS) / "kernels"
    target = server.home / "data" / "kernels"
    target.mkdir(parents=True, exist_ok=True)
    for version in VERSIONS:
        (target / f"ipykernel-{version}").symlink_to(folder / f"ipykernel-{version}")


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "7.4.0"])
def test_other_kernels(notebook, other_kernels, version):
    """20: 6.29 serves clicks after the cell, 7.0 to 7.3 on a subshell's thread; nothing is lost."""
    page = notebook(
        [
            "session = held.start([{'text': ['Holding.'], 'tool_calls': held.calls('a') + "
            "held.calls('x.txt', tool='touch', key='path')}, 'Done.', 'Two.'])",
            "%%copilot -s held\nfirst",
        ],
        kernel=f"ipykernel-{version}",
    )
    assert page.silently("import ipykernel; print(ipykernel.__version__)").strip() == version
    page.run(1)
    page.run(2)
    panel = page.show_panel(2)
    card = panel.locator(".cnb-perm")
    page.until(lambda: card.count() == 1, "it asks")
    page.type(panel, "a steer", "Control+Enter")
    page.type(panel, "an item")
    page.until(lambda: len(page.ops("add")) == 2, "both are accepted")
    card.get_by_role("button", name="Allow once").click()
    page.until(lambda: page.of("permission.completed"), "allowed")
    page.let_go("a")
    page.until(lambda: [m["content"] for m in page.of("user.message")] == ["first", "a steer", "an item"])
    page.until(lambda: not page.panel(2).count() and "Two." in page.text(2), "the cell keeps the record")
    data = page.save().cells[2].outputs[0]["data"]
    assert "application/vnd.jupyter.widget-view+json" not in data
    assert json.dumps(data).count("Two.") >= 2
