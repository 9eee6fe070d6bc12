"""Questions to a person that a run waits for, and the approvals given for the whole session."""

from __future__ import annotations

import asyncio

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON, new_id
from copilot_nb.permissions import Decision, approval_for, covers
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.tools.base import Tool

_RESULT = {
    "approve-once": "approved",
    "approve-for-session": "approved-for-session",
    "reject": "denied-interactively-by-user",
    "user-not-available": "denied-no-approval-rule-and-could-not-request-from-user",
}


class Asks:
    """Asks for permission (reference §10)."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._pending: dict[str, asyncio.Future[Decision]] = {}
        self._approvals: list[JSON] = []

    async def may_run(self, tool: Tool, call_id: str, arguments: object) -> Decision | None:
        """The decision about one call; None when the tool never asks or was approved for the session."""
        if tool.skip_permission:
            return None
        request = tool.permission_request(call_id, arguments)
        if any(covers(approval, request) for approval in self._approvals):
            return None
        core, request_id = self._core, new_id()
        core.stored(
            "permission.requested",
            {
                "requestId": request_id,
                "permissionRequest": request,
                "promptRequest": request,
                "agentMode": core.mode,
                "permissionMode": "manual",
                "ownerSessionId": core.session_id,
            },
        )
        future = self._pending[request_id] = asyncio.get_running_loop().create_future()
        try:
            decision = await self._decide(request, future)
        except asyncio.CancelledError:
            self._completed(request_id, call_id, {"kind": "cancelled", "reason": "the run was aborted"})
            raise
        finally:
            self._pending.pop(request_id, None)
        result: JSON = {"kind": _RESULT[decision.kind]}
        if decision.kind == "approve-for-session":
            result["approval"] = decision.approval or approval_for(request)
            self._approvals.append(result["approval"])
        if decision.feedback:
            result["feedback"] = decision.feedback
        if decision.reason:
            result["reason"] = decision.reason
        self._completed(request_id, call_id, result)
        return decision

    async def _decide(self, request: JSON, future: asyncio.Future[Decision]) -> Decision:
        await asyncio.sleep(0)  # parallel calls ask before the first is answered
        try:
            decision = await self._core.config.policy.decide(request)
        except Exception as error:  # the user's own handler; nobody answered, so the answer is no
            return Decision("user-not-available", reason=f"the permission handler failed: {error!r}")
        return decision or await future

    def _completed(self, request_id: str, call_id: str, result: JSON) -> None:
        self._core.stored(
            "permission.completed", {"requestId": request_id, "toolCallId": call_id, "result": result}
        )

    def answer(self, request_id: str, decision: Decision) -> None:
        """Give a person's answer to a pending request."""
        future = self._pending.get(request_id)
        if future is None or future.done():
            raise UsageError(f"No permission request {request_id!r} is waiting for an answer.")
        future.set_result(decision)
