"""Python environments with other versions of ipykernel, made once and kept in a cache folder.

    python tests/venvs.py                 # make all of them
    python tests/venvs.py 6.29.5 7.2.0    # make these

The border lines that change what an agent in a notebook sees are ipykernel 7.0 (output follows the context,
subshell threads) and 7.4 (widget messages are served while a cell awaits), so each test that depends on one
of them runs on both sides. `$COPILOT_NB_TEST_CACHE` moves the cache (default: ``.cache`` in the project).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("COPILOT_NB_TEST_CACHE") or ROOT / ".cache")

#: ipykernel version -> the IPython that belongs to its time
VERSIONS = {
    "6.29.5": "ipython==8.39.0",
    "7.0.1": "ipython==9.6.0",
    "7.2.0": "ipython==9.18.1",
    "7.3.0": "ipython==9.18.1",
    "7.4.0": "ipython==9.18.1",
}

#: what a kernel needs beside the package itself
EXTRAS = ["rich", "matplotlib"]


class Unavailable(RuntimeError):
    """The environment cannot be made here (usually: no package index in reach)."""


def python(version: str) -> Path:
    """The interpreter of the environment with that ipykernel; makes the environment if it is not there."""
    home = CACHE / "venvs" / f"ipykernel-{version}"
    done = home / "done.json"
    wanted = {"ipykernel": version, "ipython": VERSIONS[version], "extras": EXTRAS, "root": str(ROOT)}
    wanted["dependencies"] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    with _locked(version):
        if not (done.exists() and json.loads(done.read_text()) == wanted):
            shutil.rmtree(home, ignore_errors=True)
            _make(home, version)
            done.write_text(json.dumps(wanted))
    return home / "bin" / "python"


def needs_venv(version: str) -> None:
    """For tests: make the environment, or skip with the reason (no package index in reach)."""
    import pytest

    try:
        python(version)
    except (Unavailable, OSError) as error:
        pytest.skip(f"no environment with ipykernel {version} can be made here: {error}")


def kernelspecs(*versions: str) -> Path:
    """A folder for `JUPYTER_PATH` that offers a kernel ``ipykernel-<version>`` for each version."""
    for version in versions:
        folder = CACHE / "jupyter" / "kernels" / f"ipykernel-{version}"
        folder.mkdir(parents=True, exist_ok=True)
        argv = [
            str(python(version)),
            "-Xfrozen_modules=off",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
        ]
        spec = {"argv": argv, "display_name": f"ipykernel {version}", "language": "python"}
        spec["metadata"] = {"debugger": False}
        (folder / "kernel.json").write_text(json.dumps(spec))
    return CACHE / "jupyter"


def _make(home: Path, version: str) -> None:
    """With uv where it is installed and reaches an index, else with pip and the machine's settings."""
    packages = [f"ipykernel=={version}", VERSIONS[version], *EXTRAS, "-e", str(ROOT)]
    interpreter = str(home / "bin" / "python")
    uv = shutil.which("uv")
    if uv:
        create = [uv, "venv", "--python", sys.executable, str(home)]
        failed = _run(create, [uv, "pip", "install", "--python", interpreter, *packages])
        if failed is None:
            return
        shutil.rmtree(home, ignore_errors=True)
    create = [sys.executable, "-m", "venv", str(home)]
    failed = _run(create, [interpreter, "-m", "pip", "install", "-q", *packages])
    if failed is not None:
        raise Unavailable(failed)


def _run(*commands: list[str]) -> str | None:
    """Run commands in order; what the first that fails says."""
    for command in commands:
        env = {**os.environ, "UV_SYSTEM_CERTS": "1"}
        result = subprocess.run(command, capture_output=True, text=True, env=env)
        if result.returncode:
            return f"{' '.join(command[:4])} … failed:\n{result.stderr[-2000:]}"
    return None


@contextmanager
def _locked(version: str):
    """One process at a time makes an environment."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{version}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for name in sys.argv[1:] or VERSIONS:
        print(name, python(name), flush=True)
