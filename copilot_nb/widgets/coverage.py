"""How much of any stretch of time was spent on what: waiting for the model, writing, tools, the person.

The time covered before a moment t by intervals is the sum of (t - start) over those that began before t, less
the sum of (t - stop) over those that ended before t. With sorted ends and running sums that is two searches,
however many intervals there are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from copilot_nb.fold.items import Turn

if TYPE_CHECKING:
    import numpy as np

KINDS = ("wait", "think", "stream", "tool", "ask", "fail")


def parts(turn: Turn, now: float) -> Iterable[tuple[str, float, float]]:
    """What a turn spent its time on: kind, start, stop; `now` ends what is still open."""
    end = turn.t1 or now
    said = turn.said_at or end
    first = min(turn.first_at or said, said)
    text = min(turn.text_at or first, said)
    yield "wait", turn.t0, first
    yield "think", first, text
    yield "stream", text, said
    for tool in turn.tools:
        stop = tool.t1 or now
        if tool.asked_at is not None and tool.reason is None:
            answered = tool.answered_at or stop
            yield "ask", tool.asked_at, answered
            yield "fail" if tool.state == "failed" else "tool", answered, stop
        else:
            yield "fail" if tool.state == "failed" else "tool", tool.t0, stop


class Coverage:
    """Intervals of all turns so far, by kind."""

    def __init__(self) -> None:
        self._starts = {kind: array("d") for kind in KINDS}
        self._stops = {kind: array("d") for kind in KINDS}
        self._closed = 0
        self._open: Sequence[Turn] = ()

    def follow(self, turns: Sequence[Turn]) -> None:
        """Take in the turns that ended since the last call; the others are looked at anew each time."""
        while self._closed < len(turns) and turns[self._closed].t1 is not None:
            self._add(turns[self._closed], 0.0, self._starts, self._stops)
            self._closed += 1
        self._open = turns[self._closed :]

    @staticmethod
    def _add(turn: Turn, now: float, starts: dict[str, array[float]], stops: dict[str, array[float]]) -> None:
        for kind, start, stop in parts(turn, now):
            if stop > start:
                starts[kind].append(start)
                stops[kind].append(stop)

    def columns(self, a: float, b: float, count: int) -> dict[str, list[int]]:
        """For each kind, the share of each of `count` columns from a to b, in percent.

        Tools that ran in parallel add up to over 100.
        """
        import numpy as np

        edges = np.linspace(a, b, count + 1)
        starts = {kind: array("d") for kind in KINDS}
        stops = {kind: array("d") for kind in KINDS}
        for turn in self._open:
            self._add(turn, b, starts, stops)
        width = (b - a) / count or 1.0
        shares = {}
        for kind in KINDS:
            before = _before(self._starts[kind] + starts[kind], edges) - _before(
                self._stops[kind] + stops[kind], edges
            )
            shares[kind] = np.rint(100 * np.diff(before) / width).astype(int).tolist()
        return shares


def _before(moments: array[float], edges: np.ndarray) -> np.ndarray:
    """For each edge, the sum of (edge - moment) over the moments before it."""
    import numpy as np

    zero = edges[0]  # sums of small numbers: seconds since 1970 would lose digits
    values = np.sort(np.frombuffer(moments, np.float64) - zero) if moments else np.zeros(0)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places = np.searchsorted(values, edges - zero)
    result: np.ndarray = places * (edges - zero) - sums[places]
    return result
