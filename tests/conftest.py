"""Shared by all tests: the helper modules of this folder can be imported by name."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the browser last.

    While Playwright's synchronous driver is open, its loop runs on this thread, and no asyncio test can start
    another one.
    """
    items.sort(key=lambda item: "browser" in item.path.relative_to(ROOT).parts)
