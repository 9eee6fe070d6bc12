"""A scripted model behind an OpenAI-compatible HTTP address (chat/completions), standard library only.

A script is a list of replies, consumed one per POST in arrival order. Fields of a reply, all optional:

====================== =====================================================================
reasoning              ``[chunk, …]`` streamed as ``delta.reasoning_content`` (or `reasoning_key`)
text                   ``[chunk, …]`` streamed as ``delta.content``
tool_calls             ``[{id, name, args | args_raw | args_chunks}]``
usage                  ``{prompt_tokens, completion_tokens}``; 10 and 5 by default; None leaves it out
finish                 finish reason; ``tool_calls`` when there are calls, else ``stop``
gate                   a name: nothing is sent before that gate is released
gate_after_chunk       ``{"1": name}``: wait after the first text chunk was sent
chunk_delay_s          pause after each text chunk
http_error             ``{status, message, code, type, headers}``
disconnect_before_headers, disconnect_after_chunks   the socket closes
no_choices             a stream without any choice
====================== =====================================================================

When the script is used up the server answers ``(exhausted)``.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ModelServer:
    """The server; `requests` holds what was asked, in arrival order."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []  # {n, path, body, headers, closed_by_client}
        self.gates: dict[str, threading.Event] = {}
        self.lock = threading.Lock()
        self.on_request: Callable[[str, int], None] = lambda kind, n: None
        self.http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        self.base_url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def gate(self, name: str) -> threading.Event:
        """The gate of that name; ``.set()`` releases it."""
        with self.lock:
            return self.gates.setdefault(name, threading.Event())

    def take(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[Any, Any]:
        """Record a request; the reply that is due and the record."""
        with self.lock:
            n = len(self.requests) + 1
            reply = self.script[n - 1] if n <= len(self.script) else {"text": ["(exhausted)"]}
            record = {"n": n, "path": path, "body": body, "headers": headers, "closed_by_client": False}
            self.requests.append(record)
        return reply, record

    def close(self) -> None:
        """Release every gate and stop listening."""
        for gate in list(self.gates.values()):
            gate.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no fault of the server."""


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": "fake-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        reply, record = self.model.take(self.path, body, dict(self.headers))
        self.model.on_request("request", record["n"])
        try:
            self._reply(reply, body, record)
        except (BrokenPipeError, ConnectionResetError):
            record["closed_by_client"] = True
            self.model.on_request("closed", record["n"])
            self.close_connection = True

    def _json(self, status: int, value: Any, headers: Any = ()) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for key, text in dict(headers).items():
            self.send_header(key, text)
        self.end_headers()
        self.wfile.write(data)

    def _wait(self, name: str) -> None:
        """Block at a gate, and notice a client that hangs up meanwhile."""
        gate = self.model.gate(name)
        while not gate.wait(0.01):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable:
                try:
                    data = self.connection.recv(1, socket.MSG_PEEK)
                except OSError:
                    data = b""
                if data == b"":
                    raise BrokenPipeError

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _reply(self, reply: dict[str, Any], body: dict[str, Any], record: dict[str, Any]) -> None:
        if reply.get("gate"):
            self._wait(reply["gate"])
        if error := reply.get("http_error"):
            about = {"message": error.get("message", "scripted error"), "type": error.get("type", "scripted")}
            about["code"] = error.get("code")
            return self._json(error["status"], {"error": about}, error.get("headers", {}))
        if reply.get("disconnect_before_headers"):
            return self._hang_up()
        calls = reply.get("tool_calls") or []
        finish = reply.get("finish") or ("tool_calls" if calls else "stop")
        usage = reply.get("usage", {"prompt_tokens": 10, "completion_tokens": 5})
        if usage:
            total = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
            usage = {**usage, "total_tokens": total}
        if body.get("stream"):
            return self._stream(reply, calls, finish, usage, record["n"])
        message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.get("text", []))}
        if reply.get("reasoning"):
            message[reply.get("reasoning_key", "reasoning_content")] = "".join(reply["reasoning"])
        if calls:
            message["tool_calls"] = [_wire_call(call) for call in calls]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        head = {"id": f"cmpl-{record['n']}", "object": "chat.completion", "created": 1, "model": "fake-model"}
        return self._json(200, {**head, "choices": [choice], "usage": usage})

    def _stream(self, reply: dict[str, Any], calls: list[Any], finish: str, usage: Any, n: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        if reply.get("no_choices"):
            self.wfile.write(b"data: [DONE]\n\n")
            return
        head = {"id": f"cmpl-{n}", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
        role = {"role": "assistant"}

        def put(delta: dict[str, Any], finish: str | None = None, usage: Any = None) -> None:
            choice = {"index": 0, "delta": {**role, **delta}, "finish_reason": finish}
            role.clear()
            chunk = {**head, "choices": [choice], **({"usage": usage} if usage else {})}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.flush()

        for piece in reply.get("reasoning", []):
            put({reply.get("reasoning_key", "reasoning_content"): piece})
        for k, piece in enumerate(reply.get("text", []), 1):
            put({"content": piece})
            if reply.get("chunk_delay_s"):
                time.sleep(reply["chunk_delay_s"])
            if gate := (reply.get("gate_after_chunk") or {}).get(str(k)):
                self._wait(gate)
            if reply.get("disconnect_after_chunks") == k:
                return self._hang_up()
        for i, call in enumerate(calls):
            whole = _wire_call(call)
            pieces = call.get("args_chunks") or [whole["function"]["arguments"]]
            first = {"name": call["name"], "arguments": pieces[0]}
            put({"tool_calls": [{"index": i, "id": whole["id"], "type": "function", "function": first}]})
            for piece in pieces[1:]:
                put({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
        put({}, finish, usage)
        self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()


def _wire_call(call: dict[str, Any]) -> dict[str, Any]:
    if "args_raw" in call:
        arguments = call["args_raw"]
    elif "args_chunks" in call:
        arguments = "".join(call["args_chunks"])
    else:
        arguments = json.dumps(call.get("args", {}))
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}
