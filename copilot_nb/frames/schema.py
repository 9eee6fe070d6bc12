"""Every table and every column: what it says, its unit, and the event that it comes from.

This is the source of the tables' dtypes, of the docs page (``notebooks/04_tables.ipynb``) and of the checks
in the tests. The dtypes are the same for every log, also for an empty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from copilot_nb.frames.known import KNOWN_TYPES

if TYPE_CHECKING:
    import pandas as pd

TIME, SPAN, INT, FLOAT, BOOL, TEXT = "time", "span", "Int64", "Float64", "boolean", "text"

RUN_STATUS: Final = ("open", "completed", "aborted", "error", "limit")
TURN_STATUS: Final = ("open", "completed", "aborted", "error")
TOOL_STATUS: Final = ("open", "ok", "failed", "denied", "rejected", "interrupted", "unknown")
MESSAGE_STATUS: Final = ("pending", "landed", "discarded")
PERMISSION_STATUS: Final = ("open", "granted", "denied", "cancelled", "unknown")
DELIVERY: Final = ("idle", "queued", "steering")
LANES: Final = ("queue", "steering")
FAULT_SOURCE: Final = ("session", "model call", "tool", "warning")


class Column(Struct, frozen=True):
    """One column.

    Attributes
    ----------
    dtype
        ``time``: datetime64[us, UTC]; ``span``: timedelta64[us]; ``text``: string[pyarrow]; a tuple: a
        category of these values; else the name of a pandas dtype.
    source
        The event, and where it is not obvious the key, that the value comes from.
    """

    name: str
    dtype: str | tuple[str, ...]
    meaning: str
    source: str
    unit: str = ""

    @property
    def pandas(self) -> Any:
        """The pandas dtype."""
        import pandas as pd

        if isinstance(self.dtype, tuple):
            return pd.CategoricalDtype(list(self.dtype))
        return _PANDAS.get(self.dtype) or (pd.StringDtype("pyarrow") if self.dtype == TEXT else self.dtype)

    @property
    def label(self) -> str:
        """The dtype in words, for the docs."""
        return "category" if isinstance(self.dtype, tuple) else _LABEL.get(self.dtype, self.dtype)


_PANDAS: Final = {TIME: "datetime64[us, UTC]", SPAN: "timedelta64[us]"}
_LABEL: Final = {**_PANDAS, TEXT: "string[pyarrow]"}
_C = Column
_RUN = _C(
    "run",
    INT,
    "number of the run, from 0; missing before the first",
    "interactionId, else tool call, request or parent",
)
_TURN = _C("turn", INT, "number of the turn in its run, from 0", "turnId")
_AGENT = _C("agent_id", TEXT, "the sub-agent; missing for the main agent", "agentId")

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "events": (
        _C("time", TIME, "when it happened; NaT if the log does not say", "timestamp", "UTC"),
        _C("type", KNOWN_TYPES, "the event's type; unknown ones are further categories", "type"),
        _C("turn", INT, "the event's own turn number; missing if it names none", "data.turnId"),
        _AGENT,
        _C("tool", TEXT, "the tool it names", "data.toolName"),
        _C(
            "text",
            TEXT,
            "what a person would read of it",
            "data.content, .result.content, .error.message, .message or .summary",
        ),
        _C(
            "input_tokens", INT, "tokens sent to the model", "session.usage_record, assistant.usage", "tokens"
        ),
        _C("output_tokens", INT, "tokens the model wrote", "session.usage_record, assistant.usage", "tokens"),
        _C(
            "interaction_id",
            TEXT,
            "shared by all of a run; joins to `runs()` and `turns()`",
            "data.interactionId",
        ),
        _C("ephemeral", BOOL, "delivered, but not meant for the disk", "ephemeral"),
        _C("id", TEXT, "for `log.event(id)`", "id"),
        _C("parent_id", TEXT, "the stored event before it", "parentId"),
    ),
    "messages": (
        _C("message_id", TEXT, "what `send` returned", "user.message, jupyter.queue: messageId"),
        _C("text", TEXT, "the prompt", "user.message: content; jupyter.queue: prompt while it waits"),
        _C("source", TEXT, "user, autopilot, system …", "user.message: source; user if absent"),
        _C(
            "status",
            MESSAGE_STATUS,
            "pending: still waits; discarded: never reached the model",
            "user.message, jupyter.queue",
        ),
        _C(
            "lane",
            LANES,
            "where it waited last; missing if it never waited",
            "jupyter.queue: lane, user.message: delivery",
        ),
        _C("delivery", DELIVERY, "how it landed", "user.message: delivery"),
        _C(
            "sent_at",
            TIME,
            "when it was accepted; for delivery idle the same as landed_at; NaT where the log does not say",
            "jupyter.queue add",
            "UTC",
        ),
        _C("landed_at", TIME, "when it reached the conversation; NaT if it did not", "user.message", "UTC"),
        _C(
            "waited",
            SPAN,
            "landed_at - sent_at; NaT unless both are known",
            "user.message, jupyter.queue",
            "time",
        ),
        _C("reason", TEXT, "why it was discarded", "jupyter.queue remove: reason"),
        _RUN,
        _C("turn", INT, "the turn a steer landed in", "user.message: turnId"),
        _C("event_id", TEXT, "the event that landed it; missing if it did not", "user.message: id"),
    ),
    "runs": (
        _C("run", INT, "number of the run, from 0", "user.message that is no steer"),
        _C(
            "source",
            TEXT,
            "user, autopilot, system, notification; unknown if the log does not hold its message",
            "user.message: source",
        ),
        _C("delivery", DELIVERY, "how its message arrived", "user.message: delivery"),
        _C("prompt", TEXT, "its first message", "user.message: content"),
        _C("answer", TEXT, "the last text the main agent wrote in it", "assistant.message: content"),
        _C(
            "status",
            RUN_STATUS,
            "open: no end was seen",
            "assistant.turn_end, session.error, abort, jupyter.limit",
        ),
        _C("started", TIME, "", "user.message, else the first event of the run", "UTC"),
        _C("ended", TIME, "NaT while open", "last assistant.turn_end, session.error or abort", "UTC"),
        _C("duration", SPAN, "ended - started", "both of the above", "time"),
        _C("turns", INT, "its turns, sub-agents' included", "assistant.turn_start"),
        _C("tools", INT, "its tool calls", "tool.execution_start"),
        _C("failed_tools", INT, "those that did not succeed", "tool.execution_complete: success"),
        _C("steers", INT, "messages that joined it", "user.message: delivery steering"),
        _C("errors", INT, "", "session.error"),
        _C("model_calls", INT, "", "session.usage_record, assistant.usage; once per apiCallId"),
        _C("input_tokens", INT, "missing if no model call said", "the same", "tokens"),
        _C("output_tokens", INT, "missing if no model call said", "the same", "tokens"),
        _C("interaction_id", TEXT, "", "interactionId"),
        _C("message_id", TEXT, "of its first message", "user.message: messageId"),
    ),
    "turns": (
        _RUN,
        _TURN,
        _AGENT,
        _C("status", TURN_STATUS, "open: no end was seen", "assistant.turn_end, session.error, abort"),
        _C("started", TIME, "NaT if only its end is in the log", "assistant.turn_start", "UTC"),
        _C("ended", TIME, "NaT while open", "assistant.turn_end", "UTC"),
        _C("duration", SPAN, "ended - started", "both of the above", "time"),
        _C(
            "attempts",
            INT,
            "1 + retries; missing in a log without ephemeral events, which are the only ones to tell",
            "assistant.turn_retry",
        ),
        _C("model", TEXT, "", "assistant.message: model, usage"),
        _C("text", TEXT, "what the model said", "assistant.message: content"),
        _C("tools", INT, "its tool calls", "tool.execution_start"),
        _C("failed_tools", INT, "those that did not succeed", "tool.execution_complete: success"),
        _C("steers", INT, "messages that landed in it", "user.message: delivery steering"),
        _C("model_calls", INT, "", "session.usage_record, assistant.usage; once per apiCallId"),
        _C("input_tokens", INT, "missing if no model call said", "the same", "tokens"),
        _C("output_tokens", INT, "missing if no model call said", "the same", "tokens"),
        _C("model_time", SPAN, "of the model calls alone", "usage: duration", "time"),
        _C("interaction_id", TEXT, "of its run", "interactionId"),
        _C("event_id", TEXT, "its start; missing if only its end is in the log", "assistant.turn_start: id"),
    ),
    "tools": (
        _C("tool", TEXT, "", "tool.execution_start: toolName"),
        _RUN,
        _TURN,
        _AGENT,
        _C("status", TOOL_STATUS, "open: no end was seen", "tool.execution_complete: success, error.code"),
        _C("started", TIME, "NaT if the loop refused it before a start", "tool.execution_start", "UTC"),
        _C("ended", TIME, "NaT while open", "tool.execution_complete", "UTC"),
        _C("duration", SPAN, "ended - started", "both of the above", "time"),
        _C(
            "asked",
            SPAN,
            "the part of it that waited for a permission; NaT if none was asked or answered",
            "permission.requested, permission.completed",
            "time",
        ),
        _C("arguments", TEXT, "as JSON", "tool.execution_start: arguments"),
        _C(
            "result",
            TEXT,
            "what came back, or the error's message",
            "tool.execution_complete: result.content, error.message",
        ),
        _C(
            "result_bytes", INT, "length of that text in UTF-8; missing if there is none", "the same", "bytes"
        ),
        _C("error_code", TEXT, "", "tool.execution_complete: error.code"),
        _C("tool_call_id", TEXT, "not unique: some models repeat them", "toolCallId"),
        _C("event_id", TEXT, "its start, else its end", "tool.execution_start: id"),
    ),
    "permissions": (
        _C("request_id", TEXT, "", "permission.requested: requestId"),
        _C("tool", TEXT, "", "permissionRequest.toolName, else of the tool call"),
        _C("kind", TEXT, "custom-tool, shell, …", "permissionRequest.kind"),
        _RUN,
        _TURN,
        _C("status", PERMISSION_STATUS, "open: no answer was seen", "permission.completed: result.kind"),
        _C("decision", TEXT, "as recorded", "permission.completed: result.kind"),
        _C("feedback", TEXT, "what the person told the model", "permission.completed: result.feedback"),
        _C("asked_at", TIME, "NaT if only the answer is in the log", "permission.requested", "UTC"),
        _C("answered_at", TIME, "NaT while open", "permission.completed", "UTC"),
        _C("waited", SPAN, "answered_at - asked_at", "both of the above", "time"),
        _C("tool_call_id", TEXT, "", "permissionRequest.toolCallId"),
        _C("event_id", TEXT, "the request", "permission.requested: id"),
    ),
    "queue": (
        _C("time", TIME, "", "jupyter.queue, user.message", "UTC"),
        _C(
            "op",
            TEXT,
            "add, remove, move, edit, pause, restored, or land",
            "jupyter.queue: op; land: user.message",
        ),
        _C("lane", LANES, "the lane it concerns", "jupyter.queue: lane, user.message: delivery"),
        _C("message_id", TEXT, "", "messageId"),
        _C("text", TEXT, "the prompt, where the event holds it", "jupyter.queue: prompt"),
        _C("position", INT, "place in the lane, from 0", "jupyter.queue: position"),
        _C("reason", TEXT, "", "jupyter.queue: reason"),
        _C("queued", INT, "messages in the queue after it", "folded", "messages"),
        _C("steering", INT, "messages in the steering lane after it", "folded", "messages"),
        _C("paused", BOOL, "whether the queue is held after it", "jupyter.queue pause"),
        _RUN,
        _C("event_id", TEXT, "", "id"),
    ),
    "usage": (
        _C("time", TIME, "end of the model call", "session.usage_record, assistant.usage", "UTC"),
        _RUN,
        _C(
            "turn",
            INT,
            "missing for calls outside turns, such as a compaction",
            "assistant.message: apiCallId, else the turn that was open",
        ),
        _AGENT,
        _C("model", TEXT, "", "usage: model"),
        _C("input_tokens", INT, "", "usage: inputTokens", "tokens"),
        _C("output_tokens", INT, "", "usage: outputTokens", "tokens"),
        _C("cache_read_tokens", INT, "", "usage: cacheReadTokens", "tokens"),
        _C("cache_write_tokens", INT, "", "usage: cacheWriteTokens", "tokens"),
        _C(
            "cost",
            FLOAT,
            "as the provider counts it: no currency; missing if unknown",
            "usage: cost",
            "premium requests",
        ),
        _C("duration", SPAN, "of the model call", "usage: duration (milliseconds)", "time"),
        _C("first_token", SPAN, "from the request to the first token", "usage: timeToFirstTokenMs", "time"),
        _C("api_call_id", TEXT, "one row for each", "usage: apiCallId"),
        _C("event_id", TEXT, "", "id"),
    ),
    "errors": (
        _C("time", TIME, "", "the event", "UTC"),
        _C(
            "source",
            FAULT_SOURCE,
            "what failed",
            "session.error, model.call_failure (ephemeral), tool.execution_complete, session.warning",
        ),
        _C("kind", TEXT, "", "errorType, warningType or error.code"),
        _C("status_code", INT, "", "statusCode", "HTTP status"),
        _C("message", TEXT, "", "message, errorMessage, error.message"),
        _RUN,
        _TURN,
        _C("tool_call_id", TEXT, "", "tool.execution_complete: toolCallId"),
        _C("event_id", TEXT, "", "id"),
    ),
    "problems": (
        _C("line", INT, "number of the line, from 1", "the file"),
        _C("reason", TEXT, "what is wrong with it", "the file"),
        _C("kept", BOOL, "whether it is a row of the tables nevertheless, mended", "the file"),
        _C("offset", INT, "where it starts", "the file", "bytes"),
        _C("length", INT, "", "the file", "bytes"),
    ),
    "sessions": (
        _C("session_id", TEXT, "", "folder"),
        _C("title", TEXT, "its name, else its first message", "workspace.yaml: name; user.message"),
        _C("folder", TEXT, "where it worked", "workspace.yaml: cwd, else session.start: context.cwd"),
        _C("producer", TEXT, "the program that began it", "session.start: producer"),
        _C("started", TIME, "", "session.start", "UTC"),
        _C("last_event", TIME, "", "last line of the log", "UTC"),
        _C("turns", INT, "", "assistant.turn_start", "turns"),
        _C(
            "in_use_by",
            TEXT,
            "ids of the live processes that hold it; missing if none does",
            "inuse.<pid>.lock",
        ),
        _C("size", INT, "", "events.jsonl", "bytes"),
        _C("path", TEXT, "", "events.jsonl"),
    ),
}
LOG_TABLES: Final = tuple(name for name in TABLES if name not in ("problems", "sessions"))


def dtypes(table: str) -> dict[str, Any]:
    """Column names and pandas dtypes of a table, in order."""
    return {column.name: column.pandas for column in TABLES[table]}


def empty(table: str) -> pd.DataFrame:
    """The table of no events."""
    import pandas as pd

    return pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in dtypes(table).items()})


def reference() -> pd.DataFrame:
    """All columns of all tables as a table, for the docs."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "table": table,
                "column": c.name,
                "dtype": c.label,
                "unit": c.unit,
                "meaning": c.meaning,
                "source": c.source,
            }
            for table, columns in TABLES.items()
            for c in columns
        ]
    )
