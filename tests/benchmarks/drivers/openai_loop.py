"""A loop on the openai SDK as its documentation shows it."""

from __future__ import annotations

import json

import openai
from harness import RESULT, TOOL

from drivers.loop import Context


async def open(base_url):
    return Context(openai.AsyncOpenAI(base_url=base_url, api_key="x"), base_url)


async def fresh(context, model, history=0):
    context.fresh(model, history)


async def run(context, token):
    messages = context.messages
    messages.append({"role": "user", "content": "go"})
    create = context.client.chat.completions.create
    while True:
        text, calls = [], {}
        async for chunk in await create(model=context.model, messages=messages, tools=[TOOL], stream=True):
            if not chunk.choices:
                continue
            delta = chunk.choices[0].delta
            if delta.content:
                token()
                text.append(delta.content)
            for piece in delta.tool_calls or ():
                empty = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece.index, empty)
                if piece.id:
                    call["id"], call["function"]["name"] = piece.id, piece.function.name
                call["function"]["arguments"] += piece.function.arguments or ""
        answer = {"role": "assistant", "content": "".join(text) or None}
        if calls:
            answer["tool_calls"] = list(calls.values())
        messages.append(answer)
        if not calls:
            return
        for call in calls.values():
            json.loads(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": RESULT})


async def close(context):
    await context.client.close()
