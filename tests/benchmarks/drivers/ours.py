"""copilot_nb as a user has it: events, log on disk, tables' columns, panel state, and a subscriber."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness import PARAMETERS, RESULT, SYSTEM, clock, past

import copilot_nb
from copilot_nb.events import EventSource, to_line
from copilot_nb.models.openai import OpenAIModel
from copilot_nb.tools.function import function_tool

PANEL = False


class Context:
    """One open session at a time."""

    def __init__(self, base_url):
        self.base_url = base_url
        self.home = tempfile.TemporaryDirectory()
        self.model = OpenAIModel("n0", base_url=base_url, api_key="x")
        self.model.close = _stay_open  # one connection for all sessions, as every other driver has
        self.session = self.panel = None
        self.called = None

        async def step(x: str) -> str:
            """Do a step."""
            if self.called is not None:
                await self.called()
            return RESULT

        self.tool = function_tool(step, skip_permission=True)
        assert self.tool.parameters["required"] == PARAMETERS["required"]


async def _stay_open():
    """Keep the connection."""


async def open(base_url):
    return Context(base_url)


async def fresh(context, model, history=0):
    await _end(context)
    context.model.model = model
    session_id = f"history-{history}" if history else None
    if history:
        _write_log(Path(context.home.name), session_id, history)
    context.session = copilot_nb.open_session(
        context.model,
        session_id,
        tools=[context.tool],
        home=context.home.name,
        kernel=False,
        ask=False,
        system_prompt=SYSTEM,
    )
    if PANEL:
        from copilot_nb.widgets.panel import Panel

        context.panel = Panel(context.session)


async def run(context, token):
    session = context.session

    def subscriber(event):
        if event.type == "assistant.message_delta":
            token()

    off = session.on(subscriber)
    await session.send("go")
    await session.wait()
    off()
    if session.state.errors:
        raise RuntimeError(session.state.errors[-1]["message"])


async def steer(context, text):
    sent = []

    async def once():
        context.called = None
        await context.session.steer(text)
        sent.append(clock())

    context.called = once
    await run(context, lambda: None)
    return sent[0]


async def _end(context):
    if context.panel is not None:
        context.panel._flush_quietly()
        context.panel.close()
        context.panel = None
    if context.session is not None:
        await context.session.close()


async def close(context):
    await _end(context)
    context.home.cleanup()


def _write_log(home, session_id, turns):
    """The log of a session with that many turns, to be resumed."""
    folder = home / "session-state" / session_id
    folder.mkdir(parents=True, exist_ok=True)
    source, run = EventSource(), {"interactionId": "past"}
    events = [
        source.stored("session.start", {"sessionId": session_id, "version": 1, "producer": "copilot_nb"})
    ]

    def say(type, **data):
        events.append(source.stored(type, data))

    turn = 0
    for message in past(turns):
        where = {"turnId": str(turn), **run}
        if message["role"] == "user":
            say(
                "user.message",
                content="go",
                transformedContent="go",
                messageId="past",
                delivery="idle",
                **where,
            )
        elif message["role"] == "assistant":
            calls = [
                {"toolCallId": call["id"], "name": "step", "arguments": {"x": "go"}, "type": "function"}
                for call in message.get("tool_calls", ())
            ]
            say("assistant.turn_start", **where)
            say(
                "assistant.message",
                messageId=f"m{turn}",
                content=message["content"] or "",
                toolRequests=calls,
                **where,
            )
            if not calls:
                say("assistant.turn_end", turnId=str(turn))
        else:
            call = {"toolCallId": message["tool_call_id"], **where}
            say("tool.execution_start", toolName="step", arguments={"x": "go"}, **call)
            say("tool.execution_complete", success=True, result={"content": message["content"]}, **call)
            say("assistant.turn_end", turnId=str(turn))
            turn += 1
    (folder / "events.jsonl").write_bytes(b"".join(map(to_line, events)))
