"""Other providers through pydantic-ai: its own test models, and its OpenAI-like ones on our wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from conformance.model_server import ModelServer
from tool_parts import Heard

from copilot_nb.errors import ModelError, UsageError
from copilot_nb.models import Request, open_model
from copilot_nb.models.openai import OpenAIModel

pytest.importorskip("pydantic_ai", reason="needs the extra 'providers'")
from pydantic_ai import messages as m
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
TOOL = {"type": "function", "function": {"name": "step", "description": "one step", "parameters": SCHEMA}}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "S"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "q"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "step", "arguments": '{"x":"1"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c0", "content": "result"},
    {"role": "user", "content": "steer"},
]


async def test_a_model_object_of_pydantic_ai_calls_the_tool_it_was_given() -> None:
    model = open_model(TestModel(), environ={})  # type: ignore[arg-type]
    reply = await model.reply(Request([{"role": "user", "content": "q"}], [TOOL]), Heard())
    assert (model.name, reply.finish) == ("test:test", "tool_calls")
    assert [(made.name, json.loads(made.arguments)) for made in reply.tool_calls] == [("step", {"x": "a"})]


async def test_history_and_stream_pass_both_ways() -> None:
    seen: list[Any] = []

    async def answer(history: list[m.ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        seen.extend([history, info])
        yield {0: DeltaThinkingPart(content="hm")}
        yield "a"
        yield "b"
        yield {1: DeltaToolCall(name="step", json_args='{"x"', tool_call_id="c1")}
        yield {1: DeltaToolCall(json_args=':"2"}')}

    heard = Heard()
    reply = await open_model(FunctionModel(stream_function=answer), environ={}).reply(
        Request(HISTORY, [TOOL]), heard
    )  # type: ignore[arg-type]
    assert heard.all == [
        ("reasoning", "hm"),
        ("text", "a"),
        ("text", "b"),
        ("c1", "step", '{"x"'),
        ("c1", "step", ':"2"}'),
    ]
    assert (reply.text, reply.reasoning, reply.finish) == ("ab", "hm", "tool_calls")
    assert [(made.id, made.name, made.arguments) for made in reply.tool_calls] == [
        ("c1", "step", '{"x":"2"}')
    ]
    first, second, third = seen[0]
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
    assert first.parts[1].content[0] == "q"
    assert first.parts[1].content[1].data == b"hi"
    assert (second.parts[0].tool_call_id, second.parts[0].args) == ("c0", '{"x":"1"}')
    assert [part.part_kind for part in third.parts] == ["tool-return", "user-prompt"]
    assert (third.parts[0].tool_name, third.parts[0].content) == ("step", "result")
    assert seen[1].function_tools[0].parameters_json_schema == SCHEMA


async def test_without_streaming() -> None:
    def answer(history: list[m.ModelMessage], info: AgentInfo) -> m.ModelResponse:
        return m.ModelResponse(parts=[m.TextPart("hello")])

    model = open_model(FunctionModel(answer), environ={})  # type: ignore[arg-type]
    reply = await model.reply(Request([{"role": "user", "content": "q"}], [], stream=False), Heard())
    assert (reply.text, reply.finish) == ("hello", "stop")


async def test_a_status_error_becomes_ours() -> None:
    def answer(history: list[m.ModelMessage], info: AgentInfo) -> m.ModelResponse:
        raise ModelHTTPError(429, "x", body="slow", headers={"retry-after": "3"})

    model = open_model(FunctionModel(answer), environ={})  # type: ignore[arg-type]
    with pytest.raises(ModelError) as caught:
        await model.reply(Request([{"role": "user", "content": "q"}], [], stream=False), Heard())
    assert (caught.value.status, caught.value.retry_after) == (429, 3.0)


async def test_an_openai_like_provider_runs_on_our_wire() -> None:
    server = ModelServer([{"http_error": {"status": 500}}, {"text": ["a", "b"], "reasoning": ["r"]}])
    try:
        model = open_model("ollama:llama", base_url=server.base_url, api_key="sk-z", environ={})
        assert isinstance(model, OpenAIModel)
        assert model.name == "ollama:llama"
        with pytest.raises(ModelError):
            await model.reply(Request(HISTORY, [TOOL]), Heard())
        reply = await model.reply(Request(HISTORY, [TOOL]), Heard())
        await model.close()
    finally:
        server.close()
    assert (reply.text, reply.reasoning, len(server.requests)) == ("ab", "r", 2)
    assert server.requests[1]["body"]["messages"] == HISTORY


@pytest.mark.parametrize(
    ("spec", "more", "message"),
    [
        ("nope:x", {}, "Unknown model"),
        ("azure:x", {"base_url": "http://127.0.0.1:1"}, "takes no base_url"),  # its own is azure_endpoint
        ("deepseek:x", {}, "DEEPSEEK_API_KEY.*[^.]\\. Always there"),
        ("ollama:x", {}, "OLLAMA_BASE_URL"),
    ],
)
def test_what_cannot_be_opened_says_why(
    spec: str, more: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OLLAMA_BASE_URL", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=message):
        open_model(spec, environ={}, **more)
