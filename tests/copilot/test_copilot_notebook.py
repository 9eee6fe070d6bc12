"""The page "With your Copilot or your own key" runs headless, as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "notebooks" / "02_your_copilot_or_key.ipynb"


async def test_the_page_runs(tmp_path, cli_path, monkeypatch):
    """Every code cell of the documentation runs; the demo model answers behind the CLI."""
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(PAGE.parents[1]), os.environ.get("PYTHONPATH", "")])
    )
    page = nbformat.read(PAGE, as_version=4)
    client = NotebookClient(
        page, timeout=250, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    await client.async_execute()
    text = str([cell.outputs for cell in page.cells if cell.cell_type == "code"])
    assert "found by: COPILOT_CLI_PATH" in text
    assert "demo model, no LLM" in text
    assert "(copilot, demo at 127.0.0.1" in text
