"""Tool calls, permissions and questions (reference §2, §10)."""

from __future__ import annotations

from typing import Any

from copilot_nb.events import JSON, Event
from copilot_nb.fold.base import Fold, on
from copilot_nb.fold.items import Request, Tool, Turn

QUESTIONS = ("user_input", "elicitation", "exit_plan_mode", "auto_mode_switch", "session_limits_exhausted")


@on("tool.execution_start")
def _tool_start(state: Fold, data: JSON, event: Event) -> None:
    call, at = str(data.get("toolCallId")), state._at(event)
    turn = state.turn
    if turn is None or turn.t1 is not None:
        turn = state._live_turn(event)
    name = str(data.get("toolName", ""))
    tool = Tool(f"c{len(turn.tools)}-{turn.key}", call, name, data.get("arguments"), turn.run, turn.n, at)
    tool.event_id = event.id
    state.tools[call] = tool
    turn.tools.append(tool)
    state.touched = turn


def _touch_tool(state: Fold, call: Any) -> Tool | None:
    tool = state.tools.get(str(call))
    if tool is not None:
        state.touched = turn_of(state, tool)
    return tool


def turn_of(state: Fold, tool: Tool) -> Turn:
    """The turn a call belongs to."""
    return state.runs[tool.run - 1].turns[tool.turn - 1]


@on("tool.execution_partial_result")
def _tool_partial(state: Fold, data: JSON, event: Event) -> None:
    tool = _touch_tool(state, data.get("toolCallId"))
    if tool is not None:
        tool.output.append(str(data.get("partialOutput", "")))


@on("tool.shell_output")
def _shell_output(state: Fold, data: JSON, event: Event) -> None:
    tool = _touch_tool(state, data.get("toolCallId"))
    if tool is not None:
        tool.output.append(str(data.get("text", "")))


@on("jupyter.tool_display")
def _tool_display(state: Fold, data: JSON, event: Event) -> None:
    tool = _touch_tool(state, data.get("toolCallId"))
    if tool is not None:
        tool.display.append(data.get("bundle") or {})


@on("tool.execution_complete")
def _tool_complete(state: Fold, data: JSON, event: Event) -> None:
    at = state._at(event)
    tool = _touch_tool(state, data.get("toolCallId"))
    if tool is None:
        return
    result = data.get("result") or {}
    if not isinstance(result, dict):
        result = {"content": result}
    tool.t1 = at
    tool.result = str(result.get("content") or "")
    tool.detail = result.get("detailedContent")
    error: JSON = data.get("error") or {}
    interrupted = error.get("code") == "interrupted"
    tool.state = "ok" if data.get("success") else "interrupted" if interrupted else "failed"
    tool.error = None if data.get("success") else str(error.get("message") or "failed")


@on("permission.requested")
def _permission_requested(state: Fold, data: JSON, event: Event) -> None:
    at, request = state._at(event), data.get("permissionRequest") or {}
    key = str(data.get("requestId"))
    call = request.get("toolCallId")
    state.permissions[key] = Request(key, "permission", request, at, call)
    tool = _touch_tool(state, call)
    if tool is not None:
        tool.state, tool.asked_at, tool.request = "ask", at, request


@on("permission.completed")
def _permission_completed(state: Fold, data: JSON, event: Event) -> None:
    at = state._at(event)
    asked = state.permissions.pop(str(data.get("requestId")), None)
    tool = _touch_tool(state, data.get("toolCallId") or (asked and asked.tool_id))
    if tool is None:
        return
    result = data.get("result") or {}
    if not isinstance(result, dict):
        result = {"kind": str(result)}
    tool.answered_at, tool.answer = at, result.get("kind")
    tool.feedback, tool.reason = result.get("feedback"), result.get("reason")
    if tool.state == "ask":
        tool.state = "running"


@on(*(f"{kind}.requested" for kind in QUESTIONS))
def _question(state: Fold, data: JSON, event: Event) -> None:
    key, kind = str(data.get("requestId")), event.type.rpartition(".")[0]
    state.questions[key] = Request(key, kind, data, state._at(event), data.get("toolCallId"))


@on(*(f"{kind}.completed" for kind in QUESTIONS))
def _question_answered(state: Fold, data: JSON, event: Event) -> None:
    state.questions.pop(str(data.get("requestId")), None)
