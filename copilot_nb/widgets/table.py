"""What the event table asks of a log: windows of rows, counts, where an event is, the filtered frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON

if TYPE_CHECKING:
    from copilot_nb.frames.window import EventWindow


def filter_of(args: JSON) -> JSON:
    """The filter in a view's request: types (None is all), text, and whether ephemeral events count."""
    types = args.get("types")
    return {
        "types": None if types is None else set(types),
        "text": args.get("text") or None,
        "ephemeral": bool(args.get("ephemeral", True)),
    }


class EventTable:
    """One panel's window on its log."""

    def __init__(self, source: Any) -> None:
        self.source = source

    @cached_property
    def window(self) -> EventWindow:
        """Made when the table is first looked at."""
        from copilot_nb.frames.window import EventWindow

        return EventWindow(self.source.log)

    def rows(self, start: int, stop: int, sort: tuple[str, bool], args: JSON) -> list[JSON]:
        """Rows of the filtered table; those of events without a text say in words what they hold."""
        rows = self.window.rows(start, stop, sort=sort, **filter_of(args))
        for row in rows:
            words = _WORDS.get(row["type"])
            if words is not None and not row["summary"] and not row["ephemeral"]:
                row["summary"] = words(self.source.log.event(row["seq"]).data)
        return rows

    def types(self) -> JSON:
        """``{types: {name: [how many, of them stored]}, all}``."""
        every, stored = self.window.type_counts(), self.window.type_counts(ephemeral=False)
        counts = {name: [n, stored.get(name, 0)] for name, n in every.items()}
        return {"types": counts, "all": sum(every.values())}

    def place(self, args: JSON) -> int | None:
        """Where the event of an id is among the filtered rows, in the log's order."""
        return self.window.place(args["event"], **filter_of(args))

    def frame(self, args: JSON) -> JSON:
        """Put the filtered events in a variable of the notebook: its name, and how many they are."""
        from IPython.core.getipython import get_ipython

        shell: Any = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
        if shell is None:
            raise UsageError("There is no notebook to put a variable in.")
        seqs = self.window.chosen(**filter_of(args))
        table = self.source.log.events().loc[seqs]
        name, number = "events", 1
        while name in shell.user_ns and shell.user_ns[name] is not _given.get(name):
            number += 1
            name = f"events_{number}"
        shell.user_ns[name] = _given[name] = table
        return {"name": name, "n": len(table)}


def _queue_words(data: JSON) -> str:
    lane = f" ({data['lane']})" if data.get("lane") else ""
    return f"{data.get('op')}{lane} {data.get('prompt') or data.get('reason') or ''}".strip()


def _usage_words(data: JSON) -> str:
    usage = data.get("usage") or {}
    return f"{usage.get('inputTokens') or 0:,} in, {usage.get('outputTokens') or 0:,} out"


_WORDS: dict[str, Callable[[JSON], str]] = {
    "permission.requested": lambda data: str((data.get("permissionRequest") or {}).get("toolName") or ""),
    "permission.completed": lambda data: str((data.get("result") or {}).get("kind") or ""),
    "external_tool.requested": lambda data: str(data.get("toolName") or ""),
    "session.mode_changed": lambda data: str(data.get("newMode") or ""),
    "jupyter.queue": _queue_words,
    "session.usage_record": _usage_words,
}
_given: dict[str, Any] = {}  # what was put in variables: these may be replaced, other people's not
