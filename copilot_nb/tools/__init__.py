"""What a model may call: the kernel tools, the built-in shell, and any Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from copilot_nb.errors import UsageError
from copilot_nb.tools.base import BackgroundTask, Tool, ToolContext, ToolResult

__all__ = [
    "BackgroundTask",
    "Tool",
    "ToolContext",
    "ToolResult",
    "as_tool",
    "as_tools",
    "kernel_tools",
    "shell_tools",
]


def kernel_tools(shell: Any = None, *, namespace: dict[str, Any] | None = None) -> list[Tool]:
    """`python` and `list_variables` on an IPython shell's namespace, or on a plain dict.

    Parameters
    ----------
    shell
        What ``get_ipython()`` returns; None runs plain Python in `namespace` (or in an own one).
    """
    from copilot_nb.tools.python import PythonTool
    from copilot_nb.tools.variables import VariablesTool

    python = PythonTool(shell, namespace)
    hidden = getattr(shell, "user_ns_hidden", ())
    return [python.tool(), VariablesTool(lambda: python.namespace, hidden).tool()]


def shell_tools(*, cwd: str | None = None) -> list[Tool]:
    """The built-in shell: `bash`, `read_bash` and `stop_bash`, sharing their running commands."""
    from copilot_nb.tools.shell import Shells

    return Shells(cwd).tools()


def as_tool(obj: Tool | Callable[..., Any]) -> Tool:
    """A tool from a tool or from any function with type hints (see `function_tool`)."""
    if isinstance(obj, Tool):
        return obj
    if not callable(obj):
        raise UsageError(f"{obj!r} is no tool: give a function with type hints, or a Tool.")
    from copilot_nb.tools.function import function_tool

    return function_tool(obj)


def as_tools(objects: Iterable[Tool | Callable[..., Any]]) -> list[Tool]:
    """Tools from what a user gave; two of one name are a `UsageError`."""
    tools = [as_tool(obj) for obj in objects]
    names = [tool.name for tool in tools]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise UsageError(f"Two tools have the name {', '.join(double)}: rename one.")
    return tools
