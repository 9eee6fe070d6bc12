"""Any Python function with type hints as a tool."""

from __future__ import annotations

import asyncio
import enum
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tool_parts import Context, call

from copilot_nb.errors import ToolError, UsageError
from copilot_nb.tools import Tool, ToolContext, ToolResult, as_tool, as_tools
from copilot_nb.tools.function import read_docstring


class Color(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


def paint(
    point: Point,
    color: Color,
    mode: Literal["fill", "line"] = "fill",
    names: list[str] | None = None,
    size: Annotated[int, msgspec.Meta(ge=1)] = 2,
    *,
    label: str = "none",
) -> str:
    """Paint a point.

    More words.

    Parameters
    ----------
    point : Point
        Where it is,
        on the canvas.
    color, mode
        How it looks.

    Returns
    -------
    str
        Not for the model.
    """
    return f"{point} {color} {mode} {names} {size} {label}"


def test_the_schema_comes_from_hints_and_docstring() -> None:
    tool = as_tool(paint)
    properties = tool.parameters["properties"]
    assert (tool.name, tool.description) == ("paint", "Paint a point.\n\nMore words.")
    assert tool.parameters["required"] == ["point", "color"]
    assert properties["point"]["description"] == "Where it is, on the canvas."
    assert properties["mode"] == {"enum": ["fill", "line"], "description": "How it looks.", "default": "fill"}
    assert properties["size"] == {"type": "integer", "minimum": 1, "default": 2}
    assert set(tool.parameters["$defs"]) == {"Point", "Color"}
    assert tool.parameters["additionalProperties"] is False
    assert tool.spec()["function"]["name"] == "paint"


async def test_arguments_are_converted_to_the_hints() -> None:
    given = {"point": {"x": "3"}, "color": "red", "names": ["a"], "size": 4}
    result = await call(as_tool(paint), given)
    assert result.text == "Point(x=3, y=0) Color.RED fill ['a'] 4 none"


async def test_wrong_arguments_are_all_named_to_the_model() -> None:
    result = await call(as_tool(paint), {"point": {"x": "no"}, "size": 0, "extra": 1})
    assert result.error == result.text
    for part in ("'color'", "'point'", "'size'", "'extra'"):
        assert part in result.text


def test_google_style_and_no_docstring() -> None:
    text, described = read_docstring(
        "Do it.\n\nArgs:\n    a (int): First,\n        goes on.\n    b: Second.\n\nReturns:\n    x: y"
    )
    assert (text, described) == ("Do it.", {"a": "First, goes on.", "b": "Second."})

    def bare(x): ...  # type: ignore[no-untyped-def]

    tool = as_tool(bare)
    assert (tool.description, tool.parameters["properties"]) == ("Call the user's function bare.", {"x": {}})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, "(done; nothing was returned)"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (Point(1), '{"x":1,"y":0}'),
        (True, "true"),
        ({1, 2}, "{1, 2}"),
        ({"big": 2**70}, '{"big":1180591620717411303424}'),
        (float("nan"), "null"),
        (ToolResult("own", error="e"), "own"),
    ],
)
async def test_what_a_function_returns_becomes_text(value: Any, text: str) -> None:
    def give() -> Any:
        return value

    assert (await call(as_tool(give))).text == text


async def test_a_table_is_text_for_the_model_and_html_for_the_person() -> None:
    pandas = pytest.importorskip("pandas")

    def table() -> Any:
        return pandas.DataFrame({"a": range(500)})

    result = await call(as_tool(table))
    assert "[DataFrame 500 x 1]" in result.text
    assert result.display is not None
    assert "<table" in result.display["text/html"]

    def nested() -> Any:
        return {"rows": pandas.DataFrame({"a": [1]}), "n": pandas.Series([1]).sum()}

    assert '"n":1' in (await call(as_tool(nested))).text


async def test_an_exception_goes_to_the_model_without_our_frames() -> None:
    def outer() -> None:
        print("started")
        raise ValueError("kaboom")

    result = await call(as_tool(outer))
    assert result.error == "ValueError: kaboom"
    assert result.text.startswith("started\nTraceback")
    assert 'raise ValueError("kaboom")' in result.text
    assert "tools/function.py" not in result.text
    assert "threads.py" not in result.text

    def refuse() -> None:
        raise ToolError("not today")

    assert (await call(as_tool(refuse))).text == "not today"


async def test_a_plain_function_leaves_the_loop_free_and_an_async_one_runs_on_it() -> None:
    here = threading.get_ident()
    gate = threading.Event()

    def waits() -> bool:
        return gate.wait(60) and threading.get_ident() != here

    async def at_home() -> bool:
        await asyncio.sleep(0)
        return threading.get_ident() == here

    task = asyncio.create_task(call(as_tool(waits)))
    await asyncio.sleep(0.01)
    gate.set()
    assert (await task).text == "true"
    assert (await call(as_tool(at_home))).text == "true"


async def test_what_it_prints_is_captured(capsys: pytest.CaptureFixture[str]) -> None:
    def talk() -> str:
        print("working")
        return "done"

    context = Context()
    assert (await call(as_tool(talk), {}, context)).text == "working\ndone"
    assert context.said == ["working\n"]
    assert capsys.readouterr().out == ""


async def test_methods_callables_and_contexts() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        def add(self, by: int = 1) -> int:
            self.n += by
            return self.n

        def __call__(self, context: ToolContext, **more: Any) -> str:
            return f"{context.session_id} {more}"

    counter = Counter()
    assert (await call(as_tool(counter.add), {"by": 2})).text == "2"
    tool = as_tool(counter)
    assert tool.name == "Counter"
    assert tool.parameters["properties"] == {}
    assert (await call(tool, {"a": 1})).text == "session {'a': 1}"


def test_what_is_no_tool_says_so() -> None:
    with pytest.raises(UsageError, match="no tool"):
        as_tool(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="lambda"):
        as_tool(lambda: 1)

    def positional(*args: int) -> None: ...

    with pytest.raises(UsageError, match="position"):
        as_tool(positional)
    tool = Tool("paint", "", lambda arguments, context: ToolResult())
    with pytest.raises(UsageError, match="paint"):
        as_tools([tool, paint])
    assert as_tools([tool]) == [tool]
