"""Writes small logs for the tests, line by line and in the real CLI's shape."""

from __future__ import annotations

import json
import uuid
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from copilot_nb.frames import read_logs

START = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)


class LogWriter:
    """Builds lines; every event comes one second after the one before it, unless told otherwise."""

    def __init__(self, session: str = "s1") -> None:
        self.session = session
        self.lines: list[dict[str, Any]] = []
        self.parent: str | None = None
        self.at = 0.0

    def add(self, type: str, data: dict[str, Any] | None = None, *, after: float = 1.0, **more: Any) -> str:
        """Add one event; its id. Ephemeral ones do not become a parent."""
        self.at += after
        stamp = (START + timedelta(seconds=self.at)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        event = {
            "type": type,
            "data": data or {},
            "id": str(uuid.uuid4()),
            "timestamp": stamp,
            "parentId": self.parent,
            **more,
        }
        self.lines.append(event)
        if not more.get("ephemeral"):
            self.parent = event["id"]
        return event["id"]

    def start(self) -> LogWriter:
        """The first line."""
        self.add(
            "session.start",
            {
                "sessionId": self.session,
                "version": 1,
                "producer": "test",
                "copilotVersion": "0",
                "startTime": "x",
            },
        )
        return self

    def user(self, text: str, delivery: str = "idle", turn: str = "0", run: str = "i1", **more: Any) -> str:
        """A message that landed; its message id."""
        message = more.pop("messageId", None) or f"m-{uuid.uuid4()}"
        data = {
            "content": text,
            "messageId": message,
            "delivery": delivery,
            "turnId": turn,
            "interactionId": run,
        }
        self.add("user.message", data | more)
        return message

    def turn(
        self, turn: str = "0", run: str = "i1", text: str = "ok", calls: tuple[str, ...] = (), **env: Any
    ) -> None:
        """A whole turn: start, usage, message, tools, end."""
        self.add("assistant.turn_start", {"turnId": turn, "interactionId": run}, **env)
        api = f"api-{uuid.uuid4()}"
        self.add("session.usage_record", {"usage": usage(api)}, **env)
        requests = [{"toolCallId": call, "name": "echo", "arguments": {}} for call in calls]
        message = {
            "messageId": f"a-{uuid.uuid4()}",
            "content": text,
            "toolRequests": requests,
            "turnId": turn,
        }
        self.add("assistant.message", message | {"interactionId": run, "model": "m", "apiCallId": api}, **env)
        for call in calls:
            data = {"toolCallId": call, "toolName": "echo", "arguments": {"text": call}, "turnId": turn}
            self.add("tool.execution_start", data, **env)
            done = {"toolCallId": call, "success": True, "result": {"content": f"did {call}"}, "turnId": turn}
            self.add("tool.execution_complete", done | {"interactionId": run}, **env)
        self.add("assistant.turn_end", {"turnId": turn}, **env)

    def text(self) -> str:
        """The file's text."""
        return "".join(json.dumps(line) + "\n" for line in self.lines)

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text())
        return path


def usage(api: str | None, tokens_in: int = 100, tokens_out: int = 10, **more: Any) -> dict[str, Any]:
    """The usage of one model call."""
    call = {"model": "m", "inputTokens": tokens_in, "outputTokens": tokens_out, "duration": 250, "cost": 1.0}
    return call | ({} if api is None else {"apiCallId": api}) | more


def plain(text: str = "hello", type: str = "user.message") -> bytes:
    """One good line."""
    event = {
        "type": type,
        "data": {"content": text},
        "id": str(uuid.uuid4()),
        "timestamp": "2026-11-30T10:00:00Z",
        "parentId": None,
    }
    return json.dumps(event).encode() + b"\n"


def comparable(frame: pd.DataFrame) -> list[tuple]:
    """What must be equal on all engines."""
    columns = ["time", "type", "turn", "tool", "input_tokens", "ephemeral", "id", "text"]
    rows = frame[columns].astype(object)
    return sorted(tuple("NA" if pd.isna(value) else str(value) for value in row) for row in rows.to_numpy())


def fleet_rows(path: Path, engine: str) -> tuple[list[tuple], tuple[int, int]]:
    """The events of a file on an engine, and how many lines it says were bad and mended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fleet = read_logs(path, engine=engine)
        frame = fleet.events()
        if engine == "dask":
            frame = frame.compute(scheduler="sync")
        files = fleet.files()
    return comparable(frame), (int(files["bad"].sum()), int(files["mended"].sum()))
