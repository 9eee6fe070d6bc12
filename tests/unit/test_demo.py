"""The demo model: true numbers by real tool calls, and steering that changes the same run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tool_parts import CLOCK, Heard, run

from copilot_nb.models import Request
from copilot_nb.models.demo import DemoModel, is_demo_code
from copilot_nb.models.demo.wishes import understand
from copilot_nb.tools import Tool, ToolResult, as_tool, kernel_tools

pd = pytest.importorskip("pandas")


def sales() -> Any:
    return pd.DataFrame(
        {
            "order_id": range(8),
            "region": ["North", "South", "East", "North", "South", "East", "North", "South"],
            "price": [10.0, 20.0, 30.0, 10.0, 20.0, None, 100.0, 20.0],
            "qty": [1, 2, 3, 4, 5, 6, 7, 8],
        }
    )


async def ask(
    prompt: str,
    variables: dict[str, Any],
    steers: dict[int, str] | None = None,
    history: list[Any] | None = None,
) -> list[dict[str, Any]]:
    """One run with the real tools; its messages."""
    messages = history if history is not None else [{"role": "system", "content": "S"}]
    start = len(messages)
    messages.append({"role": "user", "content": CLOCK + prompt})
    return (await run(DemoModel(0), kernel_tools(namespace=variables), messages, steers))[start:]


def codes(messages: list[dict[str, Any]]) -> list[str]:
    made = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [json.loads(function["arguments"]).get("code", function["name"]) for function in made]


async def test_an_analysis_takes_several_turns_and_its_numbers_are_true() -> None:
    messages = await ask("Please analyse the sales data", {"sales": sales(), "n": 3})
    made = codes(messages)
    assert made[0] == "list_variables"
    assert len(made) == 4
    assert all(is_demo_code(code) for code in made[1:])
    report = messages[-1]["content"]
    assert "8 rows and 4 columns" in report
    assert "`price` 1 (12.5 %)" in report
    assert "mean 30, median 20, from 10 to 100" in report
    assert "**North** is highest (40), South lowest (20)" in report
    assert "| East | 30 | 4.50 |" in report
    assert "demo model, no LLM" in report
    assert "order_id" not in report


async def test_the_users_namespace_stays_as_it_was() -> None:
    variables = {"sales": sales(), "json": "mine"}
    await ask("report, and plot price by region", variables)
    assert set(variables) - {"__builtins__"} == {"sales", "json"}
    assert variables["json"] == "mine"


async def test_a_steer_changes_the_same_run() -> None:
    messages = await ask("Look at it", {"sales": sales()}, {2: "use the median, not the mean"})
    assert ".median()" in codes(messages)[-1]
    assert "Understood: use the median." in "".join(str(message["content"]) for message in messages)
    assert "**East** is highest (30), North lowest (10)" in messages[-1]["content"]
    assert "mean" not in messages[-1]["content"]


async def test_a_late_steer_makes_it_compute_again() -> None:
    """The group-by with the mean is done already when the steer comes."""
    messages = await ask("Look at it", {"sales": sales()}, {4: "use the median"})
    grouped = [code for code in codes(messages) if "groupby" in code]
    assert ["mean()" in code for code in grouped] == [True, False]
    assert "Median `price`" in messages[-1]["content"]


async def test_only_one_column_and_stop_after_the_summary() -> None:
    messages = await ask(
        "Look", {"sales": sales()}, {1: "only the column price", 2: "stop after the summary"}
    )
    made = codes(messages)
    assert len(made) == 3
    assert "['price']" in made[-1]
    assert "describe" in made[-1]
    assert "`qty`" not in messages[-1]["content"]
    assert "Your steering: only price; stop after the summary." in messages[-1]["content"]


async def test_a_steer_it_cannot_follow_is_said() -> None:
    messages = await ask("Look", {"sales": sales()}, {1: "sing a song"})
    assert "could not follow “sing a song”" in messages[-1]["content"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Which region is highest?", "**North** is highest (40)"),
        ("which region has the lowest price", "**South** is lowest (20)"),
        ("What is the median of price?", "The median of `price` is **20**"),
        ("how many rows are there?", "8 rows"),
        ("are there missing values?", "`price` 1 (12.5 %)"),
        ("what variables are in the kernel?", "`sales`: a DataFrame of 8 x 4"),
        ("summarise the table by qty", "`qty`"),
        ("hello", "fixed rules"),
    ],
)
async def test_other_questions(prompt: str, expected: str) -> None:
    assert expected in (await ask(prompt, {"sales": sales()}))[-1]["content"]


async def test_a_queued_question_goes_on_in_the_same_conversation() -> None:
    history: list[Any] = []
    await ask("Analyse sales", {"sales": sales()}, {2: "use the median"}, history)
    later = await ask("plot price by region", {"sales": sales()}, None, history)
    assert 'plot(kind="bar"' in codes(later)[-1]
    assert "The figure shows the mean of `price` by `region` as bars." in later[-1]["content"]
    assert "median" not in later[-1]["content"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "no variables"),
        ({"x": pd.Series([1.0, 2.0, 6.0])}, "mean 3"),
        ({"numbers": [1, 2, 6]}, "From 1 to 6, mean 3."),
        ({"settings": {"a": 1}}, "a dict of length 1"),
        ({"f": print}, "no DataFrame"),
        ({"empty": pd.DataFrame({"a": []})}, "It is empty"),
        ({"double": pd.DataFrame([[1, 2]], columns=["a", "a"])}, "No values are missing"),
        (
            {"odd": pd.DataFrame({0: [1, 3], 'it\'s "q"': ["x", "y"], ("t", 1): [1, 2]})},
            "**y** is highest (3)",
        ),
        ({"words": pd.DataFrame({"w": ["a", "b", "a"]})}, "a (2), b (1)"),
        ({"lists": pd.DataFrame({"l": [[1], [2]], "v": [1, 2]})}, "mean 1.50"),
        (
            {"small": pd.DataFrame({"a": [1]}), "large": pd.DataFrame({"a": range(9)})},
            "**`large`** has 9 rows",
        ),
    ],
)
async def test_whatever_is_in_the_kernel(variables: dict[str, Any], expected: str) -> None:
    assert expected in (await ask("Analyse my data", variables))[-1]["content"]


async def test_a_named_table_is_taken() -> None:
    tables = {"a": pd.DataFrame({"x": [1]}), "b": pd.DataFrame({"x": range(9)})}
    assert "**`a`**" in (await ask("Describe `a`", tables))[-1]["content"]
    assert "**`b`**" in (await ask("Look", tables, {1: "look at b instead"}))[-1]["content"]


async def test_a_refused_call_is_said_and_ends_the_run() -> None:
    def python(code: str) -> str:
        return "The person did not allow this call (reject)."

    tools = [kernel_tools(namespace={"sales": sales()})[1], as_tool(python)]
    messages = await run(DemoModel(0), tools, [{"role": "user", "content": "Analyse"}])
    assert "did not allow this call" in messages[-1]["content"]


async def test_without_its_tools_it_says_so() -> None:
    reply = await DemoModel(0).reply(Request([{"role": "user", "content": "Analyse"}], []), Heard())
    assert "list_variables is not offered" in reply.text
    assert reply.tool_calls == []


async def test_in_autopilot_it_completes_its_task() -> None:
    """It would be nudged for ever otherwise (copilot-cli#1522)."""
    done: list[str] = []

    tools = [
        *kernel_tools(namespace={"sales": sales()}),
        Tool("task_complete", "", lambda given, _: end(given)),
    ]

    def end(given: dict[str, Any]) -> ToolResult:
        done.append(given["summary"])
        tools.pop()  # what the engine does: the run ends
        return ToolResult("ok")

    await run(DemoModel(0), tools, [{"role": "user", "content": CLOCK + "Analyse"}])
    assert done == ["**`sales`** has 8 rows and 4 columns."]


async def test_the_text_streams_in_chunks_that_make_the_reply() -> None:
    heard = Heard()
    reply = await DemoModel(0).reply(Request([{"role": "user", "content": "hello"}], []), heard)
    assert len(heard.all) > 10
    assert "".join(piece for _, piece in heard.all) == reply.text


@pytest.mark.parametrize(
    "code",
    [
        "print(df.shape)",
        "import os",
        "print(df[['a']].describe().to_json(orient=\"split\")); import os",
        "print(df[[f'{exit()}']].describe().to_json(orient=\"split\"))",
        "print(df[['a', exit()]].describe().to_json(orient=\"split\"))",
        "print(df[['a'].pop()].describe().to_json(orient=\"split\"))",
        "print(df[['a' + 'b']].describe().to_json(orient=\"split\"))",
        "print(df.groupby('a', observed=True)[['b']].eval().to_json(orient=\"split\"))",
        "print([min(a), sum(b) / len(a), max(a)])",
        'print(x.y.describe().to_json(orient="split"))',
        'print(_x.describe().to_json(orient="split"))',
        "print([min(a), sum(a) / len(a), max(a)])\nexit()",
    ],
)
def test_only_its_own_code_passes_the_built_in_rule(code: str) -> None:
    assert not is_demo_code(code)


@pytest.mark.parametrize(
    "column", ["price", "it's", 'a"b', "x']; import os; ['", "\\", "é\u2028", "{frame}", 3, -1]
)
async def test_a_hostile_column_name_stays_a_name(column: Any) -> None:
    frame = pd.DataFrame({column: [1, 2, 3], "g": ["a", "b", "a"]})
    messages = await ask("Analyse", {"df": frame})
    made = codes(messages)[1:]
    assert len(made) == 3
    assert all(is_demo_code(code) for code in made)
    assert "mean 2, median 2" in messages[-1]["content"]


@pytest.mark.parametrize(
    ("texts", "kinds", "stat", "stop"),
    [
        (["Summarise the table"], ["analyse"], "mean", None),
        (["Give me an overview", "median please"], ["analyse"], "median", None),
        (["explore", "use the total instead of the average"], ["analyse"], "sum", None),
        (["explore", "please stop after the summary."], ["analyse"], "mean", "summary"),
        (["explore", "that's enough"], ["analyse"], "mean", "now"),
        (["explore", "skip the group-by"], ["analyse"], "mean", "summary"),
        (["Draw a histogram of price"], ["plot"], "mean", None),
        (["Which region has the highest average price?"], ["extreme"], "mean", None),
        (["analyse it and plot the result"], ["analyse", "plot"], "mean", None),
        (["Where are nulls?"], ["missing"], "mean", None),
    ],
)
def test_phrases(texts: list[str], kinds: list[str], stat: str, stop: str | None) -> None:
    wish = understand(texts, ["sales"], ["price", "region"])
    assert (wish.kinds, wish.stat, wish.stop_after) == (kinds, stat, stop)
