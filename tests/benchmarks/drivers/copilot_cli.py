"""The real Copilot CLI through its SDK; `COPILOT_CLI_PATH` names the executable."""

from __future__ import annotations

import asyncio
import os
import tempfile
from types import SimpleNamespace

os.environ["COPILOT_HOME"] = tempfile.mkdtemp()  # before the SDK is imported

from copilot import CopilotClient
from copilot.session import PermissionHandler
from copilot.tools import define_tool
from harness import RESULT, clock
from pydantic import BaseModel

TREE = True


class Arguments(BaseModel):
    """Of `step`."""

    x: str


async def open(base_url):
    context = SimpleNamespace(base_url=base_url, session=None, called=None, folder=tempfile.mkdtemp())

    async def step(arguments, invocation):
        if context.called is not None:
            await context.called()
        return RESULT

    context.tool = define_tool(
        "step", description="Do a step.", handler=step, params_type=Arguments, skip_permission=True
    )
    context.client = CopilotClient()
    await context.client.start()
    return context


async def fresh(context, model, history=0):
    if context.session is not None:  # the CLI gets slower with every session that stays open
        await context.session.disconnect()
    context.session = await context.client.create_session(
        on_permission_request=PermissionHandler.approve_all,
        model="n0",
        provider={"type": "openai", "base_url": context.base_url, "wire_api": "completions", "api_key": "x"},
        working_directory=context.folder,
        streaming=True,
        tools=[context.tool],
    )
    await run(context, lambda: None)  # a session's first message takes five times as long
    await context.session.set_model(model)


async def run(context, token):
    idle = asyncio.Event()
    errors = []

    def on(event):
        kind = event.type.value
        if kind == "assistant.message_delta":
            token()
        elif kind == "session.error":
            errors.append(str(event.data))
        if kind in ("session.error", "session.idle"):
            idle.set()

    off = context.session.on(on)
    await context.session.send("go")
    await asyncio.wait_for(idle.wait(), 600)
    off()
    if errors:
        raise RuntimeError(errors[0])


async def steer(context, text):
    sent = []

    async def once():
        context.called = None
        await context.session.send(text, mode="immediate")
        sent.append(clock())

    context.called = once
    await run(context, lambda: None)
    return sent[0]


async def close(context):
    await context.client.stop()
