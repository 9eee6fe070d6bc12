"""A model server without thinking time, so that what a client costs is all there is to see.

Chat completions over plain HTTP/1.1, as a stream or whole. The model's name scripts the answer:

``n<N>``   ask for the tool N times, then say "Done now."
``s<K>``   K chunks of text, written in blocks of 250 events
``p<K>``   K chunks of text, one write each, about one a millisecond

``GET /reset`` forgets the requests seen, ``GET /stats`` lists them as ``[first byte, whole request, reply
written, bytes, messages, marked]``; times are `time.perf_counter`, one clock for all processes on Linux.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import sys
import time
from typing import Any

import msgspec

MARK = b"BENCHMARK STEER"  # a request that holds it is `marked`
NAME = re.compile(r"([nsp])(\d+)$")
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
seen: list[list[Any]] = []
bursts: dict[tuple[int, str], list[bytes]] = {}
encode, decode, clock = msgspec.json.encode, msgspec.json.decode, time.perf_counter


def chunk(delta: dict[str, Any], model: str, finish: str | None = None, usage: Any = None) -> bytes:
    """One event of a stream, in HTTP's chunked form, with the fields that real servers send."""
    event: dict[str, Any] = {
        "id": "chatcmpl-benchmark0123456789",
        "object": "chat.completion.chunk",
        "created": 1_750_000_000,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": "fp_benchmark",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    if usage:
        event["usage"] = usage
    line = b"data: " + encode(event) + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


def burst(count: int, model: str) -> list[bytes]:
    """The text chunks of a long answer; texts vary, because some clients look for repeats."""
    key = (count, model)
    if key not in bursts:
        bursts[key] = [chunk({"content": f" w{i % 97}"}, model) for i in range(count)]
    return bursts[key]


def tool_of(tools: list[dict[str, Any]]) -> tuple[str, str] | None:
    """The tool to ask for: ours if it is offered."""
    names = [tool.get("function", {}).get("name") for tool in tools]
    return ("step", '{"x":"go"}') if "step" in names else None


def results_so_far(messages: list[dict[str, Any]]) -> int:
    """Tool results since the last message of a person that no steer of ours is."""
    count = 0
    for message in reversed(messages):
        if message["role"] == "tool":
            count += 1
        elif message["role"] == "user" and MARK not in encode(message):
            break
    return count


class Connection(asyncio.Protocol):
    """One client connection, kept alive."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer, self.first = transport, bytearray(), 0.0
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self.first = self.first or clock()
        self.buffer += data
        while (request := self.take()) is not None:
            first, self.first = self.first, clock() if self.buffer else 0.0
            self.answer(*request, first, clock())

    def take(self) -> tuple[bytes, bytes] | None:
        """The first whole request of the buffer: its line and its body."""
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.buffer[:end])
        fields = {
            k.strip().lower(): v.strip() for k, _, v in (line.partition(b":") for line in head.split(b"\r\n"))
        }
        start = end + 4
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            body = bytearray()
            while True:
                mark = self.buffer.find(b"\r\n", start)
                if mark < 0:
                    return None
                size = int(self.buffer[start:mark], 16)
                if len(self.buffer) < mark + 4 + size:
                    return None
                body += self.buffer[mark + 2 : mark + 2 + size]
                start = mark + 4 + size
                if size == 0:
                    break
        else:
            size = int(fields.get(b"content-length", b"0"))
            if len(self.buffer) < start + size:
                return None
            body = self.buffer[start : start + size]
            start += size
        taken = head.split(b"\r\n", 1)[0], bytes(body)
        del self.buffer[:start]
        return taken

    def send_json(self, value: Any) -> None:
        body = encode(value)
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (len(body), body)
        )

    def answer(self, line: bytes, raw: bytes, first: float, whole: float) -> None:
        """Reply to one request and note it."""
        method, path, _ = line.decode().split(" ", 2)
        if path.startswith("/stats"):
            return self.send_json(seen)
        if path.startswith("/reset"):
            seen.clear()
            return self.send_json({})
        if method == "GET":
            return self.send_json({"object": "list", "data": [{"id": "n1", "object": "model"}]})
        body = decode(raw)
        messages, model = body["messages"], str(body.get("model"))
        match = NAME.search(model)
        kind, count = (match[1], int(match[2])) if match else ("n", 0)
        note = [first, whole, 0.0, len(raw), len(messages), MARK in raw]
        if kind == "p":
            task = asyncio.ensure_future(self.paced(count, model, note))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            return None
        tool = tool_of(body.get("tools") or []) if kind == "n" and results_so_far(messages) < count else None
        if not body.get("stream"):
            self.whole(model, tool)
        elif kind == "s":
            self.transport.write(HEAD + chunk({"role": "assistant", "content": ""}, model))
            parts = burst(count, model)
            for start in range(0, count, 250):
                self.transport.write(b"".join(parts[start : start + 250]))
            self.transport.write(chunk({}, model, "stop", USAGE) + END)
        else:
            self.transport.write(self.stream(model, tool))
        self.note(note)
        return None

    def note(self, note: list[Any]) -> None:
        note[2] = clock()
        seen.append(note)

    def stream(self, model: str, tool: tuple[str, str] | None) -> bytes:
        """A short answer as a stream."""
        out = [HEAD, chunk({"role": "assistant", "content": None if tool else ""}, model)]
        if tool:
            function = {"name": tool[0], "arguments": ""}
            call = {"index": 0, "id": f"call_{len(seen):06d}", "type": "function", "function": function}
            out.append(chunk({"tool_calls": [call]}, model))
            out.append(chunk({"tool_calls": [{"index": 0, "function": {"arguments": tool[1]}}]}, model))
        else:
            out += [chunk({"content": text}, model) for text in ("Done", " now.")]
        return b"".join([*out, chunk({}, model, "tool_calls" if tool else "stop", USAGE), END])

    def whole(self, model: str, tool: tuple[str, str] | None) -> None:
        """A short answer as one object."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if tool else "Done now.",
            "refusal": None,
        }
        if tool:
            function = {"name": tool[0], "arguments": tool[1]}
            message["tool_calls"] = [
                {"id": f"call_{len(seen):06d}", "type": "function", "function": function}
            ]
        finish = "tool_calls" if tool else "stop"
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        self.send_json(
            {
                "id": "chatcmpl-benchmark0123456789",
                "object": "chat.completion",
                "created": 1_750_000_000,
                "model": model,
                "choices": [choice],
                "usage": USAGE,
            }
        )

    async def paced(self, count: int, model: str, note: list[Any]) -> None:
        """Text chunks at the pace of a quick model."""
        self.transport.write(HEAD + chunk({"role": "assistant", "content": ""}, model))
        for part in burst(count, model):
            self.transport.write(part)
            await asyncio.sleep(0.001)
        self.transport.write(chunk({}, model, "stop", USAGE) + END)
        self.note(note)


tasks: set[asyncio.Task[None]] = set()


async def main() -> None:
    """Serve on a free port of this machine, told on the first line of standard output."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    asyncio.get_running_loop().add_reader(sys.stdin, server.close)  # the parent ended
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(main())
