"""The real Copilot CLI behind the same actions, through its Python SDK: what everything is measured by.

The CLI executable is found through ``COPILOT_CLI_PATH`` (``npm install @github/copilot@1.0.102``). It needs
no network and no login here: models come from the scripted server (a provider of one's own key).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

from projection import JSON
from rig import TOOL_SCHEMA, Rig


class Client:
    """One CLI process; many rigs may share it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.rigs: dict[str, Rig] = {}  # by session id
        self.early: dict[str, list[JSON]] = {}  # events that came before the session id was known

    async def start(self) -> None:
        """Start the process."""
        from copilot import CopilotClient

        # The SDK finds the executable through COPILOT_CLI_PATH.
        self.sdk = CopilotClient(base_directory=str(self.home), use_logged_in_user=False)
        await self.sdk.start()
        wire = self.sdk._client
        parsed = wire.notification_handler

        def handler(method: str, params: Any) -> None:
            if method == "session.event":
                self._take(params["sessionId"], params["event"])
            parsed(method, params)

        wire.notification_handler = handler

    def _take(self, session_id: str, event: JSON) -> None:  # called on the loop
        rig = self.rigs.get(session_id)
        if rig is None:
            self.early.setdefault(session_id, []).append(event)
        else:
            rig.on_event(event)

    def attach(self, session_id: str, rig: Rig) -> None:
        """Deliver the session's events to a rig."""
        for event in self.early.pop(session_id, []):
            rig.on_event(event)
        self.rigs[session_id] = rig

    async def stop(self) -> None:
        """Stop the process; it writes ``session.shutdown`` to its sessions."""
        process = self.sdk._client.process
        await asyncio.wait_for(self.sdk.stop(), 30)
        for pipe in (process.stdin, process.stdout, process.stderr):  # left open by the SDK
            with contextlib.suppress(OSError, ValueError):
                pipe.close()


class CliRig(Rig):
    """A case on the real CLI.

    Parameters
    ----------
    client
        A client to share; without one the rig starts and stops its own.
    """

    def __init__(self, spec: JSON, folder: Path, client: Client | None = None) -> None:
        super().__init__(spec, folder)
        self.shared = client
        self.client: Client | None = client
        if client:
            self.home = client.home

    async def start(self) -> None:
        if self.client is None:
            self.client = Client(self.home)
            await self.client.start()

    async def stop(self) -> None:
        client, self.client = self.client, self.shared
        if client is not None and client is not self.shared:
            await client.stop()
        elif client is not None and self.session_id:
            await self.disconnect()

    async def create(self) -> None:
        self.session = await self.client.sdk.create_session(**self._options({}))
        self._attach()

    async def resume(self, session_id: str | None, over: JSON) -> None:
        options = self._options(over)
        self.session = await self.client.sdk.resume_session(session_id or self.session_id, **options)
        self._attach()

    def _attach(self) -> None:
        self.session_id = self.session.session_id
        self.client.attach(self.session_id, self)

    def _options(self, over: JSON) -> JSON:
        config = {**self.spec.get("config", {}), **over}
        provider = {
            "type": "openai",
            "base_url": self.model.base_url,
            "wire_api": "completions",
            "api_key": "x",
        }
        tools = [self._tool(name) for name in self.tool_names]
        options: JSON = {
            "on_permission_request": self._permission_handler(),
            "model": "fake-model",
            "provider": {**provider, **config.get("provider", {})},
            "working_directory": str(self.work),
            "streaming": config.get("streaming", True),
            "tools": tools,
        }
        if not config.get("default_prompt"):
            options["system_message"] = {"mode": "replace", "content": "SYS"}
            options["available_tools"] = [tool.name for tool in tools] + config.get("extra_tools", [])
        return {**options, **config.get("sdk", {})}

    def _tool(self, name: str) -> Any:
        from copilot.tools import Tool, ToolResult

        async def handler(invocation: Any) -> Any:
            answer = await self.call_tool(name, invocation.tool_call_id, invocation.arguments)
            if answer is None:
                return None
            text, error = answer
            if error:
                return ToolResult(text_result_for_llm=text, result_type="failure", error=error)
            return ToolResult(text_result_for_llm=text)

        return Tool(
            name=name,
            description=f"{name} tool",
            handler=handler,
            parameters=TOOL_SCHEMA,
            skip_permission=self.skip_permission,
            **({"is_terminal": True} if name == "done" else {}),
        )

    def _permission_handler(self) -> Any:
        import copilot.generated.rpc as rpc
        from copilot.session import PermissionHandler

        if self.spec.get("permissions") is None:
            return PermissionHandler.approve_all
        next_decision = self.decisions()

        async def handler(request: Any, invocation: Any) -> Any:
            decision = await next_decision(getattr(request, "tool_call_id", None))
            kind = decision["kind"]
            if kind == "approve-once":
                return rpc.PermissionDecisionApproveOnce()
            if kind == "reject":
                feedback = {"feedback": decision["feedback"]} if "feedback" in decision else {}
                return rpc.PermissionDecisionReject(**feedback)
            if kind == "user-not-available":
                return rpc.PermissionDecisionUserNotAvailable()
            if kind != "approve-for-session":
                raise KeyError(kind)
            if "approval" not in decision:
                return rpc.PermissionDecisionApproveForSession()
            name = decision["approval"]["toolName"]
            approval = rpc.PermissionDecisionApproveForSessionApprovalCustomTool(tool_name=name)
            return rpc.PermissionDecisionApproveForSession(approval=approval)

        return handler

    async def send(self, prompt: str, **more: Any) -> str:
        return str(await self.session.send(prompt, **more))

    async def abort(self) -> None:
        await self.session.abort()

    async def rpc(self, method: str, params: JSON) -> Any:
        mine = {} if method.startswith("sessions.") else {"sessionId": self.session_id}
        return await self.client.sdk._client.request(method, {**params, **mine})

    async def disconnect(self) -> None:
        await self.session.disconnect()


def cli_path() -> str | None:
    """The CLI executable, or None where there is none."""
    path = os.environ.get("COPILOT_CLI_PATH")
    return path if path and Path(path).exists() else None
