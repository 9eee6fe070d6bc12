"""Shares of time per column, against the plain way of counting."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from copilot_nb.fold.items import Tool, Turn
from copilot_nb.widgets.coverage import KINDS, Coverage, parts

BASE = 1_764_500_000.0


@st.composite
def turns(draw):
    t, found = 0.0, []
    for n in range(draw(st.integers(1, 12))):
        gap, wait, think, text, rest = (draw(st.floats(0, 5)) for _ in range(5))
        t += gap
        turn = Turn(f"t{n}", 1, n + 1, str(n), BASE + t)
        turn.first_at = BASE + t + wait
        turn.text_at = turn.first_at + think
        turn.said_at = turn.text_at + text
        turn.t1 = turn.said_at + rest
        for k in range(draw(st.integers(0, 3))):
            tool = Tool(f"c{k}", f"c{k}", "x", {}, 1, n + 1, turn.said_at, turn.t1)
            tool.state = draw(st.sampled_from(["ok", "failed"]))
            turn.tools.append(tool)
        t = turn.t1 - BASE
        found.append(turn)
    return found


@settings(deadline=None, max_examples=60)
@given(turns(), st.floats(0, 30), st.floats(0.1, 60), st.integers(1, 20))
def test_same_as_counting_each_interval(found, a, length, count):
    """A timeline whose columns do not add up shows waits where there were none."""
    coverage = Coverage()
    coverage.follow(found[: len(found) // 2])
    coverage.follow(found)
    shares = coverage.columns(BASE + a, BASE + a + length, count)
    width = length / count
    for kind in KINDS:
        for column in range(count):
            left = BASE + a + column * width
            covered = sum(
                max(0.0, min(stop, left + width) - max(start, left))
                for turn in found
                for name, start, stop in parts(turn, 0.0)
                if name == kind
            )
            assert abs(shares[kind][column] - 100 * covered / width) <= 0.51 + 100 * 1e-5 / width
