"""The typed reading of one line: what the tables need, and nothing else.

The fast way is one msgspec call for many lines. A line that does not fit (NaN, a lone surrogate, a byte
order mark, keys of unexpected type) is read again, alone, by Python's tolerant parser: `read_alone`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

I64: Final = 2**63


class Usage(Struct, gc=False):
    """The numbers of one model call."""

    model: str | None = None
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    cost: float | None = None
    duration: float | None = None
    timeToFirstTokenMs: float | None = None
    apiCallId: str | None = None
    interactionType: str | None = None


class Result(Struct, gc=False):
    """Of a tool call."""

    content: Any = None


class Failure(Struct, gc=False):
    """Of a tool call."""

    message: Any = None
    code: str | int | None = None


class Call(Struct, gc=False):
    """A tool call that a model asked for."""

    toolCallId: str | None = None


class Data(Struct, gc=False):
    """The keys of ``data`` that many events share."""

    turnId: str | int | None = None
    interactionId: str | None = None
    messageId: str | None = None
    toolCallId: str | None = None
    toolName: str | None = None
    content: Any = None
    delivery: str | None = None
    success: bool | None = None
    result: Result | str | None = None
    usage: Usage | None = None
    error: Failure | str | None = None
    toolRequests: list[Call] | None = None
    model: str | None = None
    apiCallId: str | None = None
    source: str | None = None
    message: Any = None
    summary: Any = None
    arguments: Any = None


class FileData(Data, gc=False):
    """As it is in a file: the arguments of a tool call stay JSON text."""

    arguments: msgspec.Raw | None = None


class Line(Struct, gc=False):
    """One event of a file."""

    type: str
    id: str | None = None
    timestamp: str | None = None
    parentId: str | None = None
    data: Data = msgspec.field(default_factory=Data)
    agentId: str | None = None
    ephemeral: bool = False


class FileLine(Line, gc=False):
    """`Line` with a file's data."""

    data: FileData = msgspec.field(default_factory=FileData)  # type: ignore[assignment]


_decoder: Final = msgspec.json.Decoder(FileLine)
decode_line: Final = _decoder.decode
decode_lines: Final = _decoder.decode_lines


MsgspecError: Final = msgspec.MsgspecError


def convert(data: Mapping[str, Any]) -> Data:
    """`Data` from a delivered event's data; raises `MsgspecError` when a key has another type."""
    return msgspec.convert(data, Data)


class NotAnEvent(ValueError):
    """Why a line is no event."""


def read_alone(line: bytes) -> tuple[Line, dict[str, Any], str | None]:
    """Read one line as far as it can be read: the event, its whole data, and what had to be mended.

    Raises `NotAnEvent` with the reason when nothing can be kept.
    """
    mended = None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text, mended = line.decode("utf-8", "replace"), "invalid UTF-8, shown as U+FFFD"
    if text.startswith("\ufeff"):
        text = text.lstrip("\ufeff")
    if "\0" in text:
        text = text.strip("\0 \t\r\n")
        if not text:
            raise NotAnEvent("only NUL bytes")
    try:
        record = json.loads(text, strict=False)
    except RecursionError:
        raise NotAnEvent("nested too deeply") from None
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
    line_ = Line(
        type=_text(record.get("type")) or "?",
        id=_text(record.get("id")),
        timestamp=_text(record.get("timestamp")),
        parentId=_text(record.get("parentId")),
        data=lenient(data),
        agentId=_text(record.get("agentId")),
        ephemeral=record.get("ephemeral") is True,
    )
    return line_, data, mended


def _name(value: object) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null", dict: "an object"}.get(
        type(value), "a number"
    )


def lenient(data: Mapping[str, Any]) -> Data:
    """The shared keys of any mapping; values of another type than expected count as absent."""
    get = data.get
    usage, result, error, calls = get("usage"), get("result"), get("error"), get("toolRequests")
    turn = get("turnId")
    return Data(
        turnId=turn if isinstance(turn, str | int) and not isinstance(turn, bool) else None,
        interactionId=_string(get("interactionId")),
        messageId=_string(get("messageId")),
        toolCallId=_string(get("toolCallId")),
        toolName=_string(get("toolName")),
        content=get("content"),
        delivery=_string(get("delivery")),
        success=get("success") if isinstance(get("success"), bool) else None,
        result=Result(result.get("content")) if isinstance(result, dict) else _string(result),
        usage=lenient_usage(usage) if isinstance(usage, dict) else None,
        error=Failure(error.get("message"), _string(error.get("code"))) if isinstance(error, dict) else _string(error),
        toolRequests=[Call(_string(call.get("toolCallId"))) for call in calls if isinstance(call, dict)]
        if isinstance(calls, list)
        else None,
        model=_string(get("model")),
        apiCallId=_string(get("apiCallId")),
        source=_string(get("source")),
        message=get("message"),
        summary=get("summary"),
        arguments=get("arguments"),
    )


def lenient_usage(usage: Mapping[str, Any]) -> Usage:
    """The numbers of a model call from any mapping."""
    get = usage.get
    return Usage(
        model=_string(get("model")),
        inputTokens=whole(get("inputTokens")),
        outputTokens=whole(get("outputTokens")),
        cacheReadTokens=whole(get("cacheReadTokens")),
        cacheWriteTokens=whole(get("cacheWriteTokens")),
        cost=_number(get("cost")),
        duration=_number(get("duration")),
        timeToFirstTokenMs=_number(get("timeToFirstTokenMs")),
        apiCallId=_string(get("apiCallId")),
        interactionType=_string(get("interactionType")),
    )


def whole(value: object) -> int | None:
    """A 64-bit integer, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -I64 < value < I64 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None  # also false for NaN


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else as_text(value)


def as_text(value: object) -> str:
    """Text as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def text_of(data: Data) -> str | None:
    """What a person would read of an event: its content, else result, error, message or summary."""
    value = data.content
    if value is None:
        value = data.result.content if isinstance(data.result, Result) else data.result
    if value is None:
        value = data.error.message if isinstance(data.error, Failure) else data.error
    if value is None:
        value = data.message
    if value is None:
        value = data.summary
    return None if value is None else as_text(value)
