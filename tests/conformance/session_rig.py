"""Our `Session`, on either runtime, behind the case's actions.

A case speaks of the CLI's configuration and JSON-RPC methods; here they are mapped to `open_session` and to
the methods of a session.
"""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

from projection import JSON
from rig import TOOL_SCHEMA, NotMapped, Rig

from copilot_nb.models.openai import OpenAIModel
from copilot_nb.permissions import Decision
from copilot_nb.runtimes.base import Message
from copilot_nb.session import Session, open_session, resume_session
from copilot_nb.tools import shell_tools
from copilot_nb.tools.base import Tool, ToolContext, ToolResult


class SessionRig(Rig):
    """A case on our `Session`.

    Parameters
    ----------
    runtime
        ``engine`` or ``copilot``.
    """

    session: Session

    def __init__(self, spec: JSON, folder: Path, runtime: str = "engine") -> None:
        super().__init__(spec, folder)
        self.runtime = runtime

    async def create(self) -> None:
        await self._open(open_session, {})

    async def resume(self, session_id: str | None, over: JSON) -> None:
        await self.stop()
        options = self._options(over)
        sdk = over.get("sdk", {})
        if not sdk.get("allow_transcript_recovery", True):
            options["recover"] = False
        if sdk.get("continue_pending_work") and self.runtime == "engine":
            options["continue_pending_work"] = True
        await self._open(resume_session, options, session_id=session_id or self.session_id)

    async def _open(self, how: Any, options: JSON, **more: Any) -> None:
        self.session = how(**(options or self._options({})), **more)
        self.session_id = self.session.id
        if self.runtime == "engine":  # its first events come while it opens, before anyone can listen
            seen = {event["id"] for event in self.events}
            for line in self.read_disk():
                if line["id"] not in seen:
                    self.on_event(line)
        self.session.on(lambda event: self.on_event(event.to_dict()))
        if self.runtime == "copilot":
            ready = {"runtime": "copilot", "state": "ready"}
            await self.until(lambda: self.count("jupyter.runtime", ready) > 0, 60, "the CLI")
            self.events = [event for event in self.events if event["type"] != "jupyter.runtime"]

    def _options(self, over: JSON) -> JSON:
        """What `open_session` takes for the case's config."""
        config = {**self.spec.get("config", {}), **over}
        extra = config.get("extra_tools", [])
        offered = None if config.get("default_prompt") else [*self.tool_names, *extra]
        options: JSON = {
            "tools": [self._tool(name) for name in self.tool_names],
            "home": self.home,
            "runtime": self.runtime,
            "on_permission_request": self._permission_handler(),
            "ask": True,
            "kernel": False,
            "streaming": config.get("streaming", True),
            "working_directory": str(self.work),
        }
        provider, sdk = config.get("provider", {}), config.get("sdk", {})
        if self.runtime == "copilot":
            system = {} if offered is None else {"system_message": {"mode": "replace", "content": "SYS"}}
            tools = {} if offered is None else {"available_tools": offered}
            return {
                **options,
                "model": "openai:fake-model",
                "base_url": self.model.base_url,
                "wire_api": "completions",
                "sdk": {**system, **tools, **sdk},
                **provider,
            }
        if "bash" in extra:
            shell = shell_tools(cwd=str(self.work))
            options["tools"] += [tool for tool in shell if tool.name in extra]
        autopilot, large = sdk.get("autopilot", {}), sdk.get("large_output", {})
        if large.get("enabled") is False:
            options["large_output_bytes"] = None
        elif "max_size_bytes" in large:
            options["large_output_bytes"] = large["max_size_bytes"]
        for key in ("continuation_enabled", "max_continues"):
            if key in autopilot:
                options[key] = autopilot[key]
        return {
            **options,
            "model": OpenAIModel(
                "fake-model",
                base_url=self.model.base_url,
                api_key="x",
                max_prompt_tokens=provider.get("max_prompt_tokens"),
            ),
            "system_prompt": None if offered is None else "SYS",
            "available_tools": offered,
        }

    def _tool(self, name: str) -> Tool:
        async def handler(arguments: JSON, context: ToolContext) -> ToolResult:
            answer = await self.call_tool(name, context.call_id, arguments)
            if answer is None:
                return None  # type: ignore[return-value]
            return ToolResult(answer[0], error=answer[1])

        return Tool(
            name,
            f"{name} tool",
            handler,
            TOOL_SCHEMA,
            skip_permission=self.skip_permission,
            is_terminal=name == "done",
        )

    def _permission_handler(self) -> Any:
        next_decision = self.decisions()

        async def handler(request: JSON) -> Decision:
            decision = await next_decision(request.get("toolCallId"))
            approval = decision.get("approval")
            if approval is not None:
                approval = {"kind": "custom-tool", **approval}
            return Decision(decision["kind"], decision.get("feedback"), approval)

        return handler

    async def send(self, prompt: str, **more: Any) -> str:
        return await self.session.send(prompt, **more)

    async def abort(self) -> None:
        await self.session.abort()

    async def disconnect(self) -> None:
        await self.stop()

    async def stop(self) -> None:
        if getattr(self, "session", None) is not None and not self.session.closed:
            await self.session.close()

    async def rpc(self, method: str, params: JSON) -> Any:
        call = getattr(self, "_rpc_" + method.replace(".", "_"), None)
        if call is None and self.runtime == "copilot":
            return await self.session.runtime._call(method, params)
        if call is None:
            raise NotMapped(f"rpc {method}")
        result = call(**{_snake(key): value for key, value in params.items()})
        return await result if inspect.isawaitable(result) else result

    async def _rpc_session_queue_pendingItems(self) -> Any:
        return await self.session.queue.pending_items()

    async def _rpc_session_queue_moveItem(self, id: str, to_position: int) -> Any:
        return {"changed": await self.session.queue.move_item(id, to_position)}

    async def _rpc_session_queue_removeAt(self, id: str) -> Any:
        return {"removed": await self.session.queue.remove_at(id)}

    async def _rpc_session_queue_updateText(self, id: str, prompt: str) -> Any:
        return {"updated": await self.session.queue.update_text(id, prompt)}

    async def _rpc_session_queue_duplicateAt(self, id: str) -> Any:
        return {"id": await self.session.queue.duplicate_at(id)}

    async def _rpc_session_queue_insertAt(self, position: int, message: JSON) -> Any:
        return {"id": await self.session.queue.insert_at(position, _message(message))}

    async def _rpc_session_queue_sendNow(self, id: str) -> Any:
        return {"steered": await self.session.queue.send_now(id)}

    async def _rpc_session_queue_removeMostRecent(self) -> Any:
        return {"removed": await self.session.queue.remove_most_recent()}

    async def _rpc_session_queue_clear(self) -> Any:
        return await self.session.queue.clear()

    async def _rpc_session_queue_setDrainPaused(self, paused: bool) -> Any:
        return await self.session.queue.set_drain_paused(paused)

    async def _rpc_session_queue_withdrawMessage(self, message_id: str, expected_prompt: str) -> Any:
        return await self.session.withdraw(message_id, expected_prompt)

    async def _rpc_session_sendMessages(self, messages: list[JSON]) -> Any:
        return {"messageIds": await self.session.send_messages([_message(item) for item in messages])}

    async def _rpc_session_mode_set(self, mode: str) -> Any:
        return await self.session.set_mode(mode)

    def _rpc_session_mode_get(self) -> Any:
        return self.session.state.mode

    async def _rpc_session_interruptMainTurn(self) -> Any:
        await self.session.interrupt()

    async def _rpc_session_history_compact(self, custom_instructions: str | None = None) -> Any:
        return await self.session.compact(custom_instructions)

    async def _rpc_session_history_truncate(self, event_id: str) -> Any:
        return {"eventsRemoved": await self.session.truncate(event_id)}

    async def _rpc_session_history_rewind(self, event_id: str, mode: str = "conversation") -> Any:
        return await self.session.rewind(event_id)

    async def _rpc_session_history_listRewindPoints(self) -> Any:
        return await self.session.runtime.rewind_points()

    def _rpc_session_tools_listPendingRequests(self) -> Any:
        return {"items": self.session.runtime.pending_tool_calls()}

    async def _rpc_session_tools_handlePendingToolCall(self, request_id: str, result: Any) -> Any:
        await self.session.runtime.handle_pending_tool_call(request_id, result)
        return {"success": True}

    async def _rpc_sessions_fork(self, session_id: str, to_event_id: str | None = None) -> Any:
        return {"sessionId": await self.session.fork(to_event_id)}

    async def _rpc_session_getMessages(self) -> Any:
        await asyncio.sleep(0.3 if self.runtime == "copilot" else 0)  # the CLI writes behind (reference §14)
        return {"events": [event.to_dict() for event in await self.session.get_events()]}


def _message(raw: JSON) -> Message:
    return Message(**{_snake(key): value for key, value in raw.items()})


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
