"""Growth: the same work at 1 to 1,000 turns, 1 to 100 sessions, 10³ to 10⁶ events, beside what must grow."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
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
    for n, rounds in ((1, 9), (10, 5), (100, 3), (1000, 2)):
        results = alternate(
            found, {"do": "turns", "n": n, "repeat": 5 if n == 1 else 1}, rounds, skipped, names
        )
        _add(by_turns, n, results)
    yield by_turns
    by_sessions = Axis("sessions", "sessions at once, 10 turns each", "CPU ms per turn", LIMIT.name)
    for n, rounds in ((1, 7), (10, 3), (100, 3)):
        _add(by_sessions, n, alternate(found, {"do": "many", "sessions": n, "n": 10}, rounds, skipped, names))
    yield by_sessions


def _add(axis: Axis, size: int, results: dict[str, list[dict[str, float]]]) -> None:
    if all(results.get(name) for name in (OURS.name, LIMIT.name)):
        costs = {name: statistics.median(r["cpu"] for r in results[name]) * 1e3 for name in results}
        axis.add(size, **costs)


def over_events() -> Axis:
    """A session that gets ever more events: cost of the last tenth of them, each."""
    axis = Axis("events", "events of one session", "CPU µs per event", "os.write")
    source, state, log = EventSource(), SessionState(), LiveLog()
    spent = dict.fromkeys(("fold", "live_table", "log_on_disk", "os.write"), 0.0)
    clock, total, counted = time.process_time, 0, 0
    with tempfile.TemporaryDirectory() as home:
        store = EventStore.create("growth", home)
        descriptor = os.open(Path(home) / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        made = turns(source)
        for size in (1_000, 10_000, 100_000, 1_000_000):
            while total < size:
                events = list(islice(made, 1_000))
                kept = [event for event in events if event.stored]
                lines = [to_line(event) for event in kept]
                times = [clock()]
                for event in events:
                    state.apply(event)
                times.append(clock())
                for event in events:
                    log.append(event)
                times.append(clock())
                for event in kept:
                    store.append(event)
                times.append(clock())
                for line in lines:
                    os.write(descriptor, line)
                times.append(clock())
                total += len(events)
                if total > size * 0.9 or size == 1_000:
                    counted += len(events)
                    for name, begun, ended in zip(spent, times, times[1:], strict=False):
                        spent[name] += ended - begun
            axis.add(size, **{name: cost / counted * 1e6 for name, cost in spent.items()})
            spent, counted = dict.fromkeys(spent, 0.0), 0
        os.close(descriptor)
        store.close()
    return axis


def plot(axis: Axis, path: Path) -> None:
    """One picture: cost of a unit over size, both logarithmic."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes_ = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    for name, costs in axis.costs.items():
        style = {"color": "#8a8a8a", "linestyle": "--"} if name == axis.limit else {}
        axes_.plot(axis.sizes, costs, marker="o", label=name, **style)
    axes_.set(xscale="log", yscale="log", xlabel=axis.title, ylabel=axis.unit)
    axes_.grid(alpha=0.3)
    axes_.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
