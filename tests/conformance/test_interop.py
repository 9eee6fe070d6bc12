"""Sessions go both ways between our engine and the real CLI: same log, same history, same next request.

Reference §13, §18, §20. The CLI is found through ``COPILOT_CLI_PATH``; ``.ci/run`` installs it.
"""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_rig import Client, CliRig, cli_path
from matching import Matcher, first_difference
from projection import elider, request_messages, vocabulary
from rig import Rig
from session_rig import SessionRig

pytestmark = pytest.mark.skipif(cli_path() is None, reason="COPILOT_CLI_PATH names no Copilot CLI")

HERE = Path(__file__).parent
LATER = {
    "name": "later",
    "model_script": [{"text": ["fine"]}],
    "actions": [{"do": "send", "prompt": "what was that"}, {"do": "wait", "event": "session.idle"}],
}


def call(call_id: str, name: str, **args: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": args}


# A bit of everything: tools in parallel, steers, a queue, failures, a model error, aborts, a continuation.
RICH = {
    "name": "rich",
    "config": {},
    "tools": ["gate", "echo", "boom", "fail"],
    "model_script": [
        {
            "text": ["look ", "first"],
            "tool_calls": [call("c1", "gate", id="a"), call("c2", "echo", text="b"), call("c3", "boom")],
        },
        {"text": ["seen"]},
        {"text": ["queued answer"], "reasoning": ["hm"]},
        {"text": [], "tool_calls": [call("c4", "fail"), call("c5", "nosuch", x=1)]},
        {"http_error": {"status": 400, "message": "bad request"}},
        {"text": [], "tool_calls": [call("c6", "gate", id="c"), call("c7", "echo", text="d")]},
        {"text": ["half", " of it"], "gate_after_chunk": {"1": "never"}},
        {"text": ["whole"]},
    ],
    "actions": [
        {"do": "send", "prompt": "first task"},
        {"do": "wait_tool", "id": "a"},
        {"do": "send", "prompt": "steer one", "mode": "immediate"},
        {"do": "send", "prompt": "queued task"},
        {"do": "send", "prompt": "steer two", "mode": "immediate"},
        {"do": "finish_tool", "id": "a"},
        {"do": "wait", "event": "session.idle", "n": 1},
        {"do": "send", "prompt": "second task"},
        {"do": "wait", "event": "session.idle", "n": 2},
        {"do": "send", "prompt": "third task"},
        {"do": "wait_tool", "id": "c"},
        {"do": "wait", "event": "tool.execution_complete", "match": {"toolCallId": "c7"}},
        {"do": "abort"},
        {"do": "wait", "event": "session.idle", "n": 3},
        {"do": "send", "prompt": "fourth task"},
        {"do": "wait", "event": "assistant.message_delta", "match": {"deltaContent": "half"}},
        {"do": "abort"},
        {"do": "wait", "event": "session.idle", "n": 4},
        {"do": "send", "prompt": "fifth task"},
        {"do": "wait", "event": "session.idle", "n": 5},
    ],
}
USER_MESSAGES = 8
CASES = [
    "s17_manual",
    "s19_attach",
    "s19_blob",
    "s12_badjson",
    "s12_emptyargs",
    "s11_length",
    "s10_deny",
    "s16_big",
]
CASES += ["s09_ap_nudge_then", "s15_send_messages", "s18_rewind", "s04_two", "s06_mix", "s08_abort_queue"]


def specs() -> list[Any]:
    return [RICH, *(json.loads((HERE / "cases" / f"{name}.json").read_text()) for name in CASES)]


class Both:
    """The same home for both: one CLI process, and our engine."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.home = tmp_path / "home"
        self.client = Client(self.home)
        self.count = 0

    async def __aenter__(self) -> Both:
        await self.client.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.client.stop()

    def rig(self, runtime: str, spec: Any, home: Path | None = None) -> Rig:
        self.count += 1
        folder = self.tmp_path / str(self.count) / spec["name"]
        rig = CliRig(spec, folder, self.client) if runtime == "cli" else SessionRig(spec, folder)
        rig.home = home or self.home
        return rig

    async def record(self, runtime: str, spec: Any) -> str:
        """Play a case on a runtime; the session's id."""
        return (await self.rig(runtime, {**spec, "settle": 0.05}).run()).session_id

    async def next_request(self, runtime: str, session_id: str, spec: Any, home: Path | None = None) -> Any:
        """Resume a session and send one more message; the messages of the model request that follows."""
        later = {**LATER, "config": spec["config"], "tools": spec.get("tools", []), "settle": 0.05}
        rig = self.rig(runtime, later, home)
        rig.session_id = session_id
        try:
            await rig.start()
            await rig.resume(session_id, {})
            for action in later["actions"]:
                await rig.act(action)
        finally:
            await rig.stop()
            rig.model.close()
        assert rig.model.requests, rig.notes
        words = vocabulary(spec) | vocabulary(later)
        return request_messages(rig.model.requests[0]["body"], elider(words) if runtime == "cli" else str)

    async def difference(self, session_id: str, spec: Any) -> str | None:
        """How the two differ in what they send on after resuming the same log; None: they do not."""
        copy = self.tmp_path / f"copy-{self.count}"
        place = Path("session-state", session_id)
        shutil.copytree(self.home / place, copy / place, ignore=shutil.ignore_patterns("inuse.*"))
        theirs = await self.next_request("cli", session_id, spec)
        ours = await self.next_request("engine", session_id, spec, copy)
        return first_difference(Matcher(vocabulary(spec)), "history", theirs, ours)


@pytest.mark.parametrize("recorder", ["engine", "cli"])
async def test_a_recorded_session_goes_on_alike_in_both(tmp_path: Path, recorder: str) -> None:
    async with Both(tmp_path) as both:
        for spec in specs():
            session_id = await both.record(recorder, spec)
            assert await both.difference(session_id, spec) is None, spec["name"]


@pytest.mark.parametrize("recorder", ["engine", "cli"])
async def test_a_fork_at_any_message_goes_on_alike_in_both(tmp_path: Path, recorder: str) -> None:
    async with Both(tmp_path) as both:
        session_id = await both.record(recorder, RICH)
        for n in range(2, USER_MESSAGES + 1):
            forker = both.rig(recorder, {**RICH, "model_script": []})
            forker.session_id = session_id
            await forker.start()
            await forker.resume(session_id, {})
            at = await forker._user_event(n)
            fork = await forker.rpc("sessions.fork", {"sessionId": session_id, "toEventId": at})
            await forker.stop()
            forker.model.close()
            assert await both.difference(fork["sessionId"], RICH) is None, f"fork at message {n}"


async def test_back_and_forth(tmp_path: Path) -> None:
    """Engine, CLI, engine, CLI on one log: each sees what the others added."""
    async with Both(tmp_path) as both:
        session_id = await both.record("engine", RICH)
        lengths = []
        for runtime in ("cli", "engine", "cli", "engine"):
            lengths.append(len(await both.next_request(runtime, session_id, RICH)))
        assert [b - a for a, b in itertools.pairwise(lengths)] == [2, 2, 2]
