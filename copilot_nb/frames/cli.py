"""``log`` and ``sessions`` for the shell."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from copilot_nb.errors import UsageError
from copilot_nb.frames import schema

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 60  # characters of a cell on the terminal


def add_parsers(commands: Any) -> None:
    """Add the commands to ``argparse``'s subparsers; each sets ``run``."""
    log = commands.add_parser("log", help="print a table of a session's log")
    log.add_argument("log", metavar="ID|PATH", help="a session id, or the path of a log")
    log.add_argument("--table", default="turns", choices=[*schema.LOG_TABLES, "problems"])
    _formats(log)
    log.set_defaults(run=_log)
    sessions = commands.add_parser("sessions", help="list the sessions of a home")
    _formats(sessions)
    sessions.set_defaults(run=_sessions)


def _formats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", help="default: $COPILOT_HOME or ~/.copilot")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--csv", action="store_true", help="comma-separated values; durations in seconds")
    group.add_argument("--json", action="store_true", help="one JSON object per row; durations in seconds")
    group.add_argument("--parquet", metavar="FILE", help="write a Parquet file")


def _log(args: argparse.Namespace) -> int:
    from copilot_nb.frames import read_log

    log = read_log(args.log, args.home)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = log.problems if args.table == "problems" else log.table(args.table)
    for warning in said:
        print(
            f"copilot-nb: {str(warning.message).replace('log.problems', '--table problems')}", file=sys.stderr
        )
    return _print(frame, args)


def _sessions(args: argparse.Namespace) -> int:
    from copilot_nb.frames import sessions

    return _print(sessions(args.home), args)


def _print(frame: pd.DataFrame, args: argparse.Namespace) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):  # what the terminal's encoding cannot show is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _write(frame, args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _write(frame: pd.DataFrame, args: argparse.Namespace) -> None:
    if args.parquet:
        target = Path(args.parquet)
        if not target.parent.is_dir():
            raise UsageError(f"There is no folder {target.parent} to write {target.name} into.")
        try:
            frame.to_parquet(target)
        except OSError as error:
            raise UsageError(f"Cannot write {target}: {error}.") from error
        print(f"{len(frame)} rows in {target}", file=sys.stderr)
    elif args.csv:
        _seconds(frame).to_csv(sys.stdout, index=frame.index.name is not None)
    elif args.json:
        sys.stdout.write(_json_lines(frame))
    else:
        print(_for_terminal(frame))


def _json_lines(frame: pd.DataFrame) -> str:
    """One object per row: times in ISO 8601, spans in seconds, null for what is missing."""
    frame = _seconds(frame.reset_index() if frame.index.name is not None else frame)
    text: str = (
        frame.to_json(orient="records", lines=True, date_format="iso", date_unit="us") if len(frame) else ""
    )
    return text


def _seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """With spans in seconds."""
    spans = [column for column in frame.columns if str(frame[column].dtype).startswith("timedelta")]
    return frame.assign(**{column: frame[column].dt.total_seconds() for column in spans})


def _for_terminal(frame: pd.DataFrame) -> str:
    """Columns that hold something; long texts cut, control characters as spaces."""
    if frame.empty:
        return f"no rows; columns: {', '.join(frame.columns)}"
    shown = _seconds(frame.dropna(axis="columns", how="all"))
    for column in shown.columns:
        kind = str(shown[column].dtype)
        if kind.startswith("string"):
            shown[column] = [_cut(value) if isinstance(value, str) else "" for value in shown[column]]
        elif kind.startswith("datetime"):
            shown[column] = shown[column].dt.strftime("%Y-%m-%d %H:%M:%S")
    return str(shown.to_string(na_rep="", index=frame.index.name is not None))


def _cut(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * WIDTH]).split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
