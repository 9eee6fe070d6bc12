#!/usr/bin/env python3
"""Record cases anew from the real CLI.

    COPILOT_CLI_PATH=… python tests/conformance/record.py CASE.json… -o DIR

A case to record needs ``name``, ``model_script`` and ``actions``; ``config``, ``tools``, ``permissions``,
``description`` and ``racy`` are kept. What the CLI did is written beside them, its own prose elided.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from cli_rig import CliRig, cli_path
from comparing import observed
from projection import JSON

KEPT = ("name", "description", "racy", "config", "tools", "permissions", "model_script", "actions")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def record(spec: JSON, folder: Path) -> JSON:
    """The case with what the real CLI did."""
    case = {key: spec[key] for key in KEPT if key in spec}
    case.setdefault("config", {})
    case.setdefault("tools", ["gate", "echo"])
    rig = await CliRig(case, folder / case["name"]).run()
    for note in rig.notes:
        print("  #", note[:200])
    names: dict[str, str] = {}
    return {**case, **_named(observed(rig, elide=True), names)}


def _named(value: Any, names: dict[str, str]) -> Any:
    """Ids as ``<id:1>``, ``<id:2>``, … in order of appearance."""
    if isinstance(value, str):
        return UUID.sub(lambda found: names.setdefault(found[0], f"<id:{len(names) + 1}>"), value)
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items()}
    return value


def compact(case: JSON) -> str:
    """JSON with one line per item of a long list."""
    lines = []
    for key, value in case.items():
        if isinstance(value, list) and value:
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f"{json.dumps(key)}: [\n  {items}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


async def record_all(files: list[Path], out: Path) -> None:
    """Record one case after the other."""
    for file in files:
        with tempfile.TemporaryDirectory(prefix="record-", ignore_cleanup_errors=True) as folder:
            case = await record(json.loads(file.read_text()), Path(folder))
        (out / f"{case['name']}.json").write_text(compact(case))
        print(f"{case['name']}: {len(case['core_events'])} events, {len(case['llm_requests'])} requests")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="CASE.json")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    if cli_path() is None:
        parser.error("set COPILOT_CLI_PATH to the Copilot CLI executable")
    options.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(record_all(options.files, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
