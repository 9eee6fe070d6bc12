"""Pictures of a log with matplotlib: one axes in, one axes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from copilot_nb.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from copilot_nb.frames.log import NamedTables


class Plots:
    """``log.plot()`` is the timeline; ``log.plot.tokens()``, ``.tools()`` and ``.waits()`` are the others."""

    def __init__(self, log: NamedTables) -> None:
        self._log = log

    def __call__(self, ax: Axes | None = None) -> Axes:
        """Turns, tool calls and waiting messages over time, in seconds since the first event."""
        ax = _axes(ax)
        lanes = (
            ("turns", self._log.turns(), "started", "duration", "C0"),
            ("tools", self._log.tools(), "started", "duration", "C1"),
            ("permissions", self._log.permissions(), "asked_at", "waited", "C3"),
            ("waiting messages", self._log.messages(), "sent_at", "waited", "C2"),
        )
        times = [frame[start].dropna() for _, frame, start, _, _ in lanes]
        starts = [column.min() for column in times if len(column)]
        origin = min(starts) if starts else None
        for place, (_, frame, start, span, color) in enumerate(reversed(lanes)):
            known = frame[frame[start].notna() & frame[span].notna()]
            bars = [
                ((begin - origin).total_seconds(), max(took.total_seconds(), 1e-3))
                for begin, took in zip(known[start], known[span], strict=True)
            ]
            ax.broken_barh(bars, (place - 0.35, 0.7), facecolors=color, edgecolors="white", linewidth=0.3)
        ax.set_yticks(range(len(lanes)), [name for name, *_ in reversed(lanes)])
        ax.set_ylim(-0.6, len(lanes) - 0.4)
        ax.set_xlabel("time since the start (s)")
        ax.set_title("Timeline")
        return ax

    def tokens(self, ax: Axes | None = None) -> Axes:
        """Tokens of each turn: what was sent, what was written."""
        ax = _axes(ax)
        turns = self._log.turns()
        places = range(1, len(turns) + 1)
        sent = turns["input_tokens"].fillna(0).astype("int64")
        ax.bar(places, sent, color="C0", label="input")
        ax.bar(
            places, turns["output_tokens"].fillna(0).astype("int64"), bottom=sent, color="C1", label="output"
        )
        ax.set_xlabel("turn")
        ax.set_ylabel("tokens")
        ax.set_title("Tokens per turn")
        ax.legend()
        return ax

    def tools(self, ax: Axes | None = None) -> Axes:
        """Time spent in each tool, and how often it was called and failed."""
        ax = _axes(ax)
        tools = self._log.tools()
        spent = tools["duration"].dt.total_seconds().groupby(tools["tool"]).sum().sort_values()
        calls = tools["tool"].value_counts()
        failed = tools.loc[~tools["status"].isin(["ok", "open"]), "tool"].value_counts()
        names = [name.replace("$", r"\$") for name in spent.index]  # else it would begin a formula
        ax.barh(names, list(spent), color="C1")
        for place, name in enumerate(spent.index):
            words = " 1 call" if calls[name] == 1 else f" {calls[name]} calls"
            words += f", {failed[name]} failed" if name in failed else ""
            ax.annotate(words, (spent.iloc[place], place), va="center")
        ax.margins(x=0.25)
        ax.set_xlabel("time (s)")
        ax.set_title("Time in tools")
        return ax

    def waits(self, ax: Axes | None = None) -> Axes:
        """How long messages waited in their lanes and permissions for an answer."""
        ax = _axes(ax)
        messages, asked = self._log.messages(), self._log.permissions()
        groups = {
            "steer": messages.loc[messages["lane"] == "steering", "waited"],
            "queued": messages.loc[messages["lane"] == "queue", "waited"],
            "permission": asked["waited"],
        }
        for place, (name, spans) in enumerate(groups.items()):
            seconds = spans.dropna().dt.total_seconds()
            ax.plot(seconds, [place] * len(seconds), "o", alpha=0.5, color=f"C{place}", label=name)
        ax.set_yticks(range(len(groups)), list(groups))
        ax.set_ylim(-0.6, len(groups) - 0.4)
        ax.set_xlabel("waited (s)")
        ax.set_title("Waiting")
        return ax


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise UsageError(
            "For plots: pip install 'copilot-nb[plots]' (or log.svg(), which needs nothing)"
        ) from None
    return plt.subplots()[1]
