"""LangChain's create_agent (LangGraph), its messages streamed."""

from __future__ import annotations

from types import SimpleNamespace

from harness import RESULT, SYSTEM
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
async def step(x: str) -> str:
    """Do a step."""
    return RESULT


async def open(base_url):
    return SimpleNamespace(base_url=base_url, agents={}, agent=None)


async def fresh(context, model, history=0):
    if model not in context.agents:
        chat = ChatOpenAI(model=model, base_url=context.base_url, api_key="x", streaming=True)
        context.agents[model] = create_agent(chat, [step], system_prompt=SYSTEM)
    context.agent = context.agents[model]


async def run(context, token):
    messages = {"messages": [{"role": "user", "content": "go"}]}
    stream = context.agent.astream(messages, {"recursion_limit": 5000}, stream_mode="messages")
    async for message, _ in stream:
        if isinstance(message, AIMessageChunk) and message.content:
            token()


async def close(context):
    pass
