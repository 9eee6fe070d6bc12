"""The built-in shell with real processes (reference §3)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tool_parts import Context, call

from copilot_nb.tools import Tool, shell_tools
from copilot_nb.tools.shell import Shells

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and signals are POSIX")


@pytest.fixture
def shells() -> Iterator[Shells]:
    made = Shells()
    yield made
    made.close()


@pytest.fixture
def tools(shells: Shells) -> dict[str, Tool]:
    return {tool.name: tool for tool in shells.tools()}


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def gone(pid: int) -> bool:
    for _ in range(500):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def pid_in(path: Path) -> int:
    for _ in range(500):
        if text := written(path):
            return int(text)
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path} was never written")


def written(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


async def test_output_exit_code_and_folder(tools: Any, tmp_path: Path) -> None:
    context = Context(str(tmp_path))
    result = await call(
        tools["bash"], {"command": "pwd; echo err >&2; printf 'h\\303\\251'; exit 3"}, context
    )
    assert result.text == f"{tmp_path}\nerr\nhé\n[exit code 3]"
    assert result.error is None
    assert "".join(context.said) == f"{tmp_path}\nerr\nhé"


async def test_input_is_empty(tools: Any) -> None:
    assert (await call(tools["bash"], {"command": "cat; echo end"})).text == "end\n[exit code 0]"


@pytest.mark.parametrize("arguments", [{}, {"command": " "}, {"command": 1}])
async def test_no_command_is_an_error_in_words(tools: Any, arguments: dict[str, Any]) -> None:
    assert (await call(tools["bash"], arguments)).error == "no command"


async def test_a_missing_folder_is_a_failure(tools: Any) -> None:
    assert "cannot start" in (await call(tools["bash"], {"command": "ls"}, Context("/no/such/folder"))).text


async def test_a_steer_moves_it_to_the_background_and_its_end_is_told(tools: Any, tmp_path: Path) -> None:
    context = Context()
    command = f"echo first; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo hi"
    task = asyncio.create_task(call(tools["bash"], {"command": command, "description": "say hi"}, context))
    await context.heard.wait()
    context.steer()
    moved = await task
    assert moved.error is None
    assert "background" in moved.text
    (background,) = context.backgrounds
    assert (background.id, background.description) == ("0", "say hi")
    assert (await call(tools["read_bash"], {"shellId": "0"})).text == "first\n[still running]"
    (tmp_path / "go").touch()
    told = await background.wait()
    assert told["kind"] == {"type": "shell_completed", "shellId": "0", "exitCode": 0, "description": "say hi"}
    assert "say hi" in told["content"]
    assert told["read"] == {
        "name": "read_bash",
        "arguments": {"shellId": "0", "delay": 0},
        "result": "first\nhi\n[exit code 0]",
    }
    assert context.said == ["first\n"]
    assert context.callbacks == []
    assert (await call(tools["read_bash"], {"shellId": "0", "delay": 5})).text == "first\nhi\n[exit code 0]"


async def test_stop_bash_ends_the_whole_group(tools: Any, tmp_path: Path) -> None:
    context = Context()
    pid_file = tmp_path / "pid"
    command = f"sleep 600 & echo $! > {pid_file}; trap '' TERM; sleep 601"
    task = asyncio.create_task(call(tools["bash"], {"command": command}, context))
    pid = await pid_in(pid_file)
    context.steer()
    await task
    assert "[exit code" in (await call(tools["stop_bash"], {"shellId": "0"})).text
    assert await gone(pid)


async def test_an_abort_kills_the_command(tools: Any, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    task = asyncio.create_task(call(tools["bash"], {"command": f"echo $$ > {pid_file}; exec sleep 600"}))
    pid = await pid_in(pid_file)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)


async def test_closing_the_session_ends_what_runs_in_the_background(tools: Any, tmp_path: Path) -> None:
    context = Context()
    pid_file = tmp_path / "pid"
    task = asyncio.create_task(
        call(tools["bash"], {"command": f"echo $$ > {pid_file}; exec sleep 600"}, context)
    )
    pid = await pid_in(pid_file)
    context.steer()
    await task
    waiting = asyncio.create_task(context.backgrounds[0].wait())
    await asyncio.sleep(0)
    waiting.cancel()
    assert await gone(pid)
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_a_command_leaves_behind_ends_with_it(tools: Any, tmp_path: Path) -> None:
    """It would hold the output open, and the call would never end."""
    pid_file = tmp_path / "pid"
    result = await call(tools["bash"], {"command": f"sleep 600 & echo $! > {pid_file}"})
    assert result.text == "[exit code 0]"
    assert await gone(int(pid_file.read_text()))


def test_commands_die_with_a_killed_kernel(tmp_path: Path) -> None:
    """Children in their own group outlive even a shutdown (jupyter-facts Q5)."""
    pid_file = tmp_path / "pid"
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from tool_parts import call
from copilot_nb.tools import shell_tools
asyncio.run(call(shell_tools()[0], {{"command": "sleep 600 & echo $! > {pid_file}; sleep 601"}}))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as kernel:
        deadline = time.monotonic() + 120
        while not (pid_file.exists() and pid_file.read_text().strip()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pid = int(pid_file.read_text())
        assert alive(pid)
        kernel.send_signal(signal.SIGKILL)
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def test_an_interrupt_of_the_kernels_group_does_not_reach_it(tools: Any) -> None:
    assert int((await call(tools["bash"], {"command": "ps -o pgid= -p $$"})).text.split()[0]) != os.getpgid(0)


def test_it_needs_nothing_of_the_event_loop() -> None:
    """Some loops have no subprocesses at all (plmbr/notebook-intelligence#147)."""

    class Poor(asyncio.SelectorEventLoop):
        async def subprocess_exec(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

        async def subprocess_shell(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

    with asyncio.Runner(loop_factory=Poor) as runner:
        assert runner.run(call(shell_tools()[0], {"command": "echo ok"})).text == "ok\n[exit code 0]"


async def test_unknown_shells_are_named(tools: Any) -> None:
    for name in ("read_bash", "stop_bash"):
        assert "There is no shell '7'" in (await call(tools[name], {"shellId": "7"})).text


def test_only_running_asks(tools: dict[str, Tool]) -> None:
    assert {name: (tool.kind, tool.skip_permission) for name, tool in tools.items()} == {
        "bash": ("shell", False),
        "read_bash": ("builtin", True),
        "stop_bash": ("builtin", True),
    }
