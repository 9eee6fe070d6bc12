"""The one record everything is made of.

An event is what one line of ``events.jsonl`` holds, and what handlers receive.
Known types have known ``data``; unknown ones stay as they are and are never an error.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

JSON = dict[str, Any]


class Event(msgspec.Struct, frozen=True, gc=False):
    """``{type, data, id, timestamp, parentId, agentId?, ephemeral?}``, in this key order on disk.

    Attributes
    ----------
    type
        For example ``"assistant.turn_start"``; names with ``jupyter.`` are this project's own.
    data
        The payload. Treat it as read-only: every view shares it.
    id
        UUID.
    timestamp
        ISO 8601 in UTC with offset, microseconds.
    parent_id
        Id of the last stored event before this one; None for the first.
    agent_id
        The sub-agent it belongs to; absent for the main agent.
    ephemeral
        Delivered but never stored.
    """

    type: str
    data: JSON
    id: str
    timestamp: str
    parent_id: str | None = msgspec.field(name="parentId")
    agent_id: str | UnsetType = msgspec.field(name="agentId", default=UNSET)
    ephemeral: bool | UnsetType = UNSET

    @property
    def stored(self) -> bool:
        """Whether the event belongs on disk."""
        return self.ephemeral is not True

    @property
    def time(self) -> datetime:
        """The timestamp as an aware datetime."""
        return datetime.fromisoformat(self.timestamp)

    def to_dict(self) -> JSON:
        """The wire form as a plain dict."""
        result: JSON = msgspec.to_builtins(self)
        return result

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Event:
        """Build from the wire form; extra keys are dropped; raises ``msgspec.ValidationError``."""
        return msgspec.convert(raw, cls)


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Event).decode


def to_line(event: Event) -> bytes:
    """One line of the log, newline included.

    Text comes back as it was: line separators that other readers split at (U+2028, U+2029, U+0085) and
    lone surrogates are written as escapes (copilot-cli#2012, #2649).
    """
    try:
        line: bytes = _encode(event)
    except (ValueError, TypeError, OverflowError):  # lone surrogates, foreign objects, integers over 64 bits
        plain = {**msgspec.structs.asdict(event), "data": clean(event.data)}
        return to_line_plain(plain)
    if not line.isascii():
        for raw, escape in _SEPARATORS:
            line = line.replace(raw, escape)
    return line + b"\n"


def to_line_plain(record: Mapping[str, Any]) -> bytes:
    """One line from a record's fields, by the slow encoder that can write any text."""
    names = {"parent_id": "parentId", "agent_id": "agentId"}
    wire = {names.get(key, key): value for key, value in record.items() if value is not UNSET}
    return json.dumps(wire, separators=(",", ":")).encode() + b"\n"


_SEPARATORS: Final = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\x85".encode(), b"\\u0085"),
)


def from_line(line: bytes) -> Event:
    """The event of one line; raises ``msgspec.MsgspecError`` or ``ValueError`` when it is none."""
    try:
        return _decode(line)
    except msgspec.MsgspecError:  # lone surrogates, NaN, a byte order mark: legal for Python's own parser
        return msgspec.convert(json.loads(line.decode("utf-8-sig")), Event)


def clean(value: Any) -> Any:
    """The nearest value that JSON can hold: foreign objects as text, NaN and infinities as null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(item) for item in value]
    return str(value)


# --- ids and times: made for every event, so made cheaply ---------------------------------------------

_pool: Iterator[bytes] = iter(())  # 16-byte slices of os.urandom, refilled in blocks


def _refill() -> bytes:
    global _pool
    block = os.urandom(16 * 256)
    _pool = iter([block[i : i + 16] for i in range(0, len(block), 16)])
    return next(_pool)


def new_id() -> str:
    """A random UUID (version 4) as text; four times cheaper than ``str(uuid.uuid4())``."""
    raw = next(_pool, None)
    if raw is None:
        raw = _refill()
    h = raw.hex()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{'89ab'[raw[8] & 3]}{h[17:20]}-{h[20:]}"


def _forget_pool() -> None:
    global _pool
    _pool = iter(())


if hasattr(os, "register_at_fork"):  # a forked child must not repeat its parent's ids
    os.register_at_fork(after_in_child=_forget_pool)

_second = 0
_second_text = ""


def now() -> str:
    """The time as ``2026-11-30T10:00:00.123456Z``."""
    global _second, _second_text
    ns = time.time_ns()
    second, rest = divmod(ns, 1_000_000_000)
    if second != _second:
        _second_text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second = second
    return f"{_second_text}.{rest // 1000:06d}Z"


class EventSource:
    """Makes the events of one session: ids, times, and the chain of parents (reference §14)."""

    def __init__(self, last_stored: str | None = None) -> None:
        self.last_stored = last_stored

    def stored(self, type: str, data: JSON) -> Event:
        """An event for handlers and disk."""
        event = Event(type, data, new_id(), now(), self.last_stored)
        self.last_stored = event.id
        return event

    def ephemeral(self, type: str, data: JSON) -> Event:
        """An event for handlers alone."""
        return Event(type, data, new_id(), now(), self.last_stored, UNSET, True)
