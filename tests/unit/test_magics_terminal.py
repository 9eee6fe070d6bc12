"""The magics in plain IPython, where no loop runs between inputs and sessions live on their own thread."""

import subprocess
import sys

import terminal

CELLS = [
    "%load_ext copilot_nb",
    "import copilot_nb\nfrom copilot_nb.models.scripted import ScriptedModel",
    "session = copilot_nb.open_session(model=ScriptedModel(['one', 'two', 'three', 'four']))",
    "%%copilot --wait\nhello",
    "%enqueue next",
    "%copilot wait",
    "texts = [e.data['content'] for e in await session.get_events() if e.type == 'assistant.message']",
    "print('ANSWERS', texts)",
    "print('RUN', session.run('third'))",
    "%steer",
    "%copilot queue",
    "%copilot status",
    "%unload_ext copilot_nb",
    "import time\nwhile not session.closed: time.sleep(0.05)",
    "print('END')",
]


def test_a_session_in_the_terminal(tmp_path):
    command = [sys.executable, "-c", terminal.script(CELLS)]
    env = terminal.environment(tmp_path)
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    out = done.stdout + done.stderr
    assert "ANSWERS ['one', 'two']" in out, out
    assert "RUN three" in out
    assert "UsageError: The prompt is empty" in out
    assert "0 queued" in out and "mode interactive\nidle" in out
    assert "Traceback" not in out, out
    assert "END" in out
