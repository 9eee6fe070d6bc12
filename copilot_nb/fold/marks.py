"""Errors, aborts, compactions, modes: what stands between turns, and facts about the session."""

from __future__ import annotations

from copilot_nb.events import JSON, Event
from copilot_nb.fold.base import Fold, on


@on("session.error")
def _error(state: Fold, data: JSON, event: Event) -> None:
    state.errors.append(data)
    state._mark("error", str(data.get("message", "")), data, event)
    if state.run is not None:
        state.run.state = "failed"


@on("abort")
def _abort(state: Fold, data: JSON, event: Event) -> None:
    state._mark("abort", str(data.get("reason", "")), data, event)
    if state.run is not None:
        state.run.state = "aborted"
    state.permissions.clear()
    state.questions.clear()


@on("session.task_complete")
def _task_complete(state: Fold, data: JSON, event: Event) -> None:
    state.task_complete = data
    state._mark("task_complete", str(data.get("summary") or ""), data, event)


@on(
    "session.compaction_complete",
    "session.truncation",
    "jupyter.limit",
    "system.notification",
    "session.warning",
    "session.autopilot_stopped",
    "session.resume",
)
def _marked(state: Fold, data: JSON, event: Event) -> None:
    if event.type == "session.resume" and not state.runs:
        return
    words = (data.get(key) for key in ("message", "content", "reason", "summaryContent"))
    state._mark(event.type.rpartition(".")[2], next((str(text) for text in words if text), ""), data, event)


@on("session.mode_changed")
def _mode(state: Fold, data: JSON, event: Event) -> None:
    state.mode = str(data.get("newMode") or state.mode)


@on("session.start")
def _start(state: Fold, data: JSON, event: Event) -> None:
    state._at(event)
    state.session_id = str(data.get("sessionId", ""))
    state.model = str(data.get("selectedModel") or state.model)


@on("session.shutdown")
def _shutdown(state: Fold, data: JSON, event: Event) -> None:
    state._at(event)
    state.settle()


@on("session.title_changed")
def _title(state: Fold, data: JSON, event: Event) -> None:
    state.title = str(data.get("title", ""))


@on("jupyter.notice")
def _notice(state: Fold, data: JSON, event: Event) -> None:
    state.notices.append(data)
    del state.notices[:-50]


@on("jupyter.runtime")
def _runtime(state: Fold, data: JSON, event: Event) -> None:
    state.runtime = data
