"""Opening a session on the real Copilot CLI."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON
from copilot_nb.models.base import Model
from copilot_nb.permissions import Policy
from copilot_nb.runtimes.copilot.options import CopilotOptions, provider_of
from copilot_nb.runtimes.copilot.runtime import CopilotRuntime
from copilot_nb.session.session import Session
from copilot_nb.store import EVENTS, session_folder
from copilot_nb.tools.base import Tool
from copilot_nb.transcript import read_transcript

_PROVIDER = ("type", "key_env", "api_version", "max_prompt_tokens")


def open_copilot(
    session_id: str,
    home: Path,
    loop: asyncio.AbstractEventLoop,
    policy: Policy,
    tools: Sequence[Tool],
    model: str | Model | None,
    base_url: str | None,
    wire_api: str | None,
    settings: JSON,
) -> Session:
    """The session at once; the CLI starts in the background, and what is sent meanwhile keeps its order."""
    if model is not None and not isinstance(model, str):
        raise UsageError("The copilot runtime takes a model's name; model objects are for the engine.")
    path = session_folder(session_id, home) / EVENTS
    past = read_transcript(path).events if path.exists() else []
    more = {name: settings.pop(name) for name in _PROVIDER if name in settings}
    name, provider = provider_of(model, base_url, wire_api, **more)
    session = Session(session_id, home, loop, policy)
    try:
        options = CopilotOptions(
            session_id, home, policy, name, provider, tools, resume=path.exists(), **settings
        )
    except TypeError as error:
        raise UsageError(f"Unknown setting for the copilot runtime: {error}.") from error
    session.replay(past)
    runtime = CopilotRuntime(session.receive, options)
    session.model, session.model_label = name or "", runtime.model_label
    session.attach(runtime)
    runtime.start()
    return session
