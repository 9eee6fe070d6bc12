#!/usr/bin/env python3
"""Run random schedules on the real CLI and on our engine, and compare what they did.

    COPILOT_CLI_PATH=… python tests/conformance/compare_live.py [--runs N] [--seed S] [--against RUNTIME]

Schedules avoid the moments that the reference leaves to chance (see `following`). A failing seed is printed
and shrunk to the shortest schedule that still fails; the exit status is then 1. ``--seed`` repeats a run:
the N schedules are those of the seeds S, S+1, …
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import secrets
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from cli_rig import Client, CliRig, cli_path  # noqa: E402
from comparing import difference, observed  # noqa: E402
from matching import Matcher, first_difference  # noqa: E402
from projection import JSON  # noqa: E402
from rig import Rig  # noqa: E402
from run_cases import make_rig  # noqa: E402
from schedules import make_schedule, smaller  # noqa: E402

AT_ONCE = 3
SHRINK_RUNS = 80


class Bench:
    """One CLI process and a place for sessions."""

    def __init__(self, client: Client, folder: Path, against: str) -> None:
        self.client = client
        self.folder = folder
        self.against = against
        self.number = itertools.count()

    async def compare(self, case: JSON) -> str | None:
        """The first difference between the two in one schedule."""
        place = self.folder / str(next(self.number))
        theirs = CliRig(case, place / "cli" / case["name"], self.client)
        ours = self._ours(case, place / "ours" / case["name"])
        async with asyncio.timeout(180):
            await asyncio.gather(theirs.run(), ours.run())
        recorded = {**case, **observed(theirs, elide=True)}
        if found := difference(recorded, observed(ours)):
            return found
        if found := first_difference(Matcher(), "lanes after an edit", theirs.views, ours.views):
            return found
        stuck = [[note for note in rig.notes if note.startswith("timeout")] for rig in (theirs, ours)]
        return f"stuck: {stuck}" if stuck != [[], []] else None

    def _ours(self, case: JSON, folder: Path) -> Rig:
        if self.against == "cli":  # the CLI with itself: how much it differs from run to run
            return CliRig(case, folder, self.client)
        return make_rig(self.against, case, folder)

    async def checked(self, case: JSON) -> str | None:
        """Like `compare`; what breaks is a difference too."""
        try:
            return await self.compare(case)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    async def shrink(self, case: JSON, found: str) -> tuple[JSON, str]:
        """The smallest schedule that still differs, and how."""
        runs = 0
        while True:
            for small in smaller(case):
                runs += 1
                if runs > SHRINK_RUNS:
                    return case, found
                if (again := await self.checked(small)) is not None:
                    case, found = small, again
                    break
            else:
                return case, found


async def run(runs: int, seed: int, against: str, *, shrink: bool = True) -> int:
    """Compare schedules; how many differ."""
    failures: list[tuple[JSON, str]] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="live-", ignore_cleanup_errors=True) as folder:
        client = Client(Path(folder) / "home")
        await client.start()
        try:
            bench = Bench(client, Path(folder), against)
            slots = asyncio.Semaphore(AT_ONCE)

            async def one(seed: int) -> None:
                case = make_schedule(seed)
                async with slots:
                    found = await bench.checked(case)
                if found is not None:
                    failures.append((case, found))
                    print(f"seed {seed}: {found}", flush=True)

            async with asyncio.TaskGroup() as group:
                for k in range(runs):
                    group.create_task(one(seed + k))
            if failures and shrink:
                case, found = await bench.shrink(*failures[0])
                print(f"shrunk {case['name']}: {found}\n{describe(case)}")
        finally:
            await client.stop()
    took = time.monotonic() - started
    print(f"{runs} schedules, seeds {seed}..{seed + runs - 1}, {took:.0f} s: {len(failures)} differ")
    return len(failures)


def describe(case: JSON) -> str:
    """A schedule, one line per reply and per idle moment."""
    plan = case["actions"][0]["plan"]
    lines = [f"  config {json.dumps(case['config'])} permissions {json.dumps(case.get('permissions', {}))}"]
    for k, (reply, blocks) in enumerate(zip(case["model_script"], plan["blocks"], strict=True)):
        lines.append(f"  reply {k}: {json.dumps(reply)}")
        lines += [f"    at {block['at']}: {json.dumps(block['do'])}" for block in blocks]
    lines += [f"  when idle: {json.dumps(idle)}" for idle in plan["idles"]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="default: a fresh one")
    parser.add_argument("--against", choices=("engine", "copilot", "cli"), default="engine")
    options = parser.parse_args(arguments)
    if cli_path() is None:
        parser.error("set COPILOT_CLI_PATH to the Copilot CLI executable")
    seed = secrets.randbelow(1_000_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    return 1 if asyncio.run(run(options.runs, seed, options.against)) else 0


if __name__ == "__main__":
    sys.exit(main())
