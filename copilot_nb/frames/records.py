"""What the fold keeps of a log: one small record a run, turn, tool call …, with rows for times and texts.

A row is an event's place in the log, -1 when there is none. Times and texts are looked up by row when a
table is made, so a duration can only come from a start and an end that were both seen.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Run(Struct, gc=False):
    """Everything one top-level message causes."""

    start: int
    interaction: str | None
    source: str
    message: int = -1
    delivery: str | None = None
    end: int = -1
    answer: int = -1
    answered: bool = False
    over: bool = False
    aborted: bool = False
    failed: bool = False
    limited: bool = False
    completed: bool = False
    open_turns: int = 0
    last_turn: int = -1
    turns: dict[tuple[str | None, int | str | None], int] = msgspec.field(default_factory=dict)
    current: dict[str | None, int] = msgspec.field(default_factory=dict)


class Turn(Struct, gc=False):
    """One model call and its tools."""

    run: int
    turn: int  # its number, -1 for none
    agent: str | None
    start: int
    end: int = -1
    answer: int = -1
    retries: int = 0
    steers: int = 0
    aborted: bool = False
    failed: bool = False
    model: str | None = None


class Tool(Struct, gc=False):
    """One tool call."""

    id: str | None
    name: str | None
    run: int
    turn: int
    agent: str | None
    start: int
    end: int = -1
    success: bool | None = None
    code: str | None = None
    arguments: bytes | None = None
    asked: int = -1
    allowed: int = -1


class Message(Struct, gc=False):
    """What a person, autopilot or the system sent."""

    id: str | None
    sent: int = -1
    landed: int = -1
    removed: int = -1
    lane: str | None = None
    delivery: str | None = None
    source: str = "user"
    reason: str | None = None
    prompt: str | None = None
    run: int = -1
    turn: int = -1


class Permission(Struct, gc=False):
    """One question whether a tool may run."""

    id: str | None
    start: int
    run: int
    turn: int
    tool_call: str | None = None
    tool: str | None = None
    kind: str | None = None
    end: int = -1
    decision: str | None = None
    feedback: str | None = None


class LaneChange(Struct, gc=False):
    """One change of the two waiting lists."""

    row: int
    op: str
    run: int
    lane: str | None = None
    message: str | None = None
    prompt: str | None = None
    position: int | None = None
    reason: str | None = None
    queued: int = 0
    steering: int = 0
    paused: bool = False


class ModelCall(Struct, gc=False):
    """The usage of one model call; times in milliseconds."""

    row: int
    run: int
    turn: int
    agent: str | None
    model: str | None
    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    cost: float | None
    duration: float | None
    first_token: float | None
    id: str | None


class Fault(Struct, gc=False):
    """Something that went wrong."""

    row: int
    run: int
    turn: int
    source: str
    kind: str | None = None
    status: int | None = None
    tool_call: str | None = None
    message: str | None = None


class Span(Struct, gc=False):
    """What an event ended: where it began, and what it was."""

    start: int
    end: int
    milliseconds: float | None = None
    tool: str | None = None
