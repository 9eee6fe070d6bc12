"""The seam to whoever answers a turn: one request in, one reply out, chunks told to a sink on the way."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct, field

from copilot_nb.events import JSON


class ToolCall(Struct):
    """One tool the model asks for; `arguments` is the raw JSON text it wrote."""

    id: str
    name: str
    arguments: str = "{}"


class Usage(Struct):
    """Tokens of one model call, as the provider counted them; None where it said nothing."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class Reply(Struct):
    """What a model answered in one turn.

    Attributes
    ----------
    finish
        ``stop``, ``tool_calls``, ``length`` … as the provider says it; None when the stream held no choice
        at all (the engine takes that for a broken stream).
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish: str | None = "stop"
    usage: Usage | None = None


class Request(Struct):
    """One model call: chat messages and tools in the OpenAI wire form (lists of plain dicts)."""

    messages: list[JSON]
    tools: list[JSON]
    stream: bool = True


class Sink(Protocol):
    """Where a model tells what arrives; called on the engine's loop, once per chunk."""

    def text(self, chunk: str) -> None:
        """A piece of the answer."""

    def reasoning(self, chunk: str) -> None:
        """A piece of the model's thinking."""

    def tool_arguments(self, call_id: str, name: str, piece: str) -> None:
        """A piece of a tool call's arguments."""


ModelKind = Literal["demo", "scripted", "provider"]


class Model(Protocol):
    """Answers turns.

    Attributes
    ----------
    name
        What a user types: ``demo``, ``openai:gpt-4.1``.
    label
        What the panel shows; for the demo ``"demo model, no LLM"``.
    kind
        ``demo`` is marked everywhere.
    max_prompt_tokens
        Size of the context window in tokens; None when unknown.
    """

    name: str
    label: str
    kind: ModelKind
    max_prompt_tokens: int | None

    async def reply(self, request: Request, sink: Sink) -> Reply:
        """Answer one request.

        Raises
        ------
        ModelError
            The provider refused, the connection failed, or the stream broke off.
        """

    async def close(self) -> None:
        """Free connections."""
