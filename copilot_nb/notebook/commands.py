"""``%copilot WORD …``: one small function per word.

A plain function answers at once; a coroutine function needs the session's loop, so its magic is awaited
(`copilot_nb.notebook.waiting`). What a function returns is the cell's result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from copilot_nb.errors import UsageError
from copilot_nb.notebook import answers, queue
from copilot_nb.notebook.arguments import option_help, option_names, parse, unknown
from copilot_nb.notebook.desk import Desk
from copilot_nb.runtimes.base import Mode


class Command(Struct, frozen=True):
    """A word after ``%copilot``: what follows it, what it does, and the function."""

    takes: str
    help: str
    run: Callable[[Desk, str], Any]

    @property
    def needs_loop(self) -> bool:
        """Whether it must be awaited."""
        return inspect.iscoroutinefunction(self.run)


def run(desk: Desk, line: str) -> Any:
    """Carry out ``%copilot line``; a coroutine where the word needs the session's loop."""
    word, rest = _split(line)
    if word not in COMMANDS:
        hint = " A prompt goes below, in a cell that starts with %%copilot." if rest else ""
        raise UsageError(unknown("command", word, COMMANDS) + hint)
    return COMMANDS[word].run(desk, rest)


def needs_loop(line: str) -> bool:
    """Whether ``%copilot line`` must be awaited."""
    word, _ = _split(line)
    return word in COMMANDS and COMMANDS[word].needs_loop


def words_after(words: list[str]) -> list[str]:
    """What may follow these words of ``%copilot``, for completion."""
    if not words:
        return list(COMMANDS)
    more: dict[str, list[str]] = {"queue": list(queue.EDITS), "mode": [*MODES], "abort": ["--all"]}
    more["new"] = option_names()
    return more.get(words[0], []) if len(words) == 1 or words[0] == "new" else []


def _split(line: str) -> tuple[str, str]:
    word, _, rest = line.strip().partition(" ")
    return word or "help", rest.strip()


def _nothing(word: str, rest: str) -> None:
    if rest:
        raise UsageError(f"%copilot {word} takes nothing more, but {rest!r} follows.")


# --- looking ---------------------------------------------------------------------------------------


def _help(desk: Desk, rest: str) -> None:
    print(
        "%%copilot [options]   the lines below are the prompt; the cell returns at once\n"
        "%steer TEXT           join the running run before its next model call\n"
        "%enqueue TEXT         wait in line for a run of its own\n"
        "%allow [always]       let the tool run that asks (always: in this session, unasked)\n"
        "%deny [FEEDBACK]      no; with feedback the run goes on, without it ends\n\n"
        "Options of %%copilot:\n" + option_help() + "\n\n%copilot WORD:"
    )
    for word, entry in COMMANDS.items():
        print(f"  {word} {entry.takes}".ljust(34) + entry.help)


def _status(desk: Desk, rest: str) -> None:
    _nothing("status", rest)
    session = desk.current()
    state = session.state
    print(f"{session.id}  {session.model_label}, runtime {session.runtime_name}, mode {state.mode}")
    print(state.describe())
    for request in state.permissions.values():
        print(f"asks to use {request.data.get('toolName') or request.kind}: %allow or %deny")
    for request in state.questions.values():
        print(f"asks: {answers.question(request)}: %copilot answer TEXT")
    print(f"runs: {len(state.runs)}, turns: {len(state.turns)}; log: {session.log_path}")


def _log(desk: Desk, rest: str) -> Any:
    _nothing("log", rest)
    return desk.current().events()


def _turns(desk: Desk, rest: str) -> Any:
    _nothing("turns", rest)
    return desk.current().turns()


def _sessions(desk: Desk, rest: str) -> Any:
    _nothing("sessions", rest)
    from copilot_nb.frames.homes import sessions

    return sessions()


def _panel(desk: Desk, rest: str) -> Any:
    _nothing("panel", rest)
    return desk.current().panel()


def _record(desk: Desk, rest: str) -> None:
    _nothing("record", rest)
    from IPython.display import display

    from copilot_nb.record import bundle

    session = desk.current()
    show: Any = display
    show(bundle(session.state, model=session.model_label), raw=True)


# --- sessions --------------------------------------------------------------------------------------


async def _new(desk: Desk, rest: str) -> None:
    session = desk.open(parse(rest, "%copilot new"))
    print(f"Session {session.id} answers with {session.model_label}.")


async def _resume(desk: Desk, rest: str) -> None:
    from copilot_nb.session import choose

    session_id, _, words = rest.partition(" ")
    if not session_id or session_id.startswith("-"):
        raise UsageError("%copilot resume needs the id of a session: %copilot sessions lists them.")
    options = parse(words, "%copilot resume ID")
    options.session = session_id
    session = desk.find(session_id) or desk.open(options, existing=True)
    choose(session)
    print(f"Session {session.id} answers with {session.model_label}: {session.state.describe()}.")


# --- the run ---------------------------------------------------------------------------------------


async def _wait(desk: Desk, rest: str) -> None:
    try:
        timeout = float(rest) if rest else None
    except ValueError:
        raise UsageError(f"%copilot wait takes a number of seconds, not {rest!r}.") from None
    await desk.settle(desk.current(), timeout)


async def _abort(desk: Desk, rest: str) -> None:
    if rest not in ("", "--all"):
        raise UsageError(f"%copilot abort takes --all or nothing, not {rest!r}.")
    session = desk.current()
    if not session.state.busy and not (rest and session.state.queue):
        print("Nothing is running.")
        return
    await session.abort(keep_queue=not rest)
    left = len(session.state.queue) + len(session.state.steers)
    kept = f" {left} waiting, paused: %copilot queue resume lets them go on." if left else ""
    print("The run was ended." + kept)


async def _mode(desk: Desk, rest: str) -> None:
    session = desk.current()
    if rest:
        mode = next((name for name in MODES if name == rest), None)
        if mode is None:
            raise UsageError(unknown("mode", rest, MODES))
        await session.set_mode(mode)
    print(f"mode: {session.state.mode}")


async def _compact(desk: Desk, rest: str) -> None:
    session = desk.current()
    result = await session.compact(rest or None)
    print(f"Messages replaced by a summary: {result.get('messagesRemoved', 0)}.")


async def _doctor(desk: Desk, rest: str) -> Any:
    from copilot_nb.runtimes.copilot.doctor import report

    if rest not in ("", "--download"):
        raise UsageError(f"%copilot doctor takes --download or nothing, not {rest!r}.")
    return await report(download=bool(rest))


MODES: tuple[Mode, ...] = ("interactive", "plan", "autopilot")

COMMANDS: dict[str, Command] = {
    "help": Command("", "this list", _help),
    "status": Command("", "what the session does now", _status),
    "wait": Command("[SECONDS]", "wait until the session is idle", _wait),
    "abort": Command("[--all]", "end the run; the queue stays, paused (--all: empty it)", _abort),
    "queue": Command("[list]", "what waits", queue.run),
    "answer": Command("TEXT", "answer what the agent asks", answers.run),
    "log": Command("", "the events as a DataFrame", _log),
    "turns": Command("", "the turns as a DataFrame", _turns),
    "panel": Command("", "a view that stays live", _panel),
    "record": Command("", "the static record of the last run, in this cell", _record),
    "sessions": Command("", "all sessions of this home as a DataFrame", _sessions),
    "new": Command("[options]", "another session (options as for %%copilot)", _new),
    "resume": Command("ID [options]", "go on with a session, open here or on disk", _resume),
    "mode": Command("[NAME]", "show or set: interactive, plan, autopilot", _mode),
    "doctor": Command("[--download]", "what the Copilot runtime needs, and what to type next", _doctor),
    "compact": Command("[INSTRUCTIONS]", "replace the history by a summary", _compact),
}
