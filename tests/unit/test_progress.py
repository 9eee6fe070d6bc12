"""``session.progress()`` and the waiting line in real terminals, and where there is none."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import terminal

SCRIPT = """
import asyncio, copilot_nb
from copilot_nb.models.scripted import ScriptedModel

async def slow() -> str:
    "Take a moment."
    await asyncio.sleep(1.5)
    return "done"

async def main():
    replies = [{"tool_calls": [{"id": "c", "name": "slow", "args": {}}]}, "the answer"]
    model = ScriptedModel(replies)
    session = copilot_nb.open_session(model=model, session_id="told", tools=[slow], allow=["slow"])
    with session.progress():
        await session.send_and_wait("go")
    print("ANSWER", session.state.last_answer)
    await session.close()

asyncio.run(main())
"""
IPYTHON = terminal.script(
    [
        "%load_ext copilot_nb",
        "import copilot_nb\nfrom copilot_nb.models.scripted import ScriptedModel",
        "slow = {'text': ['a '] * 10, 'chunk_delay_s': 0.3}",
        "session = copilot_nb.open_session(model=ScriptedModel([slow]), session_id='told')",
        "%%copilot --no-wait\nhello",
        "%copilot wait",
        "print('END', session.state.describe())",
    ]
)
SCREEN = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}


def environment(home) -> dict[str, str]:
    return terminal.environment(home) | SCREEN


def in_a_terminal(script: str, home) -> str:
    """What a program writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(home)) as run:
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not piece:
                break
            written += piece
        assert run.wait(60) == 0, written.decode()
    os.close(ours)
    return written.decode()


def drawn(text: str) -> list[str]:
    """The lines that were drawn over one another, each once, without the terminal's codes."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return list(dict.fromkeys(line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()))


def test_one_line_in_a_terminal(tmp_path):
    """It says the turn and the tool while they run, and ends with the state that is left."""
    text = in_a_terminal(SCRIPT, tmp_path)
    lines = drawn(text)
    assert any(re.search(r"told: turn 1, running slow for \d+\.\d s$", line) for line in lines), lines
    assert lines[-2:] == ["told: idle", "ANSWER the answer"]
    assert text.count("\x1b[2K") > 3, "one line, drawn over itself"


def test_nothing_where_there_is_no_terminal(tmp_path):
    """A log of a batch job gets no control codes and no line per refresh."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment(tmp_path), capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ANSWER the answer\n"


def test_waiting_in_ipython_draws_one_line(tmp_path):
    """A display that is updated would be printed anew each second there."""
    lines = drawn(in_a_terminal(IPYTHON, tmp_path))
    assert any(re.search(r"told: turn 1, writing for \d+\.\d s$", line) for line in lines), lines
    assert "told: idle" in lines
    assert lines[-1] == "END idle", lines
    assert "waited" not in str(lines)
