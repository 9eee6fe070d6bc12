"""The `list_variables` tool: what is in the user's namespace, without running any of its code.

It needs no permission, so it never calls a foreign ``__repr__``, and it hides the value of a variable
whose name says that it is a secret.
"""

from __future__ import annotations

import re
import reprlib
import types
from typing import Any

import msgspec

from copilot_nb.events import JSON, clean
from copilot_nb.tools.base import Tool, ToolContext, ToolResult

DESCRIPTION = (
    "List the variables in the user's notebook kernel: name, type, size, and for tables the columns with "
    "their dtypes. Returns JSON."
)
SHOWN = 200  # variables
COLUMNS = 40
_secret = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80


class VariablesTool:
    """Describes a namespace.

    Parameters
    ----------
    python
        Has the ``namespace`` to describe, and ``hidden`` names that the shell put there itself.
    """

    def __init__(self, namespace: Any, hidden: Any = ()) -> None:
        self._namespace = namespace
        self._hidden = hidden

    def tool(self) -> Tool:
        """As a tool for the engine."""
        return Tool("list_variables", DESCRIPTION, self.run, skip_permission=True)

    def run(self, arguments: JSON, context: ToolContext) -> ToolResult:
        """List them."""
        found = {
            name: value
            for name, value in list(self._namespace().items())
            if not name.startswith("_")
            and name not in self._hidden
            and not isinstance(value, types.ModuleType)
        }
        listed = [describe(name, value) for name, value in list(found.items())[:SHOWN]]
        answer: JSON = {"variables": listed}
        if len(found) > len(listed):
            answer["left_out"] = len(found) - len(listed)
        return ToolResult(msgspec.json.encode(clean(answer)).decode("utf-8", "replace"))


def describe(name: str, value: Any) -> JSON:
    """One variable: ``{name, type, shape?, columns?, length?, value?}``."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    known = module in ("builtins", "pandas", "numpy", "__main__")
    result: JSON = {"name": name, "type": kind.__name__ if known else f"{module}.{kind.__name__}"}
    if module in ("pandas", "polars", "geopandas") and kind.__name__.endswith("DataFrame"):
        result["shape"] = list(value.shape)
        result["columns"] = {str(column): str(dtype) for column, dtype in _columns(value)[:COLUMNS]}
        if len(value.columns) > COLUMNS:
            result["columns_left_out"] = len(value.columns) - COLUMNS
    elif module in ("pandas", "polars", "numpy", "xarray", "torch") and hasattr(value, "shape"):
        result["shape"] = [int(size) for size in value.shape]
        result["dtype"] = str(getattr(value, "dtype", ""))
    elif kind in (int, float, bool, complex, type(None)):
        result["value"] = repr(value) if kind is not int else _short.repr(value)
    elif kind in (str, bytes):
        result["length"] = len(value)
        if not _secret.search(name):
            result["value"] = _short.repr(value)
    elif kind in (list, tuple, dict, set, frozenset):
        result["length"] = len(value)
        if kind is dict:
            result["keys"] = [key for key in list(value)[:10] if isinstance(key, str)]
        result["of"] = sorted({type(item).__name__ for item in list(value)[:50]})
    return result


def _columns(frame: Any) -> list[tuple[Any, Any]]:
    return list(zip(frame.columns, frame.dtypes, strict=True))
