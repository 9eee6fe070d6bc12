"""What a reader does in the conversation, and what a person who is away from it is told."""

from __future__ import annotations

import json

import pytest

SEND = "session.schedule(session.send('first'));"
SHOW = "panel = session.panel()\npanel"


def opened(notebook, start: str):
    page = notebook([f"{start}\n{SHOW}", SEND])
    page.browser.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.run(1)
    panel = page.show_panel(1)
    page.run(2)
    return page, panel


def idle(page, panel) -> None:
    page.until(lambda: "Idle" in panel.locator(".cnb-bar").inner_text(), "the run ends", 60)


CALLS = """big = 'line of output ' * 3000
async def much() -> str:
    "A long result."
    return big
code = "```python\\nprint('<b>')\\n```"
replies = [
    {'reasoning': ['Look first.'], 'text': ['Before.'], 'tool_calls': [
        {'id': 'c1', 'name': 'much', 'args': {}}, {'id': 'c2', 'name': 'touch', 'args': {'path': 'x.txt'}}]},
    {'text': ['Read this:\\n\\n' + code]},
]
session = copilot_nb.open_session(model=held.ScriptedModel(replies), session_id='held',
    tools=[much, held.touch], allow=['much', 'touch'], large_output_bytes=1_000_000)"""


def test_cards_open_copy_and_show_all(notebook):
    """A call's row opens, a cut result is shown whole, code is copied as written, thoughts unfold."""
    page, panel = opened(notebook, CALLS)
    idle(page, panel)
    rows = panel.locator(".cnb-tool-row")
    assert [row.get_attribute("aria-expanded") for row in rows.all()] == ["false", "false"]
    rows.nth(0).click()
    card = panel.locator(".cnb-tool").nth(0)
    results = {data["toolCallId"]: data["result"]["content"] for data in page.of("tool.execution_complete")}
    shown = lambda: card.locator(".cnb-out").text_content()  # noqa: E731
    page.until(lambda: "more characters" in shown(), "cut at first")
    card.get_by_role("button", name="Show all").click()
    page.until(lambda: shown() == results["c1"], "the log's text, whole")
    rows.nth(0).click()
    assert not card.locator(".cnb-out").is_visible()
    rows.nth(1).press("Enter")
    page.until(lambda: "x.txt was touched" in panel.locator(".cnb-tool").nth(1).inner_text(), "by key")
    thought = panel.locator(".cnb-think").first
    assert not thought.locator("p").is_visible()
    thought.locator("summary").click()
    assert thought.locator("p").inner_text() == "Look first."
    block = panel.locator(".cnb-md .cnb-code")
    block.hover()
    block.get_by_role("button", name="Copy").click()
    page.until(lambda: page.js("navigator.clipboard.readText()").strip() == "print('<b>')", "copied")


LONG = """session = held.start([{'text': [f'Answer {n}.\\n\\n' + 'x y z\\n\\n' * 4]} for n in range(40)]
    + [held.streaming(500), 'Last.'])
for n in range(39):
    await session.send_and_wait(f'Question {n}')"""


def test_it_sticks_to_the_end_unless_the_reader_scrolled_up(notebook):
    """Earlier items come on the way up; new text does not move what is read; Latest leads back."""
    page, panel = opened(notebook, LONG)
    scroll = panel.locator(".cnb-scroll")
    left = lambda: scroll.evaluate("s => s.scrollHeight - s.scrollTop - s.clientHeight")  # noqa: E731
    page.until(lambda: "Answer 39." in panel.inner_text(), "the end of it")
    page.type(panel, "now write")
    page.until(lambda: "word0040" in panel.inner_text(), "text streams")
    page.until(lambda: left() < 30, "it follows")
    latest = panel.get_by_role("button", name="Latest")
    assert not latest.is_visible()
    assert "Question 2" not in panel.locator(".cnb-msg").all_inner_texts()[0], "only the last ones at first"
    scroll.hover()
    page.page.mouse.wheel(0, -900)
    page.until(latest.is_visible, "the reader is somewhere else")
    place = scroll.evaluate("s => s.scrollHeight - s.scrollTop")
    page.until(lambda: "word0200" in panel.inner_text(), "more text came")
    assert left() > 500
    assert scroll.evaluate("s => s.scrollHeight - s.scrollTop") >= place, "what is read stays in sight"
    first = lambda: panel.locator(".cnb-msg").first.inner_text()  # noqa: E731
    for _ in range(60):
        if "Question 0" in first():
            break
        page.page.mouse.wheel(0, -2000)
        page.page.wait_for_timeout(150)
    assert "Question 0" in first(), "up to the begin"
    latest.click()
    page.until(lambda: left() < 30 and not latest.is_visible(), "back at the end")
    idle(page, panel)
    page.until(lambda: "the end." in panel.inner_text() and left() < 30, "it follows again")


def test_a_reader_gets_earlier_items_by_the_button(notebook):
    page, panel = opened(notebook, LONG.replace("held.streaming(500), ", ""))
    idle(page, panel)
    count = panel.locator(".cnb-turn").count()
    panel.locator(".cnb-scroll").evaluate("s => { s.scrollTop = 400; }")
    panel.get_by_role("button", name="Show earlier").click()
    page.until(lambda: panel.locator(".cnb-turn").count() > count, "more of them")


ASKS = """calls = held.calls('a.txt', tool='touch', key='path')
session = held.start([{'gate': 'g', 'tool_calls': calls}, 'Done.'])"""

WATCH = """
window.__notes = [];
const Real = window.Notification;
window.Notification = class extends Real {
  constructor(title, options) { super(title, options); window.__notes.push([title, options.body]); }
};
window.__hidden = false;
Object.defineProperty(document, 'hidden', { get: () => window.__hidden });
window.__hide = hidden => {
  window.__hidden = hidden;
  document.dispatchEvent(new Event('visibilitychange'));
};
"""


def test_a_question_while_the_page_is_hidden(notebook):
    """The title is marked and, where the person allowed it, the browser says it: a question, the end."""
    page = notebook([f"{ASKS}\n{SHOW}", SEND])
    context = page.browser.context
    page.js(WATCH)
    page.run(1)
    panel = page.show_panel(1)
    bell = panel.get_by_role("button", name="Notify me")
    context.grant_permissions(["notifications"])
    if bell.count():  # headless browsers may say no by themselves, then there is nothing to ask
        bell.click()
        page.until(lambda: not bell.count(), "asked once")
    page.run(2)
    page.until(lambda: page.of("assistant.turn_start"), "the run goes on")
    page.js("window.__hide(true)")
    page.silently("session.runtime.config.model.gate('g').set()")
    page.until(lambda: page.page.title().startswith("●"), "the title is marked")
    assert page.of("permission.requested")
    granted = page.js("Notification.permission") == "granted"
    if granted:
        page.until(lambda: page.js("window.__notes"), "the browser says it")
        assert page.js("window.__notes")[0][0] == "held asks you something"
    page.js("window.__hide(false)")
    assert not page.page.title().startswith("●")
    page.js("window.__hide(true)")
    panel.get_by_role("button", name="Allow once").click()
    page.until(lambda: page.of("session.idle") or page.page.title().startswith("●"), "the end")
    page.until(lambda: page.page.title().startswith("●"), "marked again")
    if granted:
        page.until(lambda: len(page.js("window.__notes")) == 2)
        assert page.js("window.__notes")[1][0] == "held has finished"
    page.js("window.__hide(false)")
    context.clear_permissions()


def test_feedback_goes_by_enter(notebook):
    page, panel = opened(notebook, ASKS.replace("'gate': 'g', ", ""))
    card = panel.locator(".cnb-perm")
    page.until(lambda: card.count() == 1, "asks")
    card.get_by_role("button", name="Deny with feedback").click()
    box = card.get_by_role("textbox", name="Feedback")
    box.press("Enter")  # nothing written: nothing is sent
    box.fill("not this one")
    box.press("Enter")
    idle(page, panel)
    (answer,) = page.of("permission.completed")
    assert (answer["result"]["kind"], answer["result"]["feedback"]) == (
        "denied-interactively-by-user",
        "not this one",
    )


@pytest.mark.parametrize("tab", ["timeline", "queue", "events"])
def test_a_panel_opens_on_the_tab_that_was_asked_for(notebook, tab):
    page = notebook(
        ["session = held.start(['One.'])\nawait session.send_and_wait('go')", f"session.panel({tab!r})"]
    )
    page.run(1)
    page.run(2)
    panel = page.show_panel(2)
    assert panel.get_by_role("tab", name=tab.title()).get_attribute("aria-selected") == "true"
    assert json.dumps(page.of("assistant.message")).count("One.") == 1
