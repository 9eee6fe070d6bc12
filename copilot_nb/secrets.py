"""Keys and passwords of the environment do not reach the model or the log through a tool's output."""

from __future__ import annotations

import os
import re
from functools import cache

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 8  # characters; shorter values are words that stand in other texts, too


@cache
def _is_secret(name: str) -> bool:
    return _NAMES.search(name) is not None


def redact(text: str) -> str:
    """The text with the values of secret environment variables replaced by their names."""
    for name in os.environ:
        if _is_secret(name):
            value = os.environ.get(name, "")  # another thread may have taken it away
            if len(value) >= _SHORTEST and value in text:
                text = text.replace(value, f"[value of {name}]")
    return text
