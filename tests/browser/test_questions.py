"""Questions of the agent itself, on the real Copilot CLI: each control clicked, its effect in the log."""

from __future__ import annotations

import json

import pytest
from conformance.model_server import ModelServer

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2, "description": "What it is called"},
        "rows": {"type": "integer", "title": "Rows", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "title": "Share"},
        "keep": {"type": "boolean", "title": "Keep", "default": True},
        "way": {"type": "string", "title": "Way", "enum": ["m", "a"], "enumNames": ["Median", "Average"]},
        "unit": {"type": "string", "title": "Unit", "oneOf": [{"const": "s", "title": "Seconds"}]},
        "parts": {"type": "array", "title": "Parts", "items": {"type": "string", "enum": ["x", "y", "z"]}},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["name", "rows", "way"],
}


def call(key: str, name: str, **args: object) -> dict:
    return {"tool_calls": [{"id": key, "name": name, "args": args}]}


@pytest.fixture
def asking(notebook, cli_path):
    """``asking(replies, *tools of the CLI)``: the page, its panel, and the model, in a run that asks."""
    servers, pages = [], []

    def make(replies: list, *builtin: str, before: str = ""):
        servers.append(ModelServer(replies))
        names = "".join(f", {name!r}" for name in builtin)
        start = (
            f"session = held.on_the_cli({servers[-1].base_url!r}{names})\n{before}\npanel = session.panel()\n"
        )
        page = notebook([start + "panel", "session.schedule(session.send('go'));"])
        pages.append(page)
        page.run(1)
        panel = page.show_panel(1)
        page.run(2)
        return page, panel, servers[-1]

    yield make
    for page in pages:
        page.silently("await session.close()")
    for server in servers:
        server.close()


def results(page) -> list[str]:
    """What the calls came to, by the log, which the CLI writes some moments later."""
    done = page.of("tool.execution_complete")
    return [(data.get("result") or {}).get("content") or data["error"]["message"] for data in done]


def idle(page, panel) -> None:
    page.until(lambda: "Idle" in panel.locator(".cnb-bar").inner_text(), "the run ends", 60)


def test_a_question_with_choices_and_one_with_words(asking):
    """A choice is a button; own words go by the button or by Enter; the strip leads there from other tabs."""
    page, panel, model = asking(
        [
            call("q1", "ask_user", question="Which column?", choices=["price", "qty"]),
            call("q2", "ask_user", question="Which rows?", choices=["all"]),
            call("q3", "ask_user", question="Anything else?"),
            {"text": ["done"]},
        ],
        "ask_user",
    )
    card = panel.locator(".cnb-perm.question")
    page.until(lambda: card.count() and "Which column?" in card.inner_text(), "it asks", 90)
    assert "Waiting for your answer" in panel.locator(".cnb-bar").inner_text()
    page.tab(panel, "Queue")
    strip = panel.locator(".cnb-askstrip")
    page.until(lambda: "The agent asks: Which column?" in strip.inner_text(), "seen from another tab")
    strip.get_by_role("button", name="Review").click()
    card.get_by_role("button", name="qty").click()
    page.until(lambda: "Which rows?" in card.inner_text(), "the next question")
    page.until(lambda: results(page) == ["User selected: qty"], "in the log")
    assert card.get_by_role("button", name="all").is_visible()
    card.get_by_role("button", name="Send").click()  # with nothing in it
    assert card.get_by_role("button", name="Send").is_enabled()
    card.get_by_role("textbox", name="Your answer").fill("the <b>first</b> ten")
    card.get_by_role("button", name="Send").click()
    page.until(lambda: "Anything else?" in card.inner_text(), "the third question")
    card.get_by_role("textbox", name="Your answer").fill("no")
    card.get_by_role("textbox", name="Your answer").press("Enter")
    idle(page, panel)
    assert not card.count()
    page.until(lambda: len(results(page)) == 3, "in the log")
    assert results(page)[1:] == ["User responded: the <b>first</b> ten", "User responded: no"]
    told = [m["content"] for m in model.requests[-1]["body"]["messages"] if m["role"] == "tool"]
    assert told == results(page), "the model got the same"


def test_two_questions_at_once_keep_what_was_typed(asking):
    """A second question must not draw the first card anew under the person's hands."""
    both = [*call("q1", "ask_user", question="One?")["tool_calls"]]
    both += call("q2", "form", schema={"type": "object", "properties": {"n": {"type": "integer"}}})[
        "tool_calls"
    ]
    page, panel, _ = asking([{"tool_calls": both}, {"text": ["done"]}], "ask_user")
    cards = panel.locator(".cnb-perm.question")
    page.until(lambda: cards.count() == 2, "both ask", 90)
    one, two = cards.filter(has_text="One?"), cards.filter(has_text="About the file")
    one.get_by_role("textbox").fill("half a")
    two.get_by_role("spinbutton").fill("3")
    two.get_by_role("button", name="Send").click()
    page.until(lambda: len(results(page)) == 1, "the form is answered")
    assert one.get_by_role("textbox").input_value() == "half a"
    one.get_by_role("textbox").press("End")
    one.get_by_role("textbox").press_sequentially("n answer")
    one.get_by_role("textbox").press("Enter")
    idle(page, panel)
    page.until(lambda: len(results(page)) == 2, "in the log")
    assert sorted(results(page))[0] == "User responded: half an answer"


def test_a_form_says_what_is_missing_and_sends_each_kind_of_value(asking):
    """Every kind of field; nothing is sent before it is complete, and what was left empty is left out."""
    page, panel, _ = asking([call("f", "form", schema=SCHEMA), {"text": ["done"]}])
    card = panel.locator(".cnb-perm.question")
    page.until(lambda: card.count(), "the form", 90)
    field = lambda name, role="textbox": card.get_by_role(role, name=name, exact=True)  # noqa: E731
    send = card.get_by_role("button", name="Send")
    hints = lambda: [hint for hint in card.get_by_role("alert").all_inner_texts() if hint]  # noqa: E731
    send.click()
    page.until(lambda: hints() == ["Please fill this in."] * 3, "it says what is missing")
    assert field("Name").get_attribute("aria-invalid") == "true"
    assert field("Name").evaluate("node => node === document.activeElement"), (
        "the first of them has the focus"
    )
    field("Name").fill("x")
    field("Rows", "spinbutton").fill("2.5")
    page.until(
        lambda: hints()[:2] == ["At least 2 characters.", "This must be a whole number."], "as one types"
    )
    field("Rows", "spinbutton").fill("12")
    page.until(lambda: "At most 9." in hints())
    send.click()
    assert page.of("tool.execution_complete") == [], "nothing was sent yet"
    field("Name").fill("sales <i>2</i>")
    field("Rows", "spinbutton").fill("3")
    field("Share", "spinbutton").fill("0.25")
    field("Keep", "checkbox").uncheck()
    field("Way", "combobox").select_option(label="Average")
    field("Unit", "combobox").select_option(label="Seconds")
    parts = field("Parts", "group")
    parts.get_by_role("checkbox", name="x").check()
    parts.get_by_role("checkbox", name="z").check()
    assert hints() == []
    send.click()
    idle(page, panel)
    page.until(lambda: results(page), "in the log")
    content = {"name": "sales <i>2</i>", "rows": 3, "share": 0.25, "keep": False, "way": "a", "unit": "s"}
    content["parts"] = ["x", "z"]
    assert json.loads(results(page)[0]) == {"action": "accept", "content": content}


def test_axe_finds_no_serious_violation_in_a_form(asking, axe):
    page, panel, _ = asking([call("f", "form", schema=SCHEMA), {"text": ["done"]}])
    card = panel.locator(".cnb-perm.question")
    page.until(lambda: card.count(), "the form", 90)
    card.get_by_role("button", name="Send").click()  # with its complaints in sight
    assert axe(page) == []
    card.get_by_role("button", name="Decline").click()
    idle(page, panel)


def test_a_form_can_be_declined_and_cancelled(asking):
    page, panel, _ = asking(
        [call("f1", "form", schema=SCHEMA), call("f2", "form", schema=SCHEMA), {"text": ["."]}]
    )
    card = panel.locator(".cnb-perm.question")
    for n, (name, action) in enumerate((("Decline", "decline"), ("Cancel", "cancel"))):
        page.until(
            lambda n=n: card.count() == 1 and len(page.of("tool.execution_start")) == n + 1, "asks", 90
        )
        card.get_by_role("button", name=name).click()
        page.until(lambda n=n: len(results(page)) == n + 1, name)
        assert json.loads(results(page)[n])["action"] == action
    idle(page, panel)


def test_leaving_plan_mode(asking):
    """Keep planning, with words; then each way on is a button. The log has the answer and the new mode."""
    page, panel, _ = asking(
        [
            call("p1", "exit_plan_mode", summary="First plan"),
            call("p2", "exit_plan_mode", summary="Second plan"),
            {"text": ["done"]},
        ],
        "exit_plan_mode",
        before="await session.set_mode('plan')",
    )
    card = panel.locator(".cnb-perm.question")
    page.until(lambda: card.count() and "First plan" in card.inner_text(), "the plan", 90)
    assert panel.get_by_label("Mode", exact=True).input_value() == "plan"
    for name in ("Go on in autopilot", "Go on, asking me", "Leave plan mode"):
        assert card.get_by_role("button", name=name, exact=True).is_visible()
    card.get_by_role("textbox", name="What should change in the plan?").fill("smaller steps")
    card.get_by_role("button", name="Keep planning").click()
    page.until(lambda: "Second plan" in card.inner_text(), "the next plan")
    page.until(lambda: "smaller steps" in str(results(page)), "in the log")
    card.get_by_role("button", name="Go on, asking me").click()
    idle(page, panel)
    page.until(lambda: "Plan approved" in results(page)[-1], "in the log")
    modes = lambda: [data["newMode"] for data in page.of("session.mode_changed")]  # noqa: E731
    page.until(lambda: modes()[-1:] == ["interactive"], "the log has it")
    page.until(
        lambda: panel.get_by_label("Mode", exact=True).input_value() == "interactive", "the bar says so"
    )


def test_stop_and_restart_on_the_cli(asking):
    """The offer after the third steer also holds there: one stop, one new text, then what was queued."""
    page, panel, _ = asking([call("f", "form", schema=SCHEMA), {"text": ["two"]}, {"text": ["three"]}])
    card = panel.locator(".cnb-perm.question")
    page.until(lambda: card.count(), "the form", 90)
    page.type(panel, "later")
    for text in ("more", "and more", "and another"):
        page.type(panel, text, "Control+Enter")
    again = panel.get_by_role("button", name="Stop and restart")
    page.until(again.is_visible, "offered")
    again.click()
    box = panel.get_by_role("textbox", name="Message", exact=True)
    page.until(lambda: box.input_value() == "go\n\nmore\n\nand more\n\nand another", "all of it in one text")
    page.type(panel, "all of that at once")
    said = lambda: [data["content"] for data in page.of("user.message")]  # noqa: E731
    page.until(lambda: said() == ["go", "all of that at once", "later"], "the log has them in order", 60)
    idle(page, panel)
    assert len(page.of("abort")) == 1
    assert not card.count(), "the question went with its run"
