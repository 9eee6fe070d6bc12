"""Fixtures: one server and one Chromium for all tests; no page may end with an error in its console."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from labdrive import Browser, LabPage, LabServer, chromium

AXE = "4.10.3"
HERE = str(Path(__file__).parent)
SETUP = f"import sys; sys.path.insert(0, {HERE!r})\n%load_ext copilot_nb\nimport held, scene, copilot_nb"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(HERE) in item.path.parents:
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="session")
def server(folder):
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    with LabServer(folder) as running:
        yield running


@pytest.fixture(scope="session")
def browser():
    try:
        running = Browser(1100, 1000)
    except Exception as error:
        pytest.skip(
            f"no Chromium can be started ({chromium() or 'run: playwright install chromium'}): {error}"
        )
    with running:
        yield running


class Notebook(LabPage):
    """A page with the words of these tests."""

    def events(self, session: str = "held") -> list[dict]:
        """The session's log on disk."""
        path = self.server.copilot_home / "session-state" / session / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def of(self, kind: str, session: str = "held") -> list[dict]:
        return [event["data"] for event in self.events(session) if event["type"] == kind]

    def ops(self, op: str, session: str = "held") -> list[dict]:
        """Changes of the lanes."""
        return [data for data in self.of("jupyter.queue", session) if data["op"] == op]

    def until(self, test, what: str = "", seconds: float = 30):
        """Wait until something is true; its value."""
        end = time.monotonic() + seconds
        while True:
            value = test()
            if value:
                return value
            if time.monotonic() > end:
                shown = self.page.locator(".cnb").all_inner_texts()
                seen = [text if len(text) < 2500 else f"{text[:500]} … {text[-2000:]}" for text in shown]
                raise AssertionError(f"never happened: {what or test}\n{seen}")
            self.page.wait_for_timeout(60)

    def show_panel(self, index: int):
        """The panel of a cell, once it is there."""
        panel = self.panel(index)
        panel.locator(".cnb-bar").wait_for()
        return panel

    def tab(self, panel, name: str):
        panel.get_by_role("tab", name=name).click()

    def type(self, panel, text: str, key: str = "Enter"):
        """Write in the box and press a key."""
        box = panel.get_by_role("textbox", name="Message", exact=True)
        box.fill(text)
        box.press(key)

    def let_go(self, name: str):
        assert not self.silently(f"held.gate({name!r}).set()")


@pytest.fixture(scope="session")
def of_the_application(server, browser):
    """What an application says by itself, on a notebook without anything of ours."""
    known: dict[str, set[str]] = {}

    def errors(app: str) -> set[str]:
        if app not in known:
            page = browser.open(server, f"empty-{app}.ipynb", ["1 + 1"], app=app)
            page.run(0)
            known[app] = set(page.errors)
            page.close()
        return known[app]

    return errors


@pytest.fixture(scope="session")
def axe():
    """``axe(page)``: serious violations in the panels of a page. axe-core comes from npm into the cache."""
    from venvs import CACHE

    npm = shutil.which("npm")
    script = CACHE / "npm" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        if npm is None:
            pytest.skip("npm is not installed: axe-core cannot be fetched")
        script.parents[2].mkdir(parents=True, exist_ok=True)
        where = ["--prefix", str(script.parents[2])]
        command = [npm, "install", "--silent", "--no-save", *where, f"axe-core@{AXE}"]
        result = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
        if not script.exists():
            pytest.skip(f"axe-core cannot be fetched: {result.stderr[-300:]}")
    code = script.read_text()

    def violations(page) -> list:
        if page.js("() => !window.axe"):
            page.js(code)
        return page.js(
            """async () => { const r = await axe.run('.cnb', { resultTypes: ['violations'] });
            return r.violations.filter(v => ['serious', 'critical'].includes(v.impact))
              .map(v => [v.id, v.nodes.slice(0, 3)
                .map(n => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? ''))]); }"""
        )

    return violations


@pytest.fixture
def notebook(server, browser, of_the_application):
    """Opens notebooks: ``notebook([cells], kernel=…, app="lab" | "notebooks")``."""
    pages: list[Notebook] = []

    def make(cells=(), kernel="python3", app="lab", name=None, setup=True, **more):
        name = name or f"n{time.monotonic_ns()}.ipynb"
        cells = [SETUP, *cells] if setup else list(cells)
        page = browser.open(server, name, cells, kernel=kernel, app=app, **more)
        page.__class__ = Notebook
        pages.append(page)
        if setup:
            page.run(0)
        return page

    yield make
    errors = [error for page in pages for error in page.errors if error not in of_the_application(page.app)]
    for page in pages:
        page.close()
    server.stop_kernels()
    for path in (server.copilot_home / "session-state").glob("*"):
        for file in sorted(path.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        path.rmdir()
    assert errors == []
