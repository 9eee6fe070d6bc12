"""One Copilot CLI process, shared by the sessions of a kernel.

The SDK parses each event into its own classes, fails on some (reference §19) and does not know others; so
this file takes events as they come off the wire, and sends requests as plain dicts. The wire is the SDK's
``_client``, the one private attribute used (SDK 1.0.27 has no public one); the rest is its public API.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from copilot_nb.errors import CopilotNbError, RuntimeUnavailable, SessionError, UsageError
from copilot_nb.events import JSON, Event, new_id, now
from copilot_nb.runtimes.copilot import advice
from copilot_nb.runtimes.copilot.cli import Cli

START_SECONDS: Final = 60.0
_INVALID_PARAMS: Final = -32602

# Without a handler, logging would print the SDK's warnings into whichever cell ran last.
logging.getLogger("copilot").addHandler(logging.NullHandler())


class Listener(Protocol):
    """What a session gives the client to be told of its events."""

    def on_wire(self, event: Event) -> None:
        """An event of this session, on the loop, in order."""

    def on_death(self, message: str) -> None:
        """The process ended without being asked to; no event follows."""


_clients: dict[tuple[int, Path, Path], Client] = {}  # by loop, executable and home: one process each


async def connect(cli: Cli, home: Path) -> Client:
    """The running client of this loop, executable and home; started when there is none.

    Raises
    ------
    RuntimeUnavailable
        It does not start, or speaks another protocol.
    """
    key = (id(asyncio.get_running_loop()), cli.path, home)
    client = _clients.get(key)
    if client is None or client.ended:
        client = _clients[key] = Client(cli, home)
        client.starting = asyncio.create_task(client.start(), name="copilot_nb: start the Copilot CLI")
    assert client.starting is not None
    try:
        await asyncio.shield(client.starting)
    except RuntimeUnavailable:
        if _clients.get(key) is client:
            del _clients[key]
        raise
    return client


class Client:
    """The SDK's client and its process. Made by `connect`."""

    def __init__(self, cli: Cli, home: Path) -> None:
        self.cli = cli
        self.home = home
        self.listeners: dict[str, Listener] = {}
        self.starting: asyncio.Task[None] | None = None
        self.ended = False
        self.sdk: Any = None
        self._wire: Any = None
        self._process: Any = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def pid(self) -> int | None:
        """The CLI's process id."""
        return None if self._process is None else int(self._process.pid)

    async def start(self) -> None:
        """Import the SDK, start the process, agree on the protocol."""
        copilot = await asyncio.to_thread(import_sdk)
        command = guarded(self.cli.command())
        connection = copilot.RuntimeConnection.for_stdio(path=command[0], args=command[1:])
        self.sdk = copilot.CopilotClient(
            connection=connection,
            base_directory=str(self.home),
            log_level="error",
            client_info={"application_name": "copilot_nb"},
        )
        starting = asyncio.ensure_future(self.sdk.start())
        await asyncio.sleep(
            0
        )  # the process is there after the first step, and lost to us if a later one fails
        self._process = getattr(self.sdk, "_process", None)
        try:
            async with asyncio.timeout(START_SECONDS):
                await starting
        except (RuntimeError, OSError, TimeoutError) as error:
            self.ended = True
            await self._reap()
            raise RuntimeUnavailable(self._start_failure(error)) from error
        self._wire = self.sdk._client
        self._wire.set_notification_method_handler("session.event", self._on_event)
        close = self._wire.on_close
        loop = asyncio.get_running_loop()

        def closed() -> None:  # on the SDK's reader thread
            if close is not None:
                close()
            with contextlib.suppress(subprocess.TimeoutExpired):  # the pipe closes a moment before the end
                self._process.wait(timeout=1)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                loop.call_soon_threadsafe(self._on_close)

        self._wire.on_close = closed

    def _start_failure(self, error: BaseException) -> str:
        said = str(error) or f"no answer within {START_SECONDS:.0f} s"
        if "protocol version" in said:
            return (
                f"The Copilot CLI at {self.cli.path} and the SDK speak different protocol versions ({said}). "
                f"{advice.PROTOCOL}"
            )
        return (
            f"The Copilot CLI at {self.cli.path} (found by: {self.cli.source}) did not start: {said}. "
            "Try  copilot --version  in a terminal;  %copilot doctor  shows which program is used."
        )

    def _on_event(self, params: JSON) -> None:
        listener = self.listeners.get(params["sessionId"])
        if listener is not None:
            listener.on_wire(read_event(params["event"]))

    def _on_close(self) -> None:
        if self.ended:
            return
        self.ended = True
        self._keep(asyncio.create_task(self._reap(), name="copilot_nb: reap the Copilot CLI"))
        message = f"The Copilot CLI (process {self.pid}) ended unexpectedly: {self._last_words()}."
        for listener in list(self.listeners.values()):
            listener.on_death(message)
        self.listeners.clear()

    def _last_words(self) -> str:
        code = self._process.poll()
        said = " ".join(self._wire.get_stderr_output().split())[-300:]
        if code is None:
            how = "it closed the connection"
        elif code < 0:
            how = signal.Signals(-code).name
        else:
            how = f"exit code {code}"
        return f"{how}; it said: {said}" if said else how

    async def _reap(self) -> None:
        with contextlib.suppress(OSError, RuntimeError, subprocess.TimeoutExpired):
            await self.sdk.force_stop()
        self._close_pipes()

    def _close_pipes(self) -> None:
        """The SDK leaves them to the garbage collector; a kernel that runs for days needs its descriptors."""
        process = self._process
        for pipe in () if process is None else (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError, ValueError):  # broken, or closed by the SDK
                pipe.close()

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at here, in case nobody waits any more

    async def request(self, method: str, params: JSON) -> Any:
        """Call a method of the CLI; its result as plain JSON.

        Raises
        ------
        UsageError
            The CLI does not accept the parameters.
        SessionError
            It refused for another reason.
        RuntimeUnavailable
            It has ended.
        """
        # shielded: the SDK fails on an answer whose waiter was cancelled
        answer = asyncio.ensure_future(self._wire.request(method, params))
        self._keep(answer)
        with translated():
            return await asyncio.shield(answer)

    async def open_session(self, session_id: str, *, resume: bool, **options: Any) -> None:
        """Create or resume a session; its events go to the listener of that id, added before."""
        with translated():
            if resume:
                await self.sdk.resume_session(session_id, **options)
            else:
                await self.sdk.create_session(session_id=session_id, **options)

    async def close_session(self, session_id: str) -> None:
        """Let go of a session; the process stops with its last one."""
        try:
            if not self.ended:
                with contextlib.suppress(SessionError):  # gone already
                    await self.request("session.detach", {"sessionId": session_id})
        except RuntimeUnavailable:
            self.ended = True
        finally:
            self.listeners.pop(session_id, None)
        if not self.listeners:
            await self.stop()

    async def stop(self) -> None:
        """Stop the process."""
        already, self.ended = self.ended, True
        for key in [key for key, client in _clients.items() if client is self]:
            del _clients[key]
        if already:
            return
        try:
            await self.sdk.stop()
        except ExceptionGroup:  # a session that could not be detached: the process goes away all the same
            await self._reap()
        self._close_pipes()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn the SDK's errors into this project's."""
    from copilot._jsonrpc import JsonRpcError, ProcessExitedError  # not among the SDK's public names

    try:
        yield
    except JsonRpcError as error:
        said = error.message.partition("failed with message: ")[2] or error.message
        kind: type[CopilotNbError] = UsageError if error.code == _INVALID_PARAMS else SessionError
        raise kind(said) from error
    except (ProcessExitedError, OSError) as error:
        raise RuntimeUnavailable("The Copilot CLI has ended; the next prompt starts it again.") from error


def import_sdk() -> Any:
    """The SDK's package; call it off the loop.

    Its generated modules are some 90,000 lines. An installer that leaves compiling to the first import would
    have Python do it here, in one step that holds the whole kernel up for seconds; so another process does.
    """
    spec = importlib.util.find_spec("copilot")
    if spec is not None and spec.origin is not None and "copilot" not in sys.modules:
        folder = Path(spec.origin).parent
        sources = folder.glob("generated/*.py")
        if not all(Path(importlib.util.cache_from_source(str(source))).exists() for source in sources):
            # where nothing may be written this does nothing, and the import takes its time
            compiling = [sys.executable, "-m", "compileall", "-q", str(folder)]
            subprocess.run(compiling, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True)
    return importlib.import_module("copilot")


def guarded(command: list[str]) -> list[str]:
    """The command that starts the CLI in a process group of its own, tied to this process's life."""
    if os.name != "posix" or not sys.executable:
        return command
    guard = Path(__file__).with_name("guard.py")
    return [sys.executable, "-I", "-S", str(guard), str(os.getpid()), *command]


def read_event(raw: JSON) -> Event:
    """An event off the wire; one of an unknown shape is kept as it is, in ``data``."""
    try:
        return Event.from_dict(raw)
    except msgspec.ValidationError:
        data = raw.get("data")
        return Event(
            str(raw.get("type", "unknown")),
            data if isinstance(data, dict) else {"raw": raw},
            str(raw.get("id") or new_id()),
            str(raw.get("timestamp") or now()),
            parent_id=raw.get("parentId"),
            ephemeral=True if raw.get("ephemeral") else msgspec.UNSET,
        )
