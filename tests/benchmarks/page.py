"""The page of the documentation: a full run's table, with date, machine, versions, and the pictures."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import growth
import peers
import table
from peers import ROOT

PAGE = ROOT / "notebooks" / "06_measured.ipynb"
REASONS = Path(__file__).with_name(
    "reasons.md"
)  # what falls short and why: written by hand, kept in the page

INTRO = """\
# Measured against everyone else

This page was written by `python tests/benchmarks/run.py --setup --page`. Every client does the same work
against the same local model server without thinking time, so that what remains is the client. Ours and
the peers' are measured in turn, round by round, each in a process of its own; a ratio is the median of
the rounds' ratios, beside it its quartiles. **CPU is the measure to trust**; wall times depend on what
else the machine does. The CPU of the Copilot CLI is that of its whole process tree.

*copilot_nb* stands for everything a user has: events, the log on disk, the columns of the tables, the
state that panels draw, and a subscriber; *panel attached* adds a panel that makes its messages. The
*httpx loop* does none of that: it is the limit. For a limit, the ratio is ours divided by its cost, and
small is good; for a rival it is its cost divided by ours, and large is good. Nothing on this page is a
pass or fail test.
"""
GROWTH = """\
## Growth

The same work at more turns, more sessions, more events. The dashed line is what must grow: a loop that
sends its whole history again each turn, or the bytes that are written. Both axes are logarithmic.
"""


def write(run: Any) -> None:
    """Write page and pictures."""
    cells = [INTRO, _where(run), "## The table\n\n" + table.markdown(run.rows)]
    asked = [row for row in run.rows if row.reached is not None]
    cells[-1] += f"\n\n{sum(bool(row.reached) for row in asked)} of {len(asked)} goals reached."
    if run.skipped:
        cells.append(
            "## Not measured\n\n" + "\n".join(f"- {name}: {why}" for name, why in run.skipped.items())
        )
    if REASONS.exists():
        cells.append(REASONS.read_text(encoding="utf-8").strip())
    if run.axes:
        cells.append(GROWTH)
    for axis in run.axes:
        image = PAGE.parent / "images" / f"growth-{axis.name}.png"
        growth.plot(axis, image)
        cells.append(f"![{axis.unit} over {axis.title}](images/{image.name})")
    notebook = {
        "cells": [
            {
                "cell_type": "markdown",
                "id": f"cell-{k:02d}",
                "metadata": {},
                "source": cell.splitlines(keepends=True),
            }
            for k, cell in enumerate(cells)
        ],
        "metadata": {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    PAGE.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _where(run: Any) -> str:
    ours = ", ".join(
        f"{name} {version(name)}" for name in ("copilot-nb", "openai", "ipykernel", "anywidget", "msgspec")
    )
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        f"**When:** {datetime.now(UTC):%Y-%m-%d %H:%M} UTC{' (quick run)' if run.quick else ''}  ",
        f"**Machine:** {os.cpu_count()} processors, {_processor()}, {platform.system()}, "
        f"load average at the end {load}  ",
        f"**Ours:** Python {platform.python_version()}, {ours}  ",
    ]
    others = [peer for peer in (*run.peers, peers.JUPYTER_AI) if peer.needs and peer.python()]
    lines += [f"**{peer.name}:** {peers.versions(peer)}  " for peer in others]
    return "\n".join(lines)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
