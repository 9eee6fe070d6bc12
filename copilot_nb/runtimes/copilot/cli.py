"""Finding the Copilot CLI on this machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from copilot_nb.errors import RuntimeUnavailable
from copilot_nb.runtimes.copilot.advice import INSTALL

Source = Literal["explicit path", "COPILOT_CLI_PATH", "SDK cache", "PATH"]


class Cli(Struct, frozen=True):
    """An executable, and how it was found.

    Attributes
    ----------
    path
        What is started: the native program where npm's start script was found. That script waits for
        the program as its child; killed alone it would leave the program running.
    found
        The path that was found first.
    """

    path: Path
    source: Source
    found: Path

    def command(self) -> list[str]:
        """The words that start it."""
        if self.path.suffix in (".js", ".mjs"):
            return [shutil.which("node") or "node", str(self.path)]
        return [str(self.path)]

    def version(self, timeout: float = 20) -> str:
        """What ``--version`` says, such as ``1.0.102``.

        Raises
        ------
        RuntimeUnavailable
            It does not start, or says nothing.
        """
        try:
            done = subprocess.run(
                [*self.command(), "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                start_new_session=os.name == "posix",
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeUnavailable(f"{self.path} does not start: {error}. {INSTALL}") from error
        words = done.stdout.split()
        version = next((word.rstrip(".") for word in words if word[:1].isdigit()), "")
        if done.returncode or not version:
            said = (done.stderr or done.stdout).strip()[:300]
            raise RuntimeUnavailable(f"{self.path} does not work (exit {done.returncode}): {said} {INSTALL}")
        if self.source != "SDK cache" and "copilot" not in done.stdout.lower():
            raise RuntimeUnavailable(
                f"{self.path} is no Copilot CLI: it says {done.stdout[:60]!r}. {INSTALL}"
            )
        return version


def find(explicit: str | os.PathLike[str] | None = None) -> Cli | None:
    """The CLI: an explicit path, ``COPILOT_CLI_PATH``, the SDK's cache, ``copilot`` on PATH; else None.

    Imports the SDK when the first two say nothing, so call it off the loop.

    Raises
    ------
    RuntimeUnavailable
        A path was named, but no program is there.
    """
    if explicit:
        return _named(Path(explicit), "explicit path", "Correct the path, or leave it out.")
    variable = os.environ.get("COPILOT_CLI_PATH")
    if variable:
        advice = (
            "Correct it:  %env COPILOT_CLI_PATH=/path/to/copilot  or remove it:  "
            "import os; del os.environ['COPILOT_CLI_PATH']"
        )
        return _named(Path(variable), "COPILOT_CLI_PATH", advice)
    cached = sdk_cache()
    if cached is not None:
        return Cli(cached, "SDK cache", cached)
    on_path = shutil.which("copilot")
    if on_path is not None:
        return Cli(native(Path(on_path)), "PATH", Path(on_path))
    return None


def _named(path: Path, source: Source, advice: str) -> Cli:
    path = path.expanduser()
    if not path.is_file():
        raise RuntimeUnavailable(f"No Copilot CLI is at {path}, where {source} says. {advice}")
    return Cli(native(path), source, path)


def sdk_cache() -> Path | None:
    """The program that ``python -m copilot download-runtime`` put on this machine; None when it did not."""
    from copilot._cli_download import get_cache_dir  # no public name says where the cache is (SDK 1.0.27)
    from copilot._cli_version import CLI_VERSION

    name = "copilot-runtime.exe" if sys.platform == "win32" else "copilot-runtime"
    found = sorted(get_cache_dir(CLI_VERSION).glob(f"prebuilds/*/{name}"))
    complete = [path for path in found if path.stat().st_size and path.with_name("runtime.node").is_file()]
    return complete[0] if complete else None


def native(path: Path) -> Path:
    """The platform's program behind npm's start script; any other path as it is."""
    script = path.resolve()
    package = script.parent / "package.json"
    if script.suffix != ".js" or not package.is_file():
        return path
    if json.loads(package.read_text()).get("name") != "@github/copilot":
        return path
    return next((program for program in _platform_programs(script.parent) if program.is_file()), path)


def _platform_programs(package: Path) -> Iterator[Path]:
    machine = platform.machine().lower()
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    systems = {"linux": ["linux", "linuxmusl"], "win32": ["win32"]}.get(sys.platform, [sys.platform])
    if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
        systems.reverse()
    name = "copilot.exe" if sys.platform == "win32" else "copilot"
    for system in systems:
        for folder in (package.parent, package / "node_modules" / "@github"):
            yield folder / f"copilot-{system}-{machine}" / name


def download(progress: Callable[[str], None], timeout: float = 900) -> Cli:
    """Have the SDK download the CLI it was made for; call it off the loop, after the person said yes.

    Raises
    ------
    RuntimeUnavailable
        The download is switched off, refused or broken; the message has the SDK's reason.
    """
    progress("downloading the Copilot CLI …")
    command = [sys.executable, "-m", "copilot", "download-runtime"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            start_new_session=os.name == "posix",
        )
    except subprocess.TimeoutExpired:
        raise RuntimeUnavailable(f"The download did not end within {timeout:.0f} s. {INSTALL}") from None
    cached = sdk_cache() if done.returncode == 0 else None
    if cached is None:
        reason = (done.stderr or done.stdout).strip().removeprefix("Error: ")[:500]
        raise RuntimeUnavailable(f"The Copilot CLI could not be downloaded: {reason} {INSTALL}")
    progress("the Copilot CLI was downloaded")
    return Cli(cached, "SDK cache", cached)
