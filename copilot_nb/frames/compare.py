"""Two sessions, or two forks of one, turn by turn."""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from copilot_nb.errors import UsageError
from copilot_nb.frames.log import read_log

if TYPE_CHECKING:
    import pandas as pd


class Comparison(Struct, frozen=True):
    """Where two sessions agree and where they part.

    Attributes
    ----------
    turns
        One row per place: ``run``, ``turn``, ``shared`` (the very same events: a common past), ``same``
        (prompt, text, tool calls and arguments are equal), and for both sides, ``_a`` and ``_b``: ``prompt``
        (the run's, and the steers that had landed by then), ``tools`` (names, in order), ``tokens`` (both
        directions), ``duration``, ``text``. Turns that only one side has are missing on the other.
    parted
        The row of `turns` from which on they differ; None when they do not.
    """

    turns: pd.DataFrame
    parted: int | None

    def diff(self, row: int | None = None) -> str:
        """A unified diff of what both said in a row; default: where they part. Empty when equal."""
        row = self.parted if row is None else row
        if row is None:
            return ""
        if row not in self.turns.index:
            raise UsageError(f"There is no row {row}: {len(self.turns)} turns were compared, counted from 0.")
        turn = self.turns.loc[row]
        sides = [f"{_text(turn[f'prompt_{side}'])}\n---\n{_text(turn[f'text_{side}'])}" for side in "ab"]
        if sides[0] == sides[1]:
            return ""
        return "\n".join(
            difflib.unified_diff(sides[0].split("\n"), sides[1].split("\n"), "a", "b", lineterm="")
        )

    def totals(self) -> pd.DataFrame:
        """Turns, tool calls, tokens and time of both sides."""
        import pandas as pd

        rows = {}
        for side in "ab":
            turns = self.turns[self.turns[f"there_{side}"]]
            rows[side] = {
                "turns": len(turns),
                "tools": sum(len(names.split(", ")) for names in turns[f"tools_{side}"] if names),
                "tokens": int(turns[f"tokens_{side}"].fillna(0).sum()),
                "duration": turns[f"duration_{side}"].sum(),
            }
        return pd.DataFrame.from_dict(rows, orient="index")

    def __str__(self) -> str:
        if self.parted is None:
            return f"The same in all {len(self.turns)} turns."
        turn = self.turns.loc[self.parted]
        where = f"They part at run {turn['run']}, turn {turn['turn']}."
        return "\n".join([where, self.totals().to_string(), self.diff()])


def compare(a: Any, b: Any, home: str | Path | None = None) -> Comparison:
    """Compare two sessions turn by turn.

    Parameters
    ----------
    a, b
        Each a `Log`, a session, or whatever `read_log` takes.
    """
    import pandas as pd

    left, right = _side(a, home), _side(b, home)
    keys = list(dict.fromkeys([*left, *right]))
    keys.sort(key=lambda key: (key[0], str(key[2] or ""), key[1], key[3]))
    rows = []
    for key in keys:
        one, other = left.get(key), right.get(key)
        row: dict[str, Any] = {"run": key[0], "turn": key[1], "agent_id": key[2]}
        row["shared"] = one is not None and other is not None and "" != one["event_id"] == other["event_id"]
        row["same"] = one is not None and other is not None and one["what"] == other["what"]
        for side, turn in (("a", one), ("b", other)):
            row[f"there_{side}"] = turn is not None
            for name in ("prompt", "tools", "tokens", "duration", "text"):
                row[f"{name}_{side}"] = None if turn is None else turn[name]
        rows.append(row)
    frame = pd.DataFrame(rows, columns=_COLUMNS, dtype=object)  # nothing is guessed from missing values
    frame = frame.astype({name: _DTYPES[name.removesuffix("_a").removesuffix("_b")] for name in _COLUMNS})
    parted = frame.index[~frame["same"].astype(bool)]
    return Comparison(frame, int(parted[0]) if len(parted) else None)


_DTYPES = {
    "run": "Int64",
    "turn": "Int64",
    "agent_id": "string[pyarrow]",
    "shared": "boolean",
    "same": "boolean",
    "there": "bool",
    "prompt": "string[pyarrow]",
    "tools": "string[pyarrow]",
    "tokens": "Int64",
    "duration": "timedelta64[us]",
    "text": "string[pyarrow]",
}
_COLUMNS = [
    "run",
    "turn",
    "agent_id",
    "shared",
    "same",
    *(
        f"{name}_{side}"
        for name in ("there", "prompt", "tools", "tokens", "duration", "text")
        for side in "ab"
    ),
]


def _side(log: Any, home: str | Path | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The turns of a session by run, number, agent and (for a number that comes again) order."""
    import pandas as pd

    if not hasattr(log, "turns"):
        log = read_log(log, home)
    calls: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for tool in log.tools().itertuples():
        calls.setdefault(_key(tool), []).append((_text(tool.tool), _text(tool.arguments)))
    prompts: dict[int, list[tuple[int, str]]] = {}
    for message in log.messages().itertuples():
        if message.status == "landed":
            said = (_whole(message.turn), _text(message.text))
            prompts.setdefault(_whole(message.run), []).append(said)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    seen: Counter[tuple[int, int, str]] = Counter()
    for turn in log.turns().itertuples():
        key = _key(turn)
        place = (*key, seen[key])
        seen[key] += 1
        used = [int(value) for value in (turn.input_tokens, turn.output_tokens) if not pd.isna(value)]
        last = -1 if key[2] else key[1]  # a steer is for the main agent, from the turn it landed in
        prompt = "\n".join(text for landed, text in prompts.get(key[0], []) if landed <= last)
        tools = calls.get(key, [])
        found[place] = {
            "event_id": _text(turn.event_id),
            "prompt": prompt,
            "tools": ", ".join(name for name, _ in tools),
            "tokens": sum(used) if used else None,
            "duration": turn.duration,
            "text": _text(turn.text),
            "what": (prompt, _text(turn.text), tools),
        }
    return found


def _key(row: Any) -> tuple[int, int, str]:
    return (_whole(row.run), _whole(row.turn), _text(row.agent_id))


def _whole(value: Any) -> int:
    import pandas as pd

    return -1 if pd.isna(value) else int(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
