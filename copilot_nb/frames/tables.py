"""From records and columns to DataFrames. No decision is taken here; the fold has taken them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from copilot_nb.frames.arrays import decoded, frame, from_int32, from_int64, strings, times
from copilot_nb.frames.base import Columns
from copilot_nb.frames.columns import NA
from copilot_nb.frames.records import Run, Tool, Turn
from copilot_nb.frames.relate import Relations

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def events(base: Columns, rows: int) -> pd.DataFrame:
    """One row for each of the first events; the row number is an event's place in the log."""
    import numpy as np
    import pandas as pd

    types = np.frombuffer(base.types[:rows], np.int32)
    columns = {
        "time": times(np.frombuffer(base.time[:rows], np.int64)),
        "type": pd.Categorical.from_codes(types, dtype=pd.CategoricalDtype(base.type_codes.names())),
        "turn": from_int32(base.turns[:rows]),
        "agent_id": decoded(base.agents[:rows], base.agent_codes.names()),
        "tool": decoded(base.tools[:rows], base.tool_codes.names()),
        "text": strings(base.texts.chunked(rows)),
        "input_tokens": from_int64(base.input[:rows]),
        "output_tokens": from_int64(base.output[:rows]),
        "interaction_id": strings(base.interactions.chunked(rows)),
        "ephemeral": pd.arrays.BooleanArray(
            np.frombuffer(bytes(base.ephemeral[:rows]), np.bool_).copy(), np.zeros(rows, np.bool_)
        ),
        "id": strings(base.ids.chunked(rows)),
        "parent_id": strings(base.parents.chunked(rows)),
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(rows, name="seq"), copy=False)


def messages(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per message, also those that still wait and those that never landed."""
    import numpy as np

    records = relations.lanes.messages
    landed_rows = [m.landed for m in records]
    landed = base.times(landed_rows)
    idle = np.array([m.delivery == "idle" and m.sent < 0 for m in records], bool)
    sent = np.where(idle, landed, base.times([m.sent for m in records]))
    texts = base.texts_at(base.texts, landed_rows).to_pylist()
    return frame(
        "messages",
        message_id=[m.id for m in records],
        text=[m.prompt if text is None else text for m, text in zip(records, texts, strict=True)],
        source=[m.source for m in records],
        status=["landed" if m.landed >= 0 else "discarded" if m.removed >= 0 else "pending" for m in records],
        lane=[m.lane for m in records],
        delivery=[m.delivery for m in records],
        sent_at=sent,
        landed_at=landed,
        waited=_span(sent, landed),
        reason=[m.reason for m in records],
        run=[m.run for m in records],
        turn=[_turn_number(relations, m.turn) for m in records],
        event_id=base.texts_at(base.ids, landed_rows),
    )


def runs(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per run."""
    records = relations.runs
    status = [_run_status(run) for run in records]
    ends = [run.end if state != "open" else -1 for run, state in zip(records, status, strict=True)]
    started, ended = base.times([run.start for run in records]), base.times(ends)
    count = len(records)
    calls = relations.calls
    firsts = [relations.lanes.messages[run.message] if run.message >= 0 else None for run in records]
    return frame(
        "runs",
        run=list(range(count)),
        source=[run.source for run in records],
        delivery=[run.delivery for run in records],
        prompt=base.texts_at(base.texts, [m.landed if m is not None else -1 for m in firsts]),
        answer=base.texts_at(base.texts, [run.answer for run in records]),
        status=status,
        started=started,
        ended=ended,
        duration=_span(started, ended),
        turns=_count(count, (turn.run for turn in relations.turns)),
        tools=_count(count, (tool.run for tool in relations.tools)),
        failed_tools=_count(count, (tool.run for tool in relations.tools if tool.success is False)),
        steers=_count(count, (m.run for m in relations.lanes.messages if m.delivery == "steering")),
        errors=_count(count, (fault.run for fault in relations.faults if fault.source == "session")),
        model_calls=_count(count, (call.run for call in calls)),
        input_tokens=_total(count, ((call.run, call.input) for call in calls)),
        output_tokens=_total(count, ((call.run, call.output) for call in calls)),
        interaction_id=[run.interaction for run in records],
        message_id=[m.id if m is not None else None for m in firsts],
    )


def turns(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per turn; a retried one is one row."""
    records = relations.turns
    count = len(records)
    started = base.times([turn.start for turn in records])
    ended = base.times([turn.end for turn in records])
    calls = relations.calls
    known = relations.ephemeral_seen
    models: list[str | None] = [turn.model for turn in records]
    for call in calls:
        if call.turn >= 0 and models[call.turn] is None:
            models[call.turn] = call.model
    interactions = [relations.runs[turn.run].interaction if turn.run >= 0 else None for turn in records]
    return frame(
        "turns",
        run=[turn.run for turn in records],
        turn=[turn.turn for turn in records],
        agent_id=[turn.agent for turn in records],
        status=[_turn_status(turn) for turn in records],
        started=started,
        ended=ended,
        duration=_span(started, ended),
        attempts=[turn.retries + 1 if known else None for turn in records],
        model=models,
        text=base.texts_at(base.texts, [turn.answer for turn in records]),
        tools=_count(count, (tool.turn for tool in relations.tools)),
        failed_tools=_count(count, (tool.turn for tool in relations.tools if tool.success is False)),
        steers=[turn.steers for turn in records],
        model_calls=_count(count, (call.turn for call in calls)),
        input_tokens=_total(count, ((call.turn, call.input) for call in calls)),
        output_tokens=_total(count, ((call.turn, call.output) for call in calls)),
        model_time=[
            _micros(value) for value in _total(count, ((call.turn, call.duration) for call in calls))
        ],
        interaction_id=interactions,
        event_id=base.texts_at(base.ids, [turn.start for turn in records]),
    )


def tools(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per tool call."""
    import pyarrow as pa
    import pyarrow.compute as pc

    records = relations.tools
    started = base.times([tool.start for tool in records])
    ended = base.times([tool.end for tool in records])
    results = base.texts_at(base.texts, [tool.end for tool in records])
    arguments = [
        None if tool.arguments is None else tool.arguments.decode("utf-8", "replace") for tool in records
    ]
    return frame(
        "tools",
        tool=[tool.name for tool in records],
        run=[tool.run for tool in records],
        turn=[_turn_number(relations, tool.turn) for tool in records],
        agent_id=[tool.agent for tool in records],
        status=[_tool_status(tool) for tool in records],
        started=started,
        ended=ended,
        duration=_span(started, ended),
        asked=_span(
            base.times([tool.asked for tool in records]), base.times([tool.allowed for tool in records])
        ),
        arguments=pa.array(arguments, pa.large_string()),
        result=results,
        result_bytes=pc.binary_length(results).cast(pa.int64()).to_pylist(),
        error_code=[tool.code for tool in records],
        tool_call_id=[tool.id for tool in records],
        event_id=base.texts_at(base.ids, [tool.start if tool.start >= 0 else tool.end for tool in records]),
    )


def permissions(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per question whether a tool may run."""
    records = relations.permissions
    asked, answered = base.times([p.start for p in records]), base.times([p.end for p in records])
    return frame(
        "permissions",
        request_id=[p.id for p in records],
        tool=[p.tool for p in records],
        kind=[p.kind for p in records],
        run=[p.run for p in records],
        turn=[_turn_number(relations, p.turn) for p in records],
        status=["open" if p.end < 0 else _granted(p.decision) for p in records],
        decision=[p.decision for p in records],
        feedback=[p.feedback for p in records],
        asked_at=asked,
        answered_at=answered,
        waited=_span(asked, answered),
        tool_call_id=[p.tool_call for p in records],
        event_id=base.texts_at(base.ids, [p.start for p in records]),
    )


def queue(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per change of the two lanes."""
    records = relations.lanes.changes
    rows = [change.row for change in records]
    return frame(
        "queue",
        time=base.times(rows),
        op=[change.op for change in records],
        lane=[change.lane for change in records],
        message_id=[change.message for change in records],
        text=[change.prompt for change in records],
        position=[change.position for change in records],
        reason=[change.reason for change in records],
        queued=[change.queued for change in records],
        steering=[change.steering for change in records],
        paused=[change.paused for change in records],
        run=[change.run for change in records],
        event_id=base.texts_at(base.ids, rows),
    )


def usage(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per model call."""
    records = relations.calls
    rows = [call.row for call in records]
    return frame(
        "usage",
        time=base.times(rows),
        run=[call.run for call in records],
        turn=[_turn_number(relations, call.turn) for call in records],
        agent_id=[call.agent for call in records],
        model=[call.model for call in records],
        input_tokens=[call.input for call in records],
        output_tokens=[call.output for call in records],
        cache_read_tokens=[call.cache_read for call in records],
        cache_write_tokens=[call.cache_write for call in records],
        cost=[call.cost for call in records],
        duration=[_micros(call.duration) for call in records],
        first_token=[_micros(call.first_token) for call in records],
        api_call_id=[call.id for call in records],
        event_id=base.texts_at(base.ids, rows),
    )


def errors(base: Columns, relations: Relations) -> pd.DataFrame:
    """One row per thing that went wrong."""
    records = relations.faults
    rows = [fault.row for fault in records]
    texts = base.texts_at(base.texts, rows).to_pylist()
    return frame(
        "errors",
        time=base.times(rows),
        source=[fault.source for fault in records],
        kind=[fault.kind for fault in records],
        status_code=[fault.status for fault in records],
        message=[
            text if fault.message is None else fault.message
            for fault, text in zip(records, texts, strict=True)
        ],
        run=[fault.run for fault in records],
        turn=[_turn_number(relations, fault.turn) for fault in records],
        tool_call_id=[fault.tool_call for fault in records],
        event_id=base.texts_at(base.ids, rows),
    )


MAKERS: Final[dict[str, Callable[[Columns, Relations], Any]]] = {
    "messages": messages,
    "runs": runs,
    "turns": turns,
    "tools": tools,
    "permissions": permissions,
    "queue": queue,
    "usage": usage,
    "errors": errors,
}


# --- words for states ------------------------------------------------------------------------------------


def _run_status(run: Run) -> str:
    if run.open_turns > 0:
        return "open"
    if run.failed:
        return "error"
    if run.limited:
        return "limit"
    if run.aborted:
        return "aborted"
    return "completed" if run.end >= 0 and (run.answered or run.completed or run.over) else "open"


def _turn_status(turn: Turn) -> str:
    if turn.end < 0:
        return "open"
    return "error" if turn.failed else "aborted" if turn.aborted else "completed"


def _tool_status(tool: Tool) -> str:
    if tool.end < 0:
        return "open"
    if tool.success is None:
        return "unknown"
    if tool.success:
        return "ok"
    return tool.code if tool.code in ("denied", "rejected", "interrupted") else "failed"


def _granted(decision: str | None) -> str:
    if decision is None:
        return "unknown"
    for word, state in (("approved", "granted"), ("denied", "denied"), ("cancelled", "cancelled")):
        if decision.startswith(word):
            return state
    return "unknown"


# --- columns ---------------------------------------------------------------------------------------------


def _turn_number(relations: Relations, turn: int) -> int | None:
    return relations.turns[turn].turn if turn >= 0 else None


def _count(size: int, owners: Iterable[int]) -> list[int]:
    counts = [0] * size
    for owner in owners:
        if owner >= 0:
            counts[owner] += 1
    return counts


def _total(size: int, parts: Iterable[tuple[int, Any]]) -> list[Any]:
    """Sums; None where nobody said a number."""
    totals: list[Any] = [None] * size
    for owner, value in parts:
        if owner >= 0 and value is not None:
            totals[owner] = value + (totals[owner] or 0)
    return totals


def _micros(milliseconds: float | None) -> int:
    return NA if milliseconds is None or not abs(milliseconds) < 2**52 else round(milliseconds * 1000)


def _span(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.where((start == NA) | (end == NA), NA, end - start)
