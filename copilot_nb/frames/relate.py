"""The fold over a log: which run and turn an event belongs to, and which start and end belong together.

An event's run comes from its ``interactionId``, else from its tool call or request, else from its parent
event: never from a time window (cli-continues PR#47). So the lines of two writers that share a file
(reference §13) stay apart, as long as their parents do.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from copilot_nb.frames import wire
from copilot_nb.frames.columns import NA, Codes
from copilot_nb.frames.lanes import LaneBook
from copilot_nb.frames.records import Fault, Message, ModelCall, Permission, Run, Tool, Turn
from copilot_nb.frames.wire import Data, Line, Result, Usage, as_text, text_of

Whole = Callable[[], Mapping[str, Any]]
_REMEMBERED: Final = 65_536  # parents that are looked up; older ones count as unknown


class Relations:
    """Fold events with `feed`; the records and the per-event columns are its results."""

    def __init__(self) -> None:
        self.rows = 0
        self.runs: list[Run] = []
        self.turns: list[Turn] = []
        self.tools: list[Tool] = []
        self.permissions: list[Permission] = []
        self.calls: list[ModelCall] = []
        self.faults: list[Fault] = []
        self.lanes = LaneBook()
        self.started: list[tuple[int, dict[str, Any]]] = []  # session.start and session.resume
        self.ephemeral_seen = False
        self.run_of = array("i")
        self.turn_of = array("i")
        self.tool_of = array("i")
        self.input = array("q")
        self.output = array("q")
        self.tool_names = Codes()
        self._new_texts: list[str | None] = []
        self._run_by_interaction: dict[str, int] = {}
        self._recent: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._last_id: str | None = None
        self._last_run = -1
        self._turn_of_call: dict[str, int] = {}
        self._open_tools: dict[str, list[int]] = {}
        self._asking: dict[str, int] = {}
        self._call_by_id: dict[str, int] = {}

    def feed(self, lines: Iterable[Line], whole: Callable[[int], Mapping[str, Any]]) -> list[str | None]:
        """Fold more events; ``whole(i)`` is the full data of the i-th of them. Returns their texts."""
        texts: list[str | None] = []
        self._new_texts = texts
        runs, turns, tools, ins, outs = self.run_of, self.turn_of, self.tool_of, self.input, self.output
        names, find, parent_run, by_interaction = self.tool_names, _HANDLERS.get, self._parent_run, (
            self._run_by_interaction
        )
        first = row = self.rows
        for line in lines:
            data = line.data
            parent = line.parentId
            run = self._last_run if parent == self._last_id else parent_run(parent)
            interaction = data.interactionId
            if interaction is not None:
                run = by_interaction.get(interaction, run)
            turn = data.turnId
            turns.append(-1 if turn is None else turn_number(turn))
            name = data.toolName
            tools.append(-1 if name is None else names[name])
            ins.append(NA)
            outs.append(NA)
            texts.append(None)
            handler = find(line.type)
            if handler is not None:
                run = handler(self, row, line, run, texts)
            else:
                rare = _RARE.get(line.type)
                texts[-1] = text_of(data)
                if rare is not None:
                    run = rare(self, row, line, run, whole(row - first))
            runs.append(run)
            if line.ephemeral:
                self.ephemeral_seen = True
            elif line.id is not None:
                self._last_id, self._last_run = line.id, run
                self._recent[line.id] = run
            row += 1
        if len(self._recent) > _REMEMBERED:
            self._older, self._recent = self._recent, {}
        self.rows = row
        return texts

    def _parent_run(self, parent: str | None) -> int:
        if parent is None:
            return self._last_run
        run = self._recent.get(parent)
        return run if run is not None else self._older.get(parent, self._last_run)

    # --- runs and turns ----------------------------------------------------------------------------

    def _open_run(self, row: int, source: str, interaction: str | None, before: int) -> int:
        if before >= 0:
            self.runs[before].over = True
        self.runs.append(Run(row, interaction, source))
        run = len(self.runs) - 1
        if interaction is not None:
            self._run_by_interaction[interaction] = run
        return run

    def _find_turn(self, run: int, agent: str | None, turn: int | str | None) -> int:
        """The turn of that number in the run, else the agent's current one when no number is said."""
        if run < 0:
            return -1
        known = self.runs[run]
        return known.current.get(agent, -1) if turn is None else known.turns.get((agent, turn), -1)

    def _user_message(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        data = line.data
        texts[-1] = None if data.content is None else as_text(data.content)
        steering = data.delivery == "steering" or line.agentId is not None
        if not steering:
            joins = (
                run >= 0
                and data.interactionId is not None
                and self.runs[run].interaction == data.interactionId
                and not self.runs[run].turns
            )
            if not joins:
                run = self._open_run(row, data.source or "user", data.interactionId, run)
                self.runs[run].delivery = data.delivery
        turn = self._find_turn(run, line.agentId, data.turnId) if steering else -1
        if steering and turn >= 0:
            self.turns[turn].steers += 1
        index = self.lanes.landed(row, data, run, turn)
        if not steering and self.runs[run].message < 0:
            self.runs[run].message = index
        return run

    def _turn_start(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        data, agent = line.data, line.agentId
        key = (agent, data.turnId)
        if agent is None and (run < 0 or key in self.runs[run].turns):
            run = self._open_run(row, "notification" if run >= 0 else "unknown", data.interactionId, run)
        self.turns.append(Turn(run, number_of(data.turnId), agent, row, model=data.model))
        index = len(self.turns) - 1
        if run >= 0:
            known = self.runs[run]
            known.turns[key] = known.current[agent] = known.last_turn = index
            known.answered = known.over = False
            if agent is None:
                known.open_turns += 1
        return run

    def _turn_end(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        index = self._find_turn(run, line.agentId, line.data.turnId)
        if index < 0 or self.turns[index].end >= 0:
            index = self._stray_open_turn(line)
        if index < 0:
            self.turns.append(Turn(run, number_of(line.data.turnId), line.agentId, -1, row))
            return run
        turn = self.turns[index]
        turn.end = row
        if turn.run >= 0:
            known = self.runs[turn.run]
            if known.current.get(line.agentId) == index:
                del known.current[line.agentId]
            if line.agentId is None:
                known.open_turns -= 1
                known.end = row
        return turn.run

    def _stray_open_turn(self, line: Line) -> int:
        """The latest open turn of that agent and number, for an end whose parent is unknown."""
        wanted = number_of(line.data.turnId)
        for index in range(len(self.turns) - 1, max(-1, len(self.turns) - 64), -1):
            turn = self.turns[index]
            if turn.end < 0 and turn.start >= 0 and turn.agent == line.agentId and turn.turn == wanted:
                return index
        return -1

    def _assistant_message(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        data = line.data
        texts[-1] = None if data.content is None else as_text(data.content)
        index = -1 if data.turnId is None else self._find_turn(run, line.agentId, data.turnId)
        requests = data.toolRequests
        if index >= 0:
            turn = self.turns[index]
            turn.answer = row
            turn.model = data.model or turn.model
        if requests:
            for call in requests:
                if call.toolCallId is not None:
                    self._turn_of_call[call.toolCallId] = index
        if data.apiCallId is not None and index >= 0:
            self._claim(data.apiCallId, run, index)
        if run >= 0 and line.agentId is None:
            known = self.runs[run]
            known.answered = not requests
            if texts[-1]:
                known.answer = row
            if not known.open_turns and not requests:
                known.end = row
        return run

    def _retry(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        index = self._find_turn(run, line.agentId, line.data.turnId)
        if index >= 0:
            self.turns[index].retries += 1
        return run

    # --- tools and permissions ---------------------------------------------------------------------

    def _tool_start(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        data = line.data
        call = data.toolCallId
        index = self._turn_of_call.get(call, -1) if call is not None else -1
        if index < 0 or (run >= 0 and self.turns[index].run != run):
            index = -1 if data.turnId is None else self._find_turn(run, line.agentId, data.turnId)
        if index >= 0:
            run = self.turns[index].run
        arguments = data.arguments
        if arguments is not None:
            raw = isinstance(arguments, msgspec.Raw)
            arguments = bytes(arguments) if raw else as_text(arguments).encode("utf-8", "replace")
        self.tools.append(Tool(call, data.toolName, run, index, line.agentId, row, arguments=arguments))
        if call is not None:
            self._open_tools.setdefault(call, []).append(len(self.tools) - 1)
        return run

    def _tool_complete(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        data = line.data
        texts[-1] = text_of(data)
        index = self._close_tool(data, run)
        if index < 0:
            turn = -1 if data.turnId is None else self._find_turn(run, line.agentId, data.turnId)
            self.tools.append(Tool(data.toolCallId, data.toolName, run, turn, line.agentId, -1))
            index = len(self.tools) - 1
        tool = self.tools[index]
        tool.end = row
        tool.success = data.success
        if data.success is False:
            error = data.error
            code = error.code if isinstance(error, wire.Failure) else None
            tool.code = None if code is None else str(code)
            self.faults.append(Fault(row, tool.run, tool.turn, "tool", tool.code, tool_call=tool.id))
        return tool.run

    def _close_tool(self, data: Data, run: int) -> int:
        """The open call of that id, of the same run if there are several, else the oldest."""
        waiting = self._open_tools.get(data.toolCallId) if data.toolCallId is not None else None
        if not waiting:
            return -1
        same = [index for index in waiting if self.tools[index].run == run] if len(waiting) > 1 else waiting
        index = same[0] if same else waiting[0]
        waiting.remove(index)
        if not waiting:
            del self._open_tools[data.toolCallId]  # type: ignore[arg-type]
        return index

    def _open_tool(self, call: str | None) -> int:
        waiting = self._open_tools.get(call) if call is not None else None
        return waiting[-1] if waiting else -1

    def _external(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        index = self._open_tool(line.data.toolCallId)
        return self.tools[index].run if index >= 0 else run

    def _permission_requested(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        request = data.get("permissionRequest")
        request = request if isinstance(request, Mapping) else {}
        call, kind, name = request.get("toolCallId"), request.get("kind"), request.get("toolName")
        index = self._open_tool(call if isinstance(call, str) else None)
        tool = self.tools[index] if index >= 0 else None
        if tool is not None:
            run, tool.asked = tool.run, row
        asked = Permission(
            text_or_none(data.get("requestId")),
            row,
            run,
            tool.turn if tool is not None else self._find_turn(run, line.agentId, None),
            text_or_none(call),
            text_or_none(name) or (tool.name if tool is not None else None),
            text_or_none(kind),
        )
        self.permissions.append(asked)
        if asked.id is not None:
            self._asking[asked.id] = len(self.permissions) - 1
        if asked.tool is not None:
            self.tool_of[-1] = self.tool_names[asked.tool]
        return run

    def _permission_completed(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        result = data.get("result")
        result = result if isinstance(result, Mapping) else {}
        request = text_or_none(data.get("requestId"))
        index = self._asking.pop(request, -1) if request is not None else -1
        if index < 0:
            self.permissions.append(Permission(request, -1, run, -1, text_or_none(data.get("toolCallId"))))
            index = len(self.permissions) - 1
        asked = self.permissions[index]
        asked.end = row
        asked.decision = text_or_none(result.get("kind"))
        asked.feedback = text_or_none(result.get("feedback"))
        tool = self._open_tool(asked.tool_call)
        if tool >= 0 and self.tools[tool].asked >= 0:
            self.tools[tool].allowed = row
        return asked.run

    # --- usage: once per model call (claude-code#87303) ----------------------------------------------

    def _usage_record(self, row: int, line: Line, run: int, texts: list[str | None]) -> int:
        usage = line.data.usage
        if usage is not None:
            self._use(row, line, run, usage)
        return run

    def _usage_event(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        self._use(row, line, run, wire.lenient_usage(data))
        return run

    def _use(self, row: int, line: Line, run: int, usage: Usage) -> None:
        self.input[-1] = clamp(usage.inputTokens)
        self.output[-1] = clamp(usage.outputTokens)
        known = self._call_by_id.get(usage.apiCallId, -1) if usage.apiCallId is not None else -1
        if known >= 0:  # told twice: as it happened, and for the record
            self.calls[known].numbers = usage
            return
        turn = self._find_turn(run, line.agentId, None)
        if usage.interactionType is not None and "compaction" in usage.interactionType:
            turn = -1
        self.calls.append(ModelCall(row, run, turn, line.agentId, usage))
        if usage.apiCallId is not None:
            self._call_by_id[usage.apiCallId] = len(self.calls) - 1

    def _claim(self, api_call: str, run: int, turn: int) -> None:
        index = self._call_by_id.get(api_call, -1)
        if index >= 0:
            self.calls[index].run, self.calls[index].turn = run, turn

    # --- ends, errors, lanes -------------------------------------------------------------------------

    def _error(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        turn = self.runs[run].last_turn if run >= 0 else -1
        kind = text_or_none(data.get("errorType"))
        self.faults.append(Fault(row, run, turn, "session", kind, wire.whole(data.get("statusCode"))))
        if run >= 0:
            self.runs[run].failed, self.runs[run].end = True, row
            if turn >= 0:
                self.turns[turn].failed = True
        return run

    def _warning(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        self.faults.append(Fault(row, run, -1, "warning", text_or_none(data.get("warningType"))))
        return run

    def _call_failure(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        turn = self._find_turn(run, line.agentId, None)
        kind = text_or_none(data.get("errorType")) or text_or_none(data.get("failureKind"))
        message = text_or_none(data.get("errorMessage"))
        status = wire.whole(data.get("statusCode"))
        self.faults.append(Fault(row, run, turn, "model call", kind, status, message=message))
        return run

    def _abort(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        if run >= 0:
            known = self.runs[run]
            known.aborted, known.end = True, row
            for index in known.current.values():
                self.turns[index].aborted = True
        return run

    def _limit(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        if run >= 0:
            self.runs[run].limited = True
        return run

    def _task_complete(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        if run >= 0:
            self.runs[run].completed = True
        return run

    def _idle(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        if run >= 0:
            self.runs[run].over = True
        return run

    def _session(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        """A session's start, resume or shutdown: what came before it is over."""
        if run >= 0:
            self.runs[run].over = True
        if line.type != "session.shutdown":
            self.started.append((row, dict(data)))
        return -1

    def _notification(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        """A background command's end starts a run of its own when nothing runs (reference §3)."""
        if run >= 0 and not self.runs[run].open_turns and self.runs[run].turns:
            run = self._open_run(row, "notification", line.data.interactionId or self.runs[run].interaction, run)
        return run

    def _lane_change(self, row: int, line: Line, run: int, data: Mapping[str, Any]) -> int:
        prompt = self.lanes.change(row, run, data)
        if self._new_texts[-1] is None:
            self._new_texts[-1] = prompt
        return run

    @property
    def messages(self) -> list[Message]:
        """All messages, in the order in which they were first heard of."""
        return self.lanes.messages


def number_of(turn: int | str | None) -> int | None:
    """``turnId`` as a number; None for what is none."""
    if turn is None:
        return None
    number = turn_number(turn)
    return None if number < 0 else number


def turn_number(turn: int | str) -> int:
    """``turnId`` as a number; -1 for what is none."""
    if isinstance(turn, int):
        return turn if 0 <= turn < 2**31 else -1
    return int(turn) if len(turn) < 10 and turn.isdecimal() and turn.isascii() else -1


def clamp(value: int | None) -> int:
    """A number for a column; `NA` for none and for what has no 64 bits."""
    return NA if value is None or not -wire.I64 < value < wire.I64 else value


def text_or_none(value: object) -> str | None:
    """The text, or None for anything else."""
    return value if isinstance(value, str) else None


_HANDLERS: Final[dict[str, Callable[[Relations, int, Line, int, list[str | None]], int]]] = {
    "user.message": Relations._user_message,
    "assistant.turn_start": Relations._turn_start,
    "assistant.turn_end": Relations._turn_end,
    "assistant.message": Relations._assistant_message,
    "tool.execution_start": Relations._tool_start,
    "tool.execution_complete": Relations._tool_complete,
    "session.usage_record": Relations._usage_record,
}
_RARE: Final[dict[str, Callable[[Relations, int, Line, int, Mapping[str, Any]], int]]] = {
    "assistant.usage": Relations._usage_event,
    "assistant.turn_retry": Relations._retry,
    "assistant.idle": Relations._idle,
    "session.idle": Relations._idle,
    "external_tool.requested": Relations._external,
    "permission.requested": Relations._permission_requested,
    "permission.completed": Relations._permission_completed,
    "session.error": Relations._error,
    "session.warning": Relations._warning,
    "model.call_failure": Relations._call_failure,
    "abort": Relations._abort,
    "jupyter.limit": Relations._limit,
    "session.task_complete": Relations._task_complete,
    "session.start": Relations._session,
    "session.resume": Relations._session,
    "session.shutdown": Relations._session,
    "system.notification": Relations._notification,
    "jupyter.queue": Relations._lane_change,
}
SHARED_KEYS: Final = frozenset({*_HANDLERS, *_RARE})
__all__ = ["Relations", "Result"]
