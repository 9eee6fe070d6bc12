"""A session as a file: a page, a Markdown text or a notebook."""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import Protocol

from copilot_nb.errors import StoreError, UsageError
from copilot_nb.events import JSON
from copilot_nb.fold.items import Message, Run
from copilot_nb.record.html import record_html
from copilot_nb.record.text import record_markdown, record_text
from copilot_nb.state import SessionState

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{margin:0;padding:16px;background:light-dark(#fff,#212121);\
color:light-dark(rgba(0,0,0,.87),rgba(255,255,255,.87))}}.cnb-record+.cnb-record{{margin-top:40px}}</style>
<body>
{body}
</body>
</html>
"""


class Source(Protocol):
    """What can be exported: a session, or a log."""

    @property
    def state(self) -> SessionState: ...
    @property
    def model_label(self) -> str: ...


def export(source: Source, path: str | os.PathLike[str]) -> Path:
    """Write every run of a session to a file; the name's ending says how: ``.html``, ``.md`` or ``.ipynb``.

    Returns
    -------
    The path.

    Raises
    ------
    UsageError
        Another ending.
    StoreError
        The file cannot be written.
    """
    path = Path(path).expanduser()
    makers = {".html": _page, ".md": _markdown, ".ipynb": _notebook}
    if path.suffix not in makers:
        raise UsageError(f"Cannot export to {path.name!r}: end the name in {', '.join(makers)}.")
    text = makers[path.suffix](source.state, source.model_label)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    return path


def _page(state: SessionState, model: str) -> str:
    body = "\n".join(record_html(state, [run], model=model) for run in state.runs) or record_html(state, [])
    return _PAGE.format(title=escape(state.title or state.session_id or "session"), body=body)


def _markdown(state: SessionState, model: str) -> str:
    return f"# {state.title or state.session_id}\n\n{record_markdown(state, state.runs, model=model)}"


def _notebook(state: SessionState, model: str) -> str:
    cells = [cell for run in state.runs for cell in _cells(state, run, model)]
    head: JSON = {
        "cell_type": "markdown",
        "metadata": {},
        "source": f"# {state.title or state.session_id}",
        "id": "head",
    }
    load: JSON = {
        "cell_type": "code",
        "execution_count": None,
        "id": "load",
        "metadata": {},
        "outputs": [],
        "source": "%load_ext copilot_nb",
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook: JSON = {
        "cells": [head, load, *cells],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _cells(state: SessionState, run: Run, model: str) -> list[JSON]:
    """The prompt as the cell that would send it, with the record as its output; steers as cells after it."""
    bundle = {
        "text/html": record_html(state, [run], model=model),
        "text/plain": record_text(state, [run], model=model),
    }
    output = {"output_type": "display_data", "data": bundle, "metadata": {}}
    cells: list[JSON] = []
    for place, item in enumerate(item for item in run.items if isinstance(item, Message) and not item.nudge):
        magic = "%%steer" if item.delivery == "steering" else "%%copilot"
        cells.append(
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"run-{run.n}-{place}",
                "metadata": {},
                "outputs": [] if cells else [output],
                "source": f"{magic}\n{item.text}",
            }
        )
    return cells
