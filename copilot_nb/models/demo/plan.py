"""What the demo model knows, and what it does next.

The plan is made anew at each turn from the words and the results so far, so a steer changes it in the
same run: a step is done when that very call was made.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from msgspec import Struct, field

from copilot_nb.events import JSON
from copilot_nb.models.demo import code
from copilot_nb.models.demo.reading import Situation
from copilot_nb.models.demo.wishes import Wish, understand

_MONEY = ("amount", "price", "revenue", "sales", "value", "total", "cost", "income")


class Step(Struct):
    """One call: the tool, its code, and the sentence said with it."""

    tool: str
    code: str
    sentence: str


class Facts(Struct):
    """What the results so far say.

    Attributes
    ----------
    variables
        As `list_variables` gave them; None before.
    frame
        The chosen table (or other variable), one of `variables`.
    rows, dtypes, missing, distinct
        From the look at its shape; keyed by column.
    failed
        Sentences about calls that did not work.
    """

    variables: list[JSON] | None = None
    frame: JSON | None = None
    rows: int | None = None
    dtypes: dict[Any, str] = field(default_factory=dict)
    missing: dict[Any, int] = field(default_factory=dict)
    distinct: dict[Any, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The chosen variable's name."""
        return str(self.frame["name"]) if self.frame else ""

    @property
    def is_table(self) -> bool:
        """Whether it is a DataFrame."""
        return self.frame is not None and self.frame["type"] == "DataFrame"


def think(situation: Situation) -> tuple[Wish, Facts, Step | None]:
    """The wish, the facts, and the next step; no step when the answer can be given."""
    facts = Facts()
    wish = understand(situation.texts)
    if wish.kinds == ["talk"]:
        return wish, facts, None
    listed = situation.result("list_variables")
    if listed is None:
        if "list_variables" in situation.tools:
            return wish, facts, Step("list_variables", "", "I look at what is in the kernel.")
        facts.failed.append("The tool list_variables is not offered to me, and without it I see nothing.")
        return wish, facts, None
    if not _take_variables(facts, listed):
        return wish, facts, None
    names = [variable["name"] for variable in facts.variables or ()]
    wish = understand(situation.texts, names, _all_columns(facts))
    facts.frame = _choose(facts, wish)
    if facts.frame is None or wish.kinds == ["list"] or "python" not in situation.tools:
        return wish, facts, None
    for step in _steps(situation, wish, facts):
        given = situation.result("python", step.code)
        if given is None:
            return wish, facts, step
        if parse(step.code, given) is None:
            facts.failed.append(_failure(step.code, given))
    return wish, facts, None


def _take_variables(facts: Facts, listed: str) -> bool:
    try:
        facts.variables = json.loads(listed)["variables"]
    except (ValueError, KeyError, TypeError):
        facts.failed.append(_failure("list_variables", listed))
        return False
    return True


def _all_columns(facts: Facts) -> list[Any]:
    found: dict[Any, None] = {}
    for variable in facts.variables or ():
        found.update(dict.fromkeys(variable.get("columns") or {}))
    return list(found)


def _choose(facts: Facts, wish: Wish) -> JSON | None:
    """The variable that was named, else the one that has the named columns, else the largest table."""
    variables = facts.variables or []
    for variable in variables:
        if variable["name"] == wish.frame and _kind(variable):
            return variable
    said = {*wish.only, *wish.columns, *([wish.by] if wish.by is not None else [])}
    tables = [variable for variable in variables if _kind(variable) == "table"]
    if tables:
        return max(
            tables,
            key=lambda table: (len(said & set(table["columns"])), table["shape"][0] * table["shape"][1]),
        )
    others = [variable for variable in variables if _kind(variable)]
    return others[0] if others else None


def _kind(variable: JSON) -> str | None:
    """``table``, ``series``, ``array``, ``numbers``, ``plain`` (only its description), None for the rest."""
    type_, shape = variable["type"], variable.get("shape") or []
    if type_ == "DataFrame" and len(shape) == 2:
        return "table"
    if type_ == "Series":
        return "series"
    if (
        type_ == "ndarray"
        and variable.get("dtype", "").startswith(("int", "float", "uint"))
        and 0 not in shape
    ):
        return "array"
    if type_ in ("list", "tuple", "set") and variable.get("length"):
        return "numbers" if set(variable.get("of", ())) <= {"int", "float"} else "plain"
    return "plain" if type_ in ("dict", "str", "int", "float", "bool", "ndarray") else None


def _steps(situation: Situation, wish: Wish, facts: Facts) -> list[Step]:
    frame = facts.frame or {"type": ""}
    kind = _kind(frame)
    name = facts.name
    single = {"series": code.SERIES, "array": code.ARRAY, "numbers": code.NUMBERS}.get(kind or "")
    if single:
        return [
            Step("python", code.fill(single, name), f"`{name}` is a {frame['type']}; I compute its figures.")
        ]
    if kind != "table":
        return []
    shape = Step(
        "python", code.fill(code.SHAPE, name), f"`{name}` is a table: shape, types and missing values first."
    )
    steps = [shape]
    given = situation.result("python", shape.code)
    if given is None or not _take_shape(facts, given) or wish.stop_after in ("shape", "now"):
        return steps
    known = understand(situation.texts, [], list(facts.dtypes))  # the true column names, not as JSON keys
    wish.only, wish.columns, wish.by = known.only, known.columns, known.by
    if facts.rows:
        steps += _table_steps(wish, facts)
    return steps


def _take_shape(facts: Facts, given: str) -> bool:
    parts = parse(code.SHAPE, given)
    if parts is None:
        return False
    (facts.rows, _), dtypes, missing, distinct = parts
    facts.dtypes, facts.missing, facts.distinct = map(_by_column, (dtypes, missing, distinct))
    return True


def _by_column(split: JSON) -> dict[Any, Any]:
    pairs = zip(split["index"], split["data"], strict=True)
    return {column: item for column, item in pairs if code.usable(column)}


def _table_steps(wish: Wish, facts: Facts) -> list[Step]:
    name, measures, by = facts.name, numbers(wish, facts), group_column(wish, facts)
    columns = ", ".join(f"`{column}`" for column in measures)
    steps: list[Step] = []
    if "analyse" in wish.kinds:
        if measures:
            steps.append(
                Step(
                    "python",
                    code.fill(code.SUMMARY, name, columns=measures),
                    f"Now the summary of {columns}.",
                )
            )
        elif facts.dtypes:
            first = (wish.only or list(facts.dtypes))[0]
            steps.append(
                Step(
                    "python",
                    code.fill(code.COUNTS, name, column=first),
                    f"No numbers here; I count `{first}`.",
                )
            )
    if wish.stop_after is None and by is not None and measures and {"analyse", "extreme"} & set(wish.kinds):
        group = code.fill(code.GROUP, name, by=by, columns=measures, stat=wish.stat)
        steps.append(Step("python", group, f"Next the {wish.stat} of {columns} by `{by}`."))
    if "value" in wish.kinds and measures:
        value = code.fill(code.VALUE, name, columns=measures, stat=wish.stat)
        steps.append(Step("python", value, f"I compute the {wish.stat} of {columns}."))
    if "plot" in wish.kinds and measures:
        steps.append(_plot(wish, facts, measures[0], by))
    return steps


def _plot(wish: Wish, facts: Facts, column: Any, by: Any) -> Step:
    if by is not None and (wish.by is not None or not (wish.columns or wish.only)):
        filled = code.fill(
            code.BARS, facts.name, by=by, column=column, stat=wish.stat, label=f"{wish.stat} of {column}"
        )
        return Step("python", filled, f"I plot the {wish.stat} of `{column}` by `{by}`.")
    filled = code.fill(code.HISTOGRAM, facts.name, column=column, label=str(column))
    return Step("python", filled, f"I plot the distribution of `{column}`.")


def numbers(wish: Wish, facts: Facts) -> list[Any]:
    """The number columns to work on: those that were named, else all but identifiers; at most six."""
    numeric = [
        column for column, dtype in facts.dtypes.items() if dtype.lower().startswith(("int", "float", "uint"))
    ]
    for wanted in (wish.only, wish.columns):
        named = [column for column in wanted if column in numeric]
        if named:
            return named[:6]
    kept = [column for column in numeric if not _is_id(column)] or numeric
    first = [column for column in kept if str(column).lower() in _MONEY]
    return (first + [column for column in kept if column not in first])[:6]


def group_column(wish: Wish, facts: Facts) -> Any:
    """The column to group by: the named one, else the first with a handful of values, else None."""
    if wish.by in facts.dtypes:
        return wish.by
    few = [column for column in facts.dtypes if 2 <= facts.distinct.get(column, 0) <= 30]
    words = [
        column for column in few if facts.dtypes[column] in ("object", "str", "string", "category", "bool")
    ]
    codes = [
        column
        for column in few
        if facts.dtypes[column].lower().startswith("int") and facts.distinct[column] <= 12
    ]
    named = [column for column in wish.columns if column in words]
    chosen = (
        named or words or [column for column in codes if not _is_id(column) and column not in wish.columns]
    )
    return chosen[0] if chosen else None


def _is_id(column: Any) -> bool:
    low = str(column).lower()
    return low in ("id", "index", "key") or low.endswith(("_id", " id"))


def parse(source: str, result: str) -> Any:
    """A result's data, one item per line (a single one bare); None when it is no such result."""
    if source.endswith((code.BARS[-10:], ")")) and ".plot(" in source:
        return result if "Axes" in result else None
    parts = []
    for line in result.strip().splitlines():
        try:
            parts.append(ast.literal_eval(line) if line.startswith("(") else json.loads(line))
        except (ValueError, SyntaxError):
            return None
    return parts[0] if len(parts) == 1 else parts or None


def _failure(what: str, given: str) -> str:
    lines = [line for line in given.strip().splitlines() if line.strip()]
    said = (lines[-1] if lines and "Traceback" in given else lines[0] if lines else "no result")[:200]
    first = what.splitlines()[0]
    return f"`{first}` gave no figures: {said}"
