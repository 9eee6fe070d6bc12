"""One session with everything in it, for tests and screenshots: real tools, scripted replies.

Used inside a notebook's kernel. It stops where `replace_file` asks for permission; `answer_once` goes on.
"""

from __future__ import annotations

import asyncio

import copilot_nb
from copilot_nb.models.scripted import ScriptedModel
from copilot_nb.tools.base import ToolContext, ToolResult

PROFILE = """dups = sales.duplicated(["region", "price"]).sum()
profile = sales.groupby("region").price.agg(["mean", "std", "count"])
print(profile.assign(dups=dups).round(1))"""
WRONG = 'clean["price"].fillna(clean.groupby("region").unit_price.transform("median"))'
DIFF = """--- a/clean.py
+++ b/clean.py
@@ -11,7 +11,9 @@ def fence(x, k=3.5):
     x = x.dropna()
-    mid, spread = x.mean(), x.std()
-    return mid - k * spread, mid + k * spread
+    mid = x.median()
+    mad = (x - mid).abs().median()
+    spread = 1.4826 * mad
+    return mid - k * spread, mid + k * spread
"""

SETUP = """import sys; sys.path.insert(0, {here!r})
import numpy as np, pandas as pd
rng = np.random.default_rng(7)
sales = pd.DataFrame({{"region": rng.choice(["North", "South", "East", "West"], 4000),
                       "price": rng.gamma(2.0, 60.0, 4000).round(2), "qty": rng.integers(1, 9, 4000)}})
sales.loc[rng.random(4000) < 0.031, "price"] = np.nan
clean = sales.drop_duplicates()
%load_ext copilot_nb
import scene"""


async def check_duplicates(seconds: float, context: ToolContext) -> str:
    """Look for rows that are there twice."""
    for part in range(4):
        await asyncio.sleep(seconds / 4)
        context.progress(f"block {part + 1} of 4\n")
    return "4 blocks looked at"


async def read_file(path: str) -> str:
    """Read the head of a file."""
    await asyncio.sleep(0.7)
    return f"{path}: region,price,qty\nNorth,18.50,2\nWest,22.10,1"


async def edit(path: str) -> ToolResult:
    """Change a file."""
    await asyncio.sleep(0.3)
    return ToolResult(text=f"{path} was changed", detail=DIFF)


async def replace_file(source: str, target: str) -> str:
    """Put the cleaned file in the place of the old one."""
    await asyncio.sleep(0.4)
    return f"{target} replaced"


def call(key: str, name: str, **args: object) -> dict:
    return {"id": key, "name": name, "args": args}


def words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")]


def replies(pace: float = 0.06) -> list[dict]:
    """Five turns of a first run, then short runs."""
    usage = [(1840, 96), (2480, 212), (5210, 388), (9905, 455), (18240, 702)]
    script = [
        {
            "reasoning": words(
                "I do not know the columns yet. List the variables, then look at missing values."
            ),
            "text": words("I will look at what is in the kernel first."),
            "tool_calls": [
                call("c1", "list_variables"),
                call("c2", "python", code="sales.info()\nsales.isna().mean()"),
            ],
        },
        {
            "reasoning": words("Check duplicates and the raw file at the same time."),
            "text": words(
                "Some of `price` is **missing**. I check three things at once: duplicates and spread, "
                "the helper tables, and the file it came from."
            ),
            "tool_calls": [
                call("c3", "check_duplicates", seconds=2.2),
                call("c4", "python", code=PROFILE),
                call("c5", "read_file", path="data/sales.csv"),
            ],
        },
        {
            "reasoning": words("The median is robust here."),
            "text": words(
                "Understood: **median** from here on, so that few rows cannot move the fence.\n\n"
                "- drop exact duplicates\n- parse both date formats\n"
                "- fill `price` by the median of its region"
            ),
            "tool_calls": [call("c6", "python", code=WRONG), call("c7", "edit", path="clean.py")],
        },
        {
            "reasoning": words("The column is called price. Putting the file in place overwrites data."),
            "text": words(
                "The column is `price`, not `unit_price`. I run it again with the fence per region:\n\n"
                "```python\nlo, hi = fence(clean.price)\nout = clean[~clean.price.between(lo, hi)]\n```\n\n"
                "In parallel I put the cleaned file in place of the old one and keep a backup."
            ),
            "tool_calls": [
                call("c8", "check_duplicates", seconds=9.0),
                call("c9", "replace_file", source="out/clean.parquet", target="data/sales.parquet"),
            ],
        },
        {
            "text": words(
                "The table `clean` is in place.\n\n| step | done by |\n| --- | --- |\n"
                "| duplicates | `drop_duplicates` |\n"
                "| missing prices | median of the region |\n| fence | median absolute deviation |\n\n"
                "I changed no value outside the fence: that is a decision for you."
            )
        },
    ]
    for reply, (tokens_in, tokens_out) in zip(script, usage, strict=True):
        reply["usage"] = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
        reply["chunk_delay_s"] = pace
    short = [{"text": words(f"Run {n} is done."), "chunk_delay_s": pace} for n in range(2, 9)]
    return script + short


def start(session_id: str = "sales-cleanup", pace: float = 0.06, **more: object):
    """Open the session and send the first message from the running cell, as ``%%copilot`` does."""
    free = ["list_variables", "python", "check_duplicates", "read_file", "edit"]
    session = copilot_nb.open_session(
        model=ScriptedModel(replies(pace), name="scripted", max_prompt_tokens=128_000),
        session_id=session_id,
        tools=[check_duplicates, read_file, edit, replace_file],
        allow=free,
        **more,
    )
    return session


async def until(session, test, seconds: float = 60) -> None:
    """Wait until something is true of the session."""
    for _ in range(int(seconds * 50)):
        if test(session.state):
            return
        await asyncio.sleep(0.02)
    raise TimeoutError(session.state.describe())


async def play(session, *, steer: bool = True) -> None:
    """Queue and steer as a person would, up to the question."""
    state = session.state
    await session.send("Clean the `sales` table, then explain the outliers.")
    await until(session, lambda s: len(s.turns) >= 2 and s.turns[1].said_at)
    await session.enqueue("Plot the outliers by region")
    await asyncio.sleep(0.3)
    await session.steer("use the median, not the mean")
    await asyncio.sleep(0.2)
    await session.enqueue("Write the cleaning steps into clean.py, with a test")
    await until(session, lambda s: len(s.turns) >= 3)
    gone = await session.enqueue("Show me the first 20 rows")
    await until(session, lambda s: len(s.turns) >= 4)
    items = (await session.queue.pending_items())["items"]
    await session.queue.remove_at(next(item["id"] for item in items if item["messageId"] == gone))
    await session.enqueue("Three sentences for the weekly report")
    await session.enqueue("Compare with last month")
    await session.enqueue("Which columns should I ask for?")
    await until(session, lambda s: s.permissions)
    if steer:
        await asyncio.sleep(1.0)
        await session.steer("keep the refunds, they are real")
    assert state.permissions
