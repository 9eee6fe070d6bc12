"""What a conversation is made of: runs, turns, tool calls, messages, requests and marks.

Times are seconds since 1970 (float); None means: not yet, or not recorded. None of them leads back to what
holds it, so the garbage collector need not walk them (``gc=False``).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from copilot_nb.events import JSON

Lane = Literal["queue", "steering"]
Phase = Literal["wait", "reason", "write", "tools", "done"]


class Message(Struct, eq=False, gc=False):
    """What a person (or autopilot, or the system) sent.

    Attributes
    ----------
    lane
        Where it waits or waited; None when it started a run at once.
    state
        ``pending`` in a lane, ``landed`` as a ``user.message``, or ``removed``.
    delivery
        ``idle``, ``steering`` or ``queued``, as the log says; None while pending and in foreign logs.
    run, turn
        Numbers from 1 of where it landed; a steer belongs to the turn whose request it joined.
    reason
        Why it was removed (``removed``, ``cleared``, ``aborted`` …) or moved (``missed``).
    event_id
        The event that landed it.
    nudge
        An autopilot continuation; its content is empty.
    """

    id: str
    text: str
    lane: Lane | None = None
    state: Literal["pending", "landed", "removed"] = "pending"
    sent_at: float | None = None
    landed_at: float | None = None
    removed_at: float | None = None
    delivery: str | None = None
    run: int | None = None
    turn: int | None = None
    reason: str | None = None
    source: str | None = None
    nudge: bool = False
    attachments: list[JSON] = field(default_factory=list)
    event_id: str = ""


class Request(Struct, eq=False, gc=False):
    """A question to the person: ``permission``, or the agent's own (``user_input``, ``elicitation`` …)."""

    id: str
    kind: str
    data: JSON
    asked_at: float
    tool_id: str | None = None


class Tool(Struct, eq=False, gc=False):
    """One tool call.

    Attributes
    ----------
    state
        ``ask`` while a person is asked, ``interrupted`` when no result ever came.
    output
        Pieces shown while it runs.
    answer
        The permission's result kind; None when nobody had to be asked.
    feedback, reason
        What the person said with a denial; who decided.
    event_id
        The event of its start.
    """

    key: str
    id: str
    name: str
    arguments: object
    run: int
    turn: int
    t0: float
    t1: float | None = None
    state: Literal["running", "ask", "ok", "failed", "interrupted"] = "running"
    result: str = ""
    detail: str | None = None
    error: str | None = None
    output: list[str] = field(default_factory=list)
    request: JSON | None = None
    asked_at: float | None = None
    answered_at: float | None = None
    answer: str | None = None
    feedback: str | None = None
    reason: str | None = None
    display: list[JSON] = field(default_factory=list)
    event_id: str = ""


class Turn(Struct, eq=False, gc=False):
    """One model call with its tools.

    Attributes
    ----------
    n
        From 1 within its run; `turn_id` is what the log says.
    first_at, text_at, said_at
        First token, first token of the text, end of the reply.
    text, reasoning
        Pieces as they arrived; one piece once the reply is whole.
    partial
        The text was cut off by an abort.
    """

    key: str
    run: int
    n: int
    turn_id: str | None
    t0: float
    first_at: float | None = None
    text_at: float | None = None
    said_at: float | None = None
    t1: float | None = None
    message_id: str | None = None
    event_id: str = ""
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int | None = None
    context: int | None = None
    retries: list[str] = field(default_factory=list)
    partial: bool = False

    @property
    def live(self) -> bool:
        """Whether the turn is still going on."""
        return self.t1 is None

    def phase(self) -> Phase:
        """What the turn does now."""
        if self.t1 is not None:
            return "done"
        if self.said_at is not None:
            return "tools"
        if self.first_at is None:
            return "wait"
        return "write" if self.text_at is not None else "reason"

    def since(self) -> float:
        """When the present phase began."""
        phase = self.phase()
        began = {"reason": self.first_at, "write": self.text_at, "tools": self.said_at, "done": self.t1}
        return began.get(phase) or self.t0


class Mark(Struct, eq=False, gc=False):
    """Something that happened between turns: an error, an abort, a compaction, a change of mode …"""

    key: str
    kind: str
    t: float
    text: str
    data: JSON
    run: int


class Run(Struct, eq=False, gc=False):
    """Everything one top-level message causes.

    Attributes
    ----------
    items
        Messages, turns and marks in reading order: a steer stands before the turn it landed in.
    state
        ``running`` until the next run or idle.
    """

    n: int
    t0: float
    interaction: str | None = None
    t1: float | None = None
    state: Literal["running", "done", "aborted", "failed"] = "running"
    turns: list[Turn] = field(default_factory=list)
    items: list[Message | Turn | Mark] = field(default_factory=list)
    steered: int = 0

    @property
    def prompt(self) -> str:
        """The text that started it."""
        return next((item.text for item in self.items if isinstance(item, Message)), "")


Item = Run | Turn | Message | Mark
