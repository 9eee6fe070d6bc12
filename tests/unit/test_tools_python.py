"""The `python` tool and `list_variables`: in an IPython shell, and without one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tool_parts import Context, call

from copilot_nb.tools import Tool, kernel_tools
from copilot_nb.tools.capture import KEEP, Capture


@pytest.fixture(params=["shell", "plain"])
def tools(request: pytest.FixtureRequest) -> Iterator[dict[str, Tool]]:
    shell = None
    if request.param == "shell":
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell()
        shell.user_ns["shell_here"] = True
    yield {tool.name: tool for tool in kernel_tools(shell)}
    if shell is not None:
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()


async def python(tools: dict[str, Tool], code: str, context: Context | None = None) -> Any:
    return await call(tools["python"], {"code": code}, context)


async def test_output_then_value_and_what_was_assigned_stays(tools: Any) -> None:
    context = Context()
    result = await python(
        tools, "import sys\nx = 20\nprint('out')\nprint('err', file=sys.stderr)\nx + 1", context
    )
    assert (result.text, result.error) == ("out\nerr\n21", None)
    assert "".join(context.said) == "out\nerr\n"
    assert (await python(tools, "x")).text == "20"
    assert (await python(tools, "y = 1")).text == "(no output)"
    assert (await python(tools, "x;\nNone")).text == "(no output)"


@pytest.mark.filterwarnings("ignore:To exit")
@pytest.mark.parametrize(
    ("code", "error", "told"),
    [
        ("print('before')\n1/0", "ZeroDivisionError: division by zero", "before"),
        ("def f(:", "SyntaxError", "def f(:"),
        ("raise SystemExit(3)", "SystemExit", ""),
        ("raise ExceptionGroup('many', [ValueError('inner')])", "ExceptionGroup", "inner"),
        ("class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()", None, "no repr"),
    ],
)
async def test_a_failure_tells_the_model_the_traceback(
    tools: Any, code: str, error: str | None, told: str
) -> None:
    result = await python(tools, code)
    if error is not None:
        assert result.error.startswith(error)
    assert told in result.text
    assert "copilot_nb/tools" not in result.text
    assert "\x1b" not in result.text


@pytest.mark.parametrize("arguments", [{}, {"code": ""}, {"code": 3}])
async def test_no_code_is_an_error_in_words(tools: Any, arguments: dict[str, Any]) -> None:
    assert (await call(tools["python"], arguments)).error == "no code"


async def test_nothing_is_printed_into_another_cell(tools: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The rules for background output differ by version (jupyter-facts Q4); ours go by context."""
    code = "import asyncio\nprint('tool 1')\nawait asyncio.sleep(0.05)\nprint('tool 2')"
    task = asyncio.create_task(python(tools, code))
    while task.done() is False:
        print("cell")
        await asyncio.sleep(0.005)
    assert task.result().text == "tool 1\ntool 2"
    assert set(capsys.readouterr().out.split()) == {"cell"}


async def test_output_of_threads_the_code_starts_is_kept(
    tools: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import threading\nt = threading.Thread(target=print, args=('thread',))\nt.start(); t.join()"
    assert (await python(tools, code)).text == "thread"
    assert capsys.readouterr().out == ""


async def test_a_thread_of_another_cell_prints_where_it_did(
    tools: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import asyncio\nprint('tool')\nawait asyncio.sleep(0.5)"
    context = Context()
    task = asyncio.create_task(python(tools, code, context))
    await context.heard.wait()
    thread = threading.Thread(target=print, args=("cell thread",))
    thread.start()
    thread.join()
    assert (await task).text == "tool"
    assert capsys.readouterr().out == "cell thread\n"


async def test_streams_are_as_before_afterwards(tools: Any) -> None:
    before = (sys.stdout, sys.stderr, sys.displayhook)
    await python(tools, "print(1)")
    await python(tools, "1/0")
    assert (sys.stdout, sys.stderr, sys.displayhook) == before


async def test_parallel_calls_run_one_after_the_other(tools: Any) -> None:
    code = "import asyncio\nprint('a')\nawait asyncio.sleep(0.02)\nprint('b')"
    results = await asyncio.gather(*(python(tools, code) for _ in range(3)))
    assert [result.text for result in results] == ["a\nb"] * 3
    await python(tools, "log = []")
    step = "import asyncio\nlog.append('in')\nawait asyncio.sleep(0.01)\nlog.append('out')"
    await asyncio.gather(*(python(tools, step) for _ in range(3)))
    assert (await python(tools, "log")).text == repr(["in", "out"] * 3)


async def test_cancelling_ends_awaiting_code(tools: Any) -> None:
    """The shell swallows the cancellation of code that awaits; an abort must still end the call."""
    task = asyncio.create_task(python(tools, "import asyncio\nawait asyncio.sleep(600)"))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await python(tools, "1 + 1")).text == "2"


async def test_an_interrupt_stops_the_code_and_nothing_else(tools: Any) -> None:
    """Between cells the kernel ignores SIGINT (jupyter-facts Q5); the code would run to its end."""
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        result = await python(tools, "import time\nfor _ in range(600):\n    time.sleep(0.1)")
        assert result.error == "KeyboardInterrupt: the person interrupted the code"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        timer.join()
    finally:
        signal.signal(signal.SIGINT, old)


async def test_tables_show_as_text_to_the_model_and_as_html_to_the_person(tools: Any) -> None:
    pytest.importorskip("pandas")
    result = await python(tools, "import pandas as pd\npd.DataFrame({'a': range(1000)})")
    assert "[DataFrame 1000 x 1]" in result.text
    assert len(result.text) < 2000
    assert "<table" in result.display[0]["text/html"]


async def test_long_values_are_cut_with_a_mark(tools: Any) -> None:
    """Huge reprs flood the context (datalayer jupyter-mcp-server#200)."""
    result = await python(tools, "'x' * 1_000_000")
    assert len(result.text) < 10_000
    assert "characters left out" in result.text


async def test_very_long_output_keeps_both_ends() -> None:
    capture = Capture()
    for number in range(30_000):
        capture.write(f"{number} {'-' * 60}\n")
    text = capture.output
    assert len(text) < 2 * KEEP + 1000
    assert text.startswith("0 ---")
    assert text.rstrip().endswith("29999 " + "-" * 60)
    assert "characters left out" in text


def test_a_figure_is_shown_to_the_person_and_named_to_the_model() -> None:
    """In a real kernel process, where the inline backend displays figures after the code."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("ipykernel")
    program = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from ipykernel.inprocess.ipkernel import InProcessInteractiveShell
from tool_parts import call
from copilot_nb.tools import kernel_tools

async def main():
    python = kernel_tools(InProcessInteractiveShell.instance())[0]
    result = await call(python, {"code": "import matplotlib.pyplot as plt\\nplt.plot([1, 2]);"})
    print(result.text, sorted(result.display[0]), result.display[0]["image/png"][:8])
    code = "from IPython.display import display, HTML\\ndisplay(HTML('<b>x</b>')); display(HTML('<b>y</b>'))"
    result = await call(python, {"code": code})
    print([bundle["text/html"] for bundle in result.display])

asyncio.run(main())
"""
    env = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", program, here], env=env, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("[image/png ")
    assert "'image/png'" in first
    assert first.endswith("iVBORw0K")
    assert second == "['<b>x</b>', '<b>y</b>']"


async def test_magics_and_shell_lines_work_in_a_shell() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    tools = {tool.name: tool for tool in kernel_tools(shell)}
    count = shell.execution_count
    assert (await python(tools, "!echo from the shell")).text == "from the shell"
    assert "loop" in (await python(tools, "%timeit -n1 -r1 1")).text
    assert (await python(tools, "%no_such_magic")).error is not None
    assert shell.execution_count == count
    assert "_" not in shell.user_ns or shell.user_ns["_"] == ""
    shell.history_manager.end_session()


async def test_variables_are_described_without_running_their_code() -> None:
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")

    class Explosive:
        def __repr__(self) -> str:
            raise AssertionError("list_variables needs no permission, so it may run nothing")

        def __len__(self) -> int:
            raise AssertionError("nor this")

    variables = {
        "df": pandas.DataFrame({"a": [1], 2: ["x"]}),
        "array": numpy.zeros((2, 3)),
        "items": [1, "a"],
        "table": {"k": 1},
        "text": "hello" * 100,
        "api_key": "sk-secret",
        "n": 7,
        "bomb": Explosive(),
        "os": os,
        "_hidden": 1,
    }
    listed = json.loads((await call(kernel_tools(namespace=variables)[1])).text)["variables"]
    by_name = {variable["name"]: variable for variable in listed}
    assert list(by_name) == ["df", "array", "items", "table", "text", "api_key", "n", "bomb"]
    assert by_name["df"]["shape"] == [1, 2]
    assert list(by_name["df"]["columns"]) == ["a", "2"]
    assert by_name["array"] == {"name": "array", "type": "ndarray", "shape": [2, 3], "dtype": "float64"}
    assert by_name["items"] == {"name": "items", "type": "list", "length": 2, "of": ["int", "str"]}
    assert len(by_name["text"]["value"]) < 100
    assert "value" not in by_name["api_key"]
    assert by_name["n"]["value"] == "7"
    assert "sk-secret" not in json.dumps(listed)


async def test_many_variables_are_counted() -> None:
    answer = json.loads((await call(kernel_tools(namespace={f"v{i}": i for i in range(500)})[1])).text)
    assert len(answer["variables"]) + answer["left_out"] == 500


def test_only_looking_is_free() -> None:
    python_tool, variables = kernel_tools()
    assert (python_tool.skip_permission, variables.skip_permission) == (False, True)
