"""The notebooks about logs run, and their answers about the recorded session are right."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from copilot_nb.frames import read_log, schema

NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"
SESSION = NOTEBOOKS / "data" / "ask-the-log.jsonl"


def text_of(cell) -> str:
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(parts)


@pytest.mark.parametrize("name", ["03_ask_the_log", "04_tables"])
def test_the_notebook_runs(name):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "saved without outputs"
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": NOTEBOOKS}}
    )
    client.execute()
    said = "\n".join(text_of(cell) for cell in notebook.cells)
    if name == "03_ask_the_log":
        for words in (
            "Use the median",
            "removed",
            "the prompt is too long",
            "They part at run 2",
            "cut off",
            "True",
        ):
            assert words in said, words
    else:
        for columns in schema.TABLES.values():
            for column in columns:
                assert column.name in said


def test_the_recorded_session_answers_the_questions():
    log = read_log(SESSION)
    runs, turns, tools, messages = log.runs(), log.turns(), log.tools(), log.messages()
    lines = [json.loads(line) for line in SESSION.read_text().splitlines()]
    assert len(turns) == sum(line["type"] == "assistant.turn_start" for line in lines)  # grep -c
    assert tools.loc[tools["duration"].idxmax(), "tool"] == "draw"
    assert list(runs["input_tokens"].fillna(0)) == [4360, 2860, 3080, 0]
    assert list(runs["status"]) == ["completed", "completed", "completed", "error"]
    steer = messages[messages["lane"] == "steering"].iloc[0]
    assert (steer["run"], steer["turn"]) == (0, 2) and steer["waited"].total_seconds() > 0
    assert list(messages.loc[messages["status"] == "discarded", "reason"]) == ["removed"]
    assert (tools["status"] == "failed").mean() == 1 / 6
    assert (tools["asked"].dt.total_seconds() >= 0.5).all()
    assert "/tmp" not in SESSION.read_text()
