"""What the event table asks of a log beside its rows."""

from __future__ import annotations

from typing import Any

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON


def types(log: Any) -> JSON:
    """``{types: {name: {n, stored}}, all}``: how many events of each type, and whether they are stored."""
    found: dict[str, JSON] = log.types()
    return {"types": found, "all": sum(one["n"] for one in found.values())}


def frame(panel: Any, chosen: set[str] | None, text: str | None) -> JSON:
    """Put the filtered events in a variable of the notebook; ``{name, n}``."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    if shell is None:
        raise UsageError("There is no notebook to put a variable in.")
    table = panel.source.log.events()
    if chosen is not None:
        table = table[table["type"].isin(chosen)]
    if text:
        rows = panel.source.log.rows(0, len(table) + 1, types=chosen, text=text)
        table = table.loc[[row["seq"] for row in rows]]
    name = "events"
    while name in shell.user_ns and not hasattr(shell.user_ns[name], "_copilot_nb"):
        name += "_"
    shell.user_ns[name] = table
    return {"name": name, "n": len(table)}
