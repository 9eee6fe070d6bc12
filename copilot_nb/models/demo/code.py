"""The demo model's code: fixed templates, filled with names and columns, and the test that knows them again.

Each prints JSON or plain numbers and assigns nothing, so the user's namespace stays as it was.
"""

from __future__ import annotations

import keyword
import re
from functools import cache
from typing import Any

STATS = ("mean", "median", "sum", "min", "max", "std", "count")

SHAPE = """\
print({frame}.shape)
print({frame}.dtypes.astype(str).head(40).to_json(orient="split"))
print({frame}.isna().sum().head(40).to_json(orient="split"))
print({frame}.head(10000).astype(str).nunique().head(40).to_json(orient="split"))"""
SUMMARY = """\
print({frame}[{columns}].describe().to_json(orient="split"))"""
COUNTS = """\
print({frame}[{column}].value_counts().head(10).to_json(orient="split"))"""
GROUP = """\
print({frame}.groupby({by}, observed=True)[{columns}].{stat}().to_json(orient="split"))"""
VALUE = """\
print({frame}[{columns}].{stat}().to_json(orient="split"))"""
BARS = """\
{frame}.groupby({by}, observed=True)[{column}].{stat}().plot(kind="bar", figsize=(6, 3.5), ylabel={label})"""
HISTOGRAM = """\
{frame}[{column}].plot(kind="hist", bins=20, figsize=(6, 3.5), xlabel={label})"""
SERIES = """\
print({frame}.describe().to_json(orient="split"))"""
ARRAY = """\
print([float({frame}.min()), float({frame}.mean()), float({frame}.max())])"""
NUMBERS = """\
print([min({frame}), sum({frame}) / len({frame}), max({frame})])"""

TEMPLATES = (SHAPE, SUMMARY, COUNTS, GROUP, VALUE, BARS, HISTOGRAM, SERIES, ARRAY, NUMBERS)

_TEXT = r"""(?:'(?:[^'\\\n]|\\[^\n])*'|"(?:[^"\\\n]|\\[^\n])*"|-?\d{1,18})"""
_SLOTS = {
    "frame": r"(?P<frame>[^\W\d_]\w*)",
    "by": _TEXT,
    "column": _TEXT,
    "label": _TEXT,
    "columns": rf"\[{_TEXT}(?:, {_TEXT})*\]",
    "stat": f"(?:{'|'.join(STATS)})",
}


def _pattern(template: str) -> re.Pattern[str]:
    first = True
    pattern = ""
    for part in re.split(r"(\{\w+\})", template):
        if not part.startswith("{"):
            pattern += re.escape(part)
        elif part == "{frame}" and not first:
            pattern += "(?P=frame)"
        else:
            pattern += _SLOTS[part[1:-1]]
            first = first and part != "{frame}"
    return re.compile(pattern)


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(_pattern(template) for template in TEMPLATES)


def is_demo_code(code: str) -> bool:
    """Whether `code` is a shipped template with nothing but a name, columns and a statistic put in.

    It is what the built-in permission rule for the demo model (and for no other) goes by.
    """
    for pattern in _patterns():
        if match := pattern.fullmatch(code.strip()):
            return not keyword.iskeyword(match["frame"])
    return False


def fill(template: str, frame: str, **slots: Any) -> str:
    """A template with its slots filled: columns as literals, the statistic as a method's name."""
    written = {
        name: value if name == "stat" else repr(list(value) if name == "columns" else value)
        for name, value in slots.items()
    }
    return template.format(frame=frame, **written)


def usable(name: object) -> bool:
    """Whether a column's name can stand in the code as a literal."""
    return isinstance(name, str | int) and not isinstance(name, bool) and "\n" not in str(name)
