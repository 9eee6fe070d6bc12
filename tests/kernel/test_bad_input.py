"""Bad input, each with a clear error and nothing lost (issue 2, Must show 6)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_steering import SESSION


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One kernel for all: an error must not spoil what comes after it."""
    from kernels import Kernel
    from venvs import needs_venv

    needs_venv("7.4.0")
    with Kernel("7.4.0", tmp_path_factory.mktemp("home")) as running:
        running.ok("%load_ext copilot_nb")
        yield running


def message(cell):
    """The error as one message, without a traceback of our insides."""
    assert cell.status == "error", cell.text
    assert cell.error["traceback"] == [f"{cell.error['ename']}: {cell.error['evalue']}"]
    return cell.error["ename"], cell.error["evalue"]


def test_steer_queue_and_wait_without_a_session(start):
    kernel = start("7.4.0")
    kernel.ok("%load_ext copilot_nb")
    for line in (
        "%steer hello",
        "%enqueue hello",
        "%copilot wait",
        "%copilot status",
        "%copilot log",
        "%allow",
        "%deny",
    ):
        name, text = message(kernel.run(line))
        assert name == "NoSession" and "%%copilot" in text


def test_empty_prompts(kernel):
    kernel.ok(SESSION)
    assert "empty" in kernel.run("%%copilot").text  # IPython's own sentence
    for code in ("%%copilot\n  \n", "%steer", "%enqueue  ", "%%copilot --wait\n\n\n"):
        name, text = message(kernel.run(code))
        assert name == "UsageError" and "empty" in text
    assert kernel.value("len(session.state.messages)") == 0


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("%%copilot --modell demo\nhello", "Did you mean --model?"),
        ("%%copilot # trailing --wait\nhello", "below"),
        ("%%copilot -m\nhello", "expected one argument"),
        ("%%copilot --max-turns none\nhello", "--max-turns"),
        ("%%copilot --runtime other\nhello", "'engine', 'copilot'"),
        ("%%copilot -m nobody\nhello", "demo"),
        ("%%copilot -s ../x\nhello", "letters, digits"),
        ("%%copilot -s $(rm)\nhello", "letters, digits"),
        ("%copilot resume ../x", "letters, digits"),
        ("%copilot resume nowhere", "sessions"),
        ("%copilot stauts", "Did you mean status?"),
        ("%copilot look at my data", "%%copilot"),
        ("%copilot queue delete 1", "There is: list"),
        ("%copilot mode fast", "autopilot"),
        ("%copilot wait soon", "seconds"),
        ("%copilot abort now", "--all"),
        ("%allow python", "always"),
    ],
)
def test_wrong_words_say_what_exists(kernel, code, says):
    kernel.ok(SESSION)
    name, text = message(kernel.run(code))
    assert name in ("UsageError", "SessionNotFound") and says in text
    assert kernel.value("len(session.state.messages)") == 0
    assert kernel.ok("%copilot status").text.count("idle") == 1


def test_a_tool_that_raises_is_told_to_the_model(kernel):
    kernel.ok(SESSION.replace("await gate.wait()", "raise ZeroDivisionError('no such gate')"))
    kernel.ok("%%copilot --wait\nstart")
    assert kernel.value("events('tool.execution_complete')[0].data['success']") is False
    assert kernel.value("session.state.last_answer") == "the answer"


def test_a_model_that_refuses_the_connection(kernel, unused_port):
    kernel.ok(f"import os; os.environ['OPENAI_API_KEY'] = 'k'\nurl = 'http://127.0.0.1:{unused_port}/v1'")
    kernel.ok(f"%%copilot -m openai:x --base-url http://127.0.0.1:{unused_port}/v1 --no-wait\nhello")
    kernel.ok("import copilot_nb; session = copilot_nb.current()")
    kernel.ok("%copilot wait", timeout=120)
    errors = kernel.value("[e['message'] for e in session.state.errors]")
    assert len(errors) == 1 and re.search("refused|connect", errors[0], re.I)
    kernel.ok("%copilot status")


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_home_that_cannot_be_written(start, tmp_path):
    """A file stands where the folder should be: refused for root, too, unlike a read-only mode."""
    (tmp_path / "copilot").write_text("not a folder")
    kernel = start("7.4.0")
    kernel.ok("%load_ext copilot_nb")
    name, text = message(kernel.run("%%copilot\nhello"))
    assert name == "StoreError" and str(tmp_path / "copilot") in text


@pytest.fixture
def small_disk(tmp_path):
    """A folder where nothing big can be written, and the kernel's settings for it.

    As root a file system of 64 KiB; else a limit of that size on each file, which fails the same calls.
    """
    folder = tmp_path / "small"
    folder.mkdir()
    if _mount(folder, "size=64k"):
        yield folder, ""
        subprocess.run(["umount", str(folder)], check=True)
    else:
        limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        yield folder, limit + "resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))"


def _mount(folder, options):
    """Mount a file system in memory; False where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    allowed = sys.platform == "linux" and os.geteuid() == 0
    return allowed and subprocess.run(command, capture_output=True).returncode == 0


def test_a_full_disk(small_disk, start):
    """The run ends or goes on, but it says so, the kernel lives, and what was written stays readable."""
    folder, limit = small_disk
    kernel = start("7.4.0", COPILOT_HOME=str(folder))
    kernel.ok(limit)
    kernel.ok("%load_ext copilot_nb")
    kernel.ok(SESSION.replace('"the gate is open"', "'x' * 15_000") + "gate.set()")
    kernel.ok("model._replies[1]['text'] = ['y' * 90_000]")
    kernel.ok("%%copilot\nstart")
    waited = kernel.run("%copilot wait", timeout=60)
    said = (
        waited.text + str(waited.error) + str(kernel.value("[session.state.notices, session.state.errors]"))
    )
    assert re.search("no space|disk|full", said, re.I), said
    assert kernel.value("len(events('user.message'))") == 1
    kernel.ok("%copilot status")


def test_a_read_only_home(start, tmp_path):
    home = tmp_path / "readonly"
    home.mkdir()
    mounted = _mount(home, "ro")
    if not mounted:
        home.chmod(0o500)
        if os.access(home, os.W_OK):  # root without the right to mount
            home = Path("/proc/copilot")
    try:
        kernel = start("7.4.0", COPILOT_HOME=str(home))
        kernel.ok("%load_ext copilot_nb")
        name, text = message(kernel.run("%%copilot\nhello"))
        assert name == "StoreError" and str(home) in text
    finally:
        if mounted:
            subprocess.run(["umount", str(home)], check=True)
