"""The OpenAI chat-completions wire: how a request is written and its reply read.

The stream is read as raw lines into three small structs: the typed chunks of the `openai` client cost
seven times as much per chunk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from copilot_nb.errors import ModelError
from copilot_nb.events import JSON, clean, new_id
from copilot_nb.models.base import Reply, Request, Sink, ToolCall, Usage


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: Any = None
    reasoning_content: str | None = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: JSON | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_encode = msgspec.json.Encoder().encode


def encode_request(model: str, request: Request, extra: JSON) -> bytes:
    """The request's body."""
    body: JSON = {"model": model, "messages": request.messages, "stream": request.stream}
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = request.tools
    body.update(extra)
    try:
        return _encode(body)
    except (ValueError, TypeError, OverflowError):  # lone surrogates, big integers, foreign objects
        return json.dumps(clean(body), separators=(",", ":")).encode()


def decode_chunk(data: bytes | str) -> _Chunk:
    """One chunk or one whole completion; raises `ModelError` when it is neither."""
    try:
        return _decode_chunk(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # lone surrogates, NaN: legal for Python's own parser
        try:
            return msgspec.convert(json.loads(data), _Chunk)
        except (msgspec.MsgspecError, ValueError) as error:
            raise ModelError(f"The model's answer is not a chat completion: {error}") from error


class Lines:
    """Cuts arriving bytes into the ``data:`` payloads of a server-sent event stream."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, block: bytes) -> Iterator[bytes]:
        """The payloads that `block` completes."""
        lines = (self._rest + block).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()

    def end(self) -> Iterator[bytes]:
        """The payload of a last line without a newline."""
        return self.feed(b"\n")


class Reader:
    """Puts a reply together from chunks, and tells each piece to the sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        self._pieces: list[list[str]] = []
        self._by_index: dict[int, int] = {}
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._any_choice = False
        self.done = False

    def data(self, payload: bytes) -> None:
        """Take one ``data:`` payload."""
        if payload == b"[DONE]":
            self.done = True
            return
        if not payload:
            return
        self.chunk(decode_chunk(payload))

    def chunk(self, chunk: _Chunk) -> None:
        """Take one chunk, or one whole completion."""
        if chunk.error is not None:
            raise stream_error(chunk.error)
        if chunk.usage:
            self._usage = usage_of(chunk.usage)
        if not chunk.choices:
            return
        self._any_choice = True
        choice = chunk.choices[0]
        if choice.finish_reason is not None:
            self._finish = choice.finish_reason
        delta = choice.delta or choice.message
        if delta is None:
            return
        if delta.content:
            text = delta.content if type(delta.content) is str else text_of(delta.content)
            self._text.append(text)
            self._sink.text(text)
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            thought = thought if type(thought) is str else text_of(thought)
            self._reasoning.append(thought)
            self._sink.reasoning(thought)
        if delta.tool_calls:
            for piece in delta.tool_calls:
                self._tool_piece(piece)

    def _tool_piece(self, piece: _Call) -> None:
        function = piece.function or _Function()
        index = piece.index if piece.index is not None else (len(self._calls) if piece.id else 0)
        place = self._by_index.get(index)
        # Some servers number every call 0 and tell them apart by id alone.
        if place is None or (piece.id and function.name and piece.id != self._calls[place].id):
            place = self._by_index[index] = len(self._calls)
            self._calls.append(ToolCall(piece.id or f"call_{new_id()}", function.name or "", ""))
            self._pieces.append([])
        call = self._calls[place]
        if function.name and not call.name:
            call.name = function.name
        if function.arguments:
            written = function.arguments
            text = written if type(written) is str else _encode(written).decode()
            self._pieces[place].append(text)
            self._sink.tool_arguments(call.id, call.name, text)

    def reply(self) -> Reply:
        """The whole reply.

        Raises
        ------
        ModelError
            The stream ended in the middle: neither a finish reason nor the end mark came.
        """
        finish = self._finish
        if self._any_choice and finish is None:
            if not self.done:
                raise ModelError("The connection closed in the middle of the answer.", code="stream_closed")
            finish = "tool_calls" if self._calls else "stop"
        for call, pieces in zip(self._calls, self._pieces, strict=True):
            call.arguments = "".join(pieces)
        return Reply("".join(self._text), "".join(self._reasoning), self._calls, finish, self._usage)


def text_of(content: Any) -> str:
    """The text of a content list (``[{"type": "text", "text": …}]``)."""
    if isinstance(content, list):
        return "".join(text_of(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text") or "")
    return str(content)


def usage_of(raw: JSON) -> Usage:
    """The token counts of a ``usage`` object; absent ones are None."""
    prompt = raw.get("prompt_tokens_details") or {}
    completion = raw.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=raw.get("prompt_tokens"),
        output_tokens=raw.get("completion_tokens"),
        cache_read_tokens=prompt.get("cached_tokens"),
        reasoning_tokens=completion.get("reasoning_tokens"),
    )


def stream_error(error: Any) -> ModelError:
    """The error that a server wrote into its stream after a good status line."""
    if not isinstance(error, dict):
        return ModelError(str(error))
    status = error.get("code") if isinstance(error.get("code"), int) else error.get("status")
    code = error.get("code") or error.get("type")
    return ModelError(
        str(error.get("message") or error),
        status=status if isinstance(status, int) else None,
        code=str(code) if code is not None else None,
    )
