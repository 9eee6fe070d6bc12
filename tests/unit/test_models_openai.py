"""The OpenAI-compatible model against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from conformance.model_server import ModelServer
from tool_parts import Heard

from copilot_nb.errors import ModelError, UsageError
from copilot_nb.models import Request, open_model
from copilot_nb.models.openai import OpenAIModel, retry_after
from copilot_nb.models.wire import Lines

KEY = "sk-very-secret"
TOOL = {"type": "function", "function": {"name": "echo", "parameters": {"type": "object"}}}
ASK = Request([{"role": "user", "content": "q"}], [TOOL])


@pytest.fixture
def serve() -> Iterator[Any]:
    servers: list[ModelServer] = []

    def start(*script: dict[str, Any]) -> ModelServer:
        servers.append(ModelServer(list(script)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@asynccontextmanager
async def opened(url: str, **more: Any) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("fake-model", base_url=url, api_key=KEY, **more)
    yield model
    await model.close()


async def test_streams_text_reasoning_and_calls_piece_by_piece(serve: Any) -> None:
    calls = [
        {"id": "c1", "name": "echo", "args_chunks": ['{"a"', ":1}"]},
        {"id": "c2", "name": "echo", "args_raw": ""},
    ]
    server = serve({"reasoning": ["think", "ing"], "text": ["An", "swer"], "tool_calls": calls})
    async with opened(server.base_url) as model:
        heard = Heard()
        reply = await model.reply(ASK, heard)
    assert heard.all == [
        ("reasoning", "think"),
        ("reasoning", "ing"),
        ("text", "An"),
        ("text", "swer"),
        ("c1", "echo", '{"a"'),
        ("c1", "echo", ":1}"),
    ]
    assert (reply.text, reply.reasoning, reply.finish) == ("Answer", "thinking", "tool_calls")
    assert [(made.id, made.arguments) for made in reply.tool_calls] == [("c1", '{"a":1}'), ("c2", "")]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 5)


async def test_other_name_of_reasoning_and_no_usage(serve: Any) -> None:
    server = serve({"reasoning": ["hm"], "reasoning_key": "reasoning", "text": ["x"], "usage": None})
    async with opened(server.base_url) as model:
        reply = await model.reply(ASK, Heard())
    assert (reply.reasoning, reply.usage) == ("hm", None)


async def test_without_streaming(serve: Any) -> None:
    server = serve({"text": ["a", "b"], "tool_calls": [{"id": "c1", "name": "echo", "args": {"x": 1}}]})
    async with opened(server.base_url) as model:
        reply = await model.reply(Request(ASK.messages, [TOOL], stream=False), Heard())
    assert (reply.text, reply.tool_calls[0].arguments, reply.finish) == ("ab", '{"x": 1}', "tool_calls")
    assert server.requests[0]["body"]["stream"] is False


async def test_the_body_holds_the_history_as_it_is(serve: Any) -> None:
    """The message walk of the client is bypassed (50 ms at 200 messages); nothing may get lost."""
    messages = [
        {"role": "user", "content": "é \u2028 \ud800"},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    server = serve({"text": ["x"]})
    async with opened(server.base_url, extra={"temperature": 0}) as model:
        await model.reply(Request(messages, [TOOL]), Heard())
    body = server.requests[0]["body"]
    assert body == {
        "model": "fake-model",
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [TOOL],
        "temperature": 0,
    }
    headers = {name.lower(): value for name, value in server.requests[0]["headers"].items()}
    assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("error", "retry"),
    [
        ({"status": 401, "message": f"bad key {KEY}", "code": "invalid_api_key"}, None),
        ({"status": 429, "message": "slow down", "headers": {"retry-after": "2"}}, 2.0),
        ({"status": 429, "message": "slow down", "headers": {"retry-after-ms": "150"}}, 0.15),
        ({"status": 400, "message": "no such field"}, None),
        ({"status": 500, "message": "oops"}, None),
    ],
)
async def test_status_errors_come_once_and_keep_the_key_secret(
    serve: Any, error: dict[str, Any], retry: float | None
) -> None:
    """The client's own retries are off: the engine's are the visible ones (reference §11)."""
    server = serve(*[{"http_error": error}] * 3)
    async with opened(server.base_url) as model:
        with pytest.raises(ModelError) as caught:
            await model.reply(ASK, Heard())
    assert len(server.requests) == 1
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (
        error["status"],
        error.get("code"),
        retry,
    )
    assert str(caught.value) == error["message"].replace(KEY, "***")
    assert KEY not in repr(caught.value) + repr(model) + str(caught.value.__cause__)


@pytest.mark.parametrize(
    "broken", [{"disconnect_before_headers": True}, {"text": ["a", "b"], "disconnect_after_chunks": 1}]
)
async def test_a_connection_that_breaks_is_an_error_without_a_status(
    serve: Any, broken: dict[str, Any]
) -> None:
    server = serve(broken, {"text": ["ok"]})
    async with opened(server.base_url) as model:
        with pytest.raises(ModelError) as caught:
            await model.reply(ASK, Heard())
        assert caught.value.status is None
        assert (await model.reply(ASK, Heard())).text == "ok"


async def test_a_refused_connection_says_where() -> None:
    async with opened("http://127.0.0.1:1/v1") as model:
        with pytest.raises(ModelError, match=r"Cannot reach http://127\.0\.0\.1:1/v1"):
            await model.reply(ASK, Heard())


async def test_a_stream_without_choices_has_no_finish(serve: Any) -> None:
    server = serve({"no_choices": True})
    async with opened(server.base_url) as model:
        assert (await model.reply(ASK, Heard())).finish is None


async def test_cancelling_closes_the_connection_at_once(serve: Any) -> None:
    """An abort in mid-stream must reach the provider (claude-agent-sdk-typescript#425)."""
    server = serve({"text": ["a", "b"], "gate_after_chunk": {"1": "never"}})
    async with opened(server.base_url) as model:
        heard = Heard()
        task = asyncio.create_task(model.reply(ASK, heard))
        await heard.any.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(500):
            if server.requests[0]["closed_by_client"]:
                break
            await asyncio.sleep(0.02)
        assert server.requests[0]["closed_by_client"]


async def test_silence_ends_by_the_idle_timeout(serve: Any) -> None:
    """A stalled stream hangs for ever otherwise (obsidian-copilot PR#2595)."""
    server = serve({"text": ["a", "b"], "gate_after_chunk": {"1": "never"}})
    async with opened(server.base_url, idle_timeout=0.3) as model:
        with pytest.raises(ModelError, match=r"within 0\.3 seconds"):
            await model.reply(ASK, Heard())


async def raw_server(payload: bytes) -> tuple[asyncio.Server, str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + payload
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def event(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def tool_piece(index: int, arguments: str, id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": "echo"} if id else {})}
    return {"tool_calls": [{"index": index, "function": function, **({"id": id} if id else {})}]}


@pytest.mark.parametrize(
    ("payload", "text", "calls"),
    [
        (event({"content": "a"}) + b"data: [DONE]\n\n", "a", []),  # no finish reason, but an end mark
        (event({"content": "a"}, finish_reason="stop"), "a", []),  # no end mark
        (event({"content": "a"}, finish_reason="stop").strip(), "a", []),  # no last newline
        (event({"content": "a"}, finish_reason="stop").replace(b"\n", b"\r\n"), "a", []),
        (
            b": ping\n\nevent: x\n"
            + event({"content": [{"type": "text", "text": "a"}]}, finish_reason="stop"),
            "a",
            [],
        ),
        (event({"content": "\ud800"}, finish_reason="stop"), "\ud800", []),
        (  # two calls that both say index 0
            event(tool_piece(0, "{}", "c1")) + event(tool_piece(0, "[1]", "c2"), finish_reason="tool_calls"),
            "",
            [("c1", "{}"), ("c2", "[1]")],
        ),
        (  # interleaved pieces
            event(tool_piece(0, "1", "c1"))
            + event(tool_piece(1, "2", "c2"))
            + event(tool_piece(0, "3"))
            + event(tool_piece(1, "4"), finish_reason="tool_calls"),
            "",
            [("c1", "13"), ("c2", "24")],
        ),
    ],
)
async def test_dialects_of_other_servers(payload: bytes, text: str, calls: list[tuple[str, str]]) -> None:
    server, url = await raw_server(payload)
    async with server, opened(url) as model:
        reply = await model.reply(ASK, Heard())
    assert (reply.text, [(made.id, made.arguments) for made in reply.tool_calls]) == (text, calls)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b'data: {"error": {"message": "overloaded", "code": 503}}\n\n', "overloaded"),
        (b"data: <html>\n\n", "not a chat completion"),
        (event({"content": "a"}), "middle of the answer"),
    ],
)
async def test_bad_streams_are_model_errors(payload: bytes, message: str) -> None:
    server, url = await raw_server(payload)
    async with server, opened(url) as model:
        with pytest.raises(ModelError, match=message):
            await model.reply(ASK, Heard())


def test_lines_are_cut_right_wherever_the_blocks_are() -> None:
    stream = event({"content": "é\u2028"}) + b"data: [DONE]\n\n"
    whole = list(Lines().feed(stream))
    for size in range(1, 20):
        lines = Lines()
        blocks = [stream[i : i + size] for i in range(0, len(stream), size)]
        assert [payload for block in blocks for payload in lines.feed(block)] == whole


def test_retry_after_reads_a_date_and_ignores_nonsense() -> None:
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_address_and_key_come_from_arguments_then_the_environment() -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": KEY}
    model = open_model("openai:m", environ=env)
    assert isinstance(model, OpenAIModel)
    assert (model.base_url, model.label) == ("http://127.0.0.1:9/v1", "openai:m at 127.0.0.1:9")
    assert KEY not in repr(model) + str(vars(model).get("label"))
    other = open_model("openai:m", base_url="https://user:pw@example.org/v1", environ=env)
    assert other.label == "openai:m at example.org"
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        open_model("openai:m", environ={})
    with pytest.raises(UsageError, match="no http"):
        open_model("openai:m", base_url="localhost:11434", environ={})
    with pytest.raises(UsageError, match="Name a model"):
        open_model("openai:", environ=env)
