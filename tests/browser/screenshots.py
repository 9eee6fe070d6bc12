"""Makes the pictures of README and docs from a real run: ``python tests/browser/screenshots.py [folder]``.

Everything on them happened: the scene's tools ran, only the model's replies come from data, and the first
picture is the demo model's own run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import scene  # noqa: E402
from labdrive import Browser, LabPage, LabServer  # noqa: E402

PLAY = "import asyncio\ntask = asyncio.get_running_loop().create_task(scene.play(session))"
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
DATA = "\n".join(scene.SETUP.format(here=str(Path(__file__).parent)).splitlines())


def settle(page: LabPage, seconds: float = 0.8) -> None:
    page.page.wait_for_timeout(int(seconds * 1000))


def picture(page: LabPage, element, path: Path) -> None:
    """What is on the page where an element is now; a panel at work never stands still."""
    element.evaluate("element => element.scrollIntoView({ block: 'nearest' })")
    page.page.screenshot(path=path, clip=element.bounding_box())


def prepare(page: LabPage) -> None:
    if page.js("window.jupyterapp.shell.leftCollapsed") is False:
        page.command("application:toggle-left-area")
    page.page.add_style_tag(content=".jp-Toolbar, .jp-Notebook-footer { display: none !important; }")


def first_run(server: LabServer, browser: Browser, folder: Path) -> None:
    """The README's picture: the demo model at work in a cell, and the record it leaves."""
    page = browser.open(server, "first.ipynb", [DATA, "%%copilot\nLook at `sales` and report on it."])
    prepare(page)
    page.run(0)
    page.run(1)
    page.page.wait_for_function("document.querySelectorAll('.cnb-turn').length >= 3")
    page.page.locator(".cnb-tool-row").nth(1).wait_for()
    picture(page, page.panel(1), folder / "first-run.png")
    page.page.wait_for_selector(".cnb-record", timeout=60_000)
    page.page.set_viewport_size({"width": 980, "height": 1900})
    settle(page)
    picture(page, page.output(1).locator(".cnb-record"), folder / "record.png")
    page.close()


def tabs(server: LabServer, browser: Browser, folder: Path) -> None:
    """Each tab at the moment of the question, light, dark and narrow."""
    show = "session = scene.start()\npanel = session.panel()\npanel"
    page = browser.open(server, "tabs.ipynb", [DATA, show, PLAY])
    prepare(page)
    page.run(0)
    page.run(1)
    page.run(2)
    panel = page.panel(1)
    panel.locator(".cnb-perm").wait_for(timeout=90_000)
    settle(page, 2.5)

    def shot(name: str, tab: str) -> None:
        panel.get_by_role("tab", name=tab).click()
        settle(page, 1.5)
        picture(page, panel, folder / f"{name}.png")

    shot("permission", "Conversation")
    shot("timeline", "Timeline")
    shot("queue", "Queue")
    panel.get_by_role("tab", name="Events").click()
    settle(page, 1.2)
    for name in ("Session", "Lanes"):
        panel.locator(".cnb-chip.ev").filter(has_text=name).click()
    settle(page)
    panel.locator(".cnb-ev-row").filter(has_text="permission.requested").last.click()
    settle(page)
    shot("events", "Events")
    page.js(THEME, "JupyterLab Dark")
    settle(page, 1.5)
    shot("timeline-dark", "Timeline")
    shot("conversation-dark", "Conversation")
    page.js(THEME, "JupyterLab Light")
    settle(page)
    page.page.add_style_tag(content=".cnb { width: 380px; }")
    settle(page)
    shot("narrow", "Conversation")
    shot("timeline-narrow", "Timeline")
    shot("queue-narrow", "Queue")
    shot("events-narrow", "Events")
    page.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as books,
        LabServer(Path(books)) as server,
        Browser(980, 1000) as browser,
    ):
        first_run(server, browser, folder)
        tabs(server, browser, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "notebooks" / "images")
