"""Who is measured beside us, and the environments they live in.

Each peer has a virtual environment of its own under ``.cache/bench`` (`COPILOT_NB_TEST_CACHE` moves it), made
by ``run.py --setup``. One that was not set up runs in this environment if it can be imported here, else it is
skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("COPILOT_NB_TEST_CACHE") or ROOT / ".cache") / "bench"
CLI = "@github/copilot@1.0.102"
Kind = Literal["ours", "limit", "sdk", "agent", "cli", "magics", "import"]


@dataclass(frozen=True)
class Peer:
    """One client.

    Attributes
    ----------
    kind
        What the goals depend on.
    driver
        Module of ``drivers/``.
    needs, modules
        Packages to install; modules that must be importable.
    """

    name: str
    kind: Kind
    driver: str = ""
    needs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        """The peer's own environment."""
        return CACHE / self.name.replace(" ", "-")

    def python(self) -> str | None:
        """The interpreter that has the peer; None when there is none."""
        own = self.home / "bin" / "python"
        if own.exists():
            return str(own)
        return sys.executable if all(find_spec(module) for module in self.modules) else None

    def missing(self) -> str | None:
        """Why the peer cannot run here, in words; None when it can."""
        if self.kind == "cli" and cli_path() is None:
            return "no Copilot CLI: set COPILOT_CLI_PATH, or run --setup with npm"
        return None if self.python() else "not installed: run --setup"


OURS = Peer("copilot_nb", "ours", "ours")
PANEL = Peer("copilot_nb with a panel", "ours", "ours_panel")
LIMIT = Peer("httpx loop", "limit", "httpx_loop", ("httpx", "httpx-sse"), ("httpx", "httpx_sse"))
COPILOT = Peer(
    "Copilot CLI", "cli", "copilot_cli", ("github-copilot-sdk==1.0.27", "ipykernel"), ("copilot", "ipykernel")
)
PEERS = (
    LIMIT,
    Peer("openai SDK loop", "sdk", "openai_loop", ("openai",), ("openai",)),
    Peer(
        "pydantic-ai", "agent", "pydantic_ai_agent", ("pydantic-ai-slim[openai]",), ("pydantic_ai", "openai")
    ),
    Peer("openai-agents", "agent", "openai_agents", ("openai-agents",), ("agents",)),
    Peer(
        "langchain",
        "agent",
        "langchain_agent",
        ("langchain", "langchain-openai"),
        ("langchain", "langchain_openai"),
    ),
    COPILOT,
)
JUPYTER_AI = Peer(
    "jupyter-ai magics",
    "magics",
    needs=("jupyter-ai-magic-commands", "ipykernel"),
    modules=("jupyter_ai_magic_commands",),
)


def cli_path() -> str | None:
    """The Copilot CLI: `COPILOT_CLI_PATH`, or the one that `set_up` installed."""
    own = CACHE / "npm" / "node_modules" / ".bin" / "copilot"
    return os.environ.get("COPILOT_CLI_PATH") or (str(own) if own.exists() else None)


def set_up() -> None:
    """Make every environment that is not there yet; what fails is said and left out."""
    for peer in (*PEERS, JUPYTER_AI):
        if not (peer.home / "bin" / "python").exists():
            _say(peer.name, _make(peer))
    if cli_path() is None and (npm := shutil.which("npm")) is not None:
        command = [
            npm,
            "install",
            "--no-fund",
            "--no-audit",
            "--loglevel=error",
            "--prefix",
            str(CACHE / "npm"),
            CLI,
        ]
        _say(CLI, _run(command))


def _make(peer: Peer) -> str | None:
    uv, home = shutil.which("uv"), str(peer.home)
    interpreter = f"{home}/bin/python"
    if uv:
        commands = [[uv, "venv", "-q", "--python", sys.executable, home]]
        commands.append([uv, "pip", "install", "-q", "--python", interpreter, *peer.needs])
    else:
        commands = [[sys.executable, "-m", "venv", home]]
        commands.append([interpreter, "-m", "pip", "install", "-q", *peer.needs])
    for command in commands:
        if problem := _run(command):
            shutil.rmtree(peer.home, ignore_errors=True)
            return problem
    return None


def _run(command: list[str]) -> str | None:
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stderr.strip()[-300:] or f"exit status {result.returncode}" if result.returncode else None


def _say(name: str, problem: str | None) -> None:
    print(f"{name}: {problem or 'installed'}", flush=True)


def versions(peer: Peer) -> str:
    """The peer's packages with their versions."""
    names = [need.partition("[")[0].partition("=")[0] for need in peer.needs if need != "ipykernel"]
    code = "import sys; from importlib.metadata import version; "
    code += "print(', '.join(f'{name} {version(name)}' for name in sys.argv[1:]))"
    done = subprocess.run([peer.python() or "", "-c", code, *names], capture_output=True, text=True)
    return done.stdout.strip()
