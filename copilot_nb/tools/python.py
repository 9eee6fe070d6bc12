"""The `python` tool: code in the user's namespace, on the thread of the session's loop.

In a kernel that is the main thread, so the code blocks cells as a cell would, and an interrupt of the
kernel stops it (as ``KeyboardInterrupt`` in the code, harmless for the session).
"""

from __future__ import annotations

import ast
import asyncio
import linecache
import signal
import sys
import threading
import traceback
import types
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from copilot_nb.events import JSON
from copilot_nb.tools.base import Tool, ToolContext, ToolResult
from copilot_nb.tools.capture import Capture, capturing
from copilot_nb.tools.results import cap, is_table, note, rich, safe_repr, table_text, value_bundle

DESCRIPTION = (
    "Run Python code in the user's notebook kernel. The user's variables are there, and what the code "
    "assigns stays. Returns what it prints and the value of its last expression. IPython magics and "
    "top-level await work; figures are shown to the user."
)
PARAMETERS: JSON = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "Python code, one or more lines."}},
    "required": ["code"],
    "additionalProperties": False,
}
TRACEBACK_LIMIT = 6_000


class PythonTool:
    """Runs one call after the other: parallel calls of a reply wait for each other.

    Parameters
    ----------
    shell
        The IPython shell whose namespace is used; None runs plain Python in `namespace`.
    namespace
        Only without a shell.
    """

    def __init__(self, shell: Any = None, namespace: JSON | None = None) -> None:
        self._shell = shell
        self._namespace: JSON = {"__name__": "__main__"} if namespace is None else namespace
        self._turn = asyncio.Lock()

    @property
    def namespace(self) -> JSON:
        """Where the code's variables live."""
        return self._namespace if self._shell is None else self._shell.user_ns

    def tool(self) -> Tool:
        """As a tool for the engine."""
        return Tool("python", DESCRIPTION, self.run, PARAMETERS)

    async def run(self, arguments: JSON, context: ToolContext) -> ToolResult:
        """Run ``arguments["code"]``."""
        code = arguments.get("code")
        if not isinstance(code, str) or not code.strip():
            return ToolResult("Give the code to run as the text argument 'code'.", error="no code")
        async with self._turn:
            with capturing(self._shell, context.progress) as capture:
                work = self._run_in_shell(code) if self._shell else self._run_plain(code, capture)
                error = await _driven(work, capture)
                if code.rstrip().endswith(";"):  # as in a cell: do not show the value
                    capture.values.clear()
                return _result(capture, error, self._shell)

    async def _run_in_shell(self, code: str) -> BaseException | None:
        shell = self._shell
        preprocessing = None
        try:
            transformed = shell.transform_cell(code)
        except Exception:  # the shell reports it as the cell's error
            transformed, preprocessing = code, sys.exc_info()
        result = await shell.run_cell_async(
            code, store_history=False, transformed_cell=transformed, preprocessing_exc_tuple=preprocessing
        )
        shell.events.trigger("post_execute")  # matplotlib's inline figures are displayed by this hook
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    async def _run_plain(self, code: str, capture: Capture) -> BaseException | None:
        try:
            capture.values += await _execute(code, self._namespace)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            capture.traceback = _traceback(error)
            return error
        return None


def _traceback(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    own = None if isinstance(error, SyntaxError) else frame
    return "".join(traceback.format_exception(type(error), error, own, limit=-8)).rstrip()


async def _execute(code: str, namespace: JSON) -> list[Any]:
    """Run code as a cell; the value of the last expression, if there is one."""
    name = "<python tool>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    body = ast.parse(code, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    done = eval(compile(ast.Module(body, []), name, "exec", flags), namespace)
    if isinstance(done, Coroutine):
        await done
    if not isinstance(last, ast.Expr):
        return []
    program = compile(ast.Expression(last.value), name, "eval", flags)
    value = eval(program, namespace)
    if program.co_flags & 0x80:  # CO_COROUTINE: the expression itself awaits
        value = await value
    return [] if value is None else [value]


async def _driven(work: Coroutine[Any, Any, BaseException | None], capture: Capture) -> BaseException | None:
    """Await `work`, open to the kernel's interrupt at each of its steps."""
    try:
        error = await _steps(work, capture)
    except KeyboardInterrupt as interrupt:  # between two lines of the shell's own code
        return interrupt
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the shell swallowed our own cancellation
            raise error
    return error


@types.coroutine
def _steps(work: Coroutine[Any, Any, Any], capture: Capture) -> Generator[Any, Any, BaseException | None]:
    resume: Any
    resume, value = work.send, None
    while True:
        try:
            with _interruptible(), capture.step():
                future = resume(value)
        except StopIteration as end:
            error: BaseException | None = end.value
            return error
        try:
            resume, value = work.send, (yield future)
        except BaseException as thrown:
            resume, value = work.throw, thrown


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGINT raise here: the kernel ignores it between cells, and cells may only wait for us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.getsignal(signal.SIGINT)
    if old is None:  # not set by Python: nothing could be put back
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)


def _result(capture: Capture, error: BaseException | None, shell: Any) -> ToolResult:
    parts = [capture.output.rstrip("\n")]
    bundles = list(capture.displays)
    for value in capture.values:
        bundle = _format(value, shell)
        bundles.append(bundle)
        parts.append(_value_text(value, bundle))
    parts += [note(bundle) for bundle in capture.displays]
    message = None
    if error is not None:
        message = f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(error, KeyboardInterrupt):
            message = "KeyboardInterrupt: the person interrupted the code"
        parts.append(cap(capture.traceback or message, TRACEBACK_LIMIT))
    text = "\n".join(part for part in parts if part)
    return ToolResult(text or "(no output)", error=message, display=rich(bundles))


def _format(value: Any, shell: Any) -> JSON:
    if shell is None:
        return value_bundle(value) or {"text/plain": safe_repr(value)}
    data: JSON = shell.display_formatter.format(value)[0]
    return data


def _value_text(value: Any, bundle: JSON) -> str:
    if is_table(value):
        return table_text(value)
    return cap(str(bundle["text/plain"])) if "text/plain" in bundle else safe_repr(value)
