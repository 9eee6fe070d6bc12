"""Fresh random schedules on the real CLI and on the engine; ``.ci/run`` runs more of them."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from cli_rig import cli_path
from compare_live import run
from schedules import make_schedule, smaller


@pytest.mark.skipif(cli_path() is None, reason="COPILOT_CLI_PATH names no Copilot CLI")
def test_a_few_fresh_schedules() -> None:
    seed = secrets.randbelow(1_000_000_000)
    assert asyncio.run(run(6, seed, "engine")) == 0, f"compare_live.py --runs 6 --seed {seed}"


def test_a_seed_makes_the_same_schedule_again() -> None:
    assert make_schedule(7) == make_schedule(7) != make_schedule(8)


def test_smaller_schedules_stay_well_formed() -> None:
    """Shrinking keeps a reply's blocks in step with its script, else it would find faults of its own."""
    for seed in range(30):
        for case in smaller(make_schedule(seed)):
            plan = case["actions"][0]["plan"]
            assert len(plan["blocks"]) == len(case["model_script"])
            for k, (reply, blocks) in enumerate(zip(case["model_script"], plan["blocks"], strict=True)):
                calls = {call["id"] for call in reply.get("tool_calls", [])}
                assert {block["at"] for block in blocks} <= {"pre", "mid", *calls}
                assert reply.get("gate") in (None, f"pre{k}")
