"""Every control of the panel, clicked in a real run; its effect is read from the session's log.

Field cases 2 (a steer that vanishes), 8 (steering while a question is open), 13 (stopping keeps the queue),
16 (queue item to steer), 49 (Stop before the first token; steer and queue told apart), 50 (removing one).
"""

from __future__ import annotations

import pytest

START = """first = {'text': ['Holding.'], 'tool_calls': held.calls('a')}
session = held.start([first, 'Done.', 'Two.', 'Three.', 'Four.', 'Five.'])
"""
SHOW = "panel = session.panel()\npanel"
SEND = "session.schedule(session.send('first'));"


@pytest.fixture
def held(request, notebook):
    """A run that holds in its first turn, with its panel."""
    page = notebook([START + SHOW, SEND], app=getattr(request, "param", "lab"))
    page.run(1)
    panel = page.show_panel(1)
    page.run(2)
    page.until(lambda: page.of("tool.execution_start"), "the tool starts")
    return page, panel


@pytest.mark.parametrize("held", ["lab", "notebooks"], indirect=True)
def test_box_steers_enqueues_recalls_and_keeps_keys_to_itself(held):
    """49, and jupyter-facts Q9: Shift+Enter in a widget would run the cell again."""
    page, panel = held
    box = panel.get_by_role("textbox", name="Message", exact=True)
    page.type(panel, "queue me", "Enter")
    page.until(lambda: page.ops("add") and page.ops("add")[-1]["lane"] == "queue", "enqueued")
    page.type(panel, "steer me", "Control+Enter")
    page.until(lambda: [op for op in page.ops("add") if op["lane"] == "steering"], "steered")
    box.press("ArrowUp")
    assert box.input_value() == "steer me"
    box.press("ArrowUp")
    assert box.input_value() == "queue me"
    box.fill("line one")
    box.press("Shift+Enter")
    box.type("line two dd 00 bb")
    assert box.input_value() == "line one\nline two dd 00 bb"
    box.fill("")
    assert len(page.of("user.message")) == 1, "the cell was not run again"
    assert page.js("window.jupyterapp.shell.currentWidget.content.widgets.length") == 3
    box.fill("by the button")
    panel.get_by_role("button", name="Steer Ctrl Enter").click()
    page.until(lambda: len([op for op in page.ops("add") if op["lane"] == "steering"]) == 2)
    box.fill("also queued")
    panel.get_by_role("button", name="Enqueue Enter").click()
    page.until(lambda: len([op for op in page.ops("add") if op["lane"] == "queue"]) == 2)
    page.let_go("a")
    page.until(
        lambda: (
            [m["content"] for m in page.of("user.message")]
            == ["first", "steer me", "by the button", "queue me", "also queued"]
        ),
        "all land, in order",
    )
    deliveries = [m["delivery"] for m in page.of("user.message")]
    assert deliveries == ["idle", "steering", "steering", "queued", "queued"]


def test_queue_tab_moves_edits_removes_duplicates_pauses_clears_and_undoes(held):
    """50, 16: each item has its own controls, and nothing is lost by a slip."""
    page, panel = held
    for text in ("one", "two", "three"):
        page.type(panel, text)
    page.until(lambda: len(page.ops("add")) == 3)
    page.tab(panel, "Queue")
    items = panel.get_by_role("region", name="Queue lane").locator("li")
    texts = lambda: items.locator(".cnb-q-text p").all_inner_texts()  # noqa: E731
    page.until(lambda: texts() == ["one", "two", "three"])
    # by keys, and by dragging
    items.nth(0).get_by_role("button", name="Move item 1").press("ArrowDown")
    page.until(lambda: texts() == ["two", "one", "three"], "moved by key")
    assert page.ops("move")
    items.nth(2).hover()
    page.page.mouse.down()
    for y in (8, 2, 2):  # a person's pointer tells more than once where it is
        items.nth(0).hover(position={"x": 60, "y": y})
    page.page.mouse.up()
    page.until(lambda: texts() == ["three", "two", "one"], "dragged")
    # edit
    items.nth(1).get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox", name="Edit message").fill("two, better")
    panel.get_by_role("button", name="Save").click()
    page.until(lambda: texts()[1:2] == ["two, better"], "edited")
    assert page.ops("edit")[-1]["prompt"] == "two, better"
    # duplicate and remove, undo
    items.nth(0).get_by_role("button", name="Duplicate").click()
    page.until(lambda: texts() == ["three", "three", "two, better", "one"], "duplicated")
    items.nth(1).get_by_role("button", name="Remove").click()
    page.until(lambda: texts() == ["three", "two, better", "one"], "removed")
    assert page.ops("remove")[-1]["reason"] == "removed"
    panel.get_by_role("button", name="Put back").first.click()
    page.until(lambda: texts() == ["three", "three", "two, better", "one"], "put back where it was")
    # pause and resume
    panel.get_by_role("button", name="Pause").click()
    page.until(lambda: page.ops("pause") and page.ops("pause")[-1]["paused"] is True)
    panel.get_by_role("button", name="Resume").click()
    page.until(lambda: page.ops("pause")[-1]["paused"] is False)
    # clear, and undo that
    panel.get_by_role("button", name="Clear").click()
    page.until(lambda: texts() == [], "cleared")
    panel.get_by_role("button", name="Undo clear").click()
    page.until(lambda: texts() == ["three", "three", "two, better", "one"], "undone")
    # a queue item becomes a steer; a steer goes back to the queue, is edited, is taken back
    items.nth(3).get_by_role("button", name="Steer now").click()
    page.until(lambda: texts() == ["three", "three", "two, better"])
    steers = panel.get_by_role("region", name="Steering lane").locator("li")
    page.until(lambda: steers.count() == 1)
    steers.nth(0).get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox", name="Edit message").fill("one, as a steer")
    panel.get_by_role("button", name="Save").click()
    page.until(lambda: steers.locator("p").all_inner_texts() == ["one, as a steer"], "steer edited")
    steers.nth(0).get_by_role("button", name="Move to the queue").click()
    page.until(lambda: texts()[-1:] == ["one, as a steer"], "back to the queue")
    page.tab(panel, "Conversation")
    page.type(panel, "never mind", "Control+Enter")
    panel.get_by_role("button", name="Take back").click()
    page.until(lambda: page.ops("remove")[-1]["reason"] == "withdrawn", "taken back")
    page.let_go("a")
    page.until(
        lambda: (
            [m["content"] for m in page.of("user.message")]
            == ["first", "three", "three", "two, better", "one, as a steer"]
        ),
        "every item ran once",
    )


def test_stop_keeps_the_queue_and_mode_is_set(held):
    """13 and 49: Stop works during the first turn, and what waits is kept, paused."""
    page, panel = held
    page.type(panel, "later")
    page.until(lambda: page.ops("add"))
    panel.get_by_label("Mode").select_option("autopilot")
    page.until(lambda: page.of("session.mode_changed"), "mode")
    panel.get_by_label("Mode").select_option("interactive")
    panel.get_by_role("button", name="Stop the run").click()
    page.until(lambda: page.of("abort"), "stopped")
    page.until(lambda: "Idle" in panel.inner_text(), "idle")
    assert not page.ops("remove")
    assert "1 queued, paused" in panel.inner_text()
    page.tab(panel, "Queue")
    panel.get_by_role("button", name="Resume").click()
    page.until(lambda: len(page.of("user.message")) == 2, "the kept item runs")


ASKS = """session = held.start([{'tool_calls': held.calls('a.txt', 'b.txt', tool='touch', key='path')},
  {'tool_calls': held.calls('c.txt', tool='touch', key='path')}, 'Done.',
  {'tool_calls': held.calls('d.txt', tool='touch', key='path')}, 'Never said.'])
panel = session.panel()
panel"""


@pytest.mark.parametrize("app", ["notebooks"])
def test_permission_card(notebook, app):
    """8: while a question is open a steer is accepted, and says what it waits for."""
    page = notebook([ASKS, SEND], app=app)
    page.run(1)
    panel = page.show_panel(1)
    page.run(2)
    cards = panel.locator(".cnb-perm")
    page.until(lambda: cards.count() == 2, "both calls of the turn ask")
    assert not panel.locator(".cnb-perm :focus").count(), "no answer has the focus by itself"
    page.type(panel, "mind the gap", "Control+Enter")
    page.until(lambda: page.ops("add"), "the steer is accepted")
    assert "after your answer" in panel.locator(".cnb-hint").inner_text()
    page.tab(panel, "Queue")
    panel.get_by_role("button", name="Review").click()
    cards.nth(0).get_by_role("button", name="Deny with feedback").click()
    cards.nth(0).get_by_role("textbox", name="Feedback").fill("use another file")
    cards.nth(0).get_by_role("button", name="Deny and send").click()
    page.until(lambda: len(page.of("permission.completed")) == 1)
    assert page.of("permission.completed")[0]["result"]["feedback"] == "use another file"
    cards.nth(0).get_by_role("button", name="Allow for session").click()
    page.until(lambda: "Idle" in panel.inner_text(), "the third call is not asked any more, and the run ends")
    kinds = [data["result"]["kind"] for data in page.of("permission.completed")]
    assert kinds[1] == "approved-for-session"
    assert "steering" in [m["delivery"] for m in page.of("user.message")]
    page.silently("session.policy.allow.clear()")
    assert [tool["success"] for tool in page.of("tool.execution_complete")] == [False, True, True]


@pytest.mark.parametrize("app", ["lab"])
def test_deny_ends_the_run_and_allow_once_asks_again(notebook, app):
    page = notebook([ASKS, SEND], app=app)
    page.run(1)
    panel = page.show_panel(1)
    page.run(2)
    cards = panel.locator(".cnb-perm")
    page.until(lambda: cards.count() == 2)
    cards.nth(0).get_by_role("button", name="Allow once").click()
    page.until(lambda: cards.count() == 1)
    page.type(panel, "will be dropped")
    page.until(lambda: "drops 1 queued" in cards.nth(0).inner_text(), "the card says what a denial costs")
    cards.nth(0).get_by_role("button", name="Deny", exact=True).click()
    page.until(lambda: "Idle" in panel.inner_text())
    kinds = [data["result"]["kind"] for data in page.of("permission.completed")]
    assert kinds == ["approved", "denied-interactively-by-user"]
    assert page.ops("remove"), "the dropped message is in the log, with the reason"
    page.tab(panel, "Queue")
    assert "will be dropped" in panel.get_by_role("region", name="Discarded").inner_text()


def test_third_steer_suggests_another_way(held):
    page, panel = held
    for n in range(3):
        page.type(panel, f"steer {n}", "Control+Enter")
    page.until(lambda: "Third steer in this run" in panel.locator(".cnb-hint").inner_text())
    page.let_go("a")
    page.until(lambda: len(page.of("user.message")) == 4)


def test_a_steer_that_misses_its_run_is_seen_at_the_front(notebook):
    """4: the run ends before the steer can join; it leads the queue, and says why."""
    page = notebook([
        "first = {'text': ['last ', 'words'], 'gate_after_chunk': {'1': 'g'}}\n"
        "session = held.start([first, 'Two.', 'Three.'])\n" + SHOW,
        SEND])  # fmt: skip
    page.run(1)
    panel = page.show_panel(1)
    page.run(2)
    page.until(lambda: "last" in panel.inner_text())
    page.type(panel, "queued before")
    page.type(panel, "too late", "Control+Enter")
    page.until(lambda: len(page.ops("add")) == 2)
    page.silently("session.runtime.config.model.gate('g').set()")
    page.until(
        lambda: [m["content"] for m in page.of("user.message")] == ["first", "too late", "queued before"]
    )
    assert [op for op in page.ops("move") if op.get("reason") == "missed"]
    page.until(lambda: "missed its run" in panel.inner_text(), "the conversation says so")
