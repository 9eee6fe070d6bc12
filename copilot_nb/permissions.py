"""Who may let a tool run: requests, decisions, and the rules that answer without a person.

The shapes are the reference's (§10): a request is ``{kind, toolCallId, toolName, …}``; the decision
kinds and what each does to the run are listed at `Decision`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

from msgspec import Struct, field

from copilot_nb.events import JSON

DecisionKind = Literal["approve-once", "approve-for-session", "reject", "user-not-available"]


class Decision(Struct, frozen=True):
    """What was answered to a permission request.

    Attributes
    ----------
    kind
        ``approve-once`` runs this call; ``approve-for-session`` also every later matching one, unasked;
        ``reject`` with `feedback` tells the model and the run goes on; ``reject`` without ends the run and
        empties both lanes; ``user-not-available`` denies because nobody could be asked, and the run goes on.
    feedback
        Why it was rejected, in words for the model.
    approval
        What ``approve-for-session`` covers: ``{"kind": "custom-tool", "toolName": …}``; made from the request
        when absent.
    reason
        Who decided, in words for the person: the rule's name, or why nobody could be asked.
    """

    kind: DecisionKind
    feedback: str | None = None
    approval: JSON | None = None
    reason: str | None = None


Handler = Callable[[JSON], "Decision | Awaitable[Decision | None] | None"]
"""Receives the permission request; None means: ask the person."""


def approval_for(request: JSON) -> JSON:
    """What *allow for this session* covers: the tool, for a shell the very same command, else the kind."""
    kind = request.get("kind", "custom-tool")
    if kind == "custom-tool":
        return {"kind": kind, "toolName": request.get("toolName")}
    if kind == "shell":  # not its first word: "echo" would then allow "echo; rm -r ."
        return {"kind": kind, "command": request.get("fullCommandText")}
    return {"kind": kind}


def covers(approval: JSON, request: JSON) -> bool:
    """Whether an earlier *for this session* approval answers this request."""
    return approval_for(request) == approval


class Policy(Struct):
    """The rules of one session, tried in order; the first that answers decides.

    Attributes
    ----------
    allow
        Tool names that never ask (``--allow python``); ``"*"`` is every tool (``--yolo``).
    handlers
        Rules and handlers of the user, asked before the person.
    can_ask
        Whether a person is there. If not, an unanswered request is denied with an event that says why.
    """

    allow: set[str] = field(default_factory=set)
    handlers: list[Handler] = field(default_factory=list)
    can_ask: Callable[[], bool] = lambda: True

    def allows(self, tool_name: str) -> bool:
        """Whether the tool was opened up for the whole session."""
        return "*" in self.allow or tool_name in self.allow

    async def decide(self, request: JSON) -> Decision | None:
        """The rules' answer; None means that the person must be asked."""
        if self.allows(str(request.get("toolName") or request.get("kind"))):
            return Decision("approve-once", reason="allowed when the session was opened")
        for handler in self.handlers:
            answer = handler(request)
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer is not None:
                return answer
        if not self.can_ask():
            return Decision("user-not-available", reason="nobody is there to ask: no front end is attached")
        return None


def allow_tools(names: Iterable[str]) -> set[str]:
    """Tool names from ``--allow a,b`` or a list."""
    return {part.strip() for name in names for part in name.split(",") if part.strip()}
