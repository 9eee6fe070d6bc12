"""Braces in a prompt (field case 31: jupyter-ai#27, #967, PR#1260; ipython#10072)."""

import pytest

from copilot_nb.notebook.templating import fill


@pytest.mark.parametrize(
    "prompt",
    [
        '{"a": {"b": 1}}',
        "{'foo': 'bar'}",
        "{k: v for k, v in pairs}",
        'f"{x!r:>10} {In[3]} {a.b} {1 + 1}"',
        "{} {{}} { x } {{ x }}",
        "TypeError: unhashable type: {'x'}",
        "set() {",
        "}} {{",
    ],
)
def test_everything_but_a_plain_name_stays_as_written(prompt):
    assert fill(prompt, {"x": 1, "foo": 2, "k": 3, "v": 4}) == (prompt, [])


def test_an_existing_name_becomes_its_value():
    assert fill("look at {col} in {größe}", {"col": "price", "größe": 3}) == ("look at price in 3", [])


def test_a_value_is_inserted_literally_without_a_second_pass():
    assert fill("{a} {b}", {"a": "{b} \\1 {{b}}", "b": "B"}) == ("{b} \\1 {{b}} B", [])


def test_doubled_braces_escape_a_name():
    assert fill("{{x}} and {x}", {"x": 1}) == ("{x} and 1", [])


def test_a_missing_name_is_left_and_told_once():
    assert fill("{nope} {nope} {x}", {"x": 1}) == ("{nope} {nope} 1", ["nope"])
