"""Plain IPython in a process of its own: a script that runs cells one after another, and its environment."""

from __future__ import annotations

import os
from pathlib import Path


def script(cells: list[str]) -> str:
    """What ``python -c`` runs."""
    return f"""
from IPython.terminal.interactiveshell import TerminalInteractiveShell
shell = TerminalInteractiveShell.instance(colors="nocolor", simple_prompt=True)
for cell in {cells!r}:
    shell.run_cell(cell)
"""


def environment(home: Path) -> dict[str, str]:
    """With nothing of the person who runs the tests."""
    places = {"HOME": str(home), "IPYTHONDIR": str(home / "i"), "COPILOT_HOME": str(home / "c")}
    return {**os.environ, **places}
