"""The words after ``%%copilot`` and ``%copilot new``: parsed into `Options`; wrong ones say what exists."""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Iterable
from typing import Any, NoReturn

from copilot_nb.errors import UsageError


class Options(argparse.Namespace):
    """What a person wrote on the magic's line; None where they wrote nothing."""

    model: str | None
    session: str | None
    runtime: str | None
    base_url: str | None
    wire_api: str | None
    wait: bool | None
    autopilot: bool
    allow: list[str]
    yolo: bool
    in_use: bool
    max_turns: int | None
    max_tokens: int | None
    max_seconds: float | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}.\nIt takes {self.summary()}")

    def options(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]

    def summary(self) -> str:
        return "  ".join(_shape(action) for action in self._actions)


def _shape(action: argparse.Action) -> str:
    names = "/".join(action.option_strings) or str(action.dest)
    takes = action.nargs != 0
    return f"[{names}{' ' + str(action.metavar or action.dest).upper() if takes else ''}]"


def _positive(kind: type) -> Any:
    def convert(text: str) -> Any:
        value = kind(text)
        if not value > 0:
            raise ValueError(text)
        return value

    convert.__name__ = f"positive {'whole ' if kind is int else ''}number"
    return convert


def _parser(prog: str) -> _Parser:
    parser = _Parser(prog=prog, add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("-m", "--model", help="who answers: demo, scripted:FILE, openai:NAME …")
    add("-s", "--session", help="an open session, or one on disk, or a new one of that id")
    add(
        "--runtime",
        choices=("engine", "copilot"),
        metavar="NAME",
        help="engine: in this kernel; copilot: the Copilot CLI",
    )
    add("--base-url", metavar="URL", help="the provider's address (its key comes from the environment)")
    add("--wire-api", choices=("completions", "responses"), metavar="NAME", help="the provider's protocol")
    add("--wait", action="store_true", default=None, dest="wait", help="the cell is done when the run is")
    add(
        "--no-wait",
        action="store_false",
        default=None,
        dest="wait",
        help="return at once, also when headless",
    )
    add("--autopilot", action="store_true", help="go on until the task is complete")
    add("--allow", action="append", default=[], metavar="NAME", help="let this tool run unasked (repeatable)")
    add("--yolo", action="store_true", help="let every tool run unasked")
    add("--in-use", action="store_true", help="open the session although another process holds it")
    add("--max-turns", type=_positive(int), metavar="N", help="end the run after N model calls")
    add("--max-tokens", type=_positive(int), metavar="N", help="end the run after N tokens")
    add("--max-seconds", type=_positive(float), metavar="S", help="end the run after S seconds")
    return parser


_CELL = _parser("%%copilot")


def parse(line: str, prog: str = "%%copilot") -> Options:
    """The options of a magic's line.

    Raises
    ------
    UsageError
        An unknown option, a missing or wrong value, or words that are no option.
    """
    parser = _CELL if prog == _CELL.prog else _parser(prog)
    options, rest = parser.parse_known_args(split(line), Options())
    if rest:
        if rest[0].startswith("-"):
            near = difflib.get_close_matches(rest[0], parser.options(), n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UsageError(f"{prog}: unknown option {rest[0]!r}.{hint}\nIt takes {parser.summary()}")
        where = "The prompt goes on the lines below." if prog == "%%copilot" else "Only options go here."
        raise UsageError(f"{prog}: {rest[0]!r} is no option. {where}\nIt takes {parser.summary()}")
    return options


def split(line: str) -> list[str]:
    """The words of a line; quotes keep spaces together."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(
            f"A quote is left open in {line.strip()!r}: close it, or write it without quotes."
        ) from error


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """A sentence that says what exists, with the nearest one first."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"Unknown {kind} {word!r}.{hint} There is: {', '.join(known)}."


def option_names() -> list[str]:
    """The long options, for completion."""
    return [name for name in _CELL.options() if name.startswith("--")]


def option_help() -> str:
    """One line per option, for ``%copilot help``."""
    rows = [
        (
            "  " + ", ".join(a.option_strings) + (f" {a.metavar or a.dest.upper()}" if a.nargs != 0 else ""),
            a.help,
        )
        for a in _CELL._actions
    ]
    return "\n".join(f"{names:<28} {text}" for names, text in rows)
