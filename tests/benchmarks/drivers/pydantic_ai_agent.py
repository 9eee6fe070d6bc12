"""pydantic-ai's Agent, its events consumed as they come."""

from __future__ import annotations

from types import SimpleNamespace

from harness import RESULT, SYSTEM, clock
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


async def open(base_url):
    context = SimpleNamespace(model=None, called=None)
    context.provider = OpenAIProvider(base_url=base_url, api_key="x")
    context.agent = Agent(instructions=SYSTEM)

    @context.agent.tool
    async def step(run: RunContext, x: str) -> str:
        """Do a step."""
        if context.called is not None:
            context.called(run)
        return RESULT

    return context


async def fresh(context, model, history=0):
    context.model = OpenAIChatModel(model, provider=context.provider)


async def run(context, token):
    unlimited = UsageLimits(request_limit=None)
    async with context.agent.run_stream_events("go", model=context.model, usage_limits=unlimited) as events:
        async for event in events:
            if (isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta)) or (
                isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content
            ):
                token()


async def steer(context, text):
    sent = []

    def once(run):
        context.called = None
        run.enqueue(text, priority="asap")
        sent.append(clock())

    context.called = once
    await run(context, lambda: None)
    return sent[0]


async def close(context):
    pass
