"""What each event type means for the records: one function a type, which returns the event's run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from copilot_nb.frames.columns import as_text, turn_number
from copilot_nb.frames.records import Fault, ModelCall, Permission, Span, Tool, Turn
from copilot_nb.frames.wire import number, string, whole

if TYPE_CHECKING:
    from copilot_nb.frames.relate import Relations

Data = Mapping[str, Any]
Handler = Callable[["Relations", int, str, Data, "str | None", int], int]


# --- runs and turns --------------------------------------------------------------------------------------


def user_message(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """A steer joins the run; anything else opens one, unless several were sent for one turn (§15)."""
    interaction, delivery = string(data.get("interactionId")), string(data.get("delivery"))
    turn = -1
    if delivery == "steering" or agent is not None:
        turn = state.find_turn(run, agent, data.get("turnId"))
        if turn >= 0:
            state.turns[turn].steers += 1
    else:
        joins = interaction is not None and run >= 0 and state.runs[run].interaction == interaction
        if not joins or state.runs[run].turns:
            run = state.open_run(row, string(data.get("source")) or "user", interaction, run)
            state.runs[run].delivery = delivery
    index = state.lanes.landed(row, data, run, turn)
    if run >= 0 and state.runs[run].message < 0 and delivery != "steering" and agent is None:
        state.runs[run].message = index
    return run


def turn_start(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """A number that the run has had already begins a run of its own: a background command ended (§3)."""
    turn = data.get("turnId")
    key = (agent, turn if type(turn) is str or type(turn) is int else None)
    if agent is None and (run < 0 or key in state.runs[run].turns):
        interaction = string(data.get("interactionId"))
        run = state.open_run(row, "notification" if run >= 0 else "unknown", interaction, run)
    state.turns.append(Turn(run, turn_number(turn), agent, row, model=string(data.get("model"))))
    index = len(state.turns) - 1
    if run >= 0:
        known = state.runs[run]
        known.turns[key] = known.current[agent] = known.last_turn = index
        known.answered = known.over = False
        if agent is None:
            known.open_turns += 1
    return run


def turn_end(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Close the turn of that number; an end without a start is a row without a duration."""
    number_ = data.get("turnId")
    index = state.find_turn(run, agent, number_)
    if index < 0 or state.turns[index].end >= 0:
        index = state.stray_turn(agent, number_)
    if index < 0:
        state.turns.append(Turn(run, turn_number(number_), agent, -1, row))
        return run
    turn = state.turns[index]
    turn.end = row
    state.spans.append(Span(turn.start, row))
    if turn.run >= 0:
        known = state.runs[turn.run]
        if known.current.get(agent) == index:
            del known.current[agent]
        if agent is None:
            known.open_turns -= 1
            known.end = row
    return turn.run


def assistant_message(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Tells which tool calls and which model call belong to the turn: by id, never by time."""
    turn_id = data.get("turnId")
    index = -1 if turn_id is None else state.find_turn(run, agent, turn_id)
    requests = data.get("toolRequests")
    if requests and type(requests) is list:
        for call in requests:
            if type(call) is dict and type(call.get("toolCallId")) is str:
                state.turn_of_call[call["toolCallId"]] = index
    if index >= 0:
        turn = state.turns[index]
        turn.answer = row
        turn.model = string(data.get("model")) or turn.model
        call_id = data.get("apiCallId")
        known_call = state.call_by_id.get(call_id, -1) if type(call_id) is str else -1
        if known_call >= 0:
            state.calls[known_call].run, state.calls[known_call].turn = run, index
    if run >= 0 and agent is None:
        known = state.runs[run]
        known.answered = not requests
        if data.get("content"):
            known.answer = row
        if not known.open_turns and not requests:
            known.end = row
    return run


def turn_retry(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Another attempt of the same turn (reference §11)."""
    index = state.find_turn(run, agent, data.get("turnId"))
    if index >= 0:
        state.turns[index].retries += 1
    return run


# --- tools and permissions -------------------------------------------------------------------------------


def tool_start(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """The turn whose message asked for the call, else the turn that the event names."""
    call = string(data.get("toolCallId"))
    index = state.turn_of_call.get(call, -1) if call is not None else -1
    if index < 0 or (run >= 0 and state.turns[index].run != run):
        turn = data.get("turnId")
        index = -1 if turn is None else state.find_turn(run, agent, turn)
    if index >= 0:
        run = state.turns[index].run
    tool = Tool(
        call, string(data.get("toolName")), run, index, agent, row, arguments=_json(data.get("arguments"))
    )
    state.tools.append(tool)
    if call is not None:
        state.open_tools.setdefault(call, []).append(len(state.tools) - 1)
    return run


def _json(arguments: Any) -> bytes | None:
    if arguments is None:
        return None
    try:
        return msgspec.json.encode(arguments)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError):
        return as_text(arguments).encode("utf-8", "replace")


def tool_complete(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Close the call; one that the loop refused before its start is a row without a duration (§12)."""
    call, success = string(data.get("toolCallId")), data.get("success")
    index = state.close_tool(call, run)
    if index < 0:
        turn = data.get("turnId")
        turn_index = -1 if turn is None else state.find_turn(run, agent, turn)
        if turn_index < 0 and call is not None:
            turn_index = state.turn_of_call.get(call, -1)
        state.tools.append(Tool(call, string(data.get("toolName")), run, turn_index, agent, -1))
        index = len(state.tools) - 1
    tool = state.tools[index]
    tool.end = row
    state.spans.append(Span(tool.start, row, tool=tool.name))
    if success is True or success is False:
        tool.success = success
    if success is False:
        error = data.get("error")
        code = error.get("code") if type(error) is dict else None
        tool.code = None if code is None else as_text(code)
        state.faults.append(Fault(row, tool.run, tool.turn, "tool", tool.code, tool_call=tool.id))
    return tool.run


def external_tool(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Belongs where its call does."""
    index = state.open_tool(string(data.get("toolCallId")))
    return state.tools[index].run if index >= 0 else run


def permission_requested(
    state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int
) -> int:
    """A question; what it asks about is found by tool call id."""
    request = data.get("permissionRequest")
    request = request if isinstance(request, Mapping) else {}
    call = string(request.get("toolCallId"))
    index = state.open_tool(call)
    name, turn = string(request.get("toolName")), state.find_turn(run, agent)
    if index >= 0:
        tool = state.tools[index]
        run, turn, name, tool.asked = tool.run, tool.turn, name or tool.name, row
    asked = Permission(string(data.get("requestId")), row, run, turn, call, name, string(request.get("kind")))
    state.permissions.append(asked)
    if asked.id is not None:
        state.asking[asked.id] = len(state.permissions) - 1
    return run


def permission_completed(
    state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int
) -> int:
    """The answer to a question, matched by request id."""
    result = data.get("result")
    result = result if isinstance(result, Mapping) else {}
    request = string(data.get("requestId"))
    index = state.asking.pop(request, -1) if request is not None else -1
    if index < 0:
        state.permissions.append(Permission(request, -1, run, -1, string(data.get("toolCallId"))))
        index = len(state.permissions) - 1
    asked = state.permissions[index]
    asked.end, asked.decision = row, string(result.get("kind"))
    asked.feedback = string(result.get("feedback"))
    state.spans.append(Span(asked.start, row, tool=asked.tool))
    tool = state.open_tool(asked.tool_call)
    if tool >= 0 and state.tools[tool].asked >= 0:
        state.tools[tool].allowed = row
    return asked.run


# --- usage: once per model call (claude-code#87303) --------------------------------------------------------


def usage_record(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """As stored."""
    usage = data.get("usage")
    return _use(state, row, usage, agent, run) if isinstance(usage, Mapping) else run


def usage_event(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """As delivered."""
    return _use(state, row, data, agent, run)


def _use(state: Relations, row: int, usage: Data, agent: str | None, run: int) -> int:
    get = usage.get
    api_call, interaction = string(get("apiCallId")), string(get("interactionType"))
    call = ModelCall(
        row,
        run,
        -1 if interaction is not None and "compaction" in interaction else state.find_turn(run, agent),
        agent,
        string(get("model")),
        whole(get("inputTokens")),
        whole(get("outputTokens")),
        whole(get("cacheReadTokens")),
        whole(get("cacheWriteTokens")),
        number(get("cost")),
        number(get("duration")),
        number(get("timeToFirstTokenMs")),
        api_call,
    )
    known = state.call_by_id.get(api_call, -1) if api_call is not None else -1
    if (
        known >= 0
    ):  # told twice, as it happened and for the record, or once per content block: the last one counts
        before = state.calls[known]
        call.row, call.run, call.turn = before.row, before.run, before.turn
        state.calls[known] = call
        return before.run
    state.calls.append(call)
    state.spans.append(Span(row, row, call.duration))
    if api_call is not None:
        state.call_by_id[api_call] = len(state.calls) - 1
    return run


# --- ends, errors, lanes -----------------------------------------------------------------------------------


def session_error(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Ends the run; it comes after the end of the turn that failed (reference §11)."""
    turn = state.runs[run].last_turn if run >= 0 else -1
    fault = Fault(row, run, turn, "session", string(data.get("errorType")), whole(data.get("statusCode")))
    state.faults.append(fault)
    if run >= 0:
        state.runs[run].failed, state.runs[run].end = True, row
        if turn >= 0:
            state.turns[turn].failed = True
    return run


def warning(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Something that a person should know."""
    state.faults.append(Fault(row, run, -1, "warning", string(data.get("warningType"))))
    return run


def call_failure(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """One failed attempt of a model call."""
    fault = Fault(row, run, state.find_turn(run, agent), "model call")
    fault.kind = string(data.get("errorType")) or string(data.get("failureKind"))
    fault.status, fault.message = whole(data.get("statusCode")), string(data.get("errorMessage"))
    state.faults.append(fault)
    return run


def abort(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Ends the run; before the end of its turns (§8), or after it on a bare rejection (§10)."""
    if run >= 0:
        known = state.runs[run]
        known.aborted, known.end = True, row
        for index in known.current.values():
            state.turns[index].aborted = True
    return run


def limit(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """A person's limit ended the run."""
    if run >= 0:
        state.runs[run].limited = True
    return run


def task_complete(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """Autopilot's end: no further model call (reference §9)."""
    if run >= 0:
        state.runs[run].completed = True
    return run


def idle(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """The loop rests."""
    if run >= 0:
        state.runs[run].over = True
    return run


def session(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """A session's start, resume or shutdown: what came before it is over, and it belongs to no run."""
    if run >= 0:
        state.runs[run].over = True
    if kind != "session.shutdown":
        state.starts.append(row)
    return -1


def notification(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """A background command's end starts a run of its own when nothing runs (reference §3)."""
    if run >= 0 and state.runs[run].turns and not state.runs[run].open_turns:
        return state.open_run(row, "notification", state.runs[run].interaction, run)
    return run


def lane_change(state: Relations, row: int, kind: str, data: Data, agent: str | None, run: int) -> int:
    """What waits in the lanes."""
    state.lanes.change(row, run, data)
    return run


HANDLERS: Final[dict[str, Handler]] = {
    "user.message": user_message,
    "assistant.turn_start": turn_start,
    "assistant.turn_end": turn_end,
    "assistant.message": assistant_message,
    "assistant.turn_retry": turn_retry,
    "assistant.usage": usage_event,
    "assistant.idle": idle,
    "session.idle": idle,
    "session.usage_record": usage_record,
    "tool.execution_start": tool_start,
    "tool.execution_complete": tool_complete,
    "external_tool.requested": external_tool,
    "permission.requested": permission_requested,
    "permission.completed": permission_completed,
    "session.error": session_error,
    "session.warning": warning,
    "model.call_failure": call_failure,
    "abort": abort,
    "jupyter.limit": limit,
    "session.task_complete": task_complete,
    "session.start": session,
    "session.resume": session,
    "session.shutdown": session,
    "system.notification": notification,
    "jupyter.queue": lane_change,
}
