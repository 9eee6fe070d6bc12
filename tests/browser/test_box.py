"""The box below the panel: what is sent before the first token, editing, and starting anew.

Field cases 49 (Stop and steer before the first token, told apart) and 50 (what waits is edited, not lost).
"""

from __future__ import annotations

import pytest

SHOW = "panel = session.panel()\npanel"
SEND = "session.schedule(session.send('first'));"
GATED = "session = held.start([{'gate': 'g', 'text': ['One.']}, 'Two.', 'Three.', 'Four.'])\n"
HOLDING = "session = held.start([{'tool_calls': held.calls('a')}, 'Two.', 'Three.', 'Four.'])\n"


@pytest.fixture
def running(notebook):
    """``running(start)``: a run that goes on, with its panel."""

    def make(start: str):
        page = notebook([start + SHOW, SEND])
        page.run(1)
        panel = page.show_panel(1)
        page.run(2)
        page.until(lambda: page.of("assistant.turn_start"), "the turn begins")
        return page, panel

    return make


def texts(page) -> list[tuple[str, str]]:
    return [(data["content"], data["delivery"]) for data in page.of("user.message")]


def test_before_the_first_token(running):
    """49: the model has said nothing yet; steer and queue are taken and told apart, and Stop works."""
    page, panel = running(GATED)
    page.until(lambda: "waiting for the model" in panel.locator(".cnb-bar").inner_text(), "it says so")
    page.type(panel, "a steer", "Control+Enter")
    page.type(panel, "an item")
    page.until(lambda: len(page.ops("add")) == 2)
    assert [(op["prompt"], op["lane"]) for op in page.ops("add")] == [
        ("a steer", "steering"),
        ("an item", "queue"),
    ]
    page.until(lambda: "a steer" in panel.locator(".cnb-msg.steer.pending").inner_text(), "it is shown")
    lanes = panel.locator(".cnb-lanes")
    page.until(lambda: "1 steer" in lanes.inner_text() and "1 queued" in lanes.inner_text(), "both counted")
    lanes.click()
    assert panel.get_by_role("tab", name="Queue").get_attribute("aria-selected") == "true"
    panel.get_by_role("button", name="Stop the run").click()
    page.until(lambda: page.of("abort") and "Idle" in panel.locator(".cnb-bar").inner_text(), "stopped")
    assert page.of("assistant.message") == []
    panel.get_by_role("button", name="Resume").click()
    page.until(lambda: len(texts(page)) == 3 and "Idle" in panel.locator(".cnb-bar").inner_text(), "both run")
    assert texts(page) == [("first", "idle"), ("a steer", "queued"), ("an item", "queued")]


def test_the_text_of_a_steer_that_waits_is_edited_in_the_box(running):
    """50: Edit puts it back in the box; Esc leaves it as it was, sending replaces it."""
    page, panel = running(HOLDING)
    box = panel.get_by_role("textbox", name="Message", exact=True)
    page.type(panel, "mind the gap", "Control+Enter")
    pending = panel.locator(".cnb-msg.steer.pending")
    page.until(lambda: pending.count() == 1)
    pending.get_by_role("button", name="Edit").click()
    assert box.input_value() == "mind the gap"
    box.press("Escape")
    assert box.input_value() == ""
    pending.get_by_role("button", name="Edit").click()
    page.type(panel, "mind the gaps", "Control+Enter")
    page.until(lambda: "mind the gaps" in pending.all_inner_texts()[-1], "replaced")
    assert page.ops("remove")[-1]["reason"] == "withdrawn"
    # the arrow keys walk through what was sent, and back to what was being written
    box.fill("draft")
    box.press("Home")
    box.press("ArrowUp")
    assert box.input_value() == "mind the gaps"
    box.press("ArrowDown")
    box.press("ArrowDown")
    box.press("End")
    box.press("ArrowDown")
    assert box.input_value() == "draft"
    # a steer is removed in the queue's tab
    page.tab(panel, "Queue")
    panel.get_by_role("region", name="Steering lane").get_by_role("button", name="Remove").click()
    page.until(lambda: len(page.ops("remove")) == 2, "removed")
    page.let_go("a")
    page.until(lambda: "Idle" in panel.locator(".cnb-bar").inner_text())
    assert texts(page) == [("first", "idle")]


def test_the_third_steer_offers_to_stop_and_restart(running):
    """A quiet hint; the run goes on until the new text is sent, and the queue stays behind it."""
    page, panel = running(HOLDING)
    for text in ("more", "and more"):
        page.type(panel, text, "Control+Enter")
    page.until(lambda: len(page.ops("add")) == 2)
    again = panel.get_by_role("button", name="Stop and restart")
    assert not again.is_visible(), "two steers are no reason"
    page.type(panel, "and another", "Control+Enter")
    page.type(panel, "later")
    page.until(lambda: len(page.ops("add")) == 4)
    box = panel.get_by_role("textbox", name="Message", exact=True)
    again.click()
    page.until(
        lambda: box.input_value() == "first\n\nmore\n\nand more\n\nand another", "all of it in one text"
    )
    assert "starts anew" in panel.locator(".cnb-hint").inner_text()
    box.press("Escape")
    page.until(lambda: box.input_value() == "" and again.is_visible(), "offered again")
    assert page.of("abort") == [], "the run went on"
    again.click()
    page.until(lambda: box.input_value())
    page.type(panel, "all of that at once")
    page.until(
        lambda: len(texts(page)) == 3 and "Idle" in panel.locator(".cnb-bar").inner_text(), "restarted"
    )
    assert len(page.of("abort")) == 1
    assert texts(page) == [("first", "idle"), ("all of that at once", "queued"), ("later", "queued")]
    assert {op["reason"] for op in page.ops("remove")} == {"withdrawn"}
    assert page.silently("print(session.state.queue_paused)").strip() == "False"


def test_a_queued_message_is_edited_by_keys(running):
    """50: Esc and Cancel leave it, Ctrl+Enter saves; the tabs go by the arrow keys."""
    page, panel = running(HOLDING)
    page.type(panel, "one")
    page.until(lambda: page.ops("add"))
    tab = panel.get_by_role("tab", name="Conversation")
    tab.focus()
    tab.press("ArrowRight")
    panel.get_by_role("tab", name="Timeline").press("ArrowRight")
    assert panel.get_by_role("tab", name="Queue").evaluate("tab => tab === document.activeElement")
    item = panel.get_by_role("region", name="Queue lane").locator("li")
    area = panel.get_by_role("textbox", name="Edit message")
    for leave in ("Escape", "Cancel"):
        item.get_by_role("button", name="Edit").click()
        area.fill("never")
        if leave == "Escape":
            area.press("Escape")
        else:
            panel.get_by_role("button", name="Cancel").click()
        page.until(lambda: not area.count() and "one" in item.inner_text(), leave)
    item.get_by_role("button", name="Edit").click()
    area.fill("one, better")
    area.press("Control+Enter")
    page.until(lambda: page.ops("edit"), "saved")
    assert page.ops("edit") == [{**page.ops("edit")[0], "prompt": "one, better"}]
    page.let_go("a")
    page.until(lambda: len(texts(page)) == 2)
    assert texts(page)[1] == ("one, better", "queued")
