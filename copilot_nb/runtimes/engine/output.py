"""Tool results that are too large for the model and the log (reference §16)."""

from __future__ import annotations

import os
import tempfile

from copilot_nb.runtimes.engine import words

_HEAD = 500  # characters shown to the model
_PREVIEW = 5_000  # characters shown to people


def shorten(text: str, limit: int | None) -> tuple[str, str | None]:
    """The text itself, or a notice with the path of a file that holds it; and a longer preview for people."""
    raw = text.encode("utf-8", "replace")
    if limit is None or len(raw) <= limit:
        return text, None
    fd, path = tempfile.mkstemp(prefix="copilot_nb-", suffix=".txt")
    with os.fdopen(fd, "wb") as file:
        file.write(raw)
    return words.large_output(len(raw), path, text[:_HEAD]), text[:_PREVIEW]
