"""Items of the fold as the JSON that the front end draws. Long texts are cut; the kernel keeps them."""

from __future__ import annotations

import json
import re
from typing import Any

from copilot_nb.events import JSON, clean
from copilot_nb.fold.items import Item, Mark, Message, Request, Run, Tool, Turn
from copilot_nb.state import SessionState

RESULT_CHARS = 6_000
ARGUMENT_CHARS = 20_000
SAFE_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/svg+xml")


def key_of(item: Item) -> str:
    """The item's key in the front end."""
    if isinstance(item, Message):
        return f"m:{item.id}"
    return f"r{item.n}" if isinstance(item, Run) else item.key


def cut(text: str, limit: int) -> str:
    """The first characters and how many are missing."""
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit:,} more characters"


def run_json(run: Run) -> JSON:
    """A run's header."""
    return {
        "kind": "run",
        "key": f"r{run.n}",
        "n": run.n,
        "t0": run.t0,
        "t1": run.t1,
        "state": run.state,
        "turns": len(run.turns),
        "steered": run.steered,
    }


def message_json(message: Message) -> JSON:
    """A message, wherever it is."""
    return {
        "kind": "message",
        "key": key_of(message),
        "id": message.id,
        "text": cut(message.text, 20_000),
        "lane": message.lane,
        "state": message.state,
        "sent": message.sent_at,
        "landed": message.landed_at,
        "removed": message.removed_at,
        "delivery": message.delivery,
        "run": message.run,
        "turn": message.turn,
        "reason": message.reason,
        "source": message.source,
        "nudge": message.nudge,
        "files": [str(a.get("displayName") or a.get("path") or a.get("type")) for a in message.attachments],
    }


def mark_json(mark: Mark) -> JSON:
    """An error, an abort, a compaction …"""
    return {
        "kind": "mark",
        "key": mark.key,
        "what": mark.kind,
        "t": mark.t,
        "run": mark.run,
        "text": cut(mark.text, 4_000),
        "data": {k: v for k, v in mark.data.items() if _short(v)},
    }


def turn_json(turn: Turn, *, whole: bool = True) -> JSON:
    """A turn; `whole` also with its text, reasoning and the output of its tools."""
    result: JSON = {
        "kind": "turn",
        "key": turn.key,
        "run": turn.run,
        "n": turn.n,
        "turnId": turn.turn_id,
        "t0": turn.t0,
        "first": turn.first_at,
        "textAt": turn.text_at,
        "said": turn.said_at,
        "t1": turn.t1,
        "phase": turn.phase(),
        "in": turn.tokens_in,
        "out": turn.tokens_out,
        "cached": turn.cached,
        "context": turn.context,
        "retries": turn.retries,
        "partial": turn.partial,
        "model": turn.model,
        "event": turn.event_id,
    }
    if whole:
        result["text"] = "".join(turn.text)
        result["think"] = "".join(turn.reasoning)
        result["tools"] = [tool_json(tool) for tool in turn.tools]
    return result


def tool_json(tool: Tool, *, whole: bool = True) -> JSON:
    """A tool call; `whole` also with the output it printed so far."""
    code, lang = code_of(tool.name, tool.arguments)
    result: JSON = {
        "key": tool.key,
        "id": tool.id,
        "name": tool.name,
        "arg": first_line(code),
        "code": cut(code, ARGUMENT_CHARS),
        "lang": lang,
        "t0": tool.t0,
        "t1": tool.t1,
        "state": tool.state,
        "asked": None if tool.reason else tool.asked_at,
        "answered": None if tool.reason else tool.answered_at,
        "answer": tool.answer,
        "feedback": tool.feedback,
        "reason": tool.reason,
        "error": tool.error and cut(tool.error, RESULT_CHARS),
        "sum": summary(tool),
        "run": tool.run,
        "turn": tool.turn,
    }
    if whole:
        result["output"] = cut("".join(tool.output), RESULT_CHARS)
    if tool.t1 is not None:
        text = tool.detail or tool.result
        result["result"] = cut(text, RESULT_CHARS)
        result["cut"] = len(text) > RESULT_CHARS
        result["display"] = [shown for bundle in tool.display if (shown := display_json(bundle))]
    return result


def code_of(name: str, arguments: Any) -> tuple[str, str]:
    """The arguments as one reads them, code or a command if they are that, else JSON; and the language."""
    if isinstance(arguments, dict):
        for key, lang in (("code", "python"), ("command", "sh"), ("fullCommandText", "sh")):
            if isinstance(arguments.get(key), str):
                return arguments[key], lang
        if not arguments:
            return "", "json"
    return json.dumps(clean(arguments), ensure_ascii=False, indent=2), "json"


def first_line(code: str) -> str:
    """A line that says what a call does."""
    lines = [line.strip() for line in code.splitlines() if line.strip() and not line.strip().startswith("#")]
    return (_call(code) if code.startswith("{") else lines[0] if lines else "")[:200]


def _call(code: str) -> str:
    """Arguments as in a call: ``path="clean.py", n=3``."""
    try:
        values = json.loads(code)
    except ValueError:
        return " ".join(code.split())
    return ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items())


def summary(tool: Tool) -> str:
    """A few words on the result: the last line of a short one, the size of a long one."""
    if tool.state in ("failed", "interrupted"):
        return tool.state
    text = tool.result.strip()
    if not text:
        return ""
    diff = diff_counts(tool.detail or "")
    if diff:
        return diff
    return _shape(text) or _lines(text)


def _lines(text: str) -> str:
    lines = text.count("\n") + 1
    return text[:60] if lines == 1 else f"{lines} lines"


def _shape(text: str) -> str:
    """How much JSON there is: rows and columns of a split table, entries of a list."""
    if text[0] not in "{[" or len(text) > 200_000:
        return ""
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    if (
        isinstance(value, dict)
        and isinstance(value.get("columns"), list)
        and isinstance(value.get("data"), list)
    ):
        return f"{len(value['data'])} rows × {len(value['columns'])} columns"  # noqa: RUF001
    lists = (
        [(key, part) for key, part in value.items() if isinstance(part, list)]
        if isinstance(value, dict)
        else []
    )
    if len(lists) == 1:
        return f"{len(lists[0][1])} {lists[0][0]}"
    return f"{len(value)} items" if isinstance(value, list) else f"{len(value)} keys"


def diff_counts(text: str) -> str:
    """How many lines a unified diff adds and takes away; nothing for other texts."""
    if not re.search(r"^@@ .*@@", text, re.M):
        return ""
    added = len(re.findall(r"^\+(?!\+\+ )", text, re.M))
    return f"+{added} −{len(re.findall(r'^-(?!-- )', text, re.M))}"  # noqa: RUF001


def display_json(bundle: JSON) -> JSON | None:
    """What can be shown of a mime bundle without trusting it: an image, else text."""
    for mime in SAFE_IMAGES:
        data = bundle.get(mime)
        if isinstance(data, str):
            return {"mime": mime, "data": data}
    text = bundle.get("text/plain")
    return {"mime": "text/plain", "data": cut(str(text), RESULT_CHARS)} if text else None


def request_json(request: Request) -> JSON:
    """A question to the person."""
    data = request.data
    code, lang = code_of(request.kind, data.get("args", data) if request.kind == "permission" else {})
    return {
        "id": request.id,
        "kind": request.kind,
        "tool": request.tool_id,
        "asked": request.asked_at,
        "name": data.get("toolName") or data.get("kind"),
        "code": cut(code, ARGUMENT_CHARS),
        "arg": first_line(code),
        "lang": lang,
        "why": data.get("intention") or data.get("toolDescription"),
        "what": data.get("kind"),
        "data": {k: v for k, v in clean(data).items() if _short(v)},
    }


def item_json(item: Item) -> JSON:
    """Any item, whole."""
    if isinstance(item, Turn):
        return turn_json(item)
    if isinstance(item, Message):
        return message_json(item)
    return run_json(item) if isinstance(item, Run) else mark_json(item)


def head_json(state: SessionState) -> JSON:
    """The small facts that are sent whole: what goes on, lanes, questions, counts."""
    run, turn = state.run, state.turn
    live = turn if state.busy and run is not None and turn is not None and turn.run == run.n else None
    return {
        "busy": state.busy,
        "run": run.n if run else 0,
        "turn": live.n if live else 0,
        "phase": live.phase() if live else "",
        "since": live.since() if live else run.t0 if run and state.busy else None,
        "tools": [tool.name for tool in live.tools if tool.state == "running"] if live else [],
        "steered": run.steered if run else 0,
        "background": state.background,
        "mode": state.mode,
        "title": state.title,
        "context": state.context_tokens,
        "limit": state.context_limit,
        "tokens": [state.tokens_in, state.tokens_out],
        "steers": [message_json(m) for m in state.steers[:100]],
        "queue": [message_json(m) for m in state.queue[:100]],
        "queued": len(state.lanes["queue"]),
        "flying": [message_json(m) for m in state.in_flight[:20]],
        "removed": [message_json(m) for m in state.removed[-30:]],
        "paused": state.queue_paused,
        "asks": [request_json(r) for r in [*state.permissions.values(), *state.questions.values()]],
        "notices": state.notices[-3:],
        "runtime": state.runtime,
        "prompt": cut(run.prompt, 200) if run else "",
        "counts": {"runs": len(state.runs), "turns": len(state.turns)},
        "started": state.started_at,
        "ended": state.last_at,
    }


def _short(value: Any) -> bool:
    return (
        isinstance(value, int | float | bool)
        or (isinstance(value, str) and len(value) < 4_000)
        or (isinstance(value, list | dict) and len(str(value)) < 8_000)
    )
