"""The engine does in every recorded case what the real CLI did (reference, all sections)."""

from __future__ import annotations

import asyncio

import pytest
from run_cases import HERE, find_cases, run_all

CASES = find_cases([str(HERE / "cases"), str(HERE / "cases_more")])


@pytest.fixture(scope="module")
def differences() -> dict[str, str | None]:
    """The first difference of each case; they sleep a lot, so they run side by side."""
    found: dict[str, str | None] = {}
    asyncio.run(run_all("engine", CASES, lambda case, what, rig: found.update({case["name"]: what})))
    return found


@pytest.mark.parametrize("name", [case["name"] for case in CASES])
@pytest.mark.timeout(900)
def test_case(name: str, differences: dict[str, str | None]) -> None:
    assert differences[name] is None
