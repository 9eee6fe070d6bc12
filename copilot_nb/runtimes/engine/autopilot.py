"""Autopilot: a run that ends without ``task_complete`` is nudged on, up to a cap (reference §9)."""

from __future__ import annotations

from msgspec import Struct

from copilot_nb.errors import ToolError
from copilot_nb.events import JSON
from copilot_nb.runtimes.engine import words
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.tools.base import Tool, ToolContext, ToolResult


def _complete(arguments: JSON, context: ToolContext) -> ToolResult:
    summary = arguments.get("summary")
    if not isinstance(summary, str) or not summary:
        raise ToolError("task_complete needs a summary of what was done.")
    return ToolResult(summary)


_NUDGED = ("done", "rejected")  # how a run may end and still be nudged on


TASK_COMPLETE = Tool(
    name="task_complete",
    description=words.TASK_COMPLETE,
    handler=_complete,
    parameters={"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
    skip_permission=True,
    kind="builtin",
)


class Autopilot(Struct):
    """Counts the nudges of one user message."""

    core: Core
    message_id: str = ""
    nudges: int = 0

    def started(self, message_id: str) -> None:
        """A person's message starts a run: the count starts anew."""
        self.message_id = message_id
        self.nudges = 0

    def stopped(self, reason: str) -> None:
        """Say why autopilot stopped, if it is on."""
        if self.core.mode == "autopilot":
            data = {"reason": reason, "requestId": self.message_id}
            self.core.ephemeral("session.autopilot_stopped", data)

    def wants_nudge(self, end: str) -> bool:
        """Whether to go on after a run that ended so; says that the cap is reached."""
        config = self.core.config
        available = config.available_tools is None or TASK_COMPLETE.name in config.available_tools
        if (
            self.core.mode != "autopilot"
            or end not in _NUDGED
            or not config.continuation_enabled
            or not available
        ):
            return False
        if self.nudges >= config.max_continues:
            self.stopped("cap_reached")
            return False
        self.nudges += 1
        return True
