"""Notebooks that were saved: during a run and after it, opened with the same kernel, a new one, and none.

Field case 45: a dead widget, "model not found" or a bare repr in the place of what was said.
"""

from __future__ import annotations

import json
import subprocess
import sys

CELL = "%%copilot -s held\nWrite."
GATED = (
    "session = held.start([{'text': ['before ', 'after the end.'], 'gate_after_chunk': {'1': 'g'}}, 'Two.'])"
)
WIDGET = "application/vnd.jupyter.widget-view+json"
DEAD = ("model not found", "Error displaying widget", "Loading widget", "Panel(")


def html_of(path) -> str:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--stdout", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def strip(path) -> None:
    """As a notebook that lost its widget state, or never had it."""
    notebook = json.loads(path.read_text())
    notebook["metadata"].pop("widgets", None)
    path.write_text(json.dumps(notebook))


def reads_well(page, cell: int, words: str) -> None:
    page.shows(cell, words)
    assert not [word for word in DEAD if word in page.text(cell)]


def test_saved_after_the_run(notebook, server):
    """The record is what is saved: it reads the same with its kernel, a new one, none, and exported."""
    page = notebook([GATED.replace("'gate_after_chunk': {'1': 'g'}", ""), CELL])
    page.run(1)
    page.run(2)
    page.until(lambda: "after the end." in page.text(2) and not page.panel(2).count(), "the record")
    saved = page.save()
    assert WIDGET not in saved.cells[2].outputs[0]["data"]
    path = server.folder / page.name
    strip(path)
    page.close()
    opened = page.browser.open(server, page.name)  # its kernel runs on, and knows the widget no more
    reads_well(opened, 2, "after the end.")
    opened.close()
    server.stop_kernels()
    for wait_kernel in (True, False):
        opened = page.browser.open(server, page.name, wait_kernel=wait_kernel)
        reads_well(opened, 2, "after the end.")
        assert opened.errors == []
        opened.close()
    html = html_of(path)
    assert "after the end." in html and not [word for word in DEAD if word in html]


def test_closed_during_the_run(notebook, server):
    """The page is closed in mid-run and the run ends alone: opened again, the panel has all of it."""
    page = notebook([GATED, CELL])
    page.run(1)
    page.run(2)
    panel = page.show_panel(2)
    page.until(lambda: "before" in panel.inner_text(), "text")
    data = page.save().cells[2].outputs[0]["data"]
    assert {"text/html", "text/plain"} < set(data), "what cannot draw widgets has something to show"
    page.silently("session.runtime.config.model.gate('g').set()")
    page.close()
    opened = page.browser.open(server, page.name)
    reads_well(opened, 2, "before after the end.")
    opened.run(0)
    index = opened.execute("%copilot record")
    reads_well(opened, index, "after the end.")
    opened.close()
    assert opened.errors == []
    assert len(page.of("user.message")) == 1, "nothing was sent twice"
    html = html_of(server.folder / page.name)
    assert not [word for word in DEAD if word in html]


def test_a_kernel_that_restarts_in_mid_run(notebook):
    """The panel says that the kernel does not answer, keeps the text, and takes clicks without an error."""
    page = notebook([GATED, CELL])
    page.run(1)
    page.run(2)
    panel = page.show_panel(2)
    page.until(lambda: "before" in panel.inner_text(), "text")
    page.js(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
    )
    page.wait_idle()
    gone = panel.locator(".cnb-gone")
    page.until(gone.is_visible, "it says so")
    assert "does not answer" in gone.inner_text()
    assert "before" in panel.inner_text(), "and stays readable"
    for tab in ("Queue", "Timeline", "Events", "Conversation"):
        page.tab(panel, tab)
    panel.get_by_role("button", name="Stop the run").click()
    page.type(panel, "is anybody there?")
    page.page.wait_for_timeout(500)
    assert "before" in panel.inner_text()
    assert len(page.of("user.message")) == 1
    # the session goes on from its log, in a new panel
    page.run(0)
    again = page.execute("session = copilot_nb.open_session('demo', session_id='held')\nsession.panel()")
    page.until(lambda: "Write." in page.show_panel(again).inner_text(), "resumed")
