"""Rows, their numbers, and how they are printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Row:
    """One line of the table.

    Attributes
    ----------
    ratio
        Ours divided by the peer's for a limit (goal ``<=``), the peer's divided by ours for a rival (goal
        ``>=``); for a goal in a unit (``<= 1 ms``), the value itself.
    reached
        None where nothing is asked.
    spread
        The quartiles of `ratio` over the rounds.
    ours, theirs
        Medians in `unit`.
    shown
        In place of `ours`, what cannot be said by a number and a unit.
    """

    name: str
    peer: str
    ratio: float | None
    goal: str = ""
    reached: bool | None = None
    spread: tuple[float, float] = (0.0, 0.0)
    ours: float | None = None
    theirs: float | None = None
    unit: str = ""
    measure: str = "cpu"
    rounds: int = 0
    note: str = ""
    shown: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file: name, peer, ratio, goal and reached always, the rest where it says something."""
        whole = asdict(self)
        if self.rounds < 2:
            del whole["spread"]
        if self.shown:
            del whole["ours"]
        always = ("name", "peer", "ratio", "goal", "reached")
        return {key: value for key, value in whole.items() if key in always or value not in (None, "")}


def limit_row(
    name: str, peer: str, ours: Sequence[float], theirs: Sequence[float], most: float | None, **more: Any
) -> Row:
    """We may cost at most `most` times what the limit costs."""
    return _row(
        name, peer, [a / b for a, b in zip(ours, theirs, strict=True)], most, None, ours, theirs, more
    )


def rival_row(
    name: str, peer: str, ours: Sequence[float], theirs: Sequence[float], least: float | None, **more: Any
) -> Row:
    """A rival must cost at least `least` times what we cost in the same rounds."""
    ours = ours[: len(theirs)]
    return _row(
        name, peer, [b / a for a, b in zip(ours, theirs, strict=True)], None, least, ours, theirs, more
    )


def over_row(
    name: str, peer: str, ours: Sequence[float], theirs: Sequence[float], most: float, unit: str, **more: Any
) -> Row:
    """We may be at most `most` above the limit, in its unit."""
    row = _row(name, peer, [a - b for a, b in zip(ours, theirs, strict=True)], most, None, ours, theirs, more)
    row.goal, row.unit = f"<= {most:g} {unit} over", unit
    return row


def value_row(name: str, ours: Sequence[float], most: float, unit: str, **more: Any) -> Row:
    """At most `most`, whatever others need."""
    row = _row(name, "", list(ours), most, None, ours, None, more)
    row.goal, row.unit = f"<= {most:g} {unit}", unit
    return row


def _row(
    name: str,
    peer: str,
    ratios: list[float],
    most: float | None,
    least: float | None,
    ours: Sequence[float],
    theirs: Sequence[float] | None,
    more: dict[str, Any],
) -> Row:
    ratio = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 2 else (min(ratios), ratio, max(ratios))
    row = Row(name, peer, ratio, spread=(low, high), ours=statistics.median(ours), rounds=len(ratios), **more)
    row.theirs = statistics.median(theirs) if theirs else None
    if most is not None:
        row.goal, row.reached = f"<= {most:g}", ratio <= most
    if least is not None:
        row.goal, row.reached = f">= {least:g}", ratio >= least
    return row


HEAD = ("benchmark", "measure", "peer", "ratio", "quartiles", "goal", "reached", "ours", "peer's")


def cells(row: Row) -> tuple[str, ...]:
    """A row as texts."""
    in_unit = "ms" in row.goal or "MB" in row.goal
    ratio = f"{number(row.ratio)} {row.unit}" if in_unit else number(row.ratio)
    spread = f"{number(row.spread[0])} to {number(row.spread[1])}" if row.rounds > 1 else ""
    reached = {True: "yes", False: "NO", None: ""}[row.reached]
    theirs = "" if row.theirs is None else f"{number(row.theirs)} {row.unit}".strip()
    goal = row.goal.replace("<=", "≤").replace(">=", "≥")
    name = row.name + (f" ({row.note})" if row.note else "")
    ours = row.shown or f"{number(row.ours)} {row.unit}".strip()
    return name, row.measure, row.peer, ratio, spread, goal, reached, ours, theirs


def number(value: float | None) -> str:
    """Three digits, as a person would write them; nothing for None."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def text(rows: Sequence[Row]) -> str:
    """The table for a terminal."""
    lines = [HEAD, *(cells(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def markdown(rows: Sequence[Row]) -> str:
    """The table for the documentation."""
    lines = [HEAD, ("---",) * len(HEAD), *(cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
