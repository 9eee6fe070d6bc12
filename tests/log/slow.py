"""The tables' numbers once more, slowly and by other means: one loop over parsed lines, no shared code.

Good for logs of one writer; it follows the order of the lines.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any


def facts(path: Path) -> dict[str, Any]:
    """Counts, sums and durations of a log."""
    types: Counter[str] = Counter()
    tokens_in = tokens_out = 0
    calls: set[str] = set()
    runs: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    open_turns: dict[Any, dict[str, Any]] = {}
    open_tools: dict[str, list[float]] = defaultdict(list)
    tool_time: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    names: dict[str, str] = {}
    failed = 0
    messages: Counter[str] = Counter()
    text = 0
    for line in path.read_text().split("\n")[:-1]:
        event = json.loads(line)
        kind, data, agent = event["type"], event["data"], event.get("agentId")
        at = datetime.fromisoformat(event["timestamp"]).timestamp()
        types[kind] += 1
        if kind == "user.message":
            messages[data["delivery"]] += 1
            text += len(data["content"])
            if data["delivery"] != "steering":
                runs.append({"turns": 0, "tools": 0, "in": 0, "start": at, "end": at, "failed": 0})
        elif kind == "assistant.turn_start":
            turn = {"start": at, "end": None, "tools": 0, "in": 0, "run": len(runs) - 1}
            turns.append(turn)
            open_turns[agent, data["turnId"]] = turn
            runs[-1]["turns"] += 1
        elif kind == "assistant.turn_end":
            open_turns.pop((agent, data["turnId"]))["end"] = at
            runs[-1]["end"] = at
        elif kind == "assistant.message":
            text += len(data["content"])
        elif kind == "session.usage_record":
            usage = data["usage"]
            assert usage["apiCallId"] not in calls
            calls.add(usage["apiCallId"])
            tokens_in += usage["inputTokens"]
            tokens_out += usage["outputTokens"]
            runs[-1]["in"] += usage["inputTokens"]
            turns[-1]["in"] += usage["inputTokens"]
        elif kind == "tool.execution_start":
            tools[data["toolName"]] += 1
            names[data["toolCallId"]] = data["toolName"]
            open_tools[data["toolCallId"]].append(at)
            runs[-1]["tools"] += 1
            turns[-1]["tools"] += 1
        elif kind == "tool.execution_complete":
            tool_time[names[data["toolCallId"]]] += at - open_tools[data["toolCallId"]].pop(0)
            text += len(data["result"]["content"] if data["success"] else data["error"]["message"])
            if not data["success"]:
                failed += 1
                runs[-1]["failed"] += 1
    return {
        "events": sum(types.values()),
        "types": dict(types),
        "input": tokens_in,
        "output": tokens_out,
        "runs": runs,
        "turns": turns,
        "tools": dict(tools),
        "tool_time": dict(tool_time),
        "failed": failed,
        "messages": dict(messages),
        "text": text,
    }
