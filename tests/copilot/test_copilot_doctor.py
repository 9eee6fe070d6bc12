"""Finding the CLI, and what `%copilot doctor` says in each situation."""

from __future__ import annotations

import asyncio
import http.server
import threading
from pathlib import Path

import pytest
from copilot_rig import Rig

from copilot_nb.errors import RuntimeUnavailable
from copilot_nb.permissions import Policy
from copilot_nb.runtimes.base import Answer
from copilot_nb.runtimes.copilot import cli, doctor


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without CLI, login, key or network proxy."""
    for name in (
        "COPILOT_CLI_PATH", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY",
        "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("COPILOT_CLI_EXTRACT_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "home"))
    return tmp_path


def program(path: Path) -> Path:
    """An executable that says it is a Copilot CLI."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho 'GitHub Copilot CLI 9.8.7.'\n")
    path.chmod(0o755)
    return path


def test_the_order_of_places(bare, monkeypatch):
    assert cli.find() is None
    on_path = program(bare / "bin" / "copilot")
    assert cli.find() == cli.Cli(on_path, "PATH", on_path)
    cached = program(cli_cache(bare))
    assert cli.find().source == "PATH"  # half a download does not count
    (cached.parent / "runtime.node").write_bytes(b"x")
    assert cli.find() == cli.Cli(cached, "SDK cache", cached)
    named = program(bare / "named")
    monkeypatch.setenv("COPILOT_CLI_PATH", str(named))
    assert cli.find().source == "COPILOT_CLI_PATH"
    assert cli.find(bare / "named").source == "explicit path"
    assert cli.find().version() == "9.8.7"
    with pytest.raises(RuntimeUnavailable, match="nowhere"):
        cli.find(bare / "nowhere")


def cli_cache(bare: Path) -> Path:
    """Where the SDK puts the program, by its own words."""
    from copilot._cli_download import get_cache_dir
    from copilot._cli_version import CLI_VERSION

    folder = get_cache_dir(CLI_VERSION)
    assert folder.is_relative_to(bare)
    return folder / "prebuilds" / "linux-x64" / "copilot-runtime"


def test_npms_start_script_is_left_out(cli_path):
    """Killed alone, that script leaves the program running; and it costs a Node process."""
    found = cli.find(cli_path)
    assert found.found == Path(cli_path)
    assert found.path.suffix != ".js" and found.version().startswith("1.")


@pytest.mark.parametrize(
    ("text", "words"), [("exit 3", "does not work"), ("echo other 1.0", "is no Copilot CLI")]
)
def test_another_program_of_that_name(bare, text, words):
    other = program(bare / "bin" / "copilot")
    other.write_text(f"#!/bin/sh\n{text}\n")
    with pytest.raises(RuntimeUnavailable, match=words):
        cli.find().version()


async def test_doctor_on_a_bare_machine(bare):
    report = await doctor.report()
    print(f"\n{report}")
    assert not report.ok
    assert [(check.name, check.ok) for check in report.checks] == [
        ("SDK", True),
        ("CLI", False),
        ("own key", None),
    ]
    assert "npm install -g @github/copilot" in report.next_step
    assert "npm install -g @github/copilot" in report._repr_html_()


async def test_doctor_with_a_cli_but_no_login(cli_path, bare):
    report = await doctor.report(cli_path)
    print(f"\n{report}")
    checks = {check.name: check for check in report.checks}
    assert not report.ok
    assert checks["CLI"].ok and "explicit path" in checks["CLI"].found
    assert checks["start"].ok and checks["login"].ok is False
    assert "copilot login" in report.next_step


async def test_doctor_with_a_cli_and_a_key(cli_path, bare, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    report = await doctor.report(cli_path)
    print(f"\n{report}")
    assert report.ok
    assert report.next_step.startswith("%%copilot --runtime copilot --model NAME --base-url")
    assert "sk-very-secret" not in str(report) + report._repr_html_()


async def test_doctor_with_a_program_that_does_not_start(bare):
    report = await doctor.report(program(bare / "bin" / "copilot"))
    assert [check.name for check in report.checks if check.ok is False] == ["start"]
    assert "did not start" in report.next_step


def test_text_of_others_stays_text_in_html():
    found = doctor.Check("CLI", False, "<img src=x onerror=alert(1)>", "<script>")
    page = doctor.Report([found])._repr_html_()
    assert "<img" not in page and "<script" not in page


class Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def no_release(monkeypatch):
    """A download address that has nothing."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("COPILOT_CLI_DOWNLOAD_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_download_is_asked_for_and_its_failure_told(bare, no_release):
    """Asked first; no download without a yes; a failed one says why and what else to do."""
    for word, told in (("Do not download", "npm install"), ("Download", "404")):
        r = Rig([], bare / "home")
        sending = asyncio.create_task(r.send("hi"))
        question = await r.event("user_input.requested")
        assert "download" in question["question"]
        await r.runtime.respond(question["requestId"], Answer({"answer": word}))
        with pytest.raises(RuntimeUnavailable, match=told):
            await sending
        assert r.of("user_input.completed")[0]["requestId"] == question["requestId"]
        assert ("downloading" in str(r.of("jupyter.runtime"))) is (word == "Download")
        await r.close()


async def test_no_download_where_nobody_can_be_asked(bare):
    r = Rig([], bare / "home", policy=Policy(can_ask=lambda: False))
    with pytest.raises(RuntimeUnavailable, match="npm install"):
        await r.send("hi")
    await r.close()


async def test_a_download_that_is_switched_off(bare, monkeypatch):
    monkeypatch.setenv("COPILOT_SKIP_CLI_DOWNLOAD", "1")
    report = await doctor.report(download=True)
    assert "automatic downloads are disabled" in report.next_step
