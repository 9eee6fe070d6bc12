"""``%copilot doctor``: what the Copilot runtime needs, what is there, and what to type next."""

from __future__ import annotations

import asyncio
import contextlib
import html
import importlib.metadata
import os
import time
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from copilot_nb.errors import CopilotNbError, RuntimeUnavailable
from copilot_nb.runtimes.copilot import advice, cli
from copilot_nb.runtimes.copilot.client import Client
from copilot_nb.runtimes.copilot.options import KEY_NAMES
from copilot_nb.store import home_dir

_MARKS: Final = {True: "ok", False: "MISSING", None: "--"}
_KEY_USE: Final = {
    "OPENAI_API_KEY": "--base-url https://api.openai.com/v1",
    "AZURE_OPENAI_API_KEY": "--base-url https://NAME.openai.azure.com",
    "ANTHROPIC_API_KEY": "--base-url https://api.anthropic.com",
}


class Check(Struct, frozen=True):
    """One thing that was looked at.

    Attributes
    ----------
    ok
        None: it is missing, and not needed as things are.
    todo
        What to type when it is missing.
    """

    name: str
    ok: bool | None
    found: str
    todo: str = ""


class Report(Struct):
    """All checks; shows itself as text and as HTML."""

    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether a session can be opened on the Copilot CLI."""
        return all(check.ok is not False for check in self.checks)

    @property
    def next_step(self) -> str:
        """What to type next."""
        todo = next((check.todo for check in self.checks if check.ok is False), "")
        if todo:
            return todo
        login = any(check.name == "login" and check.ok for check in self.checks)
        if login:
            return "%%copilot --runtime copilot"
        key = next((name for name in KEY_NAMES.values() if os.environ.get(name)), "OPENAI_API_KEY")
        return f"%%copilot --runtime copilot --model NAME {_KEY_USE[key]}"

    def __str__(self) -> str:
        width = max((len(check.name) for check in self.checks), default=0)
        lines = [f"{check.name:<{width}}  {_MARKS[check.ok]:<7}  {check.found}" for check in self.checks]
        head = "The Copilot runtime is ready." if self.ok else "The Copilot runtime is not ready."
        return "\n".join([head, *lines, f"Next: {self.next_step}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(check.name)}</td><td><b>{_MARKS[check.ok]}</b></td>"
            f"<td style='text-align:left'>{html.escape(check.found)}</td></tr>"
            for check in self.checks
        )
        head = "The Copilot runtime is ready." if self.ok else "The Copilot runtime is not ready."
        return f"<b>{head}</b><table>{rows}</table>Next: <code>{html.escape(self.next_step)}</code>"


async def report(
    cli_path: str | None = None, home: str | os.PathLike[str] | None = None, *, download: bool = False
) -> Report:
    """Look at everything the runtime needs; starts the CLI for a moment.

    Parameters
    ----------
    download
        Have the SDK download the CLI first, if none is found: the person's yes.
    """
    checks = [_sdk()]
    if not checks[0].ok:
        return Report(checks)
    try:
        found = await asyncio.to_thread(cli.find, cli_path)
        if found is None and download:
            found = await asyncio.to_thread(cli.download, lambda text: None)
        if found is None:
            places = "not the named path, COPILOT_CLI_PATH, the SDK's cache, nor `copilot` on PATH"
            checks.append(Check("CLI", False, f"not found: {places}", advice.INSTALL))
        else:
            version = await asyncio.to_thread(found.version)
            checks.append(Check("CLI", True, f"{version} at {found.path} (found by: {found.source})"))
    except RuntimeUnavailable as error:
        checks.append(Check("CLI", False, str(error), str(error)))
        found = None
    if found is not None:
        checks += await _running(found, home_dir(home))
    checks.append(_keys())
    return Report(checks)


def _sdk() -> Check:
    try:
        version = importlib.metadata.version("github-copilot-sdk")
    except importlib.metadata.PackageNotFoundError:
        return Check("SDK", False, "github-copilot-sdk is not installed", "%pip install github-copilot-sdk")
    return Check("SDK", True, f"github-copilot-sdk {version}")


async def _running(found: cli.Cli, home: Path) -> list[Check]:
    """Start the CLI and ask it who is logged in."""
    client = Client(found, home)
    began = time.perf_counter()
    try:
        await client.start()
    except RuntimeUnavailable as error:
        return [Check("start", False, str(error), str(error))]
    checks = [Check("start", True, f"the CLI answers after {time.perf_counter() - began:.1f} s")]
    try:
        login = await client.request("auth.getStatus", {})
        if login.get("isAuthenticated"):
            who = f"{login.get('login') or 'logged in'} at {login.get('host') or 'github.com'}"
            checks += [Check("login", True, who), await _models(client)]
        else:
            checks.append(_no_login())
            checks += await _network()
    except CopilotNbError as error:
        checks.append(Check("login", False, str(error), advice.NOT_LOGGED_IN))
    finally:
        await client.stop()
    return checks


async def _models(client: Client) -> Check:
    """What the account may use: the first call that a plan, a policy or a dead network refuses."""
    try:
        models = (await client.request("models.list", {})).get("models") or []
    except CopilotNbError as error:
        said = str(error)
        policy = "403" in said or "polic" in said.lower() or "forbidden" in said.lower()
        todo = (
            advice.ERRORS["authorization"] if policy else f"Check the network and proxy; the CLI says: {said}"
        )
        return Check("models", False, said, todo)
    return Check("models", True, f"{len(models)} models for this account")


def _no_login() -> Check:
    keys = any(os.environ.get(name) for name in KEY_NAMES.values())
    found = "not logged in; not needed with a key of your own" if keys else "not logged in"
    return Check("login", None if keys else False, found, advice.NOT_LOGGED_IN)


async def _network() -> list[Check]:
    """Whether a login could reach GitHub from here; behind a proxy only the CLI itself can tell."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy")):
        return [Check("network", None, "goes through the proxy of HTTPS_PROXY; not tried")]
    try:
        async with asyncio.timeout(4):
            _, writer = await asyncio.open_connection("github.com", 443)
    except (OSError, TimeoutError) as error:
        reason = str(error) or "no answer within 4 s"
        return [
            Check(
                "network", None, f"github.com cannot be reached ({reason}): a login will not work from here"
            )
        ]
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return [Check("network", True, "github.com can be reached")]


def _keys() -> Check:
    names = [name for name in KEY_NAMES.values() if os.environ.get(name)]
    if names:
        return Check("own key", True, f"set: {', '.join(names)}")
    return Check("own key", None, f"none of {', '.join(KEY_NAMES.values())} is set")
