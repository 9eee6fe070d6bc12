"""Reading a log file whole, with whatever is broken in it (reference §13, §20)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from copilot_nb.errors import SessionNotFound, StoreError
from copilot_nb.events import Event, from_line

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Problem(Struct):
    """A line of the log that is no event: its 1-based number and why."""

    line: int
    reason: str


class Transcript(Struct):
    """What a log file holds: its events, its bad lines, and whether the last line lacks its end."""

    events: list[Event] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    open_end: bool = False


def read_transcript(path: Path) -> Transcript:
    """Read a whole log; bad lines are listed, never dropped in silence."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise SessionNotFound(f"There is no session log at {path}.") from None
    except OSError as error:
        raise StoreError(f"Cannot read {path}: {error.strerror}.") from error
    result = Transcript(open_end=bool(raw) and not raw.endswith(b"\n"))
    for number, line in enumerate(raw.split(b"\n"), 1):
        text = (
            line.strip(b" \t\r\x00") if number > 1 else line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\x00")
        )
        if not text:
            if line.strip(b" \t\r"):
                result.problems.append(Problem(number, "only NUL bytes"))
            continue
        try:
            event = from_line(text)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            result.problems.append(Problem(number, str(error)[:200]))
            continue
        reason = _envelope_fault(event)
        if reason:
            result.problems.append(Problem(number, reason))
            continue
        result.events.append(event)
        result.lines.append(text + b"\n")
    return result


def _envelope_fault(event: Event) -> str | None:
    """Why the real CLI would refuse the line (reference §20)."""
    if not _UUID.fullmatch(event.id):
        return "id is no UUID"
    return None
