"""The row of the event log on disk: one made event appended, against one `os.write` of the same bytes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import table
from table import Row

from copilot_nb.events import JSON, Event, EventSource, to_line
from copilot_nb.store import EventStore

OUTPUT = "line of tool output 0123456789\n" * 64


def turns(source: EventSource, deltas: int = 40) -> Iterator[Event]:
    """The events of ever more turns, as the engine says them: an answer in pieces, one tool call."""
    turn = 0
    yield source.stored(
        "user.message", {"content": "go", "messageId": "m", "delivery": "idle", "interactionId": "i"}
    )
    while True:
        where: JSON = {"turnId": str(turn), "interactionId": "i"}
        call: JSON = {"toolCallId": f"call_{turn}", "toolName": "step"}
        yield source.stored("assistant.turn_start", where)
        yield source.ephemeral("assistant.message_start", {"messageId": f"m{turn}"})
        for piece in range(deltas):
            yield source.ephemeral(
                "assistant.message_delta", {"messageId": f"m{turn}", "deltaContent": f" word{piece}"}
            )
        requests = [
            {"toolCallId": call["toolCallId"], "name": "step", "arguments": {"x": "go"}, "type": "function"}
        ]
        text = "".join(f" word{piece}" for piece in range(deltas))
        message: JSON = {"messageId": f"m{turn}", "content": text, "toolRequests": requests, **where}
        yield source.stored("assistant.message", message)
        yield source.stored("tool.execution_start", {**call, "arguments": {"x": "go"}, "turnId": str(turn)})
        done: JSON = {**call, "success": True, "result": {"content": OUTPUT}, **where}
        yield source.stored("tool.execution_complete", done)
        usage: JSON = {"model": "m", "inputTokens": 10, "outputTokens": 5, "apiCallId": f"m{turn}"}
        yield source.stored("session.usage_record", {"usage": usage})
        yield source.stored("assistant.turn_end", {"turnId": str(turn)})
        turn += 1


def rows(quick: bool) -> Iterable[Row]:
    """Append against `os.write`, in batches taken in turn."""
    ours, raw = [], []
    with tempfile.TemporaryDirectory() as home:
        store = EventStore.create("append", home)
        descriptor = os.open(Path(home) / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        made = turns(EventSource(), 0)
        for _ in range(10 if quick else 40):
            events = [event for event in (next(made) for _ in range(2_000)) if event.stored]
            lines = [to_line(event) for event in events]
            begun = time.process_time()
            for event in events:
                store.append(event)
            between = time.process_time()
            for line in lines:
                os.write(descriptor, line)
            ended = time.process_time()
            ours.append((between - begun) / len(events) * 1e6)
            raw.append((ended - between) / len(lines) * 1e6)
        os.close(descriptor)
        store.close()
    yield table.limit_row("append an event to the log on disk", "os.write", ours, raw, 5.0, unit="µs")
