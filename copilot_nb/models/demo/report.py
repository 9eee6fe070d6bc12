"""The demo model's report: sentences and a table, with the numbers that the calls gave."""

from __future__ import annotations

from typing import Any

from copilot_nb.events import JSON
from copilot_nb.models.demo import code
from copilot_nb.models.demo.plan import Facts, group_column, numbers, parse
from copilot_nb.models.demo.reading import Situation
from copilot_nb.models.demo.wishes import Wish

LABEL = "demo model, no LLM"
ABILITIES = (
    "I can look at the variables in this kernel, describe a table, compare groups, find the highest or "
    "lowest, and plot. Steer me with words like “use the median”, “only the column price”, “group by region” "
    "or “stop after the summary”."
)


def write(situation: Situation, wish: Wish, facts: Facts) -> str:
    """The final answer, Markdown."""
    if wish.kinds == ["talk"]:
        return f"Hello, I am the {LABEL}: my answers come from fixed rules. {ABILITIES}"
    lines: list[str] = []
    if facts.variables is not None:
        lines += _about(situation, wish, facts)
    lines += [f"- {failure}" for failure in facts.failed]
    if wish.notes:
        lines.append(f"\nYour steering: {'; '.join(wish.notes)}.")
    for text in wish.unclear:
        lines.append(f"\nI could not follow “{text[:80]}”: I am the {LABEL}. {ABILITIES}")
    return "\n".join(lines).strip() + f"\n\n_({LABEL})_"


def _about(situation: Situation, wish: Wish, facts: Facts) -> list[str]:
    variables = facts.variables or []
    if wish.kinds == ["list"] or facts.frame is None:
        if not variables:
            return ["There are no variables in this kernel yet: make a DataFrame, and ask me again."]
        listed = [f"- `{variable['name']}`: {_describe(variable)}" for variable in variables]
        lead = (
            "In the kernel:"
            if wish.kinds == ["list"]
            else "I find no DataFrame and nothing else to compute with. In the kernel:"
        )
        return [lead, *listed]
    if not facts.is_table:
        return _other(situation, facts)
    if facts.rows is None:
        return [f"`{facts.name}` is {_describe(facts.frame)}."]
    return _table(situation, wish, facts)


def _table(situation: Situation, wish: Wish, facts: Facts) -> list[str]:
    size = f"**`{facts.name}`** has {facts.rows:,} rows and {facts.frame['shape'][1]} columns."  # type: ignore[index]
    lines: list[str] = []
    kinds = set(wish.kinds)
    if kinds & {"analyse", "rows"}:
        lines.append(size)
    if kinds & {"analyse", "missing"}:
        lines.append(f"- {_missing(wish, facts)}")
    if not facts.rows:
        return [size, "- It is empty, so there is nothing to compute."]
    measures, by = numbers(wish, facts), group_column(wish, facts)
    if "analyse" in kinds:
        summary = (
            _data(situation, code.fill(code.SUMMARY, facts.name, columns=measures)) if measures else None
        )
        lines += _summary(summary, wish) if summary else _counts(situation, wish, facts)
    if measures and by is not None:
        group = _data(situation, code.fill(code.GROUP, facts.name, by=by, columns=measures, stat=wish.stat))
        if group and kinds & {"analyse", "extreme"}:
            lines += _groups(group, by, wish)
    elif "extreme" in kinds:
        lines.append(f"- I find no column of `{facts.name}` to compare by.")
    if measures and "value" in kinds:
        value = _data(situation, code.fill(code.VALUE, facts.name, columns=measures, stat=wish.stat))
        if value:
            lines += [
                f"- The {wish.stat} of `{column}` is **{number(item)}**."
                for column, item in zip(value["index"], value["data"], strict=True)
            ]
    plots = [call for call in situation.done if ".plot(" in call.code and parse(call.code, call.result)]
    if plots:
        shape = "as bars" if 'kind="bar"' in plots[-1].code else "as a histogram"
        what = f"the {wish.stat} of `{measures[0]}` by `{by}`" if "bar" in shape else f"`{measures[0]}`"
        lines.append(f"- The figure shows {what} {shape}.")
    return lines


def _missing(wish: Wish, facts: Facts) -> str:
    shown = {column: count for column, count in facts.missing.items() if not wish.only or column in wish.only}
    holes = [(column, count) for column, count in shown.items() if count]
    if not holes:
        return "No values are missing."
    rows = facts.rows or 1
    parts = [f"`{column}` {count:,} ({100 * count / rows:.1f} %)" for column, count in holes]
    rest = "; the other columns are complete" if len(holes) < len(shown) else ""
    return f"Missing values: {', '.join(parts)}{rest}."


def _summary(summary: JSON, wish: Wish) -> list[str]:
    """One line per column of a ``describe()``."""
    row = {name: place for place, name in enumerate(summary["index"])}
    lines = []
    for place, column in enumerate(summary["columns"]):
        figure = {name: summary["data"][line][place] for name, line in row.items()}
        middle = f"median {number(figure['50%'])}"
        if wish.stat != "median":
            middle = f"mean {number(figure['mean'])}, {middle}"
        spread = f"from {number(figure['min'])} to {number(figure['max'])}"
        lines.append(f"- `{column}`: {middle}, {spread}.")
    return lines


def _counts(situation: Situation, wish: Wish, facts: Facts) -> list[str]:
    if not facts.dtypes:
        return []
    column = (wish.only or list(facts.dtypes))[0]
    counts = _data(situation, code.fill(code.COUNTS, facts.name, column=column))
    if not counts:
        return []
    parts = [f"{value} ({count:,})" for value, count in zip(counts["index"], counts["data"], strict=True)]
    return [f"- The most frequent values of `{column}`: {', '.join(parts[:5])}."]


def _groups(group: JSON, by: Any, wish: Wish) -> list[str]:
    lines: list[str] = []
    for place, column in enumerate(group["columns"]):
        pairs = [(row[place], name) for row, name in zip(group["data"], group["index"], strict=True)]
        ranked = sorted((pair for pair in pairs if pair[0] is not None), key=lambda pair: pair[0])
        if ranked:
            (low, lowest), (high, highest) = ranked[0], ranked[-1]
            lead = f"- {wish.stat.capitalize()} `{column}` by `{by}`: "
            first, second = (f"**{highest}** is highest ({number(high)})", f"{lowest} lowest ({number(low)})")
            if wish.lowest:
                first, second = (
                    f"**{lowest}** is lowest ({number(low)})",
                    f"{highest} highest ({number(high)})",
                )
            lines.append(f"{lead}{first}, {second}.")
    head = [str(by), *(f"{wish.stat} {column}" for column in group["columns"])]
    rows = [[name, *map(number, row)] for name, row in zip(group["index"], group["data"], strict=True)]
    table = [head, ["---"] * len(head), *rows]
    return [
        *lines,
        "",
        *("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in table),
    ]


def _other(situation: Situation, facts: Facts) -> list[str]:
    frame = facts.frame or {}
    lines = [f"There is no DataFrame; I looked at `{facts.name}`, {_describe(frame)}."]
    for call in situation.done:
        data = parse(call.code, call.result) if call.name == "python" else None
        if isinstance(data, list) and len(data) == 3:
            low, mean, high = data
            lines.append(f"- From {number(low)} to {number(high)}, mean {number(mean)}.")
        elif isinstance(data, dict):
            parts = [f"{name} {number(item)}" for name, item in zip(data["index"], data["data"], strict=True)]
            lines.append(f"- {', '.join(parts)}.")
    return lines


def _data(situation: Situation, source: str) -> JSON | None:
    given = situation.result("python", source)
    data = None if given is None else parse(source, given)
    return data if isinstance(data, dict) else None


def _describe(variable: JSON) -> str:
    size = variable.get("shape")
    if size:
        return f"a {variable['type']} of {' x '.join(f'{part:,}' for part in size)}"
    if "length" in variable:
        return f"a {variable['type']} of length {variable['length']:,}"
    value = f" = {variable['value']}" if "value" in variable else ""
    return f"a {variable['type']}{value}"


def number(value: Any) -> str:
    """A number for reading: whole ones with separators, others with two decimals or four digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "missing" if value is None else str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"
