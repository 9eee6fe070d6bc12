"""The kernel's tools for the CLI: offered as custom tools, run here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any

from copilot_nb.errors import CopilotNbError, ToolError
from copilot_nb.events import JSON
from copilot_nb.secrets import redact
from copilot_nb.tools.base import BackgroundTask, Tool, ToolResult

Note = Callable[[str, JSON], None]
Request = Callable[[str, JSON], Awaitable[Any]]


def offered(tools: Sequence[Tool]) -> list[Any]:
    """The SDK's declarations of our tools; without handlers, because calls are taken off the wire."""
    from copilot import Tool as SdkTool

    return [
        SdkTool(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            skip_permission=tool.skip_permission,
            is_terminal=tool.is_terminal,
        )
        for tool in tools
        if tool.kind == "custom-tool"  # the CLI has its own shell and file tools
    ]


class Call:
    """The `ToolContext` of one running call."""

    def __init__(self, runner: Runner, data: JSON) -> None:
        self.session_id: str = data.get("sessionId", "")
        self.call_id: str = data.get("toolCallId", "")
        self.tool_name: str = data.get("toolName", "")
        self.working_directory: str = data.get("workingDirectory", "")
        self._runner = runner

    def progress(self, text: str) -> None:
        """Show a piece of output while the call runs."""
        data = {"toolCallId": self.call_id, "partialOutput": text}
        self._runner.note("tool.execution_partial_result", data)

    def when_steered(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when a person steers while this call runs."""
        self._runner.steer_callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._runner.steer_callbacks:
                self._runner.steer_callbacks.remove(callback)

        return unsubscribe

    def background(self, task: BackgroundTask) -> None:
        """Tell the model when the task ends. The CLI does not put off ``session.idle`` for it."""
        self._runner.watch(task)


class Runner:
    """Runs the calls of one session, each as a task; `note` delivers an ephemeral event."""

    def __init__(self, tools: Sequence[Tool], request: Request, note: Note, context: Context) -> None:
        self.tools = {tool.name: tool for tool in tools if tool.kind == "custom-tool"}
        self.note = note
        self.steer_callbacks: list[Callable[[], None]] = []
        self._request = request
        self._context = context
        self._running: dict[str, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()

    def on_event(self, type: str, data: JSON) -> None:
        """Start or cancel a call; on the loop."""
        request_id = data.get("requestId", "")
        if type == "external_tool.requested" and data.get("toolName") in self.tools:
            if request_id not in self._running:
                loop = asyncio.get_running_loop()
                self._running[request_id] = loop.create_task(
                    self._run(request_id, self.tools[data["toolName"]], data), context=self._context
                )
        elif type == "external_tool.completed":
            task = self._running.pop(request_id, None)
            if task is not None:
                task.cancel()

    def steered(self) -> None:
        """A person steered."""
        for callback in list(self.steer_callbacks):
            callback()

    def cancel(self) -> None:
        """Cancel every call: the process that asked for them is gone, or the session closes."""
        for task in [*self._running.values(), *self._background]:
            task.cancel()
        self._running.clear()

    def watch(self, task: BackgroundTask) -> None:
        """Wait for a background task and send its notice to the model."""
        job = asyncio.get_running_loop().create_task(self._notify(task), context=self._context)
        self._background.add(job)
        job.add_done_callback(self._background.discard)

    async def _notify(self, task: BackgroundTask) -> None:
        end = await task.wait()
        params = {"message": end["content"], "kind": end.get("kind")}
        await self._request("session.sendSystemNotification", params)

    async def _run(self, request_id: str, tool: Tool, data: JSON) -> None:
        call = Call(self, data)
        answer: JSON
        try:
            answer = {"result": _wire(await self._result(tool, data.get("arguments") or {}, call))}
        except ToolError as error:
            answer = {"result": _wire(ToolResult(str(error), error=str(error)))}
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            answer = {"error": f"The tool {tool.name} cancelled itself."}
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # the model is told (reference §12)
            answer = {"error": redact(f"{type(error).__name__}: {error}")}
        if self._running.pop(request_id, None) is None:
            return  # cancelled meanwhile; the CLI no longer waits
        try:
            await self._request("session.tools.handlePendingToolCall", {"requestId": request_id, **answer})
        except CopilotNbError as error:
            message = f"The result of {tool.name} was lost: {error}"
            self.note("jupyter.notice", {"level": "warning", "message": message})

    async def _result(self, tool: Tool, arguments: JSON, call: Call) -> ToolResult:
        result = tool.handler(arguments, call)
        if inspect.isawaitable(result):
            result = await result
        if not isinstance(result, ToolResult):
            return ToolResult(
                "Tool returned no result.",
                error=f"the tool {tool.name} returned {type(result).__name__}, not a result",
            )
        for bundle in result.bundles:
            self.note("jupyter.tool_display", {"toolCallId": call.call_id, "bundle": bundle})
        return result


def _wire(result: ToolResult) -> JSON:
    """The CLI's form of a result, the environment's secrets taken out."""
    wire: JSON = {"textResultForLlm": redact(result.text), "resultType": "success", "toolTelemetry": {}}
    if result.error is not None:
        wire |= {"resultType": "failure", "error": redact(result.error)}
    if result.detail is not None:
        wire["sessionLog"] = redact(result.detail)
    return wire
