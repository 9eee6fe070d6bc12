"""The static record of a run: what stays in a saved notebook.

HTML (escaped, self-contained, both themes), Markdown and plain text; no script, no widget, no network.
"""

from __future__ import annotations

from collections.abc import Sequence

from copilot_nb.fold.items import Run
from copilot_nb.record.export import export
from copilot_nb.record.html import record_html
from copilot_nb.record.text import record_markdown, record_text
from copilot_nb.state import SessionState

__all__ = ["bundle", "export", "record_html", "record_markdown", "record_text"]


def bundle(state: SessionState, runs: Sequence[Run] | None = None, *, model: str = "") -> dict[str, str]:
    """The record in all its forms, as a mime bundle.

    Parameters
    ----------
    runs
        Which; the last one when None.
    model
        What the header says about who answered; the log's word when empty.
    """
    return {
        "text/html": record_html(state, runs, model=model),
        "text/markdown": record_markdown(state, runs, model=model),
        "text/plain": record_text(state, runs, model=model),
    }
