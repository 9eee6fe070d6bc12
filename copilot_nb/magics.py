"""``%%copilot``, ``%steer``, ``%enqueue``, ``%allow``, ``%deny``: parse, call the session, display."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

import traitlets
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand

from copilot_nb import loops
from copilot_nb.errors import CopilotNbError, UsageError
from copilot_nb.notebook import commands, completion, waiting, warmup
from copilot_nb.notebook.arguments import parse
from copilot_nb.notebook.desk import Desk

F = TypeVar("F")


class _Marker(Protocol):
    """What IPython's decorators do when called with a name; its own annotation says otherwise."""

    def __call__(self, name: str) -> Callable[[F], F]: ...


line_and_cell, line_alone = cast(_Marker, line_cell_magic), cast(_Marker, line_magic)
_KIND = {"line": ("copilot", "steer", "enqueue", "allow", "deny"), "cell": ("copilot", "steer", "enqueue")}


@magics_class
class CopilotMagics(Magics):
    """Talk to an agent from notebook cells; ``%copilot help`` lists everything."""

    model = traitlets.Unicode(help="Who answers, where %%copilot has no -m.").tag(config=True)
    runtime = traitlets.Unicode(help="engine or copilot, where %%copilot has no --runtime.").tag(config=True)
    base_url = traitlets.Unicode(help="Address of the model's provider.").tag(config=True)
    wire_api = traitlets.Unicode(help="completions or responses.").tag(config=True)
    allow = traitlets.List(traitlets.Unicode(), help="Tools that never ask.").tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.desk = Desk(shell.user_ns, self)
        self.matcher = completion.matcher()
        self.leave_the_rest: Callable[[], object] = lambda: None

    @line_and_cell("copilot")
    @no_var_expand
    def copilot_magic(self, line: str, cell: str | None = None) -> Any:
        """Send the lines below to the agent; alone on a line: ``%copilot help``."""
        with short_errors():
            if cell is not None:
                self.desk.start(parse(line), body(cell))
                return None
            if commands.needs_loop(line):
                raise UsageError(
                    f"%copilot {line.strip()} waits, so it must stand in a cell itself, not in a function. "
                    "There, use `await session.wait()`, or `session.run(prompt)` for a prompt and its answer."
                )
            return commands.run(self.desk, line)

    @line_and_cell("steer")
    @no_var_expand
    def steer_magic(self, line: str, cell: str | None = None) -> None:
        """Say something to the running run, before its next model call."""
        with short_errors():
            self.desk.add(_text(line, cell), "immediate")

    @line_and_cell("enqueue")
    @no_var_expand
    def enqueue_magic(self, line: str, cell: str | None = None) -> None:
        """Line up a prompt for a run of its own."""
        with short_errors():
            self.desk.add(_text(line, cell), "enqueue")

    @line_alone("allow")
    @no_var_expand
    def allow_magic(self, line: str) -> None:
        """Let the tool that asks run, this once; ``%allow always``: in this session, unasked."""
        with short_errors():
            if line.strip() not in ("", "always"):
                raise UsageError(f"%allow takes 'always' or nothing, not {line.strip()!r}.")
            self.desk.allow(always=bool(line.strip()))

    @line_alone("deny")
    @no_var_expand
    def deny_magic(self, line: str) -> None:
        """Refuse the tool that asks. With feedback the run goes on; without, it ends and both lanes empty."""
        with short_errors():
            self.desk.deny(line.strip() or None)


def _text(line: str, cell: str | None) -> str:
    """The words of ``%steer words`` or of the lines below ``%%steer``."""
    if cell is None:
        return line.strip()
    return f"{line.strip()}\n{body(cell)}" if line.strip() else body(cell)


def body(cell: str) -> str:
    """The cell's text as the person wrote it: IPython adds one newline at the end."""
    return cell.removesuffix("\n")


@contextmanager
def short_errors() -> Iterator[None]:
    """Show an error raised on purpose as its one message, without a traceback of our insides."""
    try:
        yield
    except CopilotNbError as error:
        _shorten(error, f"{type(error).__name__}: {error}")
        raise
    except asyncio.CancelledError as error:
        _shorten(error, "Interrupted: this cell no longer waits; the run goes on (%copilot abort ends it).")
        raise


def _shorten(error: BaseException, text: str) -> None:
    vars(error)["_render_traceback_"] = lambda: [text]  # IPython asks the error itself before it formats one


# --- what the input transformer puts into an awaiting cell ------------------------------------------


async def line_magic_awaited(line: str) -> Any:
    """``%copilot line`` for the words that need the session's loop."""
    with short_errors():
        return await commands.run(_loaded().desk, line)


async def cell_magic_awaited(line: str, cell: str) -> None:
    """``%%copilot --wait``: send, then wait until the session is idle."""
    with short_errors():
        await _loaded().desk.start_and_wait(parse(line), body(cell))


def _loaded() -> CopilotMagics:
    shell = get_ipython()
    magics = shell.magics_manager.registry.get("CopilotMagics") if shell else None
    if magics is None:
        raise UsageError("copilot_nb is not loaded here: run %load_ext copilot_nb first.")
    assert isinstance(magics, CopilotMagics)
    return magics


# --- loading ---------------------------------------------------------------------------------------


def load(shell: InteractiveShell) -> None:
    """Register magics, transformer and completion; a second time does nothing."""
    if "CopilotMagics" in shell.magics_manager.registry:
        return
    loops.capture()
    magics = CopilotMagics(shell)
    shell.register_magics(magics)
    shell.input_transformers_post.append(waiting.transform)
    if magics.matcher is not None and hasattr(shell.Completer, "custom_matchers"):
        shell.Completer.custom_matchers.append(magics.matcher)
    if (loop := loops.running_loop()) is not None:
        magics.leave_the_rest = warmup.begin(loop)


def unload(shell: InteractiveShell) -> None:
    """Take everything away again and end the runs."""
    magics = shell.magics_manager.registry.pop("CopilotMagics", None)
    if magics is None:
        return
    for kind, names in _KIND.items():
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)
    shell.configurables.remove(magics)
    shell.input_transformers_post.remove(waiting.transform)
    if magics.matcher in getattr(shell.Completer, "custom_matchers", ()):
        shell.Completer.custom_matchers.remove(magics.matcher)
    magics.leave_the_rest()
    magics.desk.close()
    loops.release()
