"""The built-in shell: `bash`, `read_bash`, `stop_bash`.

A command runs until it ends; when a person steers meanwhile, it moves to the background at once
(reference §3). It runs in a process group of its own, and a small watcher in that group ends the group
when the pipe to the kernel closes: so nothing outlives the kernel, not even its ``kill -9``, and what a
command left in the background ends with it. Threads and `subprocess.Popen` do the waiting, because not
every event loop can (plmbr/notebook-intelligence#147).
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable

from copilot_nb.events import JSON
from copilot_nb.tools.base import Tool, ToolContext, ToolResult
from copilot_nb.tools.capture import Capture
from copilot_nb.tools.results import cap

WATCHED = """\
exec 3<&0 </dev/null
trap : TERM
(cat <&3; kill -9 0) >/dev/null 2>&1 &
"$1" -c "$2" 3<&-"""
GRACE = 1.0  # seconds between asking a command to end and killing it
READ_LIMIT = 200_000  # characters
ENDED_KEPT = 20
_ID = {"shellId": {"type": "string", "description": "The id that bash reported."}}


class Shells:
    """The commands of one session, running and ended.

    Parameters
    ----------
    cwd
        Where commands run; None takes the session's working directory.
    """

    def __init__(self, cwd: str | None = None) -> None:
        self._cwd = cwd
        self._commands: dict[str, Command] = {}
        self._numbers = itertools.count()

    def tools(self) -> list[Tool]:
        """The three tools."""
        return [
            Tool(
                "bash",
                "Run a shell command and wait for its end. Returns its output and its exit code.",
                self.bash,
                {
                    "type": "object",
                    "properties": {
                        "command": {"type": "string"},
                        "description": {"type": "string", "description": "What it does, in a few words."},
                    },
                    "required": ["command"],
                },
                kind="shell",
            ),
            Tool(
                "read_bash",
                "Read the output so far of a shell command that runs in the background, or ran there.",
                self.read_bash,
                {
                    "type": "object",
                    "properties": {
                        **_ID,
                        "delay": {"type": "number", "description": "Seconds to wait first, unless it ends."},
                    },
                    "required": ["shellId"],
                },
                skip_permission=True,
                kind="builtin",
            ),
            Tool(
                "stop_bash",
                "End a shell command that runs in the background.",
                self.stop_bash,
                {"type": "object", "properties": dict(_ID), "required": ["shellId"]},
                skip_permission=True,
                kind="builtin",
            ),
        ]

    async def bash(self, arguments: JSON, context: ToolContext) -> ToolResult:
        """Run ``arguments["command"]`` until it ends or the person steers."""
        line = arguments.get("command")
        if not isinstance(line, str) or not line.strip():
            return ToolResult("Give the command to run as the text argument 'command'.", error="no command")
        said = str(arguments.get("description") or line.splitlines()[0])[:200]
        steered = asyncio.Event()
        try:
            command = Command(
                str(next(self._numbers)), line, said, self._cwd or context.working_directory, context.progress
            )
        except OSError as error:
            return ToolResult(f"The command cannot start: {error}", error=str(error))
        self._keep(command)
        unsubscribe = context.when_steered(steered.set)
        moved = asyncio.ensure_future(steered.wait())
        try:
            await asyncio.wait((command.done, moved), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            command.stop()
            raise
        finally:
            unsubscribe()
            moved.cancel()
            command.detach()
        if command.done.done():
            return ToolResult(command.report())
        context.background(command)
        return ToolResult(
            f"The person sent a message, so the command goes on in the background, shell id {command.id}. "
            "You will be told when it ends; read_bash shows its output, stop_bash ends it."
        )

    async def read_bash(self, arguments: JSON, context: ToolContext) -> ToolResult:
        """Output and state of a command."""
        command = self._commands.get(str(arguments.get("shellId")))
        if command is None:
            return self._unknown(arguments)
        delay = arguments.get("delay") or 0
        if isinstance(delay, int | float) and delay > 0:
            await asyncio.wait({command.done}, timeout=min(delay, 600))
        return ToolResult(command.report())

    async def stop_bash(self, arguments: JSON, context: ToolContext) -> ToolResult:
        """End a command."""
        command = self._commands.get(str(arguments.get("shellId")))
        if command is None:
            return self._unknown(arguments)
        command.told = True  # its end is no news to the model
        command.stop()
        await asyncio.wait({command.done}, timeout=GRACE + 5)
        return ToolResult(command.report())

    def close(self) -> None:
        """End all commands."""
        for command in self._commands.values():
            command.stop()

    def _keep(self, command: Command) -> None:
        self._commands[command.id] = command
        ended = [known for known in self._commands.values() if known.done.done()]
        for old in ended[:-ENDED_KEPT]:
            del self._commands[old.id]

    def _unknown(self, arguments: JSON) -> ToolResult:
        known = ", ".join(self._commands) or "none"
        text = f"There is no shell {arguments.get('shellId')!r}. Known ids: {known}."
        return ToolResult(text, error=text)


class Command:
    """One running command; a `BackgroundTask` once the person has steered.

    Attributes
    ----------
    done
        Its exit code.
    """

    def __init__(
        self, id: str, line: str, description: str, cwd: str, progress: Callable[[str], None]
    ) -> None:
        self.id, self.description = id, description
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[int] = self._loop.create_future()
        self._progress: Callable[[str], None] | None = progress
        self._output = Capture(self._tell)
        self._ended = self.told = False
        shell = shutil.which("bash") or shutil.which("sh")
        if shell is None:
            raise FileNotFoundError("there is neither bash nor sh on this machine")
        watched = os.name == "posix"
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", WATCHED, "sh", shell, line] if watched else [shell, "-c", line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd or None,
            start_new_session=True,  # a kernel interrupt goes to the kernel's whole group
        )
        self._reader = threading.Thread(target=self._read, name=f"bash {id} output", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name=f"bash {id}", daemon=True).start()

    def report(self) -> str:
        """Output and state, for the model."""
        state = f"[exit code {self.done.result()}]" if self.done.done() else "[still running]"
        return f"{cap(self._output.output, READ_LIMIT).rstrip()}\n{state}".lstrip()

    def detach(self) -> None:
        """Tell no more of the output: the call is over."""
        self._progress = None

    def stop(self) -> None:
        """Ask the whole group to end, and kill it soon after."""
        if not self._ended:
            self._end_group(signal.SIGTERM)
            killer = threading.Timer(GRACE, self._kill)  # the loop may be closing
            killer.daemon = True
            killer.start()

    async def wait(self) -> JSON:
        """Wait for the end; the notice for the model, and what reading the output then gives."""
        try:
            code = await asyncio.shield(self.done)
        except asyncio.CancelledError:  # the session closes
            self.stop()
            raise
        if self.told:
            return {}
        said = f"The shell command “{self.description}” (shell id {self.id}) has ended with exit code {code}."
        return {
            "content": said,
            "kind": {
                "type": "shell_completed",
                "shellId": self.id,
                "exitCode": code,
                "description": self.description,
            },
            "read": {
                "name": "read_bash",
                "arguments": {"shellId": self.id, "delay": 0},
                "result": self.report(),
            },
        }

    def _tell(self, text: str) -> None:
        if self._progress is not None:
            self._progress(text)

    def _read(self) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        stdout = self._process.stdout
        assert stdout is not None
        while block := os.read(stdout.fileno(), 65536):
            self._output.write(decode(block))
        self._output.tell()
        stdout.close()

    def _wait(self) -> None:
        if os.name == "posix":  # the group's number stays taken until the process is reaped
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            self._kill()
        self._ended = True
        code = self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._reader.join(5)  # a child that left the group may hold the output open
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._finish, code)

    def _finish(self, code: int) -> None:
        if not self.done.done():
            self.done.set_result(code)

    def _kill(self) -> None:
        self._end_group(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)

    def _end_group(self, number: signal.Signals) -> None:
        if self._ended:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._process.pid, number)
            else:
                self._process.terminate()
