"""What a person wants of the demo model, from the words of the prompt and of each steer, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

_STATS = {
    "median": r"medians?",
    "mean": r"means?|averages?",
    "sum": r"sums?|totals?",
    "max": r"max(?:imum)?",
    "min": r"min(?:imum)?",
    "std": r"std|standard deviations?|spread",
    "count": r"counts?",
}
_INSTEAD = re.compile(r"\b(?:not|instead of|rather than|no longer|never)\s+(?:by\s+|use\s+)?(?:the\s+)?(\w+)")
_STOP = re.compile(
    r"\b(?:stop|finish|end|done)\s+(?:right\s+)?(?:after|with|at)\s+(?:the\s+)?(shape|types?|missing|summary|overview|group)"
)
_ENOUGH = re.compile(r"\b(?:stop(?: here| now)?|enough|that'?s all|finish now)\W*$")
_SKIP = re.compile(r"\b(?:no|skip|without|leave out|don'?t)\s+(?:do\s+)?(?:the\s+|any\s+)?(group|summary)")
_KINDS = {
    "plot": r"plot|chart|graph|draw|histogram|visuali[sz]e|bars?\b",
    "extreme": r"(?:high|large|bigg|low|small|cheap|dear|b)est|most expensive|worst|\btop\b|which",
    "rows": r"how many (?:rows|records|lines|entries)|how (?:long|big|large)",
    "missing": r"missing|\bnulls?\b|\bnans?\b|incomplete",
    "list": r"(?:which|what|list|show)\b.*\b(?:variables?|data ?frames?|tables?)"
    r"|what(?:'s| is) in (?:the|my|this) kernel",
    "value": r"(?:what(?:'s| is| are)|compute|calculate|give me|tell me)\b.*"
    r"\b(?:median|mean|average|sum|total|max|min|std)",
    "talk": r"^\W*(?:hi|hello|hey|help|thanks|thank you|who are you|what can you do)\b[^,;]{0,20}$",
}
_FOLLOWED = r"analy[sz]e|look|report|explore|describe|summar|profile|overview|understand|tell me about"


class Wish(Struct):
    """What to do.

    Attributes
    ----------
    kinds
        ``analyse``, or what was asked for instead: ``plot``, ``extreme``, ``rows`` ….
    stat
        The statistic of groups and sentences.
    stop_after
        ``shape``, ``summary``, or None for the whole analysis.
    only
        The columns to keep to; empty means all.
    columns, by, frame
        Mentioned columns, the grouping column, the variable.
    notes
        What was understood of each steer, as sentences; and the steers that were not understood.
    """

    kinds: list[str] = field(default_factory=list)
    stat: str = "mean"
    stat_said: bool = False
    stop_after: str | None = None
    only: list[Any] = field(default_factory=list)
    columns: list[Any] = field(default_factory=list)
    by: Any = None
    lowest: bool = False
    frame: str | None = None
    notes: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


def understand(texts: Iterable[str], variables: Iterable[str] = (), columns: Iterable[Any] = ()) -> Wish:
    """Fold the words into one wish; later ones win.

    Parameters
    ----------
    variables, columns
        Names that may be mentioned, as far as they are known by now.
    """
    wish = Wish()
    for number, text in enumerate(texts):
        _take(wish, text, list(variables), list(columns), steer=number > 0)
    if not wish.kinds:
        wish.kinds.append("analyse")
    return wish


def _take(wish: Wish, text: str, variables: list[str], columns: list[Any], *, steer: bool) -> None:
    low = text.lower()
    plain = _INSTEAD.sub(" ", low)
    heard: list[str] = []
    for stat, words in _STATS.items():
        if re.search(rf"\b(?:{words})\b", plain):
            wish.stat, wish.stat_said = stat, True
            heard.append(f"use the {stat}")
            break
    if match := _STOP.search(low):
        part = match[1]
        wish.stop_after = "shape" if part.startswith(("shape", "type", "missing")) else part
        wish.stop_after = {"overview": "shape", "group": None}.get(part, wish.stop_after)
        heard.append(f"stop after the {part}")
    elif steer and _ENOUGH.search(low):
        wish.stop_after = "now"
        heard.append("stop here")
    if match := _SKIP.search(low):
        wish.stop_after = "summary" if match[1] == "group" else "shape"
        heard.append(f"no {match[1]}")
    wish.frame = next((name for name in variables if _mentions(text, name)), wish.frame)
    named = [column for column in columns if _mentions(text, column)]
    by = [
        column
        for column in named
        if re.search(rf"\b(?:by|per|each|across)\s+(?:the\s+|column\s+)?[`'\"]?{_name(column)}", low)
    ]
    if by:
        wish.by = by[0]
        heard.append(f"group by {by[0]}")
    others = [column for column in named if column not in by]
    if others and re.search(r"\b(?:only|just|nothing but|keep to|restrict)\b", low):
        wish.only = others
        heard.append("only " + ", ".join(map(str, others)))
    wish.columns += [column for column in others if column not in wish.columns]
    heard += _kinds(wish, low, steer)
    if steer and not heard and named:
        heard.append("look at " + ", ".join(map(str, named)))
    if steer:
        (wish.notes if heard else wish.unclear).append("; ".join(heard) or text)


def _kinds(wish: Wish, low: str, steer: bool) -> list[str]:
    found = [kind for kind, words in _KINDS.items() if re.search(words, low)]
    if {"list", "value", "missing", "rows"} & set(found):
        found = [kind for kind in found if kind != "extreme"]
    if "missing" in found and (re.search(_FOLLOWED, low) or _STOP.search(low)):
        found.remove("missing")
    if steer:
        found = [kind for kind in found if kind in ("plot", "extreme")]
    elif re.search(_FOLLOWED, low) and "talk" not in found:
        found = ["analyse"] + [kind for kind in found if kind == "plot"]
    wish.lowest = wish.lowest or bool(re.search(r"lowest|smallest|cheapest|worst", low))
    if steer and found and not wish.kinds:
        wish.kinds.append("analyse")
    wish.kinds += [kind for kind in found if kind not in wish.kinds]
    return [{"plot": "plot it", "extreme": "say which is first"}[kind] for kind in found] if steer else []


def _name(name: Any) -> str:
    return re.sub(r"\\?[_ ]", "[_ ]", re.escape(str(name).lower()))


def _mentions(text: str, name: Any) -> bool:
    return bool(re.search(rf"(?<!\w){_name(name)}(?!\w)", text.lower()))
