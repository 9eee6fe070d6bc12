"""Opening sessions: which model, which runtime, which tools, on which loop; and which one is current."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from copilot_nb import loops
from copilot_nb.errors import CopilotNbError, UsageError
from copilot_nb.events import JSON, Event, new_id
from copilot_nb.models import open_model
from copilot_nb.models.base import Model
from copilot_nb.permissions import Decision, Handler, Policy, allow_tools
from copilot_nb.runtimes.engine import Engine, EngineConfig, Limits
from copilot_nb.session.session import Session
from copilot_nb.store import EVENTS, check_session_id, home_dir, session_folder
from copilot_nb.tools import as_tools, kernel_tools
from copilot_nb.tools.base import Tool

RuntimeName = Literal["engine", "copilot"]
_RUNTIMES = ("engine", "copilot")

#: the open sessions of this process by id, the current one last
sessions: dict[str, Session] = {}


def current() -> Session | None:
    """The session that was opened or chosen last, if one is open."""
    return next((session for session in reversed(sessions.values()) if not session.closed), None)


def choose(session: Session) -> None:
    """Make a session the current one; closed ones are let go, with all they remember."""
    for key in [key for key, one in sessions.items() if one.closed or one is session]:
        del sessions[key]
    sessions[session.id] = session


def open_session(
    model: str | Model | None = None,
    session_id: str | None = None,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    home: str | os.PathLike[str] | None = None,
    runtime: RuntimeName | None = None,
    *,
    allow: Iterable[str] = (),
    yolo: bool = False,
    on_permission_request: Handler | None = None,
    ask: bool | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    wire_api: str | None = None,
    kernel: bool = True,
    max_turns: int | None = None,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    recover: bool = True,
    restore_queue: bool = False,
    continue_pending_work: bool = False,
    **settings: Any,
) -> Session:
    """Open a session: a new one, or an existing one where it left off.

    Parameters
    ----------
    model
        ``demo``, ``openai:<model>``, …, or a model object; else ``COPILOT_NB_MODEL``, else ``demo``.
    session_id
        1 to 200 of ``A-Za-z0-9_-``; None makes one. If this home holds a session of that id, it is resumed;
        if it is open here already, that one is given back.
    tools
        Functions with type hints, or `Tool` objects.
    home
        In place of ``COPILOT_HOME`` (default ``~/.copilot``).
    runtime
        ``engine`` (our loop) or ``copilot`` (the real CLI); else ``COPILOT_NB_RUNTIME``; a session that
        exists opens in the runtime that recorded it; else ``engine``.
    allow, yolo
        Tool names that never ask; all of them.
    on_permission_request
        ``handler(request) -> Decision | None``, sync or async; None asks the person.
    ask
        Whether a person is there to be asked; by default found out from the front end.
    base_url, api_key, wire_api
        Of an OpenAI-compatible provider; the key otherwise comes from the environment.
    kernel
        Offer the tools `python` and `list_variables`.
    max_turns, max_tokens, max_seconds
        Limits of each run.
    recover
        Repair a log with bad lines (the old one is kept beside it); False: `CorruptLog`.
    restore_queue
        Put back what waited when the session was last open, with the queue paused (engine).
    continue_pending_work
        Calls that were open when the log broke off wait for a late result; see `Engine.resume`.
    settings
        Any further field of `EngineConfig`, such as ``system_prompt`` or ``max_continues``; for the copilot
        runtime, any further field of its `CopilotOptions`.

    Raises
    ------
    UsageError, StoreError, CorruptLog
        Wrong words; a home that cannot be written; a log that cannot be resumed.
    """
    if session_id is not None:
        check_session_id(session_id)
        if (open_one := sessions.get(session_id)) is not None and not open_one.closed:
            choose(open_one)
            return open_one
    name = _runtime_name(runtime, session_id, home)
    policy = Policy(allow_tools(allow) | ({"*"} if yolo else set()))
    policy.can_ask = someone_is_there if ask is None else lambda: bool(ask)
    if on_permission_request is not None:
        policy.handlers.append(on_permission_request)
    offered = as_tools([*(kernel_tools(_shell()) if kernel else ()), *tools])
    limits = Limits(max_turns, max_tokens, max_seconds, bool(settings.pop("limits_stop_queue", False)))
    loop = loops.session_loop()
    common = (session_id or new_id(), home_dir(home), loop, policy)
    if name == "engine":
        chosen = open_model(model, base_url=base_url, api_key=api_key, wire_api=wire_api)
        _check_settings(settings, EngineConfig)
        config = EngineConfig(chosen, offered, policy, limits=limits, restore_queue=restore_queue, **settings)
        session = loops.call(loop, lambda: _open_engine(*common, config, recover, continue_pending_work))
    else:
        from copilot_nb.session.opening_copilot import open_copilot

        if limits != Limits():
            raise UsageError("Limits of turns, tokens and seconds are for the engine, not for the CLI.")

        session = loops.call(
            loop, lambda: open_copilot(*common, offered, model, base_url, wire_api, settings)
        )
    choose(session)
    return session


def resume_session(session_id: str, **more: Any) -> Session:
    """Open an existing session; like `open_session`, but a missing one is `SessionNotFound`."""
    from copilot_nb.errors import SessionNotFound

    folder = session_folder(session_id, more.get("home"))
    if not (folder / EVENTS).exists():
        raise SessionNotFound(
            f"There is no session {session_id!r} in {folder.parent}: see %copilot sessions."
        )
    return open_session(session_id=session_id, **more)


def _open_engine(
    session_id: str,
    home: Path,
    loop: asyncio.AbstractEventLoop,
    policy: Policy,
    config: EngineConfig,
    recover: bool,
    continue_pending_work: bool,
) -> Session:
    past: list[Event] = []
    if config.model.kind == "demo":
        policy.handlers.append(_demo_rule)
    session = Session(session_id, home, loop, policy)
    if (session_folder(session_id, home) / EVENTS).exists():
        held: list[tuple[Event, int]] = []
        engine, past = Engine.resume(
            session_id,
            lambda event, offset=-1: held.append((event, offset)),
            config,
            home,
            recover=recover,
            continue_pending_work=continue_pending_work,
        )
        session.replay(past)
        engine.deliver_to(session.receive)
        for event, offset in held:
            session.receive(event, offset)
    else:
        engine = Engine.create(session_id, session.receive, config, home)
    session.model = config.model.name
    session.model_label, session.model_kind = config.model.label, config.model.kind
    session.attach(engine)
    return session


def _demo_rule(request: JSON) -> Decision | None:
    """Code that ships with the demo model needs no permission; the rule applies to that model alone."""
    from copilot_nb.models.demo import is_demo_code

    code = (request.get("args") or {}).get("code")
    if request.get("toolName") == "python" and isinstance(code, str) and is_demo_code(code):
        return Decision("approve-once", reason="built-in rule: code that ships with the demo model")
    return None


def _check_settings(settings: JSON, kind: type[Any]) -> None:
    known = {field.name for field in msgspec.structs.fields(kind)} - {
        "model",
        "tools",
        "policy",
        "limits",
        "restore_queue",
    }
    if wrong := sorted(set(settings) - known):
        raise UsageError(f"Unknown setting {', '.join(wrong)}. Known: {', '.join(sorted(known))}.")


def _runtime_name(asked: str | None, session_id: str | None, home: str | os.PathLike[str] | None) -> str:
    name = asked or (recorded_by(session_id, home) if session_id else None)
    name = name or os.environ.get("COPILOT_NB_RUNTIME") or "engine"
    if name not in _RUNTIMES:
        raise UsageError(f"There is no runtime {name!r}: use {' or '.join(_RUNTIMES)}.")
    return name


def recorded_by(session_id: str, home: str | os.PathLike[str] | None = None) -> RuntimeName | None:
    """The runtime that recorded a session, from its first line; None when there is no such session."""
    path = session_folder(session_id, home) / EVENTS
    try:
        with path.open("rb") as file:
            first = file.readline(65_536)
    except OSError:
        return None
    return "engine" if b'"producer":"copilot_nb"' in first else "copilot"


def _shell() -> Any:
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def someone_is_there() -> bool:
    """Whether a person can answer: a front end that takes input, or a terminal (jupyter-facts Q9)."""
    shell = _shell()
    if shell is None:
        return False
    kernel = getattr(shell, "kernel", None)
    return True if kernel is None else bool(getattr(kernel, "_allow_stdin", False))


@atexit.register
def _shut_down() -> None:
    """End the logs properly when the interpreter ends; a killed kernel never gets here (jupyter-facts Q5)."""
    for session in sessions.values():
        if not session.closed and isinstance(session._runtime, Engine):
            with contextlib.suppress(CopilotNbError, OSError):
                session._runtime.shut_down()
