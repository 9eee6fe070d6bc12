"""``serve-demo``: the demo model behind the OpenAI protocol, over a real socket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from typing import Any

import pytest
from tool_parts import CLOCK, Heard, run

from copilot_nb.errors import ModelError
from copilot_nb.models import Reply, Request, Sink
from copilot_nb.models.demo import DemoModel
from copilot_nb.models.openai import OpenAIModel
from copilot_nb.models.serve import ChatServer
from copilot_nb.tools import kernel_tools


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_gets_the_same_reply_as_in_the_kernel(stream: bool) -> None:
    request = Request([{"role": "user", "content": "hello"}], [], stream)
    async with ChatServer(DemoModel(0)) as server:
        model = OpenAIModel("demo", base_url=server.base_url)
        heard = Heard()
        over_http = await model.reply(request, heard)
        await model.close()
    direct = await DemoModel(0).reply(request, Heard())
    assert (over_http.text, over_http.finish, over_http.tool_calls) == (direct.text, direct.finish, [])
    assert over_http.usage == direct.usage
    assert "".join(piece for _, piece in heard.all) == direct.text


async def test_the_whole_analysis_over_http() -> None:
    pandas = pytest.importorskip("pandas")
    sales = pandas.DataFrame({"region": ["N", "S", "N", "S"], "price": [1.0, 2.0, 3.0, 6.0]})
    async with ChatServer(DemoModel(0)) as server:
        model = OpenAIModel("demo", base_url=server.base_url)
        messages = [{"role": "user", "content": f"{CLOCK}Analyse the sales"}]
        messages = await run(model, kernel_tools(namespace={"sales": sales}), messages)
        await model.close()
    assert "**S** is highest (4), N lowest (2)" in messages[-1]["content"]


async def test_a_failing_model_and_wrong_requests_are_errors_of_the_protocol() -> None:
    class Broken(DemoModel):
        async def reply(self, request: Request, sink: Sink) -> Reply:
            if request.messages:
                sink.text("half")
            raise ModelError("out of order")

    async with ChatServer(Broken(0)) as server:
        model = OpenAIModel("demo", base_url=server.base_url)
        for messages in ([], [{"role": "user", "content": "q"}]):
            with pytest.raises(ModelError, match="out of order"):
                await model.reply(Request(messages, []), Heard())
        bad = OpenAIModel("demo", base_url=server.base_url + "/other")
        with pytest.raises(ModelError) as caught:
            await bad.reply(Request([], []), Heard())
        assert caught.value.status == 404
        await model.close()
        await bad.close()


def test_the_command_serves_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "copilot_nb", "serve-demo", "--port", "0", "--pace", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONWARNINGS": ""}
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert "demo model, no LLM" in line
        url = line.split()[-1]
        with urllib.request.urlopen(f"{url}/models", timeout=60) as answer:
            models: Any = json.load(answer)
        body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": "hi"}]}).encode()
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}/chat/completions", body), timeout=60
        ) as answer:
            reply: Any = json.load(answer)
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    assert models["data"][0]["id"] == "demo"
    assert "no LLM" in reply["choices"][0]["message"]["content"]
