"""The words after ``%%copilot``: what is taken, and what a wrong word is told (jupyter facts Q9)."""

import pytest

from copilot_nb.errors import UsageError
from copilot_nb.notebook.arguments import option_help, option_names, parse, unknown
from copilot_nb.notebook.completion import candidates


def test_nothing_means_defaults():
    options = parse("")
    assert options.model is None and options.wait is None and options.allow == []


def test_every_option():
    options = parse("-m openai:x -s mine --runtime engine --base-url http://h/v1 --wire-api responses --wait")
    assert (options.model, options.session, options.runtime) == ("openai:x", "mine", "engine")
    assert (options.base_url, options.wire_api, options.wait) == ("http://h/v1", "responses", True)
    options = parse(
        "--no-wait --autopilot --allow python --allow 'a,b' --yolo --max-turns 3 --max-seconds .5"
    )
    assert (options.wait, options.autopilot, options.yolo) == (False, True, True)
    assert options.allow == ["python", "a,b"]
    assert (options.max_turns, options.max_seconds) == (3, 0.5)


def test_options_of_one_cell_do_not_reach_the_next():
    parse("--allow python")
    assert parse("").allow == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--waitt", "Did you mean --wait?"),
        ("--max", "It takes"),  # no silent abbreviation
        ("-m", "expected one argument"),
        ("--max-turns 0", "--max-turns"),
        ("--max-tokens 1.5", "--max-tokens"),
        ("--max-seconds -1", "--max-seconds"),
        ("--runtime foo", "'engine', 'copilot'"),
        ("# trailing --wait", "below"),
        ("tell me more", "below"),
        ("-m 'x", "quote"),
    ],
)
def test_a_wrong_word_is_an_error_that_says_what_exists(line, says):
    with pytest.raises(UsageError, match=r"^(%%copilot: |A quote)") as caught:
        parse(line)
    assert says in str(caught.value)


def test_help_and_completion_know_every_option():
    assert all(name in option_help() for name in option_names())
    assert candidates("%%copilot --ma") == option_names()
    assert "steer" in candidates("%copilot queue s")
    assert candidates("%copilot mode ") == ["interactive", "plan", "autopilot"]
    assert candidates("x = %copilot") == []


def test_the_nearest_word_comes_first():
    assert unknown("command", "stauts", ["status", "wait"]).startswith(
        "Unknown command 'stauts'. Did you mean status?"
    )
