"""Compares what a runtime did in a case with what the real CLI did."""

from __future__ import annotations

from collections import Counter

from matching import Matcher, first_difference
from projection import JSON, core_events, elider, request_messages, vocabulary
from rig import Rig
from tolerances import comparable_disk, comparable_events, disk_spine, is_racy, racy_facts


def observed(rig: Rig, *, elide: bool = False) -> JSON:
    """What a finished rig saw, in the form of a case file."""
    text = elider(vocabulary(rig.spec)) if elide else str
    requests = [request_messages(request["body"], text) for request in rig.model.requests]
    return {
        "core_events": core_events(rig.events, text),
        "llm_requests": requests,
        "events_jsonl": [{"type": line["type"]} for line in rig.disk],
    }


def difference(case: JSON, got: JSON) -> str | None:
    """The first difference between a case's recording and what a runtime did; None when they agree.

    A racy case that is not equal passes on `racy_facts`.
    """
    racy = is_racy(case)
    found = _exact(case, got, racy=racy)
    if found is None or not racy:
        return found
    matcher = Matcher(vocabulary(case))
    want = racy_facts(case["core_events"], case["llm_requests"])
    have = racy_facts(got["core_events"], got["llm_requests"])
    for name, value in want.items():
        if not matcher.same(value, have[name]):
            return f"racy, {name}: expected {value}, got {have[name]}"
    return None


def _exact(case: JSON, got: JSON, *, racy: bool) -> str | None:
    matcher = Matcher(vocabulary(case))
    want = comparable_events(case["core_events"], racy=racy)
    have = comparable_events(got["core_events"], racy=racy)
    if found := first_difference(matcher, "core_events", want, have):
        return found
    for i in range(max(len(case["llm_requests"]), len(got["llm_requests"]))):
        if i >= len(case["llm_requests"]) or i >= len(got["llm_requests"]):
            counts = len(case["llm_requests"]), len(got["llm_requests"])
            return f"llm_requests: expected {counts[0]} requests, got {counts[1]}"
        name = f"llm_requests[{i}]"
        if found := first_difference(matcher, name, case["llm_requests"][i], got["llm_requests"][i]):
            return found
    return disk_difference(
        [line["type"] for line in case["events_jsonl"]], [line["type"] for line in got["events_jsonl"]]
    )


def disk_difference(want: list[str], have: list[str]) -> str | None:
    """The first difference between the types on two disks."""
    missing = Counter(comparable_disk(want)) - Counter(comparable_disk(have))
    extra = Counter(comparable_disk(have)) - Counter(comparable_disk(want))
    if missing or extra:
        return f"events_jsonl: missing {dict(missing)}, extra {dict(extra)}"
    return first_difference(Matcher(), "events_jsonl order", disk_spine(want), disk_spine(have))
