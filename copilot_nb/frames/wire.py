"""The typed reading of one line, in two forms: lean for the columns, full for the relations.

The fast way is one msgspec call for many lines. A line that does not fit (NaN, a lone surrogate, a byte
order mark, keys of unexpected type) is read again, alone, by Python's tolerant parser: `read_alone`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from copilot_nb.frames.columns import as_text, well_formed

I64: Final = 2**63
DEEPEST: Final = 64
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Usage(Struct, gc=False):
    """The numbers of a model call that every event row shows."""

    inputTokens: int | None = None
    outputTokens: int | None = None


class Result(Struct, gc=False):
    """Of a tool call."""

    content: Any = None


class Failure(Struct, gc=False):
    """Of a tool call."""

    message: Any = None


class Data(Struct, gc=False):
    """The keys of ``data`` that become columns of ``events()``; see `columns_of` for their order."""

    turnId: Any = None
    interactionId: str | None = None
    toolName: str | None = None
    content: Any = None
    result: Result | str | None = None
    usage: Usage | None = None
    error: Failure | str | None = None
    message: Any = None
    summary: Any = None
    inputTokens: int | None = None
    outputTokens: int | None = None


class Line(Struct, gc=False):
    """One event with the data of a row."""

    type: str
    data: Data = msgspec.field(default_factory=Data)
    id: str | None = None
    timestamp: str | None = None
    parentId: str | None = None
    agentId: str | None = None
    ephemeral: bool | None = None


class FullLine(Struct, gc=False):
    """One event with all of its data, undecoded until it is wanted."""

    type: str
    data: msgspec.Raw = msgspec.Raw()
    id: str | None = None
    parentId: str | None = None
    agentId: str | None = None
    ephemeral: bool | None = None


class Form(Struct, frozen=True):
    """How lines are read: many at once, one, and from what the tolerant parser made of one."""

    many: Callable[[bytes | memoryview], list[Any]]
    one: Callable[[bytes], Any]
    tolerant: Callable[[dict[str, Any], dict[str, Any]], Any]


class NotAnEvent(ValueError):
    """Why a line is no event."""


def read_alone(line: bytes) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Read one line as far as it can be read: the record, its data as an object, and what was mended.

    Raises `NotAnEvent` with the reason when nothing can be kept.
    """
    mended = None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text, mended = line.decode("utf-8", "replace"), "invalid UTF-8, shown as U+FFFD"
    text = text.lstrip("\ufeff")
    if "\0" in text:
        text = text.strip("\0 \t\r\n")
        if not text:
            raise NotAnEvent("only NUL bytes")
    try:
        try:
            record = json.loads(text, strict=False)
        except RecursionError:
            record = json.loads(cut_deep(text), strict=False)
            mended = f"nested deeper than {DEEPEST} levels; what is below is left out"
    except ValueError as error:
        raise NotAnEvent(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise NotAnEvent(f"no object but {_name(record)}")
    data = record.get("data")
    if not isinstance(data, dict):
        mended = mended or f"data is no object but {_name(data)}"
        data = {}
    if not isinstance(record.get("type"), str):
        mended = mended or f"type is no text but {_name(record.get('type'))}"
    return record, data, mended


def cut_deep(text: str) -> str:
    """JSON text with null for whatever lies deeper than `DEEPEST` levels, which no parser here would read."""
    parts: list[str] = []
    depth = kept = 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                parts += (text[kept : token.start()], "null")
        elif mark in "]}":
            if depth == DEEPEST + 1:
                kept = token.end()
            depth -= 1
    return "".join(parts) + text[kept:]


def _name(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null", dict: "an object"}
    return names.get(type(value), "a number")


def tolerant_line(record: dict[str, Any], data: dict[str, Any]) -> Line:
    """`Line` from any record; values of another type than expected become text or are left out."""
    return Line(
        _type(record),
        data_of(data),
        as_text_or_none(record.get("id")),
        as_text_or_none(record.get("timestamp")),
        as_text_or_none(record.get("parentId")),
        as_text_or_none(record.get("agentId")),
        record.get("ephemeral") is True,
    )


def _type(record: dict[str, Any]) -> str:
    """Types become categories, which must be text that UTF-8 can hold."""
    return well_formed(as_text_or_none(record.get("type")) or "?")


def _tolerant_full(record: dict[str, Any], data: dict[str, Any]) -> FullLine:
    return FullLine(
        _type(record),
        msgspec.Raw(json.dumps(data)),
        as_text_or_none(record.get("id")),
        as_text_or_none(record.get("parentId")),
        as_text_or_none(record.get("agentId")),
        record.get("ephemeral") is True,
    )


def data_of(data: Mapping[str, Any]) -> Data:
    """The row's part of any data."""
    get = data.get
    usage, result, error = get("usage"), get("result"), get("error")
    return Data(
        get("turnId"),
        string(get("interactionId")),
        string(get("toolName")),
        get("content"),
        None
        if result is None
        else Result(result.get("content") if isinstance(result, Mapping) else string(result)),
        Usage(whole(usage.get("inputTokens")), whole(usage.get("outputTokens")))
        if isinstance(usage, Mapping)
        else None,
        None
        if error is None
        else Failure(error.get("message") if isinstance(error, Mapping) else string(error)),
        get("message"),
        get("summary"),
        whole(get("inputTokens")),
        whole(get("outputTokens")),
    )


def whole(value: object) -> int | None:
    """A 64-bit integer, or None; 5.0 is one, as for the typed reading."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and -I64 < value < I64 else None


def number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None  # also false for NaN


def string(value: object) -> str | None:
    """The text, or None for anything else."""
    return value if isinstance(value, str) else None


def as_text_or_none(value: object) -> str | None:
    """`as_text`, and None for null."""
    return None if value is None else as_text(value)


def _lines(form: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(form)


_LEAN, _FULL = _lines(Line), _lines(FullLine)
LEAN: Final = Form(_LEAN.decode_lines, _LEAN.decode, tolerant_line)
FULL: Final = Form(_FULL.decode_lines, _FULL.decode, _tolerant_full)
