"""Whether what was got is what was expected, and the first place where it is not."""

from __future__ import annotations

import json
import re
from typing import Any

_ID = re.compile(r"<id:\w+>")
_LONG = re.compile(r"<scenario text, (\d+) chars>")


class Matcher:
    """Compares values; ``<id:…>`` placeholders stand for one and the same text each, all through a case."""

    def __init__(self, words: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.words = words
        self.ids: dict[str, str] = {}

    def same(self, expected: Any, got: Any, key: str = "") -> bool:
        """Whether `got` fits `expected`."""
        if isinstance(expected, str):
            return isinstance(got, str) and self.text(expected, got, key)
        if isinstance(expected, list):
            return (
                isinstance(got, list)
                and len(expected) == len(got)
                and all(self.same(e, g, key) for e, g in zip(expected, got, strict=True))
            )
        if isinstance(expected, dict):
            return (
                isinstance(got, dict)
                and expected.keys() == got.keys()
                and all(self.same(e, got[k], k) for k, e in expected.items())
            )
        return type(expected) is type(got) and expected == got

    def text(self, expected: str, got: str, key: str = "") -> bool:
        """Texts: equal, or equal but for ids, elided prose, and the spelling of JSON arguments."""
        if expected == got:
            return True
        if key == "args":
            return _parsed(expected) is not _BAD and _parsed(expected) == _parsed(got)
        if _ID.fullmatch(expected):
            return self.ids.setdefault(expected, got) == got
        if long := _LONG.fullmatch(expected):
            return len(got) == int(long[1])
        if "<elided>" not in expected:
            return False
        if got.strip() == "" or got in self.words:
            return False
        pattern = ".*".join(re.escape(piece) for piece in expected.split("<elided>"))
        return re.fullmatch(pattern, got, re.S) is not None


_BAD = object()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return _BAD


def first_difference(matcher: Matcher, what: str, expected: list[Any], got: list[Any]) -> str | None:
    """One line about the first place where two lists part, or None."""
    for i in range(max(len(expected), len(got))):
        want = expected[i] if i < len(expected) else None
        have = got[i] if i < len(got) else None
        if want is None or have is None or not matcher.same(want, have):
            before = f" after {_short(expected[i - 1])}" if i else ""
            return f"{what}[{i}]: expected {_short(want)}, got {_short(have)}{before}"
    return None


def _short(value: Any, limit: int = 160) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return text if len(text) <= limit else f"{text[:limit]}…"
