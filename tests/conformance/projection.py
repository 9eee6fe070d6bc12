"""What is compared: the core of the events, the model requests, and the vocabulary of a case.

The same projection made the recordings in ``cases/``. Prose that the real CLI wrote itself is elided there:
a text that is not in the case's own vocabulary becomes ``<elided>``, with a piece of the vocabulary kept
visible where there is one (``<elided>not allowed here``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

JSON = dict[str, Any]
Text = Callable[[str], str]

# Environment, accounting and the CLI's internal trace: no engine is expected to reproduce them.
NOT_CORE = {
    "session.background_tasks_changed",
    "session.skills_loaded",
    "session.tools_updated",
    "session.mcp_servers_loaded",
    "session.custom_agents_updated",
    "session.extensions_loaded",
    "session.managed_settings_resolved",
    "session.title_changed",
    "session.info",
    "session.indexed_search",
    "session.usage_info",
    "session.usage_record",
    "session.usage_checkpoint",
    "session.shutdown",
    "assistant.usage",
    "assistant.streaming_delta",
    "sandbox.decision",
    "tool.shell_output",
    "tool.execution_partial_result",
    "system.message",
    "agent.interrupted",
    "prompt_cache_break",
}

KEYS = {
    "user.message": ("content", "delivery", "turnId", "source", "agentMode"),
    "assistant.turn_start": ("turnId",),
    "assistant.turn_end": ("turnId",),
    "assistant.turn_retry": ("turnId", "reason"),
    "assistant.message_delta": ("deltaContent",),
    "assistant.reasoning_delta": ("deltaContent",),
    "assistant.reasoning": ("content",),
    "assistant.message": ("content", "turnId", "reasoningText"),
    "assistant.tool_call_delta": ("toolCallId", "inputDelta"),
    "tool.execution_start": ("toolCallId", "toolName", "turnId"),
    "tool.execution_complete": ("toolCallId", "success", "turnId"),
    "external_tool.requested": ("toolCallId", "toolName"),
    "session.idle": ("mode", "aborted"),
    "assistant.idle": ("aborted",),
    "abort": ("reason",),
    "session.error": ("errorType", "statusCode"),
    "session.autopilot_stopped": ("reason",),
    "session.task_complete": ("summary", "success"),
    "session.mode_changed": ("previousMode", "newMode"),
    "permission.completed": ("toolCallId",),
    "session.warning": ("warningType",),
    "session.compaction_start": ("trigger",),
    "session.compaction_complete": ("success", "trigger"),
    "session.resume": ("alreadyInUse", "sessionWasActive"),
    "session.snapshot_rewind": ("eventsRemoved",),
    "model.call_failure": ("statusCode",),
}

# Words that tools and the rig write and that a case file does not spell out.
COMMON_WORDS = {"kaboom", "it failed because X", "X", "SYS"}


def core_events(events: Iterable[JSON], text: Text = str) -> list[list[Any]]:
    """``[[type, {what is compared}], …]`` of raw delivered events; `text` is applied to prose."""
    core = []
    for event in events:
        kind, data = event["type"], event.get("data") or {}
        if kind in NOT_CORE or kind.startswith("jupyter."):
            continue
        if kind.startswith("model.") and kind != "model.call_failure":
            continue
        brief = {key: _value(key, data[key], text) for key in KEYS.get(kind, ()) if key in data}
        if kind == "assistant.message" and data.get("toolRequests"):
            brief["tools"] = [[call.get("toolCallId"), call.get("name")] for call in data["toolRequests"]]
        if kind == "permission.completed":
            brief["result"] = (data.get("result") or {}).get("kind")
        if kind == "permission.requested":
            brief["kind"] = (data.get("permissionRequest") or {}).get("kind")
        if kind == "tool.execution_complete" and "error" in data:
            brief["error_code"] = data["error"].get("code")
        if kind == "tool.execution_complete" and "result" in data:
            brief["result"] = _value("content", (data["result"] or {}).get("content"), text)
        core.append([kind, brief])
    return core


_PROSE = {"content", "summary"}


def _value(key: str, value: Any, text: Text) -> Any:
    if not isinstance(value, str) or key.endswith("Id"):
        return value
    if key in _PROSE or len(value) >= 300:
        return text(value)
    return "<elided>" if key == "reason" and " " in value and text is not str else value


def request_messages(body: JSON, text: Text = str) -> list[list[Any]]:
    """``[[role, content, [tool calls]?, {tool_call_id}?], …]`` of one request body."""
    return [_message(message, text) for message in body.get("messages", [])]


def _message(message: JSON, text: Text) -> list[Any]:
    role, content = message["role"], message.get("content")

    def said(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        value = DATETIME.sub("<datetime>", value)
        prefix = "<datetime>" if value.startswith("<datetime>") else ""
        rest = value[len(prefix) :]
        return prefix + (text(rest) if role in ("user", "tool") else rest)

    if role in ("system", "developer"):
        shown: Any = "<elided>"
    elif isinstance(content, list):
        shown = [{"type": part.get("type")} for part in content]
        for part, short in zip(content, shown, strict=True):
            if "text" in part:
                short["text"] = said(part["text"])
    else:
        shown = said(content)
    row: list[Any] = [role, shown]
    if calls := message.get("tool_calls"):
        row.append([{"id": call["id"], **_named(call["function"])} for call in calls])
    if call_id := message.get("tool_call_id"):
        row.append({"tool_call_id": call_id})
    if message.get("reasoning_content") or message.get("reasoning_text"):
        row.append({"reasoning": True})
    return row


def _named(function: JSON) -> JSON:
    return {"name": function["name"], "args": function["arguments"]}


DATETIME = re.compile(r"<current_datetime>[^<]*</current_datetime>\n*")


# Keys of a case whose values are words of the case's own language, not what anybody says.
_NOT_SAID = {"do", "at", "method", "mode", "event", "gate", "gate_after_chunk", "kind", "finish", "name"}


def vocabulary(spec: JSON) -> set[str]:
    """Every text that the case itself spells out, chunk lists also joined."""
    words: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, str):
            words.add(value)
        elif isinstance(value, list):
            for item in value:
                walk(item)
            if value and all(isinstance(item, str) for item in value):
                words.add("".join(value))
        elif isinstance(value, dict):
            for key, item in value.items():
                if key not in _NOT_SAID or not isinstance(item, str):
                    walk(item)

    walk({key: spec[key] for key in ("config", "permissions", "model_script", "actions") if key in spec})
    return words | COMMON_WORDS | {spec["name"]}


def elider(words: set[str]) -> Text:
    """The function that replaces what the CLI wrote itself by ``<elided>``."""

    def gap(text: str) -> str:
        return "<elided>" if text.strip() and re.search(r"[A-Za-z]{3}", text) else text

    def elide(value: str) -> str:
        if not isinstance(value, str) or value in words or value == "":
            return value
        inside = [word for word in words if len(word) > 3 and word in value]
        if inside:
            word = max(inside, key=len)
            at = value.index(word)
            return gap(value[:at]) + word + gap(value[at + len(word) :])
        if re.fullmatch(r"result \S+", value) or re.fullmatch(r"(line \d{7}\n?)+.*", value, re.S):
            return value if len(value) < 200 else f"<scenario text, {len(value)} chars>"
        return "<elided>"

    return elide
