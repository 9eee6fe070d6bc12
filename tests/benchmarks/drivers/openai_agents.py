"""The OpenAI Agents SDK on chat completions, its raw events consumed as they come."""

from __future__ import annotations

from types import SimpleNamespace

import agents
from harness import RESULT, SYSTEM
from openai import AsyncOpenAI


@agents.function_tool
async def step(x: str) -> str:
    """Do a step."""
    return RESULT


async def open(base_url):
    agents.set_tracing_disabled(True)
    return SimpleNamespace(client=AsyncOpenAI(base_url=base_url, api_key="x"), agent=None)


async def fresh(context, model, history=0):
    chat = agents.OpenAIChatCompletionsModel(model=model, openai_client=context.client)
    context.agent = agents.Agent(name="bench", instructions=SYSTEM, tools=[step], model=chat)


async def run(context, token):
    result = agents.Runner.run_streamed(context.agent, "go", max_turns=2000)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            token()


async def close(context):
    await context.client.close()
