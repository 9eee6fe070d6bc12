"""Measure copilot_nb against everyone else, on the same work, in one run.

    python tests/benchmarks/run.py                all of it: a quarter of an hour on an idle machine
    python tests/benchmarks/run.py --setup        make the peers' environments first
    python tests/benchmarks/run.py --quick        fewer rounds, no growth; who is not installed is skipped
    python tests/benchmarks/run.py --only kernel  one group: http, kernel, memory, disk, log, panel, growth
    python tests/benchmarks/run.py --json FILE    the rows as a JSON list: name, peer, ratio, goal, reached …
    python tests/benchmarks/run.py --page         also write notebooks/06_measured.ipynb and its pictures

Nothing here is a pass or fail test: what it prints are ratios of medians, ours and a peer's taken in turn.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import peers
import table
from table import Row

GROUPS = ("http", "kernel", "memory", "disk", "log", "panel", "growth")


class Run:
    """One run of the command: what was found, what was skipped and why."""

    def __init__(self, quick: bool, groups: list[str], save: Callable[[Run], None]) -> None:
        self.quick, self.groups, self.save = quick, groups, save
        self.rows: list[Row] = []
        self.skipped: dict[str, str] = {}
        self.axes: list[Any] = []
        self.peers: list[peers.Peer] = []

    def all(self) -> None:
        """Every group that was asked for."""
        import in_kernel
        import on_disk
        import over_http
        from clients import clients

        if {"http", "memory", "growth"} & set(self.groups):
            everyone = (peers.OURS, peers.PANEL, *peers.PEERS)
            few = (peers.OURS, peers.LIMIT)
            with clients(everyone if "http" in self.groups else few, self.skipped) as found:
                self.peers = [client.peer for client in found.values()]
                self._group("http", lambda: over_http.rows(found, self.quick, self.skipped))
                port = next(iter(found.values())).port
                self._group("memory", lambda: in_kernel.memory(self.quick, f"http://127.0.0.1:{port}/v1"))
                self._growth(found)
        self._group("kernel", lambda: in_kernel.loading(self.quick, self.skipped))
        self._group("disk", lambda: on_disk.rows(self.quick))
        for name in ("log", "panel"):
            self._group(name, lambda name=name: _elsewhere(name, self.quick))

    def _group(self, name: str, rows: Callable[[], Iterable[Row]]) -> None:
        if name not in self.groups:
            return
        begun = time.monotonic()
        try:
            self.rows += rows()
        except Exception as error:  # one group's trouble is told; the others are still worth their rows
            self.skipped[name] = f"{type(error).__name__}: {error}"
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        self.save(self)

    def _growth(self, found: dict[str, Any]) -> None:
        if "growth" not in self.groups:
            return
        if self.quick:
            self.skipped["growth"] = "only in a full run"
            return
        import growth

        self.axes = growth.axes(found, self.skipped)
        self._group("growth", lambda: [row for axis in self.axes for row in axis.rows()])

    def report(self) -> str:
        """The table, and what is not in it."""
        lines = [table.text(self.rows), ""]
        asked = [row for row in self.rows if row.reached is not None]
        lines.append(f"{sum(bool(row.reached) for row in asked)} of {len(asked)} goals reached.")
        lines += [f"skipped {name}: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


def _elsewhere(name: str, quick: bool) -> Iterable[Row]:
    """The rows of ``log_bench.py`` and ``panel_bench.py``: dicts with the keys of the JSON file."""
    for found in importlib.import_module(f"{name}_bench").rows(quick):
        known = {key: value for key, value in found.items() if key in Row.__dataclass_fields__}
        row = Row(**{"peer": "", "ratio": None, "measure": "", **known})
        row.note = row.note or str(found.get("detail", ""))
        if row.ratio is None:  # a figure with its unit stands in the peer's place
            row.peer, row.shown = "", row.peer
        yield row


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no growth")
    parser.add_argument("--only", metavar="NAME", choices=GROUPS, help=", ".join(GROUPS))
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there")
    parser.add_argument("--setup", action="store_true", help="install the peers in environments of their own")
    parser.add_argument("--page", action="store_true", help="write the page of the documentation")
    asked = parser.parse_args()
    sys.path.insert(0, str(peers.ROOT))  # this tree, whatever is installed
    if asked.setup:
        peers.set_up()

    def save(run: Run) -> None:  # after every group: an interrupted run keeps what it has
        if asked.json:
            asked.json.write_text(
                json.dumps([row.to_dict() for row in run.rows], indent=1, ensure_ascii=False)
            )
        if asked.page:
            import page

            page.write(run)

    run = Run(asked.quick, [asked.only] if asked.only else list(GROUPS), save)
    run.all()
    print(run.report())


if __name__ == "__main__":
    main()
