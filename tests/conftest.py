"""Shared by all tests: the helper modules of this folder can be imported by name."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))
NO_CLI = "no Copilot CLI: set COPILOT_CLI_PATH (npm install @github/copilot)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the browser last.

    While Playwright's synchronous driver is open, its loop runs on this thread, and no asyncio test can start
    another one.
    """
    items.sort(key=lambda item: "browser" in item.path.relative_to(ROOT).parts)


@pytest.fixture
def cli_path() -> str:
    """The CLI's path; the test is skipped on machines that have none."""
    path = os.environ.get("COPILOT_CLI_PATH")
    if not path:
        if os.environ.get("CI"):
            pytest.fail(NO_CLI)
        pytest.skip(NO_CLI)
    return path
