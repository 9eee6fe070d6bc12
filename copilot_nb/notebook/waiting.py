"""Cells that wait: an input transformer puts ``await`` in front of a waiting magic.

A magic itself cannot wait in a running kernel: it is called inside the event loop on which the run goes on.
So ``%copilot wait`` or ``%%copilot --wait`` becomes a cell with a top-level await. The run goes on meanwhile,
an interrupt ends only the waiting, and since ipykernel 7.4 buttons answer during it.
"""

from __future__ import annotations

import ast
import re

from copilot_nb.errors import UsageError
from copilot_nb.notebook.arguments import parse
from copilot_nb.notebook.commands import needs_loop
from copilot_nb.notebook.front_end import nobody_there

_CALL = re.compile(r"get_ipython\(\)\.run_(?P<kind>line|cell)_magic\((?P<args>'copilot', .*)\)\s*$")
_HERE = "__import__('copilot_nb.magics').magics"  # survives %reset, unlike a name in the user's namespace


def waits(kind: str, line: str) -> bool:
    """Whether ``%copilot`` (`kind` is ``line``) or ``%%copilot`` (``cell``) needs an awaiting cell."""
    if kind == "line":
        return needs_loop(line)
    try:
        wait = parse(line).wait
    except UsageError:
        return False  # the magic says what is wrong
    return nobody_there() if wait is None else wait


def transform(lines: list[str]) -> list[str]:
    """For ``input_transformers_post``: IPython has turned magics into calls by now."""
    found = [_rewrite(line) for line in lines]
    if found == lines:
        return lines
    try:
        compile("".join(found), "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:  # inside a function, where await is not allowed: the magic says so when it is called
        return lines
    return found


def _rewrite(line: str) -> str:
    match = _CALL.search(line) if "'copilot'" in line else None
    if match is None:
        return line
    try:
        _, *arguments = ast.literal_eval(f"({match['args']},)")
    except (ValueError, SyntaxError):  # a call written by hand, with something else than plain text in it
        return line
    if not waits(match["kind"], arguments[0]):
        return line
    return f"{line[: match.start()]}await {_HERE}.{match['kind']}_magic_awaited{tuple(arguments)!r}\n"
