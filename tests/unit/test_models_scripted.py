"""`open_model`'s names, and the scripted model that tests and documentation stand on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tool_parts import Heard

from copilot_nb.errors import ModelError, UsageError
from copilot_nb.models import Request, open_model
from copilot_nb.models.demo import DemoModel
from copilot_nb.models.scripted import ScriptedModel

ASK = Request([{"role": "user", "content": "q"}], [])


def test_a_key_in_the_environment_selects_no_provider() -> None:
    env = {"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "y"}
    assert open_model(None, environ=env).name == "demo"
    chosen = open_model(None, environ={**env, "COPILOT_NB_MODEL": "openai:m"})
    assert chosen.name == "openai:m"
    assert open_model("demo", environ={"COPILOT_NB_MODEL": "openai:m"}).kind == "demo"


def test_the_demo_says_what_it_is_and_takes_its_pace_from_the_environment() -> None:
    model = open_model("demo", environ={"COPILOT_NB_DEMO_PACE": "0"})
    assert isinstance(model, DemoModel)
    assert (model.label, model.pace) == ("demo model, no LLM", 0)
    for bad in ("fast", "-1", "1e9"):
        with pytest.raises(UsageError, match="COPILOT_NB_DEMO_PACE"):
            open_model("demo", environ={"COPILOT_NB_DEMO_PACE": bad})


@pytest.mark.parametrize("spec", ["gpt", "demo:x y:", ":x", "nothing", 7])
def test_an_unknown_model_names_those_that_exist(spec: object) -> None:
    with pytest.raises(UsageError, match="demo"):
        open_model(spec, environ={})  # type: ignore[arg-type]


def test_only_chat_completions() -> None:
    assert open_model("demo", wire_api="completions", environ={}).name == "demo"
    with pytest.raises(UsageError, match="responses"):
        open_model("demo", wire_api="responses", environ={})


def test_a_model_object_is_taken_as_it_is() -> None:
    model = ScriptedModel(["a"])
    assert open_model(model, environ={}) is model


async def test_replies_come_in_order_and_then_it_is_exhausted() -> None:
    model = ScriptedModel(
        ["one", {"text": ["t", "wo"], "tool_calls": [{"id": "c", "name": "f", "args": {"x": 1}}]}]
    )
    heard = Heard()
    assert (await model.reply(ASK, heard)).text == "one"
    second = await model.reply(ASK, heard)
    assert (second.text, second.finish, second.tool_calls[0].arguments) == ("two", "tool_calls", '{"x": 1}')
    assert (await model.reply(ASK, heard)).text == "(exhausted)"
    assert heard.all[:3] == [("text", "one"), ("text", "t"), ("text", "wo")]


async def test_requests_are_kept_as_they_were() -> None:
    model = ScriptedModel(["a"])
    messages = [{"role": "user", "content": "q"}]
    await model.reply(Request(messages, []), Heard())
    messages.append({"role": "assistant", "content": "a"})
    assert model.requests[0]["messages"] == [{"role": "user", "content": "q"}]


async def test_gates_hold_a_reply() -> None:
    model = ScriptedModel([{"text": ["a", "b"], "gate": "start", "gate_after_chunk": {"1": "middle"}}])
    heard = Heard()
    task = asyncio.create_task(model.reply(ASK, heard))
    assert (await model.wait_request(1))["messages"] == ASK.messages
    assert heard.all == []
    model.gate("start").set()
    await heard.any.wait()
    await asyncio.sleep(0.01)
    assert heard.all == [("text", "a")]
    model.gate("middle").set()
    assert (await task).text == "ab"


async def test_errors_and_breaks() -> None:
    model = ScriptedModel(
        [
            {"http_error": {"status": 429, "message": "slow", "headers": {"retry-after": "1"}}},
            {"text": ["a", "b"], "disconnect_after_chunks": 1},
            {"disconnect_before_headers": True},
            {"no_choices": True},
            {"text": ["cut"], "finish": "length", "usage": None},
        ]
    )
    with pytest.raises(ModelError, match="slow") as caught:
        await model.reply(ASK, Heard())
    assert (caught.value.status, caught.value.retry_after) == (429, 1.0)
    heard = Heard()
    with pytest.raises(ModelError):
        await model.reply(ASK, heard)
    assert heard.all == [("text", "a")]
    with pytest.raises(ModelError):
        await model.reply(ASK, Heard())
    assert (await model.reply(ASK, Heard())).finish is None
    last = await model.reply(ASK, Heard())
    assert (last.finish, last.usage) == ("length", None)


async def test_replies_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.json"
    path.write_text(json.dumps(["hello"]))
    model = open_model(f"scripted:{path}", environ={})
    assert model.kind == "scripted"
    assert (await model.reply(ASK, Heard())).text == "hello"
    path.write_text('{"a": 1}')
    with pytest.raises(UsageError, match="list"):
        open_model(f"scripted:{path}", environ={})
    with pytest.raises(UsageError, match="Cannot read"):
        open_model(f"scripted:{path}.gone", environ={})
