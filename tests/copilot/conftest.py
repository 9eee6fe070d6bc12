"""Fixtures: the real Copilot CLI, and sessions on it that are closed when a test ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from copilot_rig import Rig

NO_CLI = "no Copilot CLI: set COPILOT_CLI_PATH (npm install @github/copilot)"


@pytest.fixture
def cli_path() -> str:
    """The CLI's path; the test is skipped on machines that have none."""
    path = os.environ.get("COPILOT_CLI_PATH")
    if not path:
        if os.environ.get("CI"):
            pytest.fail(NO_CLI)
        pytest.skip(NO_CLI)
    return path


@pytest.fixture
async def rig(tmp_path: Path, cli_path: str):
    """A maker of rigs that are closed when the test ends."""
    rigs: list[Rig] = []

    def make(script: list[Any], **options: Any) -> Rig:
        made = Rig(script, tmp_path / "home", **options)
        rigs.append(made)
        return made

    yield make
    for made in rigs:
        await made.close()
