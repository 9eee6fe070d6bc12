"""All that may differ between the real CLI and a runtime here, with the reason for each.

Sections are those of the reference of the loop; whatever is not listed must be equal.
"""

from __future__ import annotations

from typing import Any

# Event types whose number and place are not compared.
UNORDERED_EVENTS = {
    "pending_messages.modified": "§0: neither number nor place is to be asserted (around nudges 1 or 2)",
}

# Types that may be on one disk and not on the other.
OPTIONAL_ON_DISK = {
    "session.usage_checkpoint": "the CLI's own billing bookkeeping",
    "session.usage_record": "§14: disk-only accounting; one per model call here, failed calls differ",
    "session.shutdown": "written by whoever stops last; a shared CLI writes it later",
    "session.info": "§18: the CLI's notice inside a forked session",
    "session.binary_asset": "§14: how image blobs are stored; requests are compared",
    "session.mode_notice_delivered": "§9: only with the CLI's own system prompt",
    "system.message": "§1: the system text is each runtime's own, and stored when it changed",
}

# The same for delivered events.
OPTIONAL_EVENTS = {
    "session.mode_notice_delivered": "§9: belongs to the CLI's own system prompt",
}

# Prefixes of types that are one side's own.
OWN_PREFIXES = {
    "jupyter.": "ours: the real CLI keeps and ignores them (§20)",
    "model.": "§17, quirk: during a manual compaction the CLI stores its internal trace",
}


def comparable_events(core: list[list[Any]], *, racy: bool = False) -> list[list[Any]]:
    """Core events without what §0 says not to assert."""
    skipped = UNORDERED_EVENTS.keys() | OPTIONAL_EVENTS.keys()
    kept = [event for event in core if event[0] not in skipped]
    return _settle_tools(_completions_in_turn(_start_first(kept)), racy)


def _start_first(core: list[list[Any]]) -> list[list[Any]]:
    """§0: the order inside the set-up burst before the first ``user.message`` is open."""
    first = [event for event in core if event[0] == "session.start"]
    return first + [event for event in core if event[0] != "session.start"]


def _completions_in_turn(core: list[list[Any]]) -> list[list[Any]]:
    """§14: when a turn is aborted, the ends of its running calls race with the turn's own end."""
    ordered: list[list[Any]] = []
    end: int | None = None  # place of the turn_end that late completions belong before
    for event in core:
        if event[0] == "external_tool.completed" and end is not None:
            ordered.insert(end, event)
            end += 1
            continue
        if event[0] in ("assistant.turn_end", "assistant.turn_start"):
            end = len(ordered) if event[0] == "assistant.turn_end" else None
        ordered.append(event)
    return ordered


_TOOL_EVENTS = ("external_tool.requested", "external_tool.completed", "tool.execution_complete")


def _settle_tools(core: list[list[Any]], racy: bool) -> list[list[Any]]:
    """§0: parallel tools' completion pairs interleave freely; the order of the calls and results stays.

    In racy cases two tools may also finish in either order.
    """
    settled: list[list[Any]] = []
    block: list[list[Any]] = []
    for event in [*core, ["", {}]]:
        if event[0] in _TOOL_EVENTS:
            block.append(event)
            continue
        if racy:
            block.sort(key=lambda item: str(item[1].get("toolCallId")))
        block.sort(key=lambda item: _TOOL_EVENTS.index(item[0]))
        settled += [*block, event]
        block = []
    return settled[:-1]


def comparable_disk(types: list[str]) -> list[str]:
    """Types on disk, sorted: §14, the lines of concurrent producers come in any order."""
    return sorted(t for t in types if t not in OPTIONAL_ON_DISK and not t.startswith(tuple(OWN_PREFIXES)))


# The order on disk is compared for these alone; the others have concurrent producers (§14).
DISK_SPINE = {
    "session.start",
    "session.resume",
    "user.message",
    "assistant.turn_start",
    "assistant.message",
    "assistant.turn_end",
    "session.error",
    "session.task_complete",
    "session.mode_changed",
}


def disk_spine(types: list[str]) -> list[str]:
    """The types on disk whose order is one loop's own."""
    return [t for t in types if t in DISK_SPINE]


# §4, §7: what is sent at once when these are seen may be a steer of the run or a message of its own.
EARLY = {"user.message", "assistant.turn_start", "pending_messages.modified"}


def is_racy(case: dict[str, Any]) -> bool:
    """Whether a case is marked so, or steers in the moment that §7 leaves to chance."""
    seen = ""
    for action in case["actions"]:
        if action.get("mode") == "immediate" and seen in EARLY:
            return True
        if action["do"] != "send":
            seen = action.get("event", "")
    return bool(case.get("racy"))


def racy_facts(core: list[list[Any]], requests: list[list[Any]]) -> dict[str, Any]:
    """What a case marked ``racy`` still asserts.

    A message may be a steer or a run of its own, two tools may finish in either order, a compaction may end
    before or after idle, a message may find the session idle already; but every message lands once and in its
    lane's order, every tool call is answered once with the same outcome, turns pair, the session ends idle,
    and the last model request has the same user messages and tool results.
    """
    named = [(kind, data) for kind, data in core]
    starts = sum(kind == "assistant.turn_start" for kind, _ in named)
    ends = sum(kind == "assistant.turn_end" for kind, _ in named)
    outcomes = ("success", "error_code", "result")
    return {
        "user messages": sorted(data.get("content", "") for kind, data in named if kind == "user.message"),
        "idle at the end": [data for kind, data in named if kind == "session.idle"][-1:],
        "errors": [data for kind, data in named if kind == "session.error"],
        "aborts": [data for kind, data in named if kind == "abort"],
        "tool calls": sorted(
            [data["toolCallId"], *(str(data.get(key)) for key in outcomes)]
            for kind, data in named
            if kind == "tool.execution_complete"
        ),
        "compactions": [data for kind, data in named if kind.startswith("session.compaction")],
        "turns pair": starts == ends,
        "last request": _said(max(requests, key=len)) if requests else [],
    }


def _said(request: list[Any]) -> list[Any]:
    """Who said what in a request, but for how a message was delivered (a queued one gets the date)."""
    rows = [row for row in request if row[0] in ("user", "tool")]
    return [[role, _undated(content), *rest] for role, content, *rest in rows]


def _undated(content: Any) -> Any:
    return content.removeprefix("<datetime>") if isinstance(content, str) else content
