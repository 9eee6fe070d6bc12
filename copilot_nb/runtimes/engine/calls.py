"""The tools of one turn: all started, run side by side, their results kept in call order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from copilot_nb.errors import ToolError
from copilot_nb.events import JSON, new_id
from copilot_nb.models.base import ToolCall
from copilot_nb.permissions import Decision
from copilot_nb.runtimes.engine import output, words
from copilot_nb.runtimes.engine.asks import Asks
from copilot_nb.runtimes.engine.autopilot import TASK_COMPLETE
from copilot_nb.runtimes.engine.background import Background
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.secrets import redact
from copilot_nb.tools.base import BackgroundTask, Tool, ToolResult

_PATIENCE = 0.5  # seconds a cancelled handler gets to clean up before it is left behind


class Outcome(Struct):
    """What one turn's calls came to.

    Attributes
    ----------
    results
        Texts for the model in call order; None for a call that was interrupted.
    rejected
        A person said no without a word: the run ends (reference §10).
    terminal
        A terminal tool or ``task_complete`` ran: no further model call in this run.
    summary
        What ``task_complete`` said.
    over
        The turn was left; a handler that is still at it says nothing any more.
    """

    results: list[str | None]
    rejected: bool = False
    terminal: bool = False
    summary: str | None = None
    over: bool = False


class Context(Struct):
    """What one running call can reach; see `ToolContext`."""

    core: Core
    backgrounds: Background
    call_id: str
    tool_name: str
    outcome: Outcome
    session_id: str = ""
    working_directory: str = ""

    def __post_init__(self) -> None:
        self.session_id = self.core.session_id
        self.working_directory = self.core.config.working_directory

    def progress(self, text: str) -> None:
        """See `ToolContext`."""
        if text and not self.outcome.over:
            data = {"toolCallId": self.call_id, "partialOutput": text}
            self.core.ephemeral("tool.execution_partial_result", data)

    def when_steered(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `ToolContext`."""
        self.core.steer_listeners.append(callback)
        return lambda: self.core.steer_listeners.remove(callback)

    def background(self, task: BackgroundTask) -> None:
        """See `ToolContext`."""
        self.backgrounds.start(task)


class Calls:
    """Runs tool calls (reference §2, §10, §12)."""

    def __init__(self, core: Core, asks: Asks, backgrounds: Background) -> None:
        self._core = core
        self._asks = asks
        self._backgrounds = backgrounds
        self._offered: tuple[Tool, ...] = ()
        self._specs: list[JSON] = []

    def offered(self, autopilot: bool) -> list[Tool]:
        """The tools of a request; ``task_complete`` belongs to autopilot alone (reference §9)."""
        config = self._core.config
        tools = [*config.tools, TASK_COMPLETE] if autopilot else config.tools
        names = config.available_tools
        return list(tools) if names is None else [tool for tool in tools if tool.name in names]

    def specs(self, autopilot: bool) -> list[JSON]:
        """The offered tools in wire form; the same list as long as nothing changed."""
        tools = tuple(self.offered(autopilot))
        if tools != self._offered:
            self._offered, self._specs = tools, [tool.spec() for tool in tools]
        return self._specs

    async def run(self, calls: list[ToolCall], turn: JSON, outcome: Outcome, autopilot: bool) -> None:
        """Run all calls of a reply; fills `outcome` also when cancelled in between.

        `turn` is ``{"turnId", "interactionId"}``.
        """
        tools = {tool.name: tool for tool in self.offered(autopilot)}
        model = self._core.config.model.name
        arguments: dict[str, Any] = {}
        for call in calls:
            parsed = arguments.setdefault(call.id, parse(call.arguments))
            if not isinstance(parsed, NotAnObject):
                shown = parsed if isinstance(parsed, dict) else {}
                start = {"toolCallId": call.id, "toolName": call.name, "arguments": shown}
                self._core.stored("tool.execution_start", {**start, "model": model, "turnId": turn["turnId"]})
        last = [place for place, call in enumerate(calls) if call.name == TASK_COMPLETE.name]
        first = [place for place in range(len(calls)) if place not in last]
        try:
            for group in (first, last):  # the task is done when everything else is (reference §9)
                tasks = [
                    asyncio.create_task(
                        self._one(place, calls[place], tools, arguments[calls[place].id], turn, outcome)
                    )
                    for place in group
                ]
                await _all(tasks)
        finally:
            outcome.over = True

    async def _one(
        self,
        place: int,
        call: ToolCall,
        tools: dict[str, Tool],
        arguments: Any,
        turn: JSON,
        outcome: Outcome,
    ) -> None:
        tool = tools.get(call.name)
        await asyncio.sleep(0)  # every call has started before the first is done
        if isinstance(arguments, BadArguments):
            result = ToolResult(words.bad_arguments(call.arguments, str(arguments)), error=str(arguments))
        elif isinstance(arguments, NotAnObject):
            result = ToolResult(text := words.not_an_object(call.arguments), error=text)
        elif tool is None:
            result = ToolResult(text := words.unknown_tool(call.name, tools), error=text)
        else:
            decision = await self._asks.may_run(tool, call.id, arguments)
            result = _refusal(decision) or await self._execute(tool, call, arguments, outcome)
            outcome.rejected |= result.error_code == "rejected"
        if outcome.over:
            return
        config = self._core.config
        whole = redact(result.text) if config.redact else result.text
        text, preview = output.shorten(whole, config.large_output_bytes)
        self._completed(call, result, text, preview, turn)
        outcome.results[place] = text
        if tool is not None and result.error is None:
            outcome.terminal |= tool.is_terminal
            if tool is TASK_COMPLETE:
                outcome.terminal, outcome.summary = True, text
                self._core.stored("session.task_complete", {"summary": text, "success": True})

    async def _execute(self, tool: Tool, call: ToolCall, arguments: JSON, outcome: Outcome) -> ToolResult:
        core, request_id = self._core, new_id()
        external = tool.kind == "custom-tool"
        if external:
            core.stored(
                "external_tool.requested",
                {
                    "requestId": request_id,
                    "sessionId": core.session_id,
                    "toolCallId": call.id,
                    "toolName": tool.name,
                    "arguments": arguments,
                    "workingDirectory": core.config.working_directory,
                },
            )
            await asyncio.sleep(0)  # all are asked for before the first handler runs
        context = Context(core, self._backgrounds, call.id, tool.name, outcome)
        try:
            result = tool.handler(arguments, context)
            if isinstance(result, Awaitable):
                result = await result
            if not isinstance(result, ToolResult):
                message = f"The tool {tool.name} returned {type(result).__name__}, not a result."
                result = ToolResult(message, error=message)
        except ToolError as error:
            result = ToolResult(str(error), error=str(error))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            result = ToolResult(text := f"The tool {tool.name} cancelled itself.", error=text)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # a result for the model (reference §12)
            problem = f"{type(error).__name__}: {error}"
            result = ToolResult(
                words.raised(tool.name, json.dumps(arguments, default=str), problem), error=problem
            )
        finally:
            if external and not outcome.over:
                core.stored("external_tool.completed", {"requestId": request_id})
        if not outcome.over:
            for bundle in result.bundles:
                core.ephemeral("jupyter.tool_display", {"toolCallId": call.id, "bundle": bundle})
        return result

    def _completed(
        self, call: ToolCall, result: ToolResult, text: str, preview: str | None, turn: JSON
    ) -> None:
        config = self._core.config
        data: JSON = {
            "toolCallId": call.id,
            "model": config.model.name,
            "interactionId": turn["interactionId"],
            "turnId": turn["turnId"],
            "success": result.error is None,
        }
        if result.error is None:
            data["result"] = {"content": text}
            detail = redact(result.detail) if result.detail and config.redact else result.detail or preview
            if detail and detail != text:
                data["result"]["detailedContent"] = detail
        else:
            problem = redact(result.error) if config.redact else result.error
            short, _ = output.shorten(problem, config.large_output_bytes)
            data["error"] = {"message": short, "code": result.error_code}
        self._core.stored("tool.execution_complete", data)


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for all; when cancelled, cancel all, and leave a handler behind that does not let go."""
    if not tasks:
        return
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_PATIENCE)
        raise
    for task in tasks:
        task.result()  # a fault of ours is raised, not lost


def _refusal(decision: Decision | None) -> ToolResult | None:
    if decision is None or decision.kind.startswith("approve"):
        return None
    if decision.kind == "user-not-available":
        text, code = words.unavailable(decision.reason), "denied"
    else:
        text, code = words.denied(decision.feedback), "denied" if decision.feedback else "rejected"
    return ToolResult(text, error=text, error_code=code)


class BadArguments(str):
    """Why the arguments are no JSON."""


class NotAnObject(str):
    """The arguments are JSON, but no object."""


def parse(raw: str) -> JSON | BadArguments | NotAnObject:
    """The arguments object of a call; an empty string is an empty object (reference §12)."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return BadArguments(error)
    return value if isinstance(value, dict) else NotAnObject(raw)


def as_sent(calls: list[ToolCall]) -> list[ToolCall]:
    """Calls as the history keeps them (reference §12).

    Arguments that are no JSON would make every later request fail; of two calls with one id, the first
    one's arguments were used for both.
    """
    first: dict[str, str] = {}
    for call in calls:
        valid = not isinstance(parse(call.arguments), BadArguments)
        first.setdefault(call.id, call.arguments if valid else "{}")
    return [ToolCall(call.id, call.name, first[call.id]) for call in calls]
