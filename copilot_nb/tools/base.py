"""The seam to what a model may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from copilot_nb.events import JSON


class ToolResult(Struct):
    """What a tool gives back.

    Attributes
    ----------
    text
        For the model.
    error
        Set when the tool failed: a short text for the event; `text` still goes to the model.
    detail
        A longer form for people; not sent to the model.
    display
        Mime bundles for the panel (figures, tables), one or several; not sent to the model.
    error_code
        ``failure`` unless the tool knows better.
    """

    text: str = ""
    error: str | None = None
    detail: str | None = None
    display: JSON | list[JSON] | None = None
    error_code: str = "failure"

    @property
    def bundles(self) -> list[JSON]:
        """`display` as a list."""
        return self.display if isinstance(self.display, list) else [self.display] if self.display else []


class ToolContext(Protocol):
    """What a running call can reach."""

    session_id: str
    call_id: str
    tool_name: str
    working_directory: str

    def progress(self, text: str) -> None:
        """Show a piece of output while the call runs (``tool.execution_partial_result``)."""

    def when_steered(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when a person steers while this call runs; returns the unsubscriber.

        The built-in shell goes to the background then (reference §3).
        """

    def background(self, task: BackgroundTask) -> None:
        """Keep the session from being idle until the task ends."""


class BackgroundTask(Protocol):
    """Work that outlives its call; `session.idle` waits for it (reference §3)."""

    id: str
    description: str

    async def wait(self) -> JSON:
        """Wait for the end.

        Returns
        -------
        ``{"content": notice for the model, "kind": {...}, "read": {"name", "arguments", "result"}}``;
        an empty dict when the end is no news (the model itself stopped it).
        """


Handler = Callable[[JSON, ToolContext], "ToolResult | Awaitable[ToolResult]"]
ToolKind = Literal["custom-tool", "shell", "read", "write", "url", "mcp", "builtin"]


class Tool(Struct, frozen=True):
    """Something a model may call.

    Attributes
    ----------
    parameters
        JSON schema of the arguments object.
    handler
        ``(arguments, context) -> ToolResult``, plain or async. Raising is a failure the model is told of.
    skip_permission
        Never asks.
    is_terminal
        A turn in which it was called is the run's last (reference §2).
    kind
        Shown when permission is asked; ``custom-tool`` also emits ``external_tool.*`` events, the
        built-in kinds do not.
    """

    name: str
    description: str
    handler: Handler
    parameters: JSON = field(default_factory=lambda: {"type": "object", "properties": {}})
    skip_permission: bool = False
    is_terminal: bool = False
    kind: ToolKind = "custom-tool"

    def spec(self) -> JSON:
        """The OpenAI wire form."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def permission_request(self, call_id: str, arguments: Any) -> JSON:
        """The request a person is asked about (reference §10)."""
        base: JSON = {"kind": self.kind, "toolCallId": call_id, "toolName": self.name}
        if self.kind == "shell":
            command = str(arguments.get("command", "")) if isinstance(arguments, dict) else ""
            return {
                "kind": "shell",
                "toolCallId": call_id,
                "toolName": self.name,
                "fullCommandText": command,
                "intention": str(arguments.get("description", "")) if isinstance(arguments, dict) else "",
            }
        return {**base, "toolDescription": self.description, "args": arguments}
