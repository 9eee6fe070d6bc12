"""``python -m copilot_nb serve-demo``: the demo model as an OpenAI-compatible server on loopback.

For trying out a client without an account, the real Copilot CLI among them:
its bring-your-own-key provider of type ``openai`` takes the printed address.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from copilot_nb.errors import CopilotNbError
from copilot_nb.events import JSON, new_id
from copilot_nb.models.base import Model, Reply, Request
from copilot_nb.models.demo import DemoModel

MAX_BODY = 64 * 1024 * 1024


class ChatServer:
    """Offers a model at ``/v1/chat/completions`` (streamed or not) and lists it at ``/v1/models``.

    Parameters
    ----------
    model
        Who answers.
    port
        0 takes a free one.
    """

    def __init__(self, model: Model, port: int = 0) -> None:
        self._model = model
        self._wanted = port
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> ChatServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._wanted, limit=1 << 20)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def base_url(self) -> str:
        """What to give a client as its base URL."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        # Left out: the client went away, speaks no HTTP, or the server stops.
        away = (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            asyncio.CancelledError,
        )
        try:
            with contextlib.suppress(*away):
                while await self._one(reader, writer):
                    await writer.drain()
        finally:
            self._serving.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = (*head[0].split(" "), "", "")[:3]
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        raw = await _body(reader, headers)
        path = target.partition("?")[0].removeprefix("/v1")
        if raw is None:
            _send(writer, 413, _error("The request is too large."))
            return False
        if method == "GET" and path in ("/models", f"/models/{self._model.name}"):
            entry = {"id": self._model.name, "object": "model", "owned_by": self._model.label}
            _send(writer, 200, entry if path != "/models" else {"object": "list", "data": [entry]})
        elif method == "POST" and path == "/chat/completions":
            await self._complete(raw, writer)
        else:
            _send(writer, 404, _error(f"There is no {method} {target}; this is the {self._model.label}."))
        return headers.get("connection", "").lower() != "close"

    async def _complete(self, raw: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            body = json.loads(raw)
            request = Request(list(body["messages"]), list(body.get("tools") or ()), bool(body.get("stream")))
        except (ValueError, KeyError, TypeError, AttributeError):
            _send(writer, 400, _error("The body must be a JSON object with a list of messages."))
            return
        answer = _Answer(str(body.get("model") or self._model.name), writer, request.stream)
        try:
            reply = await self._model.reply(request, answer)
        except CopilotNbError as error:
            answer.fail(str(error))
            return
        answer.finish(reply, bool((body.get("stream_options") or {}).get("include_usage")))


class _Answer:
    """A sink that writes the chat-completions wire."""

    def __init__(self, model: str, writer: asyncio.StreamWriter, stream: bool) -> None:
        self._model, self._writer, self._stream = model, writer, stream
        self._id = f"chatcmpl-{new_id()}"
        self._calls: dict[str, int] = {}
        self._begun = False

    def text(self, chunk: str) -> None:
        self._delta({"content": chunk})

    def reasoning(self, chunk: str) -> None:
        self._delta({"reasoning_content": chunk})

    def tool_arguments(self, call_id: str, name: str, piece: str) -> None:
        call: JSON = {"function": {"arguments": piece}}
        if call_id not in self._calls:
            self._calls[call_id] = len(self._calls)
            call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": piece}}
        self._delta({"tool_calls": [{"index": self._calls[call_id], **call}]})

    def finish(self, reply: Reply, with_usage: bool) -> None:
        if not self._stream:
            message: JSON = {"role": "assistant", "content": reply.text or None}
            if reply.tool_calls:
                message["tool_calls"] = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                    }
                    for call in reply.tool_calls
                ]
            choice = {"index": 0, "message": message, "finish_reason": reply.finish}
            _send(self._writer, 200, self._envelope("chat.completion", [choice], usage=_usage(reply)))
            return
        for call in reply.tool_calls:
            if call.id not in self._calls:
                self.tool_arguments(call.id, call.name, call.arguments)
        self._delta({}, reply.finish)
        if with_usage:
            self._event(self._envelope("chat.completion.chunk", [], usage=_usage(reply)))
        self._write(b"data: [DONE]\n\n")
        self._writer.write(b"0\r\n\r\n")

    def fail(self, message: str) -> None:
        if self._begun:
            self._event(_error(message))
            self._writer.write(b"0\r\n\r\n")
        else:
            _send(self._writer, 500, _error(message))

    def _delta(self, delta: JSON, finish: str | None = None) -> None:
        if not self._stream:
            return
        if not self._begun:
            delta = {"role": "assistant", **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._event(self._envelope("chat.completion.chunk", [choice]))

    def _envelope(self, kind: str, choices: list[JSON], **more: Any) -> JSON:
        return {
            "id": self._id,
            "object": kind,
            "created": int(time.time()),
            "model": self._model,
            "choices": choices,
            **more,
        }

    def _event(self, value: JSON) -> None:
        self._write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
            )
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes | None:
    """The request's body; None when it is too large."""
    if headers.get("transfer-encoding", "").lower() != "chunked":
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return None
        return await reader.readexactly(int(length))
    body = b""
    while size := int((await reader.readline()).partition(b";")[0].strip() or b"0", 16):
        if len(body) + size > MAX_BODY:
            return None
        body += (await reader.readexactly(size + 2))[:-2]
    while (await reader.readline()).strip():  # trailers
        pass
    return body


def _send(writer: asyncio.StreamWriter, status: int, value: JSON) -> None:
    data = json.dumps(value).encode()
    reason = {200: "OK", 400: "Bad Request", 404: "Not Found", 413: "Content Too Large"}.get(status, "Error")
    head = (
        f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)


def _error(message: str) -> JSON:
    return {"error": {"message": message, "type": "demo_error", "code": None}}


def _usage(reply: Reply) -> JSON:
    used = reply.usage
    read = (used.input_tokens if used else 0) or 0
    written = (used.output_tokens if used else 0) or 0
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


async def serve(model: Model, port: int, ready: Callable[[str], None]) -> None:
    """Serve until cancelled; `ready` gets the base URL."""
    async with ChatServer(model, port) as server:
        ready(server.base_url)
        await asyncio.Event().wait()


def add_parsers(subparsers: Any) -> None:
    """Add ``serve-demo`` to the command line."""
    parser = subparsers.add_parser(
        "serve-demo",
        help="offer the demo model (no LLM) as an OpenAI-compatible server on loopback",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port", type=int, default=8765, help="port on 127.0.0.1; 0 takes a free one (default: 8765)"
    )
    parser.add_argument("--pace", type=float, default=None, help="seconds a turn takes (default: 0.5)")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    model = DemoModel.from_environment(os.environ) if args.pace is None else DemoModel(args.pace)

    def ready(url: str) -> None:
        print(
            f"The {model.label}, at {url}\nTry: OPENAI_BASE_URL={url} and the model openai:demo", flush=True
        )

    try:
        asyncio.run(serve(model, args.port, ready))
    except OSError as error:
        print(f"Cannot listen on port {args.port}: {error}. Give another one with --port.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0
