"""What the CLI asks of the person: permissions and questions, and the answers' way back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, Final
from urllib.parse import urlsplit

from copilot_nb.errors import CopilotNbError, UsageError
from copilot_nb.events import JSON
from copilot_nb.permissions import Decision, Policy
from copilot_nb.runtimes.base import Answer

Request = Callable[[str, JSON], Awaitable[Any]]

PERMISSION: Final = "permission.requested"
# event of a question: the method that answers it, and the answer when nobody is there
QUESTIONS: Final[dict[str, tuple[str, JSON]]] = {
    "user_input.requested": (
        "session.ui.handlePendingUserInput",
        {"answer": "Nobody is there to answer. Decide yourself and say so.", "wasFreeform": True},
    ),
    "elicitation.requested": ("session.ui.handlePendingElicitation", {"action": "cancel"}),
    "exit_plan_mode.requested": (
        "session.ui.handlePendingExitPlanMode",
        {"approved": False, "feedback": "Nobody is there to approve the plan."},
    ),
    "auto_mode_switch.requested": ("session.ui.handlePendingAutoModeSwitch", {"response": "no"}),
}

_log = logging.getLogger(__name__)


class Asks:
    """The open requests of one session.

    Attributes
    ----------
    pending
        Event type and data by request id.
    rejected
        A permission was refused without a word: the CLI is about to end the run and empty both lanes.
    """

    def __init__(self, request: Request, policy: Policy, context: Context) -> None:
        self.pending: dict[str, tuple[str, JSON]] = {}
        self.rejected = False
        self._request = request
        self._policy = policy
        self._context = context
        self._tool_names: dict[str, str] = {}
        self._deciding: dict[str, asyncio.Task[None]] = {}

    def on_event(self, type: str, data: JSON) -> None:
        """Take note of a delivered event; on the loop."""
        if type == "tool.execution_start":
            self._tool_names[data.get("toolCallId", "")] = data.get("toolName", "")
        elif type == "permission.completed":
            self._completed(data)
        elif type == PERMISSION or type in QUESTIONS:
            if not data.get("resolvedByHook"):
                self._ask(type, data)
        elif type.removesuffix(".completed") + ".requested" in QUESTIONS:
            self._forget(data.get("requestId", ""))

    def _ask(self, type: str, data: JSON) -> None:
        request_id = data["requestId"]
        self.pending[request_id] = (type, data)
        decide = self._decide(request_id, data) if type == PERMISSION else self._nobody(request_id, type)
        task = asyncio.get_running_loop().create_task(decide, context=self._context)
        self._deciding[request_id] = task
        task.add_done_callback(lambda _: self._deciding.pop(request_id, None))

    def _completed(self, data: JSON) -> None:
        self._forget(data.get("requestId", ""))
        result = data.get("result") or {}
        if result.get("kind") == "denied-interactively-by-user" and not result.get("feedback"):
            self.rejected = True

    def _forget(self, request_id: str) -> None:
        self.pending.pop(request_id, None)
        task = self._deciding.get(request_id)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def cancel(self) -> dict[str, tuple[str, JSON]]:
        """Drop all open requests, as when the process died; what they were."""
        dropped, self.pending = self.pending, {}
        for task in self._deciding.values():
            task.cancel()
        return dropped

    async def _decide(self, request_id: str, data: JSON) -> None:
        request = data.get("permissionRequest") or {}
        name = request.get("toolName") or self._tool_names.get(request.get("toolCallId", ""))
        try:
            decision: Decision | None = Decision("approve-once")
            if not self._policy.allows(str(request.get("kind"))):
                decision = await self._policy.decide({**request, "toolName": name} if name else request)
        except Exception as error:  # a rule of the user's; the reference denies then (§10)
            _log.warning("a permission rule failed: %r", error)
            decision = Decision("user-not-available", reason=f"the permission rule failed: {error!r}")
        if decision is not None and request_id in self.pending:
            await self._answer(request_id, PERMISSION, _decision(decision, data))

    async def _nobody(self, request_id: str, type: str) -> None:
        if not self._policy.can_ask():
            await self._answer(request_id, type, QUESTIONS[type][1])

    async def respond(self, request_id: str, answer: Decision | Answer) -> None:
        """Answer an open request; a `UsageError` when it is not open or the answer is of the wrong sort."""
        if request_id not in self.pending:
            raise UsageError(f"No open request {request_id!r}: it was answered, or its run ended.")
        type, data = self.pending[request_id]
        if isinstance(answer, Decision):
            if type != PERMISSION:
                raise UsageError("This is a question, not a permission: answer it with its text.")
            wire = _decision(answer, data)
        else:
            if type == PERMISSION:
                raise UsageError("This is a permission request: allow or deny it.")
            wire = _answer(type, answer.data, data)
        await self._answer(request_id, type, wire)

    async def _answer(self, request_id: str, type: str, wire: JSON) -> None:
        method, field = "session.permissions.handlePendingPermissionRequest", "result"
        params: JSON = {"requestId": request_id}
        if type != PERMISSION:
            method = QUESTIONS[type][0]
            field = "result" if type == "elicitation.requested" else "response"
        params[field] = wire.get("response") if type == "auto_mode_switch.requested" else wire
        try:
            result = await self._request(method, params)
        except CopilotNbError:
            if request_id in self.pending:
                raise
            return  # the run ended while the answer was on its way
        if isinstance(result, dict) and result.get("success") is False and request_id in self.pending:
            self._forget(request_id)
            raise UsageError(f"The CLI no longer waits for request {request_id!r}.")


def _decision(decision: Decision, data: JSON) -> JSON:
    """The wire form of a decision on a ``permission.requested``."""
    if decision.kind == "reject":
        return {"kind": "reject", "feedback": decision.feedback} if decision.feedback else {"kind": "reject"}
    if decision.kind != "approve-for-session":
        return {"kind": decision.kind}
    scope = {"approval": decision.approval} if decision.approval else _session_scope(data)
    return {"kind": "approve-once"} if scope is None else {"kind": "approve-for-session", **scope}


def _session_scope(data: JSON) -> JSON | None:
    """What *allow for this session* covers in the CLI's own terms; None where it offers no such thing."""
    request, prompt = data.get("permissionRequest") or {}, data.get("promptRequest") or {}
    kind = request.get("kind")
    if request.get("canOfferSessionApproval") is False:
        return None
    if prompt.get("kind") == "path":
        return {}
    if kind == "custom-tool":
        return {"approval": {"kind": kind, "toolName": request.get("toolName")}}
    if kind == "shell":
        names = [command["identifier"] for command in request.get("commands") or ()]
        return {"approval": {"kind": "commands", "commandIdentifiers": names}} if names else None
    if kind == "mcp":
        tool = {"serverName": request["serverName"], "toolName": request.get("toolName")}
        return {"approval": {"kind": kind, **tool}}
    if kind == "url":
        return {"domain": urlsplit(str(request.get("url"))).hostname}
    return {"approval": {"kind": kind}} if kind in ("write", "read") else None


def _answer(type: str, data: JSON, request: JSON) -> JSON:
    """The wire form of an answer to a question; what may be left out is filled in."""
    if type == "user_input.requested":
        text = str(data.get("answer", ""))
        typed = text not in (request.get("choices") or ())
        return {"answer": text, "wasFreeform": data.get("wasFreeform", typed)}
    if type == "elicitation.requested" and "action" not in data:
        return {"action": "accept", "content": data}
    if type == "exit_plan_mode.requested":
        return {"approved": True, **data}
    return data
