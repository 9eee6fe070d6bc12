"""A real JupyterLab or Notebook 7 in a real Chromium, driven from tests.

with LabServer(folder) as server, Browser() as browser:
    page = browser.open(server, "x.ipynb", cells=["1 + 1"])
    page.run(0)
    page.text(0)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import sync_playwright

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
]

#: counts what goes over the sockets, and can lose messages on purpose: ``__drop(n)`` drops the next n deltas;
#: with ``__comms = {}`` also how many messages each widget gets
WATCH = """
(() => {
  const Socket = window.WebSocket;
  window.__ws = { rx: 0, n: 0, tx: 0, ntx: 0, dropped: 0 };
  window.__dropping = 0;
  window.__drop = n => { window.__dropping = n; };
  const size = d => typeof d === 'string' ? d.length : (d.byteLength || d.size || 0);
  const text = d => typeof d === 'string' ? d : new TextDecoder().decode(d);
  class Watched extends Socket {
    constructor(...a) {
      super(...a);
      this.addEventListener('message', e => {
        window.__ws.n++; window.__ws.rx += size(e.data);
        const words = window.__comms ? text(e.data) : '';
        const comm = words.includes('"comm_msg"') && /"comm_id": ?"([^"]+)"/.exec(words);
        if (comm) window.__comms[comm[1]] = (window.__comms[comm[1]] ?? 0) + 1;
        if (window.__dropping > 0 && /"kind": ?"d"/.test(text(e.data))) {
          window.__dropping--; window.__ws.dropped++; e.stopImmediatePropagation();
        }
      });
    }
    send(d) { window.__ws.ntx++; window.__ws.tx += size(d); return super.send(d); }
  }
  window.WebSocket = Watched;
})();
"""

APP = "window.jupyterapp"
NOTEBOOK = "window.jupyterapp.shell.currentWidget"
KERNEL = f"{NOTEBOOK}.sessionContext.session.kernel"

#: what other people's code says on a page without anything of ours being wrong
OTHERS = (
    "favicon",
    "WebSocket is already in CLOSING or CLOSED state",
    "Failed to load resource",
    "No provider for: @jupyter",
    "Connection lost, reconnecting",
    "[anywidget] Failed to initialize model",  # its own clock, on a busy machine: it comes later
)


def chromium() -> str | None:
    """The browser: `$CHROMIUM`, else Debian's, else Playwright's own (None)."""
    named = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return named


class LabServer:
    """A server with its own configuration; `folder` holds the notebooks."""

    def __init__(self, folder: Path, jupyter_path: Path | None = None) -> None:
        self.folder = folder
        self.home = Path(tempfile.mkdtemp(prefix="jupyter-"))
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        env = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(self.home / "config"),
            "JUPYTER_DATA_DIR": str(self.home / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.home / "runtime"),
            "IPYTHONDIR": str(self.home / "ipython"),
            "COPILOT_HOME": str(self.home / "copilot"),
            "HOME": str(self.home),
        }
        env.pop("COPILOT_NB_WAIT", None)
        if jupyter_path is not None:
            env["JUPYTER_PATH"] = str(jupyter_path)
        self.copilot_home = self.home / "copilot"
        (self.home / "config" / "labconfig").mkdir(parents=True)
        off = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (self.home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(off))
        self.log = (self.home / "server.log").open("w")
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyter",
                "lab",
                "--no-browser",
                "--allow-root",
                "--ip=127.0.0.1",
                f"--port={self.port}",
                "--IdentityProvider.token=",
                "--ServerApp.password=",
                f"--ServerApp.root_dir={folder}",
                "--ServerApp.disable_check_xsrf=True",
                "--LabApp.expose_app_in_browser=True",
                "--JupyterNotebookApp.expose_app_in_browser=True",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
                "--LabApp.news_url=",
            ],
            env=env,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        deadline = time.monotonic() + 90
        while True:
            try:
                self.get("/api/status")
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError((self.home / "server.log").read_text()) from None
                time.sleep(0.2)

    def get(self, path: str, method: str = "GET"):
        request = urllib.request.Request(self.url + path, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def stop_kernels(self) -> None:
        """End every session and kernel of this server."""
        for session in self.get("/api/sessions"):
            with contextlib.suppress(urllib.error.URLError):
                self.get(f"/api/sessions/{session['id']}", "DELETE")
        for kernel in self.get("/api/kernels"):
            with contextlib.suppress(urllib.error.URLError):
                self.get(f"/api/kernels/{kernel['id']}", "DELETE")

    def __enter__(self) -> LabServer:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, urllib.error.URLError):
            self.stop_kernels()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


class Browser:
    """One Chromium; each `open` makes a page of its own."""

    def __init__(self, width: int = 1280, height: int = 1000, **context: object) -> None:
        self.playwright = sync_playwright().start()
        self.chrome = self.playwright.chromium.launch(executable_path=chromium(), args=ARGS)
        self.size = {"width": width, "height": height}
        self.context = self.new_context(**context)

    def new_context(self, **options: object):
        context = self.chrome.new_context(viewport=self.size, **options)
        context.add_init_script(WATCH)
        return context

    def open(
        self,
        server: LabServer,
        name: str,
        cells: list[str] | None = None,
        kernel: str = "python3",
        app: str = "lab",
        wait_kernel: bool = True,
    ) -> LabPage:
        """Open a notebook in Lab (``lab``) or Notebook 7 (``notebooks``); `cells` writes it first."""
        if cells is not None:
            write_notebook(server.folder / name, cells, kernel)
        page = self.context.new_page()
        page.set_default_timeout(60_000)
        lab = LabPage(self, server, page, name, app)
        page.on("console", lab.heard)
        page.on("pageerror", lab.failed)
        where = f"lab/tree/{name}?reset" if app == "lab" else f"notebooks/{name}"
        page.goto(f"{server.url}/{where}")
        lab.ready(wait_kernel)
        return lab

    def close(self) -> None:
        self.chrome.close()
        self.playwright.stop()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_notebook(path: Path, cells: list[str], kernel: str = "python3") -> None:
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    metadata = {"kernelspec": spec, "language_info": {"name": "python"}}
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells], metadata=metadata), path)


class LabPage:
    """A notebook in a page."""

    def __init__(self, browser: Browser, server: LabServer, page, name: str, app: str) -> None:
        self.browser, self.server, self.page, self.name, self.app = browser, server, page, name, app
        self.errors: list[str] = []

    def heard(self, message) -> None:
        """Keep what the console says that could be ours."""
        if message.type == "error" and not any(word in message.text for word in OTHERS):
            self.errors.append(f"{message.text} {message.location.get('url', '')}"[:600])

    def failed(self, error) -> None:
        """An exception on the page that nobody caught."""
        if not any(word in str(error) for word in OTHERS):
            self.errors.append(f"pageerror: {error}"[:600])

    def ready(self, kernel: bool = True) -> None:
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.page.wait_for_function(
            f"{APP} && {NOTEBOOK} && {NOTEBOOK}.content && {NOTEBOOK}.content.widgets"
        )
        if kernel:
            self.page.wait_for_function(
                f"(() => {{ const k = {NOTEBOOK}.sessionContext?.session?.kernel;"
                " return k && k.connectionStatus === 'connected' && k.status === 'idle'; })()"
            )

    def js(self, code: str, argument: object = None):
        return self.page.evaluate(code, argument)

    def command(self, name: str, wait: bool = True):
        return self.js(f"{'' if wait else 'void '}{APP}.commands.execute('{name}')")

    def select(self, index: int) -> None:
        self.js(f"i => {{ const c = {NOTEBOOK}.content; c.deselectAll(); c.activeCellIndex = i; }}", index)

    def run(self, index: int, wait: bool = True) -> None:
        """Run a cell; `wait` until its reply came."""
        self.select(index)
        self.command("notebook:run-cell", wait)

    def add(self, source: str) -> int:
        """Append a cell; its index."""
        count = self.js(f"{NOTEBOOK}.content.widgets.length")
        self.select(count - 1)
        self.command("notebook:insert-cell-below")
        self.js(f"([i, s]) => {NOTEBOOK}.content.widgets[i].model.sharedModel.setSource(s)", [count, source])
        return count

    def execute(self, source: str, wait: bool = True) -> int:
        """Append a cell and run it."""
        index = self.add(source)
        self.run(index, wait)
        return index

    def silently(self, code: str) -> str:
        """Run code in the notebook's kernel beside its cells; what it printed."""
        return self.js(
            f"""async code => {{ let out = '';
            const f = {KERNEL}.requestExecute({{ code, store_history: false }});
            f.onIOPub = m => {{ if (m.header.msg_type === 'stream') out += m.content.text;
              if (m.header.msg_type === 'error') out += m.content.ename + ': ' + m.content.evalue; }};
            await f.done; return out; }}""",
            code,
        )

    def wait_idle(self, seconds: float = 60) -> None:
        self.page.wait_for_function(f"{KERNEL}.status === 'idle'", timeout=seconds * 1000)

    def cell(self, index: int):
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int):
        return self.cell(index).locator(".jp-Cell-outputArea")

    def panel(self, index: int = 0):
        """The panel in a cell's output."""
        return self.output(index).locator(".cnb")

    def text(self, index: int) -> str:
        return self.output(index).inner_text(timeout=20_000)

    def shows(self, index: int, words: str) -> None:
        """Wait until a cell shows these words: a page that was just opened draws its cells one by one."""
        self.page.wait_for_function(
            "([n, words]) => document.querySelectorAll('.jp-Notebook .jp-Cell')[n]"
            "?.innerText.includes(words)",
            arg=[index, words],
        )

    def save(self):
        self.command("docmanager:save")
        return nbformat.read(self.server.folder / self.name, 4)

    def sockets(self) -> dict:
        return self.js("({...window.__ws})")

    def reload(self, wait_kernel: bool = True) -> None:
        self.page.reload()
        self.ready(wait_kernel)

    def close(self) -> None:
        self.page.close()
