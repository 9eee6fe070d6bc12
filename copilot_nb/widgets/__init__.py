"""Live views: the panel with its tabs, the output of a launching cell, progress in other places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from copilot_nb.widgets.cell import CellOutput
    from copilot_nb.widgets.panel import Panel

__all__ = ["CellOutput", "Panel"]


def __getattr__(name: str) -> Any:
    if name == "Panel":
        from copilot_nb.widgets.panel import Panel

        return Panel
    if name == "CellOutput":
        from copilot_nb.widgets.cell import CellOutput

        return CellOutput
    raise AttributeError(name)
