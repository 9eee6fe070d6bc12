"""The event table's controls: what is shown, copied and handed over is what the log on disk holds."""

from __future__ import annotations

import json

import pytest

START = """session = held.start([f'Answer {n}.' for n in range(12)] + [held.streaming(250, 0.03), 'Last.'])
for n in range(12):
    await session.send_and_wait(f'Question {n}')
panel = session.panel('events')
panel"""
SEND = "session.schedule(session.send('more'));"


@pytest.fixture
def table(notebook):
    page = notebook([START, SEND])
    page.browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.run(1)
    panel = page.show_panel(1)
    rows = panel.locator(".cnb-ev-space .cnb-ev-row")
    page.until(lambda: rows.count() > 5 and "…" not in rows.first.inner_text(), "rows")
    return page, panel


def total(panel) -> int:
    return int(panel.locator(".cnb-ev-bar > .cnb-dim").inner_text().split()[0].replace(",", ""))


def seen(panel) -> list[int]:
    """Numbers of the rows in sight, in order."""
    rows = panel.locator(".cnb-ev-space .cnb-ev-row").all()
    return sorted(int(row.get_attribute("aria-rowindex")) - 1 for row in rows)


def test_follow_the_tail(table):
    """It follows while the last row is in sight; scrolling up ends that, the button starts it again."""
    page, panel = table
    follow = panel.get_by_role("button", name="Follow the tail")
    assert follow.get_attribute("aria-pressed") == "true"
    count = total(panel)
    page.until(lambda: seen(panel)[-1] == count, "the last row is in sight at first")
    page.run(2)
    page.until(lambda: total(panel) > count, "rows come")
    page.until(lambda: seen(panel)[-1] == total(panel), "and are followed")
    panel.locator(".cnb-ev-scroll").hover()
    page.page.mouse.wheel(0, -1500)
    page.until(lambda: follow.get_attribute("aria-pressed") == "false", "the reader went up")
    place = seen(panel)[0]
    page.until(lambda: len(page.of("session.usage_record")) == 13, "the run ends", 60)
    page.until(lambda: total(panel) == len(page.events()), "all are counted")
    assert seen(panel)[0] == place, "what is read stays where it is"
    follow.click()
    page.until(lambda: seen(panel)[-1] == total(panel), "at the end again")
    follow.click()
    assert follow.get_attribute("aria-pressed") == "false"


def test_a_row_as_a_tree_by_keys_and_copied(table):
    """Arrow keys walk the rows; the tree folds; the copy is the line of the log."""
    page, panel = table
    grid = panel.locator(".cnb-ev-scroll")
    grid.focus()
    grid.press("Home")
    detail = panel.get_by_role("complementary", name="Event details")
    heading = lambda: detail.locator("header b").inner_text() if detail.locator("header b").count() else ""  # noqa: E731
    events = page.events()
    page.until(lambda: heading() == events[0]["type"], "the first event")
    for key, place in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", len(events) - 1)):
        grid.press(key)
        page.until(lambda place=place: events[place]["id"] in detail.inner_text(), key)
    grid.press("PageUp")
    page.until(lambda: events[-1]["id"] not in detail.inner_text(), "a page up")
    answer = next(event for event in events if event["type"] == "assistant.message")
    panel.get_by_role("searchbox").fill("Answer 0.")
    page.until(lambda: total(panel) < 12, "found")
    rows = panel.locator(".cnb-ev-space .cnb-ev-row")
    rows.filter(has_text="assistant.message").first.click()
    page.until(lambda: answer["id"] in detail.inner_text(), "its tree")
    node = detail.locator("details").first
    assert node.get_attribute("open") is not None
    assert "Answer 0." in detail.inner_text()
    node.locator("summary").first.click()
    page.until(lambda: "Answer 0." not in detail.inner_text(), "folded")
    detail.get_by_role("button", name="Copy as JSON").click()
    page.until(lambda: "Answer 0." in page.js("navigator.clipboard.readText()"), "copied")
    assert json.loads(page.js("navigator.clipboard.readText()")) == answer


def test_columns_and_order(table):
    """Columns come and go; a second click turns the order round; the type column stays."""
    page, panel = table
    heads = lambda: panel.locator(".cnb-ev-row.head [role=columnheader]").all_inner_texts()  # noqa: E731
    assert heads() == ["s", "+Δ", "type", "turn", "summary"]
    panel.get_by_role("button", name="Columns").click()
    menu = panel.get_by_role("group", name="Columns")
    menu.get_by_role("checkbox", name="tokens").check()
    menu.get_by_role("checkbox", name="+Δ").uncheck()
    assert menu.get_by_role("checkbox", name="type").is_disabled()
    assert heads() == ["s", "type", "turn", "tokens", "summary"]
    panel.get_by_role("button", name="Columns").click()
    assert not menu.is_visible()
    kinds = lambda: [  # noqa: E731
        row.locator(".c-type").inner_text()
        for _, row in sorted(
            (int(row.get_attribute("aria-rowindex")), row)
            for row in panel.locator(".cnb-ev-space .cnb-ev-row").all()
        )
    ]
    every = sorted(event["type"] for event in page.events())
    panel.get_by_role("columnheader", name="type").get_by_role("button").click()
    page.until(lambda: kinds()[:5] == every[:5], "sorted by type")
    assert panel.get_by_role("columnheader", name="type").get_attribute("aria-sort") == "ascending"
    panel.get_by_role("columnheader", name="type").get_by_role("button").click()
    page.until(lambda: kinds()[:5] == every[::-1][:5], "the other way round")
    assert panel.get_by_role("columnheader", name="type").get_attribute("aria-sort") == "descending"


def test_a_filtered_frame_never_takes_a_name_that_is_in_use(table):
    """As DataFrame: a variable of the person's own is left alone, one of ours is replaced."""
    page, panel = table
    page.silently("events = 'mine'")
    panel.get_by_role("searchbox").fill("Question 3")
    page.until(lambda: 0 < total(panel) < 12, "filtered")
    found = total(panel)
    for _ in range(2):
        panel.get_by_role("button", name="As DataFrame").click()
        page.until(lambda: page.silently("print(len(events_2))").strip() == str(found), "in a variable")
    assert page.silently("print(events, 'events_3' in globals())").strip() == "mine False"
    assert "events_2 holds" in panel.locator(".cnb-note").inner_text()
    panel.get_by_role("searchbox").fill("no such text anywhere")
    page.until(lambda: panel.get_by_text("No event fits.").is_visible(), "it says that nothing fits")
