"""Completion of options and words after the magics (IPython 8.6 and later)."""

from __future__ import annotations

from typing import Any

from copilot_nb.notebook.arguments import option_names
from copilot_nb.notebook.commands import words_after


def candidates(line: str) -> list[str]:
    """What may stand at the end of a magic's line; empty on any other line."""
    if line.startswith("%%copilot "):
        return option_names()
    if line.startswith("%copilot "):
        return words_after(line.removeprefix("%copilot ").split(" ")[:-1])
    return ["always"] if line.startswith("%allow ") else []


def matcher() -> Any:
    """A matcher for ``Completer.custom_matchers``; None where IPython has no such thing."""
    try:
        from IPython.core.completer import (
            CompletionContext,
            SimpleCompletion,
            SimpleMatcherResult,
            context_matcher,
        )
    except ImportError:  # IPython < 8.6
        return None

    def copilot_matcher(context: CompletionContext) -> SimpleMatcherResult:
        token = context.token
        found = [word for word in candidates(context.text_until_cursor) if word.startswith(token)]
        completions = [SimpleCompletion(text=word, type="magic") for word in found]
        return SimpleMatcherResult(completions=completions, suppress=bool(found))

    mark: Any = context_matcher
    return mark()(copilot_matcher)
