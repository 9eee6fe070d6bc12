#!/usr/bin/env python3
"""Drive a runtime through recorded cases and compare it with what the real CLI did.

    python tests/conformance/run_cases.py DIR_OR_FILES… [--runtime engine|copilot|cli] [-k WORD] [-v]

Prints one line per failing case with the first difference; the last line is ``N passed, M failed``; the
exit status is 1 if any failed. ``engine`` and ``copilot`` run our `Session` on either runtime; ``cli`` is the
bare SDK, which shows how reproducible the recordings themselves are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from comparing import difference, observed  # noqa: E402
from projection import JSON  # noqa: E402
from rig import Rig  # noqa: E402

RUNTIMES = ("engine", "copilot", "cli")
AT_ONCE = {"engine": 12, "copilot": 3, "cli": 3}  # cases sleep a lot; a CLI process per case does not


def make_rig(runtime: str, case: JSON, folder: Path) -> Rig:
    """The rig that runs a case on a runtime."""
    if runtime == "cli":
        from cli_rig import CliRig

        return CliRig(case, folder)
    import openai  # noqa: F401  # half a second that no case should wait for
    from session_rig import SessionRig

    return SessionRig(case, folder, runtime)


async def run_case(runtime: str, case: JSON, folder: Path) -> tuple[str | None, Rig | None]:
    """The first difference (None: none) and the finished rig."""
    rig = None
    try:
        async with asyncio.timeout(300):
            rig = await make_rig(runtime, case, folder / case["name"]).run()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})", rig
    return difference(case, observed(rig)), rig


async def run_all(
    runtime: str, cases: list[JSON], tell: Callable[[JSON, str | None, Rig | None], None]
) -> None:
    """Run cases side by side; each one's difference is told as it ends."""
    slots = asyncio.Semaphore(AT_ONCE[runtime])

    async def one(case: JSON, folder: Path) -> None:
        async with slots:
            found, rig = await run_case(runtime, case, folder)
        tell(case, found, rig)

    with tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True) as folder:
        for together in (
            [case for case in cases if not _timed(case)],
            [case for case in cases if _timed(case)],
        ):
            async with asyncio.TaskGroup() as group:
                for case in together:
                    group.create_task(one(case, Path(folder)))


def _timed(case: JSON) -> bool:
    """Whether a case races with a real command: those run when little else does."""
    return "bash" in case.get("config", {}).get("extra_tools", [])


def show(rig: Rig) -> None:
    """Print what a rig saw."""
    got = observed(rig)
    for event in got["core_events"]:
        print("   ", json.dumps(event, ensure_ascii=False)[:200])
    for request in got["llm_requests"]:
        print("    >", json.dumps(request, ensure_ascii=False)[-600:])
    for note in rig.notes:
        print("    #", note[:300])


def find_cases(paths: Iterable[str], word: str = "") -> list[JSON]:
    """Cases of files and folders, slow ones first."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cases = [json.loads(file.read_text()) for file in files]
    chosen = [case for case in cases if word in case["name"]]
    return sorted(chosen, key=lambda case: "forever" not in case["name"])


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", default=[str(HERE / "cases")], metavar="DIR_OR_FILES")
    parser.add_argument("--runtime", choices=RUNTIMES, default="engine")
    parser.add_argument("-k", default="", metavar="WORD", help="only cases with WORD in their name")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what failing cases did")
    options = parser.parse_args(arguments)
    if options.runtime != "engine" and not os.environ.get("COPILOT_CLI_PATH"):
        parser.error("set COPILOT_CLI_PATH to the Copilot CLI executable")
    cases = find_cases(options.paths, options.k)
    if not cases:
        parser.error("no case found")
    failed: list[str] = []

    def tell(case: JSON, found: str | None, rig: Rig | None) -> None:
        if found is None:
            return
        failed.append(case["name"])
        print(f"{case['name']}: {found}", flush=True)
        if options.verbose and rig is not None:
            show(rig)

    asyncio.run(run_all(options.runtime, cases, tell))
    print(f"{len(cases) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
