"""Moving the timeline: buttons, keys, wheel, drag; and clicks that lead to the conversation and the log."""

from __future__ import annotations

import pytest

START = """import asyncio
async def pause(seconds: float) -> str:
    "Take a while."
    await asyncio.sleep(seconds)
    return "rested"
def rest(n, seconds):
    return {'text': [f'Turn {n}.'], 'tool_calls': [
        {'id': f'c{n}', 'name': 'pause', 'args': {'seconds': seconds}}]}
session = copilot_nb.open_session(
    model=held.ScriptedModel([rest(1, 1.2), rest(2, 1.2), 'One.', rest(3, 0.8), 'Two.']
        + [rest(4, 60), 'Three.']),
    session_id='held', tools=[pause], allow=['pause'])
first = asyncio.ensure_future(session.send_and_wait('first'))
await asyncio.sleep(0.6)
await session.steer('a steer')
await session.enqueue('queued')
gone = await session.enqueue('taken out')
await session.queue.remove_at((await session.queue.pending_items())['items'][-1]['id'])
await first
panel = session.panel('timeline')
panel"""
SEND = "session.schedule(session.send('third'));"


@pytest.fixture
def timeline(notebook):
    page = notebook([START, SEND])
    page.run(1)
    panel = page.show_panel(1)
    page.until(lambda: panel.locator(".cnb-tl .bar").count() > 8, "bars")
    return page, panel


def window(panel) -> tuple[float, float]:
    """What is in sight, as a share of the strip above."""
    return tuple(
        panel.locator(".cnb-tl-over svg").evaluate(
            """svg => { const of = name => svg.querySelector(name), n = (e, k) => Number(e.getAttribute(k));
            const all = of('.ov-bg'), now = of('.ov-win'), width = n(all, 'width');
            return [(n(now, 'x') - n(all, 'x')) / width,
                    (n(now, 'x') + n(now, 'width') - n(all, 'x')) / width]; }"""
        )
    )


def share(panel) -> float:
    a, b = window(panel)
    return b - a


def test_zoom_and_pan(timeline):
    """Buttons, keys, wheel with and without Ctrl, dragging the plot, dragging in the strip."""
    page, panel = timeline
    mouse = page.page.mouse
    zoom = lambda name: panel.get_by_role("button", name=name, exact=True).click()  # noqa: E731
    assert share(panel) > 0.97
    zoom("Zoom in")
    page.until(lambda: share(panel) < 0.8, "zoomed in")
    zoom("Zoom in")
    page.until(lambda: share(panel) < 0.55, "further")
    before = share(panel)
    zoom("Zoom out")
    page.until(lambda: share(panel) > before * 1.3, "out again")
    zoom("Fit all")
    page.until(lambda: share(panel) > 0.97, "all of it")
    # keys
    bar = panel.locator(".cnb-tl .bar.turn").first
    bar.focus()
    page.page.keyboard.press("+")
    page.until(lambda: share(panel) < 0.8, "by key")
    page.page.keyboard.press("-")
    page.page.keyboard.press("-")
    page.until(lambda: share(panel) > 0.97, "and out")
    page.page.keyboard.press("+")
    page.until(lambda: share(panel) < 0.8)
    page.page.keyboard.press("0")
    page.until(lambda: share(panel) > 0.97, "all of it by key")
    # the wheel: Ctrl zooms at the pointer, Shift pans; alone it scrolls the page as everywhere
    box = panel.locator(".cnb-tl-plot").bounding_box()
    mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
    page.page.keyboard.down("Control")
    for _ in range(4):
        mouse.wheel(0, -120)
    page.page.keyboard.up("Control")
    page.until(lambda: share(panel) < 0.6, "zoomed by wheel")
    page.page.wait_for_timeout(400)
    place = window(panel)
    page.page.keyboard.down("Shift")
    mouse.wheel(0, 150)
    page.page.keyboard.up("Shift")
    page.until(lambda: window(panel)[0] > place[0] + 0.02, "panned by wheel")
    # dragging the plot; it is no click
    page.page.wait_for_timeout(400)
    place, picked = window(panel), panel.locator(".cnb-tl-info").inner_text()
    mouse.down()
    mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=4)
    mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60, steps=4)
    mouse.up()
    page.until(lambda: window(panel)[0] < place[0] - 0.02, "dragged")
    assert abs(share(panel) - (place[1] - place[0])) < 0.03
    assert panel.locator(".cnb-tl-info").inner_text() == picked
    # the strip: an edge, the window, and a new one
    strip = panel.locator(".cnb-tl-over").bounding_box()

    def drag(start: float, end: float) -> None:
        page.page.wait_for_timeout(400)
        left, width = panel.locator(".cnb-tl-over svg").evaluate(
            "svg => ['x', 'width'].map(k => Number(svg.querySelector('.ov-bg').getAttribute(k)))"
        )
        mouse.move(strip["x"] + left + start * width, strip["y"] + 12)
        mouse.down()
        mouse.move(strip["x"] + left + end * width, strip["y"] + 12, steps=6)
        mouse.up()

    a, b = window(panel)
    drag(b, min(0.98, b + 0.15))
    page.until(lambda: window(panel)[1] > b + 0.05, "the right edge was moved")
    a, b = window(panel)
    drag((a + b) / 2, (a + b) / 2 - a / 2)
    page.until(lambda: window(panel)[0] < a - 0.01, "the window was moved")
    zoom("Fit all")
    page.until(lambda: share(panel) > 0.97)
    drag(0.3, 0.5)
    page.until(lambda: abs(window(panel)[0] - 0.3) < 0.05 and abs(window(panel)[1] - 0.5) < 0.05, "a new one")


def test_keys_walk_over_the_rows_and_clicks_lead_on(timeline):
    """The bar in focus is the one that is described; a mark leads to its message, a call to its event."""
    page, panel = timeline
    title = lambda: panel.locator(".cnb-tl-info b").inner_text()  # noqa: E731
    panel.locator(".cnb-tl .bar.turn").first.focus()
    page.until(lambda: title() == "Turn 1")
    page.page.keyboard.press("ArrowUp")
    page.until(lambda: title().startswith("Run 1"), "the row above")
    page.page.keyboard.press("ArrowRight")
    page.until(lambda: title().startswith("Run 2"), "the next run")
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("ArrowDown")
    page.until(lambda: title() == "Turn 1", "and back")
    # marks of messages
    info = panel.locator(".cnb-tl-info")
    panel.locator(".cnb-tl .sent.queue.removed .msgtext").click()
    page.until(
        lambda: "taken out" in info.inner_text() and "removed at" in info.inner_text(), "why it is gone"
    )
    panel.locator(".cnb-tl .sent.steer.landed .msgtext").click()
    page.until(lambda: "landed in turn 2" in info.inner_text(), "where it landed")
    steer = next(data for data in page.of("user.message") if data["content"] == "a steer")
    assert steer["delivery"] == "steering"
    panel.get_by_role("button", name="In conversation").click()
    flash = panel.locator(".cnb-flash")
    page.until(lambda: flash.count() == 1 and "a steer" in flash.inner_text(), "at the message")
    assert panel.get_by_role("tab", name="Conversation").get_attribute("aria-selected") == "true"
    # a call, and its row in the log
    page.tab(panel, "Timeline")
    panel.locator(".cnb-tl .bar.ok").first.click()
    page.until(lambda: title() == "pause")
    panel.get_by_role("button", name="In events").click()
    detail = panel.get_by_role("complementary", name="Event details")
    called = next(event for event in page.events() if event["type"] == "tool.execution_start")
    page.until(lambda: called["id"] in detail.inner_text(), "its event")
    # also when the table was sorted and filtered before
    panel.get_by_role("columnheader", name="summary").get_by_role("button").click()
    panel.get_by_role("searchbox").fill("Turn 2")
    page.tab(panel, "Timeline")
    panel.locator(".cnb-tl .sent.steer.landed .msgtext").click()
    panel.get_by_role("button", name="In events").click()
    landed = next(event for event in page.events() if event["data"].get("content") == "a steer")
    page.until(lambda: landed["id"] in detail.inner_text(), "the event that landed it")
    page.until(lambda: "a steer" in panel.locator(".cnb-ev-row.on").inner_text(), "its row")
    page.tab(panel, "Timeline")
    panel.locator(".cnb-tl .bar.ok").first.click()
    panel.get_by_role("button", name="In conversation").click()
    page.until(lambda: "pause" in flash.inner_text() and flash.count() == 1, "the call's row")


def test_follow(timeline):
    """Follow keeps now in sight; moving away ends it, and what is looked at stays."""
    page, panel = timeline
    page.run(2)
    follow = panel.get_by_role("button", name="Follow", exact=True)
    page.until(lambda: follow.is_visible(), "a run goes on")
    follow.click()
    page.until(lambda: follow.get_attribute("aria-pressed") == "true")
    panel.get_by_role("button", name="Zoom in", exact=True).click()
    panel.get_by_role("button", name="Zoom in", exact=True).click()
    page.until(lambda: window(panel)[1] > 0.9 and share(panel) < 0.8, "near the end")
    page.page.wait_for_timeout(1500)
    assert window(panel)[1] > 0.9, "it moves along"
    box = panel.locator(".cnb-tl-plot").bounding_box()
    mouse = page.page.mouse
    mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60)
    mouse.down()
    mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60, steps=6)
    mouse.up()
    page.until(lambda: follow.get_attribute("aria-pressed") == "false", "moved away")
    follow.click()
    page.until(lambda: window(panel)[1] > 0.9, "back to now")
    panel.get_by_role("button", name="Stop the run").click()
    page.until(lambda: page.of("abort") and not follow.is_visible(), "nothing to follow any more")
