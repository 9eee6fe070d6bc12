"""All sessions of a home, whoever wrote them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from copilot_nb.errors import StoreError
from copilot_nb.frames import wire
from copilot_nb.frames.columns import NA, parse_time
from copilot_nb.store import EVENTS, holders, home_dir, read_workspace

if TYPE_CHECKING:
    import pandas as pd

_HEAD: Final = 1 << 16  # bytes at either end that are looked at for the first message and the last event
_TITLE: Final = 80  # characters


def sessions(home: str | Path | None = None) -> pd.DataFrame:
    """One row per session of a home, the latest first, whether this project or the Copilot CLI wrote it.

    Parameters
    ----------
    home
        Default ``$COPILOT_HOME`` or ``~/.copilot``. A home without sessions gives an empty table.

    Raises
    ------
    StoreError
        The home may not be read. A single session that may not is a row that says so in its title.
    """
    from copilot_nb.frames import arrays, schema

    found = sorted(_rows(home_dir(home) / "session-state"), key=lambda row: row["last_event"], reverse=True)
    names = [column.name for column in schema.TABLES["sessions"]]
    return arrays.frame("sessions", **{name: [row[name] for row in found] for name in names})


def logs_of(home: str | Path | None = None) -> list[Path]:
    """The logs of a home's sessions, by name; also those that may not be read, as opening them will say."""
    return [path for path in _logs(home_dir(home) / "session-state") if is_log(path)]


def _logs(state: Path) -> list[Path]:
    """Where the log of each session would be."""
    try:
        return [folder / EVENTS for folder in sorted(state.iterdir())]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"{state} cannot be read: {error.strerror or error}.") from error


def is_log(path: Path) -> bool:
    """Whether there is a file, as far as one may look: of one that may not be read, opening will say so."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _rows(state: Path) -> Iterator[dict[str, Any]]:
    for path in _logs(state):
        try:
            yield _row(path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # no session, or none with a log yet
        except OSError as error:
            yield _unreadable(path, error)


def _row(path: Path) -> dict[str, Any]:
    folder = path.parent
    size = path.stat().st_size
    about = read_workspace(folder)
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(0, size - _HEAD))
        tail = file.read(_HEAD)
    start, prompt, first, last = _skim(head, tail)
    context = start.get("context")
    cwd = context.get("cwd") if isinstance(context, dict) else None
    held = holders(folder)
    title = about.get("name") or " ".join((prompt or "").split())[:_TITLE]
    return {
        "session_id": folder.name,
        "title": title or None,
        "folder": about.get("cwd") or wire.string(cwd),
        "producer": wire.string(start.get("producer")),
        "started": first,
        "last_event": last,
        "turns": _count(path, b'"assistant.turn_start"'),
        "in_use_by": ", ".join(map(str, held)) or None,
        "size": size,
        "path": str(path),
    }


def _unreadable(path: Path, error: OSError) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("folder", "producer", "turns", "in_use_by", "size"), None)
    title = f"cannot be read: {error.strerror or error}"
    return row | {
        "session_id": path.parent.name,
        "title": title,
        "started": NA,
        "last_event": NA,
        "path": str(path),
    }


def _skim(head: bytes, tail: bytes) -> tuple[dict[str, Any], str | None, int, int]:
    """session.start's data, the first message, and the times of the first and the last readable line."""
    start: dict[str, Any] = {}
    prompt: str | None = None
    first = last = NA
    for line in head.split(b"\n"):
        record = _record(line)
        if record is None:
            continue
        if first == NA:
            first = _time(record)
        data = record.get("data")
        if isinstance(data, dict):
            if record.get("type") == "session.start" and not start:
                start = data
            if record.get("type") == "user.message" and prompt is None:
                prompt = wire.string(data.get("content"))
        if prompt is not None and start:
            break
    for line in reversed(tail.split(b"\n")):
        record = _record(line)
        if record is not None:
            last = _time(record)
            if last != NA:
                break
    return start, prompt, first, last


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        record = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return record if isinstance(record, dict) else None


def _time(record: dict[str, Any]) -> int:
    stamp = record.get("timestamp")
    return parse_time(stamp)[0] if isinstance(stamp, str) else NA


def _count(path: Path, needle: bytes) -> int:
    """How often that is in a file; a text that quotes it has its quotes escaped."""
    total = 0
    with path.open("rb") as file:
        rest = b""
        while chunk := file.read(1 << 20):
            block = rest + chunk
            total += block.count(needle)
            rest = block[-(len(needle) - 1) :]
    return total
