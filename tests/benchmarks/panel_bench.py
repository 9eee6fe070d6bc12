"""How quick the panel is, in a real JupyterLab and Chromium: ``python tests/benchmarks/panel_bench.py``.

`rows` gives the figures as dicts; frames are told beside those of an empty page at the same moment.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent / "browser")]

from labdrive import Browser, LabPage, LabServer  # noqa: E402

#: in the kernel: a source of events without any engine, so that only the panel's own work differs
KERNEL = """
import asyncio, sys, time
from copilot_nb.events import EventSource
from copilot_nb.state import SessionState
from copilot_nb.widgets.panel import Panel

class Feed:
    id = runtime_name = model_label = "bench"
    model_kind, closed, log = "scripted", False, None
    def __init__(self):
        self.state, self.handlers, self.source = SessionState(), [], EventSource()
        self.loop = asyncio.get_running_loop()
    def on(self, handler):
        self.handlers.append(handler)
        return lambda: self.handlers.remove(handler)
    def emit(self, event):
        self.state.apply(event)
        for handler in self.handlers:
            handler(event)
    async def run(self, count, rate):
        stored, ephemeral = self.source.stored, self.source.ephemeral
        message = {"content": "go", "delivery": "idle", "messageId": str(time.time_ns())}
        self.emit(stored("user.message", message))
        self.emit(stored("assistant.turn_start", {"turnId": "0"}))
        began, cpu, n = time.perf_counter(), time.process_time(), 0
        while n < count:
            due = min(count, int((time.perf_counter() - began) * rate) + 1)
            while n < due:
                delta = {"messageId": "m", "deltaContent": "token%05d " % n}
                self.emit(ephemeral("assistant.message_delta", delta))
                n += 1
            await asyncio.sleep(0.001)
        self.cpu, self.took = time.process_time() - cpu, time.perf_counter() - began
        self.emit(ephemeral("assistant.message_delta", {"messageId": "m", "deltaContent": "END"}))
        self.ended = time.time()
        text = "".join(self.state.turn.text)
        await asyncio.sleep(0.5)
        self.emit(stored("assistant.message", {"messageId": "m", "content": text, "toolRequests": []}))
        self.emit(stored("assistant.turn_end", {"turnId": "0"}))
        self.emit(ephemeral("session.idle", {"mode": "interactive"}))
"""

#: on the page: when a text is first seen, looked for at every frame
SEEN = """
([selector, text]) => new Promise(done => {
  const look = () => {
    const el = [...document.querySelectorAll(selector)].at(-1);
    if (el && (!text || el.textContent.includes(text))) requestAnimationFrame(() => done(Date.now() / 1000));
    else requestAnimationFrame(look);
  };
  look();
})
"""

FRAMES = """
seconds => new Promise(done => {
  let n = 0; const began = performance.now();
  const count = () => {
    n += 1; const t = (performance.now() - began) / 1000;
    if (t < seconds) requestAnimationFrame(count); else done(n / t);
  };
  requestAnimationFrame(count);
})
"""

SCROLL = """
([selector, seconds]) => new Promise(done => {
  const el = document.querySelector(selector); let n = 0; const began = performance.now();
  const step = () => {
    n += 1; const t = (performance.now() - began) / 1000;
    el.scrollTop = (el.scrollHeight - el.clientHeight) * (0.5 + 0.48 * Math.sin(t * 0.9));
    if (t < seconds) requestAnimationFrame(step); else done(n / t);
  };
  requestAnimationFrame(step);
})
"""

PAN = """
seconds => new Promise(done => {
  const el = document.querySelector('.cnb-tl-plot'); let n = 0; const began = performance.now();
  const step = () => {
    n += 1; const t = (performance.now() - began) / 1000;
    const deltaX = 14 * Math.sign(Math.cos(t));
    el.dispatchEvent(new WheelEvent('wheel', { deltaX, bubbles: true, cancelable: true }));
    if (t < seconds) requestAnimationFrame(step); else done(n / t);
  };
  requestAnimationFrame(step);
})
"""


def streaming(page: LabPage, quick: bool) -> list[dict[str, Any]]:
    """20,000 deltas at 2,000 a second: whole, small, soon; and what the panel costs the kernel."""
    count, passes = (6_000, 2) if quick else (20_000, 5)
    page.execute(KERNEL)
    lags, bytes_, with_panel, without = [], [], [], []
    whole = True
    for _ in range(passes):
        cell = page.execute("feed = Feed()\npanel = Panel(feed)\npanel")
        page.panel(cell).wait_for()
        page.page.wait_for_timeout(500)
        before = page.sockets()["rx"]
        page.silently(f"task = asyncio.get_running_loop().create_task(feed.run({count}, 2000))")
        seen = page.js(SEEN, [".cnb-md", "END"])
        page.page.wait_for_timeout(1200)
        bytes_.append(page.sockets()["rx"] - before)
        ended, cpu = json.loads(page.silently("import json; print(json.dumps([feed.ended, feed.cpu]))"))
        lags.append(1000 * (seen - ended))
        with_panel.append(cpu)
        shown = page.panel(cell).locator(".cnb-md").last.text_content() or ""
        whole &= shown.strip() == "".join(f"token{n:05d} " for n in range(count)) + "END"
        page.silently("panel.close(); bare = Feed()")
        page.silently(f"task = asyncio.get_running_loop().create_task(bare.run({count}, 2000))")
        page.page.wait_for_timeout(int(count / 2) + 1200)
        without.append(json.loads(page.silently("print(bare.cpu)")))
    micro = 1e6 * (statistics.median(with_panel) - statistics.median(without)) / count
    size = statistics.median(bytes_) / 1e6
    lag = statistics.median(lags)
    limit = 1.2 * count / 20_000
    each = [round(value) for value in lags]
    return [
        row("20,000 deltas: every character", f"{'all' if whole else 'NOT all'} of {count}", "all", whole),
        row("20,000 deltas: on the socket", f"{size:.2f} MB", f"≤ {limit:.2f} MB", size <= limit),
        row("20,000 deltas: lag of the last", f"{lag:.0f} ms", "≤ 150 ms", lag <= 150, f"each: {each}"),
        row("kernel CPU per delta", f"{micro:.1f} µs", "≤ 12 µs", micro <= 12),
    ]  # fmt: skip


def opening(page: LabPage, folder: Path, quick: bool) -> list[dict[str, Any]]:
    """A log that the kernel has read: when is its first picture there, and how smoothly does it move?"""
    found = []
    sizes = [(1_000, "turns", 0.5), (10_000, "turns", 1.0)]
    if not quick:
        sizes.append((1_000_000, "events", 1.5))
    for count, unit, goal in sizes:
        path = folder / f"{count}-{unit}.jsonl"
        page.silently(
            f"import sys; sys.path.insert(0, {str(HERE)!r}); import panel_bench\n"
            f"panel_bench.write({str(path)!r}, {count}, {unit!r})"
        )
        page.execute(
            f"import copilot_nb.widgets.log_view as lv, time\nlog = lv.read_log({str(path)!r})\nlog.refresh()"
        )
        times = []
        for _ in range(1 if quick else 3):
            cell = page.add("began = time.time()\nview = lv.LogView(log)\npanel = view.panel()\npanel")
            page.run(cell, wait=False)
            seen = page.js(SEEN, [f".jp-Notebook .jp-Cell:nth-of-type({cell + 1}) .cnb-turn, .cnb-turn", ""])
            page.page.wait_for_timeout(800)
            times.append(seen - float(page.silently("print(began)")))
            if len(times) < (1 if quick else 3):
                page.silently("panel.close()")
                page.js(
                    "i => window.jupyterapp.shell.currentWidget.content.widgets[i].outputArea.model.clear()",
                    cell,
                )
        took = statistics.median(times)
        found.append(row(f"opening {count:,} {unit}", f"{took:.2f} s", f"≤ {goal} s", took <= goal))
        page.page.wait_for_timeout(6_000 if count > 100_000 else 500)
        found += moving(page, cell, f"{count:,} {unit}", 45 if count <= 10_000 else 30)
        page.silently("panel.close()")
        page.js(
            "i => window.jupyterapp.shell.currentWidget.content.widgets[i].outputArea.model.clear()", cell
        )
    return found


def moving(page: LabPage, cell: int, what: str, goal: int) -> list[dict[str, Any]]:
    """Frames a second while the table scrolls and the timeline moves; an empty page's beside it."""
    panel = page.panel(cell)
    empty = page.browser.context.new_page()
    still = empty.evaluate(FRAMES, 2)
    empty.close()
    page.page.bring_to_front()
    panel.get_by_role("tab", name="Events").click()
    page.page.wait_for_selector(".cnb-ev-row .c-type")
    page.page.wait_for_timeout(1500)
    table = page.js(SCROLL, [".cnb-ev-scroll", 4])
    panel.get_by_role("tab", name="Timeline").click()
    page.page.wait_for_selector(".cnb-tl-plot svg")
    page.page.wait_for_timeout(1000)
    for _ in range(6):
        panel.get_by_role("button", name="Zoom in").click()
    page.page.wait_for_timeout(800)
    time_ = page.js(PAN, 4)
    detail = f"an empty page: {still:.0f}"
    return [
        row(f"scrolling the table, {what}", f"{table:.0f} frames/s", f"≥ {goal}", table >= goal, detail),
        row(f"moving the timeline, {what}", f"{time_:.0f} frames/s", f"≥ {goal}", time_ >= goal, detail),
    ]


def write(path: str, count: int, unit: str) -> None:
    """A log of so many turns or events, in the real shapes."""
    from copilot_nb.events import EventSource, to_line

    source = EventSource()
    words = [
        "def",
        "return",
        "frame",
        "column",
        "error",
        "value",
        "index",
        "loop",
        "self",
        "data",
        "plot",
        "mean",
    ]
    text = " ".join(words * 12)
    made = 0
    clock = 1_764_500_000.0
    with Path(path).open("wb", buffering=1 << 20) as file:

        def emit(type: str, **data: Any) -> None:
            nonlocal made, clock
            clock += 0.15
            event = source.stored(type, data)
            second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(clock))
            line = to_line(event)
            start = line.index(b'"timestamp":"') + 13
            stop = line.index(b'"', start)
            file.write(line[:start] + f"{second}.{int(clock % 1 * 1e6):06d}Z".encode() + line[stop:])
            made += 1

        emit(
            "session.start",
            sessionId="bench",
            version=1,
            producer="copilot_nb",
            copilotVersion="0",
            startTime="x",
        )
        turn = 0
        while (turn if unit == "turns" else made) < count:
            emit("user.message", content=text[:80], delivery="idle", messageId=f"m{turn}", turnId="0")
            for k in range(8):
                emit("assistant.turn_start", turnId=str(k), interactionId=f"i{turn}")
                emit(
                    "session.usage_record",
                    usage={
                        "apiCallId": f"a{turn}",
                        "inputTokens": 4000 + turn % 9000,
                        "outputTokens": 120,
                        "timeToFirstTokenMs": 40,
                    },
                )
                emit(
                    "assistant.message",
                    messageId=f"x{turn}",
                    content=text[: 40 + turn % 300],
                    toolRequests=[],
                    turnId=str(k),
                )
                for c in range(turn % 3):
                    emit(
                        "tool.execution_start",
                        toolCallId=f"c{turn}-{c}",
                        toolName="python",
                        arguments={"code": text[:60]},
                        turnId=str(k),
                    )
                for c in range(turn % 3):
                    emit(
                        "tool.execution_complete",
                        toolCallId=f"c{turn}-{c}",
                        success=turn % 40 != 0,
                        result={"content": text[: turn % 900]},
                        turnId=str(k),
                    )
                emit("assistant.turn_end", turnId=str(k))
                turn += 1


def row(name: str, value: str, goal: str, reached: bool, detail: str = "") -> dict[str, Any]:
    """One line of the table of figures."""
    return {
        "name": f"panel: {name}",
        "peer": value,
        "ratio": None,
        "goal": goal,
        "reached": reached,
        "detail": detail,
    }


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """All figures of the panel."""
    with (
        tempfile.TemporaryDirectory() as books,
        LabServer(Path(books)) as server,
        Browser(1200, 1000) as browser,
    ):
        page = browser.open(server, "bench.ipynb", [f"import sys; sys.path.insert(0, {str(ROOT)!r})"])
        page.run(0)
        return [*streaming(page, quick), *opening(page, Path(books), quick)]


if __name__ == "__main__":
    for one in rows("--quick" in sys.argv):
        mark = "yes" if one["reached"] else "NO "
        print(f"{mark} {one['name']:52} {one['peer']:16} {one['goal']:12} {one['detail']}", flush=True)
