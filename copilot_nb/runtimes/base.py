"""The one protocol that `Session` knows. Nothing above this floor can tell which runtime runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON, Event
from copilot_nb.permissions import Decision

Delivery = Literal["enqueue", "immediate"]
Mode = Literal["interactive", "plan", "autopilot"]


class Emit(Protocol):
    """Takes an event, and the byte its line begins at in the log file (negative: not known, not stored)."""

    def __call__(self, event: Event, offset: int = -1, /) -> object: ...


class Message(Struct, frozen=True):
    """What a person sends (reference §0.1, §19).

    Attributes
    ----------
    mode
        ``immediate`` joins the running run before its next model call; ``enqueue`` waits for its own run.
    attachments
        ``{"type": "file" | "directory" | "selection" | "blob", …}`` as the SDK takes them.
    agent_mode, source, display_prompt
        As in the SDK's ``send``.
    """

    prompt: str
    mode: Delivery = "enqueue"
    attachments: tuple[JSON, ...] = ()
    agent_mode: Mode | None = None
    source: str | None = None
    display_prompt: str | None = None


class Answer(Struct, frozen=True):
    """An answer to a question that is no permission: ``ask_user``, a form, leaving plan mode."""

    data: JSON


class Queue(Protocol):
    """Looking at and editing what waits (reference §15). Each change is one ``pending_messages.modified``."""

    async def pending_items(self) -> JSON:
        """``{items: [{id, messageId, kind, displayText, …}], steeringMessages, inFlightSteeringCount}``."""

    async def move_item(self, id: str, to_position: int) -> bool:
        """Move a queue item; False when it was there already."""

    async def remove_at(self, id: str) -> bool:
        """Remove a queue item; raises `UsageError` for an unknown id."""

    async def update_text(self, id: str, prompt: str) -> bool:
        """Change a queue item's text."""

    async def duplicate_at(self, id: str) -> str:
        """Copy an item to the place after it; the new id."""

    async def insert_at(self, position: int, message: Message) -> str:
        """Put a new message at a place; the new id."""

    async def send_now(self, id: str) -> bool:
        """Turn a queue item into a steer (it goes to the end of the steering lane)."""

    async def remove_most_recent(self) -> bool:
        """Remove what was sent last, of both lanes; False when both are empty."""

    async def clear(self) -> None:
        """Empty both lanes; the run goes on."""

    async def set_drain_paused(self, paused: bool) -> None:
        """Freeze or release the queue; pausing twice is a `UsageError`."""


class Runtime(Protocol):
    """Runs the loop and produces events.

    Events go to the `emit` that the runtime was made with, on the session's loop, in order, each stored
    before it is delivered. No event comes after `close` returned.
    """

    name: str
    session_id: str

    @property
    def model_label(self) -> str:
        """Who answers, for people."""

    @property
    def queue(self) -> Queue:
        """What waits."""

    async def send(self, message: Message) -> str:
        """Accept a message; its id is in the later ``user.message``'s ``messageId``."""

    async def send_messages(self, messages: Sequence[Message]) -> list[str]:
        """Several messages, one turn; none: one turn on the history as it is."""

    async def abort(self, *, keep_queue: bool = False) -> None:
        """End the run. Faithful: both lanes are emptied. `keep_queue` keeps them, paused."""

    async def interrupt(self) -> None:
        """The SDK's ``interruptMainTurn``."""

    async def respond(self, request_id: str, answer: Decision | Answer) -> None:
        """Answer a permission request or a question; unknown or answered ids are a `UsageError`."""

    async def set_mode(self, mode: Mode) -> None:
        """Change the session mode (reference §9)."""

    async def compact(self, instructions: str | None = None) -> JSON:
        """Replace the history by a summary (reference §17)."""

    async def truncate(self, event_id: str) -> int:
        """Remove that event and all after it from the log; how many (reference §18)."""

    async def rewind(self, event_id: str) -> JSON:
        """Like `truncate`, as the SDK's ``history.rewind`` answers."""

    async def fork(self, to_event_id: str | None = None, *, name: str | None = None) -> str:
        """Copy the log before that event (all of it when None) to a new session; its id."""

    async def withdraw(self, message_id: str, expected_prompt: str) -> JSON:
        """Take a message back (reference §15): ``{removed, interrupted}``."""

    async def close(self) -> None:
        """End the run, write ``session.shutdown``, let go of the log."""


def as_message(prompt: str, mode: Delivery | None = None, **more: Any) -> Message:
    """A message from `send`'s arguments; an empty prompt or unknown mode is a `UsageError`."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError("The prompt is empty: write what the agent should do.")
    if mode not in (None, "enqueue", "immediate"):
        raise UsageError(
            f"Unknown mode {mode!r}: use 'enqueue' (waits its turn) or 'immediate' (steers the run)."
        )
    attachments = tuple(more.pop("attachments", None) or ())
    return Message(prompt, mode or "enqueue", attachments, **more)
