"""Writes a long log with the shapes and sizes of the real CLI's: ``make_log.py EVENTS FILE``.

The same arguments give the same file. Text and tool results have a heavy tail (median about 600 bytes).
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec

_WORDS = """def return import numpy as np pandas frame column error traceback value index loop class self data
plot axis mean sum print file path json config test assert ok warning line module"""
WORDS = _WORDS.split()
TOOLS = ("bash", "view", "edit", "grep", "glob", "run_cell", "read_bash")


class Maker:
    """Makes one session's events, run after run."""

    def __init__(self, seed: int = 7) -> None:
        self.random = Random(seed)
        self.time = datetime(2026, 11, 30, 15, 13, 9, 691000, tzinfo=UTC)
        self.parent: str | None = None
        self.lines: list[bytes] = []
        self.pool = [" ".join(self.random.choices(WORDS, k=40_000)) for _ in range(3)]

    def id(self) -> str:
        h = f"{self.random.getrandbits(128):032x}"
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

    def text(self, size: int) -> str:
        start = self.random.randrange(0, 150_000)
        return self.random.choice(self.pool)[start : start + size]

    def emit(self, type: str, data: dict[str, Any]) -> None:
        self.time += timedelta(milliseconds=self.random.randrange(1, 400))
        stamp = self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"type": type, "data": data, "id": self.id(), "timestamp": stamp, "parentId": self.parent}
        self.parent = event["id"]
        self.lines.append(msgspec.json.encode(event) + b"\n")

    def start(self) -> None:
        self.emit(
            "session.start",
            {
                "sessionId": self.id(),
                "version": 1,
                "producer": "copilot-agent",
                "copilotVersion": "1.0.102",
                "startTime": "2026-11-30T15:13:09.664Z",
                "selectedModel": "m",
                "contextTier": None,
                "context": {"cwd": "/home/user/project"},
                "remoteSteerable": False,
                "alreadyInUse": False,
            },
        )

    def message(self, delivery: str, interaction: str, turn: str) -> str:
        message, content = self.id(), self.text(self.random.randrange(20, 400))
        data = {"content": content, "messageId": message, "delivery": delivery, "interactionId": interaction}
        if delivery != "steering":
            stamp = "<current_datetime>2026-11-30T15:13:12.257+00:00</current_datetime>"
            data |= {"transformedContent": f"{stamp}\n\n{content}", "supportedNativeDocumentMimeTypes": []}
            data["parentAgentTaskId"] = self.id()
        self.emit("user.message", data | {"turnId": turn})
        return message

    def usage(self) -> str:
        r, call = self.random, self.id()
        usage = {
            "model": "gpt-5.4",
            "modelDisplayName": "gpt-5.4",
            "inputTokens": r.randrange(5000, 90000),
            "outputTokens": r.randrange(5, 3000),
            "cacheReadTokens": r.randrange(0, 80000),
            "cacheWriteTokens": 0,
            "cost": 0.0,
            "duration": r.randrange(300, 30000),
            "timeToFirstTokenMs": 309.702929,
            "outputTtftMs": 309.7,
            "interTokenLatencyMs": 0.85,
            "initiator": "user",
            "interactionType": "conversation-agent",
            "isByok": True,
            "byokKind": "local_user",
            "modelProvider": "other",
            "providerType": "openai",
            "isAuto": False,
            "maxPromptTokens": 128000,
            "transport": "http",
            "requestBodyBytes": 42944,
            "requestBodyWireBytes": 42944,
            "requestBodyEncoding": "identity",
            "apiCallId": call,
            "rte": False,
            "apiEndpoint": "/chat/completions",
            "accounting": {"sourceSessionId": self.id(), "usageId": "x", "sequence": len(self.lines)},
        }
        self.emit("session.usage_record", {"usage": usage})
        return call

    def run(self) -> None:
        r, interaction = self.random, self.id()
        first = self.message(r.choice(["idle", "queued"]), interaction, "0")
        turns = r.randrange(1, 12)
        for number in range(turns):
            turn = str(number)
            self.emit("assistant.turn_start", {"turnId": turn, "interactionId": interaction})
            if r.random() < 0.1:
                self.message("steering", interaction, turn)
            count = r.choice([0, 1, 1, 1, 2, 3]) if number < turns - 1 else 0
            requests = [
                {
                    "toolCallId": f"call_{self.id()}",
                    "name": r.choice(TOOLS),
                    "arguments": {"command": self.text(r.randrange(20, 300)), "description": self.text(30)},
                    "type": "function",
                    "intentionSummary": self.text(30),
                }
                for _ in range(count)
            ]
            call = self.usage()
            self.emit(
                "assistant.message",
                {
                    "messageId": self.id(),
                    "originatingMessageId": first,
                    "model": "gpt-5.4",
                    "content": self.text(r.randrange(10, 1500)),
                    "toolRequests": requests,
                    "interactionId": interaction,
                    "turnId": turn,
                    "rte": False,
                    "apiCallId": call,
                },
            )
            for q in requests:
                data = {"toolCallId": q["toolCallId"], "toolName": q["name"], "arguments": q["arguments"]}
                self.emit("tool.execution_start", data | {"turnId": turn})
            for q in r.sample(requests, len(requests)):
                good = r.random() < 0.95
                text = self.text(min(40_000, int(r.lognormvariate(6.4, 1.35))))
                result = (
                    {"result": {"content": text}}
                    if good
                    else {"error": {"message": text[:80], "code": "failure"}}
                )
                self.emit(
                    "tool.execution_complete",
                    {
                        "toolCallId": q["toolCallId"],
                        "success": good,
                        **result,
                        "toolTelemetry": {"properties": {"a": "b"}, "metrics": {"ms": r.randrange(1, 5000)}},
                        "turnId": turn,
                        "interactionId": interaction,
                    },
                )
            self.emit("assistant.turn_end", {"turnId": turn})


def make_log(events: int, path: Path, seed: int = 7) -> Path:
    """Write a log of at least that many events."""
    maker, count = Maker(seed), 0
    maker.start()
    with path.open("wb", buffering=1 << 20) as file:
        while count + len(maker.lines) < events:
            maker.run()
            if len(maker.lines) > 10_000:
                count += len(maker.lines)
                file.writelines(maker.lines)
                maker.lines.clear()
        file.writelines(maker.lines)
    return path


if __name__ == "__main__":
    make_log(int(sys.argv[1]), Path(sys.argv[2]))
