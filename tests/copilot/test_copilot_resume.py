"""Sessions that go on later: of either runtime, with the provider's key given anew and kept nowhere."""

from __future__ import annotations

import json

import pytest
from copilot_rig import Rig

from copilot_nb.errors import RuntimeUnavailable, SessionError, UsageError
from copilot_nb.events import EventSource
from copilot_nb.permissions import Policy
from copilot_nb.runtimes.base import Message
from copilot_nb.runtimes.copilot.options import CopilotOptions, Provider
from copilot_nb.runtimes.copilot.runtime import CopilotRuntime
from copilot_nb.store import EventStore, read_transcript


async def test_a_session_goes_on_where_it_ended(rig, monkeypatch):
    """The key comes from the environment each time; no file of the session holds it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    first = rig([{"text": ["one"]}])
    await first.send("a")
    await first.idle()
    await first.close()
    assert first.of("session.shutdown")
    last = len(first.events)
    second = rig([{"text": ["two"]}], resume=True)
    await second.send("b")
    await second.idle()
    said = [(m["role"], m["content"][-3:]) for m in second.model.requests[0]["body"]["messages"]][1:]
    assert [role for role, _ in said] == ["user", "assistant", "user"]
    assert len(first.events) == last  # no event comes after close
    assert second.model.requests[0]["headers"]["authorization"] == "Bearer sk-very-secret"
    await second.close()
    told = json.dumps([event.to_dict() for event in first.events + second.events])
    assert "sk-very-secret" not in told + repr(second.options)
    for file in (path for path in second.options.home.rglob("*") if path.is_file()):
        assert b"sk-very-secret" not in file.read_bytes(), file


async def test_a_session_of_the_engine_goes_on_here(rig, tmp_path):
    """Both write the same log (reference §20)."""
    store = EventStore.create("s1", tmp_path / "home")
    source = EventSource()
    start = {"sessionId": "s1", "version": 1, "producer": "copilot_nb", "copilotVersion": "0"}
    lines = [
        ("session.start", {**start, "startTime": "2026-11-30T10:00:00Z"}),
        ("user.message", {"content": "from the engine", "messageId": "m1"}),
        ("assistant.message", {"messageId": "m2", "content": "heard", "toolRequests": []}),
        ("jupyter.queue", {"op": "pause", "paused": True}),
    ]
    for type, data in lines:
        store.append(source.stored(type, data))
    store.close()
    r = rig([{"text": ["two"]}], resume=True)
    await r.send("b")
    await r.idle()
    messages = [m["content"] for m in r.model.requests[0]["body"]["messages"][1:]]
    assert messages[:2] == ["from the engine", "heard"]
    await r.close()
    types = [event.type for event in read_transcript(store.path).events]
    assert "jupyter.queue" in types and types[-1] == "session.shutdown"


async def test_history_edits(rig):
    """Reference §17, §18: compact, truncate, rewind, fork."""
    r = rig([{"text": [str(n)]} for n in range(6)])
    for n in range(3):
        await r.send(f"m{n}")
        await r.idle(n + 1)
    users = [event.id for event in r.events if event.type == "user.message"]
    fork = await r.runtime.fork(users[1], name="a fork")
    assert await r.runtime.truncate(users[2]) > 0
    assert (await r.runtime.rewind(users[1]))["outcome"] == "success"
    other = Rig([{"text": ["x"]}], r.options.home, session_id=fork, resume=True)
    await other.send("on the fork")
    await other.idle()
    texts = [m["content"] for m in other.model.requests[0]["body"]["messages"]]
    assert any("m0" in text for text in texts) and not any("m1" in text for text in texts)
    await other.close()
    assert (await r.runtime.compact("keep numbers"))["success"] is True


async def test_sessions_that_are_not_there(rig):
    r = rig([], resume=True, session_id="nowhere")
    with pytest.raises(SessionError, match=r"(?i)session"):
        await r.send("hi")
    assert r.of("jupyter.runtime")[-1]["state"] == "failed"


async def test_without_key_or_login_the_message_says_what_to_type(tmp_path, cli_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    provider = Provider("https://models.example/v1")
    for chosen, words in ((provider, "os.environ['OPENAI_API_KEY']"), (None, "copilot login")):
        events = []
        runtime = CopilotRuntime(events.append, CopilotOptions("s1", tmp_path, Policy(), provider=chosen))
        with pytest.raises(RuntimeUnavailable) as failure:
            await runtime.send(Message("hi"))
        assert words in str(failure.value)
        assert [event.data["state"] for event in events] == ["starting", "failed"]
        await runtime.close()


def test_a_provider_that_does_not_exist():
    with pytest.raises(UsageError, match="openai, azure or anthropic"):
        Provider("https://x.example", type="other")


def test_providers_in_the_sdks_words(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k1")
    monkeypatch.setenv("MY_KEY", "k2")
    azure = Provider("https://x.openai.azure.com", "azure", "responses", api_version="2024-10-21")
    assert azure.for_sdk() == {
        "type": "azure",
        "base_url": "https://x.openai.azure.com",
        "api_key": "k1",
        "wire_api": "responses",
        "azure": {"api_version": "2024-10-21"},
    }
    anthropic = Provider("https://api.anthropic.com", "anthropic", "completions", key_env="MY_KEY")
    assert anthropic.for_sdk() == {
        "type": "anthropic",
        "base_url": "https://api.anthropic.com",
        "api_key": "k2",
    }
    assert Provider("http://localhost:11434/v1").for_sdk()["api_key"]  # local servers often need none
