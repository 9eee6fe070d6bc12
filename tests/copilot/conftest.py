"""Sessions on the real Copilot CLI that are closed when a test ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from copilot_rig import Rig


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
