"""Runs one case: a scripted model server, scripted tools, and the case's actions in order.

`Rig` knows what every case may ask for; a subclass knows how one runtime does it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from following import Course
from model_server import ModelServer
from projection import JSON

PATIENCE = 60.0  # s to wait for what must come; a loaded machine is slow
TOOL_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "n": {"type": "integer"}},
}


class NotMapped(Exception):
    """A case asks for something that this rig cannot do."""


class Rig:
    """One case on one runtime.

    Parameters
    ----------
    spec
        The case: config, tools, permissions, model_script, actions.
    folder
        A fresh directory; its name ends in the case's name, as it did when the cases were recorded.
    """

    def __init__(self, spec: JSON, folder: Path) -> None:
        self.spec = spec
        self.folder = folder
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(parents=True, exist_ok=True)
        self.events: list[JSON] = []
        self.notes: list[str] = []  # what happened beside events: returns, errors, timeouts
        self.returns: dict[str, Any] = {}
        self.disk: list[JSON] = []
        self.session_id = ""
        self.views: list[Any] = []  # what the lanes held after queue edits
        self.tool_gates: dict[str, asyncio.Future[str]] = {}
        self.tools_started: list[str] = []
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.model = ModelServer(spec.get("model_script", []))
        self.model.on_request = lambda kind, n: self._tell()

    # --- what a runtime must do ------------------------------------------------------------------

    async def start(self) -> None:
        """Start the client or process that sessions live in."""

    async def create(self) -> None:
        """Open the case's session; sets `session_id`."""
        raise NotImplementedError

    async def resume(self, session_id: str | None, over: JSON) -> None:
        """Open a session again; `over` changes the config."""
        raise NotImplementedError

    async def send(self, prompt: str, **more: Any) -> str:
        """Send a message; its id."""
        raise NotImplementedError

    async def abort(self) -> None:
        """Abort the run."""
        raise NotImplementedError

    async def rpc(self, method: str, params: JSON) -> Any:
        """Call a JSON-RPC method of the CLI, or what stands for it."""
        raise NotImplementedError

    async def disconnect(self) -> None:
        """Let go of the session."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop the client; sessions are closed."""
        raise NotImplementedError

    # --- recording -------------------------------------------------------------------------------

    def on_event(self, event: JSON) -> None:
        """Take a delivered event, in wire form, on the rig's loop."""
        self.events.append(event)
        self.changed.set()

    def _tell(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.changed.set)

    async def until(self, ready: Callable[[], bool], seconds: float, what: str) -> bool:
        """Wait until `ready`; False, and a note, when the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while not ready():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            self.notes.append(f"timeout: {what}")
            return False
        return True

    def count(self, type: str, match: JSON | None = None) -> int:
        """How many events of a type, with these data, were delivered."""
        wanted = (match or {}).items()
        found = (event.get("data") or {} for event in self.events if event["type"] == type)
        return sum(all(data.get(key) == value for key, value in wanted) for data in found)

    @property
    def log_path(self) -> Path:
        """The session's log."""
        return self.home / "session-state" / self.session_id / "events.jsonl"

    def read_disk(self) -> list[JSON]:
        """The lines of the log; one ``<unreadable>`` line when it cannot be read."""
        try:
            lines = self.log_path.read_bytes().split(b"\n")
            return [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            return [{"type": "<unreadable>", "data": {"error": str(error)}}]

    # --- scripted tools and permissions ----------------------------------------------------------

    @property
    def tool_names(self) -> list[str]:
        """The scripted tools the case uses."""
        return list(self.spec.get("tools", ["gate", "echo"]))

    @property
    def skip_permission(self) -> bool:
        """Whether the scripted tools never ask."""
        return bool(self.spec.get("config", {}).get("skip_permission", True))

    def gate(self, key: str) -> asyncio.Future[str]:
        """The future that a gated tool or permission waits for."""
        future = self.tool_gates.get(key)
        if future is None or future.cancelled():
            future = self.tool_gates[key] = self.loop.create_future()
        return future

    async def call_tool(self, name: str, call_id: str, arguments: Any) -> tuple[str, str | None] | None:
        """What a scripted tool answers: its text, and an error when it reports a failure."""
        args = arguments or {}
        if name == "gate":
            key = args.get("id", call_id)
            self.tools_started.append(key)
            self.changed.set()
            return await self.gate(key), None
        if name in ("echo", "done"):
            return str(args.get("text", "")), None
        if name == "boom":
            raise ValueError("kaboom")
        if name == "fail":
            return "it failed because X", "X"
        if name == "big":
            n = int(args.get("n", 1000))
            return "".join(f"line {i:07d}\n" for i in range(n // 13 + 1))[:n], None
        if name == "none":
            return None
        raise NotMapped(f"tool {name}")

    def decisions(self) -> Callable[[str | None], Any]:
        """A function that gives the case's next permission decision (or the call's own), gates awaited."""
        policy = self.spec.get("permissions") or ()
        in_order: Iterator[JSON] = iter(() if isinstance(policy, dict) else policy)

        async def next_decision(call_id: str | None) -> JSON:
            decision = policy.get(call_id) if isinstance(policy, dict) else next(in_order, None)
            decision = decision or {"kind": "approve-once"}
            kind = decision["kind"]
            if kind == "raise":
                raise RuntimeError("handler crashed")
            if kind in ("gate", "gate-reject"):
                await self.gate(decision["id"])
                kind = "approve-once" if kind == "gate" else "reject"
            return {**decision, "kind": kind}

        return next_decision

    # --- actions ---------------------------------------------------------------------------------

    async def run(self) -> Rig:
        """Do all actions, let things settle, close, and read the log."""
        try:
            await self.start()
            await self.create()
            for action in self.spec["actions"]:
                await self.act(action)
            await asyncio.sleep(self.spec.get("settle", 0.4))
        finally:
            await self.stop()
            self.model.close()
        self.disk = self.read_disk()
        return self

    async def act(self, action: JSON) -> None:
        """Do one action; what goes wrong is a note, as it was when the cases were recorded."""
        do = getattr(self, f"_do_{action['do']}", None)
        if do is None:
            raise NotMapped(f"action {action['do']}")
        try:
            await do(action)
        except NotMapped:
            raise
        except Exception as error:
            self.notes.append(f"{action['do']}: {type(error).__name__}: {error}")

    async def _do_send(self, action: JSON) -> None:
        optional = ("mode", "agent_mode", "source", "display_prompt")
        more = {key: action[key] for key in optional if key in action}
        if "attachments" in action:
            more["attachments"] = [self._placed(item) for item in action["attachments"]]
        message_id = await self.send(action["prompt"], **more)
        self.returns[action.get("as", action["prompt"])] = message_id

    def _placed(self, attachment: JSON) -> JSON:
        paths = {key: str(self.work / attachment[key]) for key in ("path", "filePath") if key in attachment}
        return {**attachment, **paths}

    async def _do_wait(self, action: JSON) -> None:
        def ready() -> bool:
            return self.count(action["event"], action.get("match")) >= action.get("n", 1)

        await self.until(ready, action.get("timeout", PATIENCE), json.dumps(action))

    async def _do_wait_request(self, action: JSON) -> None:
        def ready() -> bool:
            return len(self.model.requests) >= action["n"]

        await self.until(ready, action.get("timeout", PATIENCE), json.dumps(action))

    async def _do_wait_tool(self, action: JSON) -> None:
        def ready() -> bool:
            return action["id"] in self.tools_started

        await self.until(ready, action.get("timeout", PATIENCE), json.dumps(action))

    async def _do_finish_tool(self, action: JSON) -> None:
        future = self.gate(action["id"])
        if future.done():
            return
        if "error" in action:
            future.set_exception(RuntimeError(action["error"]))
        else:
            future.set_result(action.get("result", f"result {action['id']}"))

    async def _do_release(self, action: JSON) -> None:
        self.model.gate(action["gate"]).set()

    async def _do_abort(self, action: JSON) -> None:
        await self.abort()

    async def _do_sleep(self, action: JSON) -> None:
        await asyncio.sleep(action["s"])

    async def _do_rpc(self, action: JSON) -> None:
        try:
            result = await self.rpc(action["method"], self._filled(action.get("params") or {}))
        except NotMapped:
            raise
        except Exception as error:
            result = {"<error>": f"{type(error).__name__}: {error}"}
        self.notes.append(f"{action['method']} -> {result}")
        if action.get("as"):
            self.returns[action["as"]] = result
        if pick := action.get("pick"):
            for key in pick["path"]:
                result = result[key]
            self.returns[pick["as"]] = result

    def _filled(self, value: Any) -> Any:
        """Put earlier returns in: ``$name``."""
        if isinstance(value, str) and value.startswith("$"):
            return self.returns.get(value[1:], value)
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        return [self._filled(item) for item in value] if isinstance(value, list) else value

    async def _do_follow(self, action: JSON) -> None:
        await Course(self, action["plan"]).follow()

    async def _do_write_file(self, action: JSON) -> None:
        path = self.work / action["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(action["content"])

    async def _do_append_log(self, action: JSON) -> None:
        with self.log_path.open("a") as log:
            log.write(action["text"])

    async def stored(self) -> list[JSON]:
        """The stored events as the runtime gives them."""
        return list((await self.rpc("session.getMessages", {}))["events"])

    async def _do_get_events(self, action: JSON) -> None:
        self.notes.append(f"get_events -> {[event['type'] for event in await self.stored()]}")

    async def _do_disconnect(self, action: JSON) -> None:
        await self.disconnect()

    async def _do_stop_client(self, action: JSON) -> None:
        await self.stop()

    async def _do_start_client(self, action: JSON) -> None:
        await self.start()

    async def _do_resume(self, action: JSON) -> None:
        await self.resume(None, action.get("over", {}))

    async def _user_event(self, n: int) -> str:
        return str([event["id"] for event in await self.stored() if event["type"] == "user.message"][n - 1])

    async def _do_truncate_to_user(self, action: JSON) -> None:
        await self.rpc("session.history.truncate", {"eventId": await self._user_event(action["n"])})

    async def _do_rewind_to_user(self, action: JSON) -> None:
        params = {"eventId": await self._user_event(action["n"]), "mode": "conversation"}
        await self.rpc("session.history.rewind", params)

    async def _do_fork_at_user(self, action: JSON) -> None:
        to = await self._user_event(action["n"])
        fork = await self.rpc("sessions.fork", {"sessionId": self.session_id, "toEventId": to})
        await self.resume(fork["sessionId"], {})
