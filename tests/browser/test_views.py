"""Timeline, event table, questions, safe text and reach for everybody."""

from __future__ import annotations

import pytest

SCENE = "session = scene.start(pace=0)\npanel = session.panel()\npanel"
PLAY = "import asyncio\ntask = asyncio.get_running_loop().create_task(scene.play(session))"
VARIABLES = """import pandas as pd
sales = clean = pd.DataFrame({'region': list('NSWE') * 4, 'price': range(16)})"""


@pytest.fixture
def played(notebook):
    """The whole scene, up to the question: five turns, tools in parallel, steers, a queue."""
    page = notebook([VARIABLES, SCENE, PLAY])
    page.run(1)
    page.run(2)
    panel = page.show_panel(2)
    page.run(3)
    done = "print(task.done() and not task.exception())"
    page.until(lambda: page.silently(done).strip() == "True", "played", 90)
    panel.locator(".cnb-perm").wait_for()
    return page, panel


def test_timeline_and_events(played):
    """The same session, seen as time and as rows: each leads to the other and to the conversation."""
    page, panel = played
    page.tab(panel, "Timeline")
    bars = panel.locator(".cnb-tl .bar")
    page.until(lambda: bars.count() > 10, "bars")
    row = lambda name: panel.locator(f".cnb-tl .bar.{name}").count()  # noqa: E731
    assert row("turn") == 4
    assert row("fail") == 1
    assert row("ask") == 1
    assert panel.locator(".cnb-tl .sent.steer.landed").count() == 1
    assert panel.locator(".cnb-tl .sent.queue.removed").count() == 1
    heights = "list => new Set(list.map(b => b.querySelector('rect').getAttribute('y'))).size"
    lanes = panel.locator(".cnb-tl .bar.ok").evaluate_all(heights)
    assert lanes >= 2, "calls in parallel lie side by side"
    # zoom, pan, keys
    before = panel.locator(".cnb-tl-over .ov-win").get_attribute("width")
    panel.get_by_role("button", name="Zoom in").click()
    page.until(lambda: panel.locator(".cnb-tl-over .ov-win").get_attribute("width") != before, "zoomed")
    panel.get_by_role("button", name="Fit all").click()
    panel.locator(".cnb-tl .bar.turn").first.focus()
    page.page.keyboard.press("ArrowRight")
    page.until(lambda: panel.locator(".cnb-tl-info b").inner_text() == "Turn 2", "the next turn by key")
    panel.locator(".cnb-tl .bar.fail").click()
    info = panel.locator(".cnb-tl-info")
    page.until(lambda: "AttributeError" in info.inner_text(), "details")
    panel.locator(".cnb-tl .bar.turn").nth(2).hover()
    page.until(lambda: panel.locator(".cnb-tip").is_visible(), "hover details")
    # to the conversation, and to the table
    panel.get_by_role("button", name="In conversation").click()
    page.until(lambda: panel.locator(".cnb-flash").count() == 1, "shown in the conversation")
    page.tab(panel, "Timeline")
    panel.get_by_role("button", name="In events").click()
    selected = panel.locator(".cnb-ev-row.on")
    shown = lambda: selected.count() == 1 and "tool.execution_start" in selected.inner_text()  # noqa: E731
    page.until(shown, "shown in the table")


def test_event_table_sorts_filters_searches_and_hands_over(played):
    page, panel = played
    page.tab(panel, "Events")
    rows = panel.locator(".cnb-ev-space .cnb-ev-row")
    page.until(lambda: rows.count() > 5 and "…" not in rows.first.inner_text(), "rows")
    stored = len(page.events("sales-cleanup"))
    total = panel.locator(".cnb-ev-bar > .cnb-dim")
    page.until(lambda: total.inner_text().startswith(f"{stored} of"), "only stored events at first")
    panel.get_by_role("button", name="Ephemeral").click()
    page.until(lambda: " of " not in total.inner_text(), "all of them")
    panel.get_by_role("button", name="Ephemeral").click()
    for name in ("Messages", "Assistant", "Session", "Lanes", "Permission", "Other"):
        chip = panel.locator(".cnb-chip.ev").filter(has_text=name)
        if chip.is_visible():
            chip.click()
    ours = ("tool.", "external_tool.")
    tools = len([e for e in page.events("sales-cleanup") if e["type"].startswith(ours)])
    page.until(lambda: total.inner_text().startswith(f"{tools} of"), "only tools")
    panel.get_by_role("searchbox").fill("unit_price")
    page.until(lambda: 0 < int(total.inner_text().split()[0]) < tools, "searched")
    found = int(total.inner_text().split()[0])
    panel.get_by_role("button", name="As DataFrame").click()
    page.until(lambda: page.silently("print(len(events))").strip() == str(found), "as a variable")
    panel.get_by_role("searchbox").fill("")
    page.until(lambda: total.inner_text().startswith(f"{tools} of"))
    panel.get_by_role("button", name="Columns").click()
    panel.get_by_role("checkbox", name="ms").check()
    panel.get_by_role("button", name="Columns").click()
    panel.get_by_role("columnheader", name="ms").get_by_role("button").click()
    page.until(lambda: "check_duplicates" in rows.first.inner_text() or "4 blocks" in rows.first.inner_text()
               or "tool.execution_complete" in rows.first.inner_text(), "longest first")  # fmt: skip
    rows.first.click()
    detail = panel.get_by_role("complementary", name="Event details")
    page.until(lambda: "toolCallId" in detail.inner_text(), "the event as a tree")


HARM = "<img src=x onerror='window.__bad=1'></script><script>window.__bad=1</script> {{x}} **b**"


def test_nothing_that_is_shown_can_run(notebook):
    """52: text of a person, a model and a tool in every tab, and in the record that stays."""
    page = notebook([
        f"HARM = {HARM!r}\n"
        "first = {'text': [HARM], 'tool_calls': [{'id': 'c', 'name': 'touch', 'args': {'path': HARM}}]}\n"
        "session = held.start([first, HARM], allow=('touch',))",
        "%%copilot -s held\n" + HARM.replace("{{x}}", ""),
    ])  # fmt: skip
    page.run(1)
    page.run(2)
    page.until(lambda: not page.panel(2).count() and "onerror" in page.text(2), "the record")
    live = page.execute("panel = session.panel()\npanel")
    panel = page.show_panel(live)
    for tab in ("Timeline", "Queue", "Events", "Conversation"):
        page.tab(panel, tab)
        page.page.wait_for_timeout(400)
    page.page.wait_for_timeout(300)
    assert page.js("window.__bad") is None
    assert page.output(2).locator("script, img").count() == 0


def test_axe_finds_no_serious_violation(played, axe):
    """Every tab with everything in it, light and dark, wide and narrow."""
    page, panel = played
    found = []
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.js("t => window.jupyterapp.commands.execute('apputils:change-theme', { theme: t })", theme)
        page.page.wait_for_timeout(800)
        for tab in ("Conversation", "Timeline", "Queue", "Events"):
            page.tab(panel, tab)
            page.page.wait_for_timeout(700)
            found += [(theme, tab, *violation) for violation in axe(page)]
    assert found == []


def test_a_run_that_ends_in_the_background(notebook):
    """A hidden page marks its title when a run ends."""
    start = "session = held.start([held.streaming(30), 'Two.'])\npanel = session.panel()\npanel"
    page = notebook([start, "session.schedule(session.send('go'));"])
    page.run(1)
    panel = page.show_panel(1)
    page.js("Object.defineProperty(document, 'hidden', { get: () => window.__hidden ?? false })")
    page.run(2)
    page.until(lambda: "Turn 1" in panel.inner_text())
    page.js("window.__hidden = true")
    page.until(lambda: page.page.title().startswith("●"), "the title is marked")
    page.js("window.__hidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    assert not page.page.title().startswith("●")
