"""The limit: a loop on httpx with httpx-sse and json, without events, log, permissions or steering."""

from __future__ import annotations

import json

import httpx
from httpx_sse import aconnect_sse

from drivers.loop import Context, turn_by_turn


async def open(base_url):
    return Context(httpx.AsyncClient(), base_url + "/chat/completions")


async def fresh(context, model, history=0):
    context.fresh(model, history)


async def run(context, token):
    async def stream(request):
        headers = {"authorization": "Bearer x"}
        async with aconnect_sse(context.client, "POST", context.url, json=request, headers=headers) as source:
            async for event in source.aiter_sse():
                if event.data != "[DONE]":
                    yield json.loads(event.data)

    await turn_by_turn(context, stream, token)


async def close(context):
    await context.client.aclose()
