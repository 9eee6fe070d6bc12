"""Records the session that ships with the notebook "Ask the log": ``record_session.py FILE``.

A scripted model, real tools, a steer, a queue, permissions, a tool that fails and a model error.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from copilot_nb.models.scripted import ScriptedModel
from copilot_nb.permissions import Decision
from copilot_nb.session import open_session

CWD = "/home/user/project"


def load_table(path: str) -> str:
    """Load a table."""
    time.sleep(0.4)
    if not path.endswith(".csv"):
        raise ValueError(f"{path} is no table")
    return "1,204 rows, 5 columns: date, shop, product, price, pieces"


def summarise(column: str, how: str = "mean") -> str:
    """Summarise a column."""
    time.sleep(0.25 if how == "mean" else 0.6)
    return f"{how} of {column}: 12.4" if column == "price" else f"{how} of {column}: 3.1"


def draw(kind: str) -> str:
    """Draw a chart."""
    time.sleep(0.9)
    return f"a {kind} chart of 1,204 points"


def call(id: str, name: str, **args: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "args": args}


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


REPLIES: list[dict[str, Any]] = [
    {
        "text": ["I look at the table first. "],
        "tool_calls": [call("c1", "load_table", path="sales.csv")],
        "usage": usage(900, 40),
    },
    {
        "text": ["Now two columns at once."],
        "tool_calls": [call("c2", "summarise", column="price"), call("c3", "summarise", column="pieces")],
        "usage": usage(1020, 65),
    },
    {
        "text": ["With the median, then."],
        "tool_calls": [call("c4", "summarise", column="price", how="median")],
        "usage": usage(1180, 38),
    },
    {
        "text": ["The median price ", "is 12.4; ", "three pieces a sale."],
        "chunk_delay_s": 0.15,
        "usage": usage(1260, 120),
    },
    {"text": [], "tool_calls": [call("c5", "draw", kind="bar")], "usage": usage(1400, 25)},
    {"text": ["The chart is there."], "usage": usage(1460, 18)},
    {
        "text": ["I try the other file."],
        "tool_calls": [call("c6", "load_table", path="notes.txt")],
        "usage": usage(1500, 33),
    },
    {"text": ["That is no table; I leave it."], "usage": usage(1580, 44)},
    {
        "http_error": {
            "status": 400,
            "message": "the prompt is too long for this model",
            "code": "context_length",
        }
    },
]


async def record(target: Path) -> None:
    async def ask(request: dict[str, Any]) -> Decision:
        await asyncio.sleep(0.5)  # somebody reads the question
        return Decision("approve-once")

    with tempfile.TemporaryDirectory() as folder:
        session = open_session(
            ScriptedModel(REPLIES),
            "ask-the-log",
            tools=[load_table, summarise, draw],
            home=folder,
            kernel=False,
            on_permission_request=ask,
            working_directory=folder,
        )
        await session.send("How do our sales look?")
        await until(session, "tool.execution_start", 2)
        await session.enqueue("Draw the prices by shop.")
        await session.enqueue("Is there anything in notes.txt?")
        dropped = await session.enqueue("Never mind this one.")
        await session.steer("Use the median, not the mean.")
        await session.queue.remove_at(await item(session, dropped))
        await session.enqueue("Now everything since 1990.")
        await session.wait("idle", timeout=120)
        await session.close()
        log = (Path(folder) / "session-state" / "ask-the-log" / "events.jsonl").read_text()
    target.write_text(log.replace(folder, CWD))


async def item(session: Any, message: str) -> str:
    """The queue's id of a message."""
    items = (await session.queue.pending_items())["items"]
    return next(entry["id"] for entry in items if entry["messageId"] == message)


async def until(session: Any, type: str, count: int) -> None:
    while sum(event.type == type for event in await session.get_events()) < count:
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))
