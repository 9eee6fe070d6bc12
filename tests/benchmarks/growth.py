"""Growth: the same work at 1 to 1,000 turns, 1 to 100 sessions, 10³ to 10⁶ events, beside what must grow."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path

from clients import Client, alternate
from on_disk import turns
from peers import LIMIT, OURS
from table import Row

from copilot_nb.events import EventSource, to_line
from copilot_nb.frames import LiveLog
from copilot_nb.state import SessionState
from copilot_nb.store import EventStore


@dataclass
class Axis:
    """What was measured along one axis: a unit of cost for each name at each size."""

    name: str
    title: str
    unit: str
    limit: str
    sizes: list[int] = field(default_factory=list)
    costs: dict[str, list[float]] = field(default_factory=dict)

    def add(self, size: int, **costs: float) -> None:
        """One size."""
        self.sizes.append(size)
        for name, cost in costs.items():
            self.costs.setdefault(name.replace("_", " "), []).append(cost)

    def rows(self) -> Iterable[Row]:
        """How much dearer one unit is at the end than at the beginning, against the limit."""
        bend = self.costs[self.limit][-1] / self.costs[self.limit][0]
        for name, costs in self.costs.items():
            if name != self.limit:
                ratio = costs[-1] / costs[0] / bend
                row = Row(
                    f"growth over {self.name}: {name}", self.limit, ratio, "<= 1.25", ratio <= 1.25, rounds=1
                )
                row.ours, row.theirs, row.unit = costs[-1] / costs[0], bend, "x"
                row.note = f"{self.sizes[0]:,} to {self.sizes[-1]:,}"
                yield row


def axes(found: dict[str, Client], skipped: dict[str, str]) -> list[Axis]:
    """All three."""
    return [*_over_http(found, skipped), over_events()]


def _over_http(found: dict[str, Client], skipped: dict[str, str]) -> Iterable[Axis]:
    names = (OURS.name, LIMIT.name)
    if not all(name in found for name in names):
        return
    by_turns = Axis("turns", "turns of one run", "CPU ms per turn", LIMIT.name)
    for n, rounds in ((1, 7), (10, 5), (100, 3), (1000, 1)):
        results = alternate(
            found, {"do": "turns", "n": n, "repeat": 5 if n == 1 else 1}, rounds, skipped, names
        )
        _add(by_turns, n, results)
    yield by_turns
    by_sessions = Axis("sessions", "sessions at once, 10 turns each", "CPU ms per turn", LIMIT.name)
    for n, rounds in ((1, 7), (10, 3), (100, 1)):
        _add(by_sessions, n, alternate(found, {"do": "many", "sessions": n, "n": 10}, rounds, skipped, names))
    yield by_sessions


def _add(axis: Axis, size: int, results: dict[str, list[dict[str, float]]]) -> None:
    if all(results.get(name) for name in (OURS.name, LIMIT.name)):
        costs = {name: statistics.median(r["cpu"] for r in results[name]) * 1e3 for name in results}
        axis.add(size, **costs)


BATCH = 1_024  # events: as many as a live log takes in at once
SIZES = (BATCH, 10 * BATCH, 100 * BATCH, 1_000 * BATCH)


def over_events() -> Axis:
    """A session that gets ever more events: what the last tenth of them cost, each."""
    axis = Axis("events", "events of one session", "CPU us per event", "os.write")
    with tempfile.TemporaryDirectory() as home:
        small = [_Fed(home, f"small-{number}") for number in range(21)]
        first = [fed.feed(1) for fed in small][1:]  # without the very first, which warms up
        axis.add(SIZES[0], **{name: statistics.median(cost[name] for cost in first) for name in first[0]})
        grown = small[0]
        for size in SIZES[1:]:
            grown.feed(size // BATCH * 9 // 10 - grown.batches)
            axis.add(size, **grown.feed(size // BATCH - grown.batches))
        for fed in small:
            fed.close()
    return axis


class _Fed:
    """One session's fold, live table and log, fed with events."""

    def __init__(self, home: str, session_id: str) -> None:
        self.events, self.batches = turns(EventSource()), 0
        self.state, self.log = SessionState(), LiveLog()
        self.store = EventStore.create(session_id, home)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.descriptor = os.open(Path(home) / f"{session_id}.raw", flags, 0o600)

    def feed(self, batches: int) -> dict[str, float]:
        """Microseconds of CPU that each event cost."""
        spent = dict.fromkeys(("fold", "live_table", "log_on_disk", "os.write"), 0.0)
        clock = time.process_time
        for _ in range(batches):
            events = list(islice(self.events, BATCH))
            kept = [event for event in events if event.stored]
            lines = [to_line(event) for event in kept]
            times = [clock()]
            for event in events:
                self.state.apply(event)
            times.append(clock())
            for event in events:
                self.log.append(event)
            times.append(clock())
            for event in kept:
                self.store.append(event)
            times.append(clock())
            for line in lines:
                os.write(self.descriptor, line)
            times.append(clock())
            for name, (begun, ended) in zip(spent, pairwise(times), strict=True):
                spent[name] += ended - begun
        self.batches += batches
        return {name: cost / (batches * BATCH) * 1e6 for name, cost in spent.items()}

    def close(self) -> None:
        """Let go of the files."""
        self.store.close()
        os.close(self.descriptor)


def plot(axis: Axis, path: Path) -> None:
    """One picture: cost of a unit over size, both logarithmic."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes_ = pyplot.subplots(figsize=(7.6, 3.6), layout="constrained")
    for name, costs in axis.costs.items():
        style = {"color": "#8a8a8a", "linestyle": "--"} if name == axis.limit else {}
        axes_.plot(axis.sizes, costs, marker="o", label=name, **style)
    axes_.set(xscale="log", yscale="log", xlabel=axis.title, ylabel=axis.unit)
    every = [cost for costs in axis.costs.values() for cost in costs]
    axes_.set_ylim(min(every) / 4, max(every) * 4)  # decades, so that noise looks as small as it is
    axes_.yaxis.set_major_formatter("{x:g}")
    axes_.yaxis.set_minor_formatter("")
    axes_.grid(alpha=0.3)
    figure.legend(loc="outside right center", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
