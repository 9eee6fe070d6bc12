"""The rows that are measured over HTTP: turns, chunks, first token, steer, one message."""

from __future__ import annotations

from collections.abc import Iterable

import table
from clients import Client, alternate
from peers import COPILOT, LIMIT, OURS, PANEL, PEERS
from table import Row

Results = dict[str, list[dict[str, float]]]
KINDS = {peer.name: peer.kind for peer in (*PEERS, OURS, PANEL)}
HTTP = (OURS.name, PANEL.name, LIMIT.name)


def rows(found: dict[str, Client], quick: bool, skipped: dict[str, str]) -> Iterable[Row]:
    """All of them, CPU first."""
    turns = _turns(found, quick, skipped)
    memory = alternate(found, {"do": "memory_after"}, 1, skipped)
    many, few = (3, 2) if quick else (9, 4)
    bursts = alternate(found, {"do": "chunks", "kind": "s", "n": 5000}, many, skipped, rivals=few)
    paced = alternate(found, {"do": "chunks", "kind": "p", "n": 500}, many, skipped, HTTP)
    plain = alternate(found, {"do": "plain", "repeat": 10}, many, skipped, rivals=few)
    steers = alternate(found, {"do": "steer", "repeat": 5}, few, skipped, _can_steer(found))

    for n, results in turns.items():
        name = f"CPU per turn, {n} turn{'s' * (n != 1)}"
        yield from _against(name, results, "cpu", 1.5, {1: 3.0, 100: 10.0}.get(n), 20.0, 1e3, "ms")
    history = alternate(
        found,
        {"do": "turns", "n": 1, "repeat": 3, "history": 1000},
        3 if quick else 5,
        skipped,
        (OURS.name, LIMIT.name),
    )
    yield from _against("CPU per turn after 1,000 turns", history, "cpu", 1.5, None, None, 1e3, "ms")
    yield from _against("CPU per chunk, burst of 5,000", bursts, "cpu", 1.5, 5.0, None, 1e6, "µs")
    yield from _against("CPU per chunk, paced at 1 kHz", paced, "cpu", 1.5, None, None, 1e6, "µs")
    yield from _against("CPU of one message without tools", plain, "cpu", None, None, None, 1e3, "ms")

    for n, key in ((10, "gap"), (100, "gap_last")):
        name = f"tool result to next request, after {n} turns"
        yield from _over(name, turns[n], key, 1.0)
        yield from _rivals(name, turns[n], key, 10.0)
    yield from _over("time to first token, warm", plain, "first", 1.0)
    yield from _rivals("one message until idle, no tools", plain, "end", 15.0)
    yield from _steer(steers)
    yield from _memory(memory)


def _turns(found: dict[str, Client], quick: bool, skipped: dict[str, str]) -> dict[int, Results]:
    rounds = {1: (3, 11, 4), 10: (3, 9, 4), 100: (3, 7, 3)}  # quick, full, rivals
    repeats = {1: 10, 10: 2, 100: 1}
    found_: dict[int, Results] = {}
    for n, (few, many, rivals) in rounds.items():
        order = {"do": "turns", "n": n, "repeat": repeats[n]}
        found_[n] = alternate(found, order, few if quick else many, skipped, rivals=1 if quick else rivals)
    return found_


def _can_steer(found: dict[str, Client]) -> list[str]:
    return [name for name in found if name in (OURS.name, COPILOT.name, "pydantic-ai")]


def _values(results: Results, name: str, key: str, scale: float) -> list[float]:
    return [result[key] * scale for result in results[name]]


def _against(
    name: str,
    results: Results,
    key: str,
    most: float | None,
    least: float | None,
    least_cli: float | None,
    scale: float,
    unit: str,
) -> Iterable[Row]:
    """Ours, and ours with a panel, against the limit; ours against everybody else."""
    if OURS.name not in results:
        return
    for who in (OURS.name, PANEL.name):
        if LIMIT.name in results and who in results:
            ours, theirs = _values(results, who, key, scale), _values(results, LIMIT.name, key, scale)
            note = "panel attached" if who == PANEL.name else ""
            yield table.limit_row(name, LIMIT.name, ours, theirs, most, unit=unit, note=note)
    ours = _values(results, OURS.name, key, scale)
    for peer in results:
        kind = KINDS[peer]
        if kind in ("sdk", "agent", "cli"):
            goal = {"agent": least, "cli": least_cli}.get(kind)
            yield table.rival_row(name, peer, ours, _values(results, peer, key, scale), goal, unit=unit)


def _over(name: str, results: Results, key: str, most: float) -> Iterable[Row]:
    """At most so many milliseconds over the limit."""
    for who in (OURS.name, PANEL.name):
        if LIMIT.name in results and who in results:
            ours, theirs = _values(results, who, key, 1e3), _values(results, LIMIT.name, key, 1e3)
            note = "panel attached" if who == PANEL.name else ""
            yield table.over_row(name, LIMIT.name, ours, theirs, most, "ms", measure="wall", note=note)


def _rivals(name: str, results: Results, key: str, least_cli: float) -> Iterable[Row]:
    if OURS.name not in results:
        return
    ours = _values(results, OURS.name, key, 1e3)
    for peer in results:
        if KINDS[peer] in ("sdk", "agent", "cli"):
            goal = least_cli if peer == COPILOT.name else None
            yield table.rival_row(
                name, peer, ours, _values(results, peer, key, 1e3), goal, unit="ms", measure="wall"
            )


def _steer(results: Results) -> Iterable[Row]:
    if OURS.name not in results:
        return
    name = "steer: from send to its request"
    ours = _values(results, OURS.name, "wall", 1e3)
    yield table.value_row(name, ours, 5.0, "ms", measure="wall")
    late = max(_values(results, OURS.name, "late", 1))
    for peer in results:
        if peer != OURS.name:
            theirs = max(_values(results, peer, "late", 1))
            row = Row("steer: model calls too late", peer, late, "<= the peer's", late <= theirs, ours=late)
            row.theirs, row.measure, row.unit = theirs, "count", "calls"
            yield row
            yield table.rival_row(
                name, peer, ours, _values(results, peer, "wall", 1e3), None, unit="ms", measure="wall"
            )


def _memory(results: Results) -> Iterable[Row]:
    """Resident memory of each process (of the CLI: of all its processes) after the turns."""
    if OURS.name not in results:
        return
    ours = _values(results, OURS.name, "mb", 1)
    for peer in results:
        if KINDS[peer] != "ours":
            theirs = _values(results, peer, "mb", 1)
            yield table.rival_row(
                "memory of the process", peer, ours, theirs, None, unit="MB", measure="memory"
            )
