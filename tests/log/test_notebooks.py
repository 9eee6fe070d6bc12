"""The notebooks about logs run, and their answers about the recorded session are right."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from logs import LogWriter
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


def answers(heading: str, log) -> list:
    """What the code cells below a heading of "Ask the log" say about another log."""
    cells = nbformat.read(NOTEBOOKS / "03_ask_the_log.ipynb", as_version=4).cells
    place = next(n for n, cell in enumerate(cells) if cell.source.startswith(f"## {heading}"))
    below = next((n for n in range(place + 1, len(cells)) if cells[n].source.startswith("## ")), len(cells))
    names, found = {"log": log, "pd": pd}, []
    for cell in cells[place:below]:
        if cell.cell_type == "code":
            *steps, last = ast.parse(cell.source).body
            exec(compile(ast.Module(steps, []), "cell", "exec"), names)
            found.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return found


def test_the_one_liners_answer_for_any_log(tmp_path):
    """Two days; on the first a call that was refused before it started, which has no start to go by."""
    log = LogWriter().start()
    log.user("one", run="i1")
    log.turn("0", "i1", calls=("a", "b"))
    refused = {"toolCallId": "c", "success": False, "error": {"message": "no", "code": "failure"}}
    log.add("tool.execution_complete", refused)
    log.at += 86_400
    log.user("two", "queued", run="i2")
    log.add("assistant.turn_start", {"turnId": "0", "interactionId": "i2"})
    log.add("tool.execution_start", {"toolCallId": "slow", "toolName": "slow", "turnId": "0"})
    log.add("jupyter.queue", {"op": "add", "lane": "steering", "messageId": "s", "prompt": "hurry"})
    log.add("tool.execution_complete", {"toolCallId": "slow", "success": True}, after=30)
    log.user("hurry", "steering", "0", "i2", messageId="s")
    log.add("assistant.turn_end", {"turnId": "0"})
    log.add("session.error", {"errorType": "query", "message": "bad", "statusCode": 400})
    read = read_log(log.write(tmp_path / "log.jsonl"))

    assert answers("Which tools were slowest?", read)[0]["tool"].iloc[0] == "slow"
    tokens = answers("How many tokens", read)[0]
    assert tokens.loc[0].to_dict() == {"input_tokens": 100, "output_tokens": 10}
    assert tokens.loc[1].isna().all()
    steers, discarded = answers("How long did the steers wait?", read)
    assert list(steers["waited"].dt.total_seconds()) == [31.0] and discarded.empty
    assert list(answers("Which runs had an error?", read)[-1]["run"]) == [1]
    assert answers("What did a session cost?", read) == [1.0]
    by_day = answers("How often do tools fail, by day?", read)[0]
    assert {str(day): rate for day, rate in by_day.items()} == {"2026-11-30": 1 / 3, "2026-12-01": 0.0}


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
