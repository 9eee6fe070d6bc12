"""What the forms of a record share: words, durations, and which runs are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from copilot_nb.fold.items import Mark, Message, Run, Tool, Turn
from copilot_nb.state import SessionState
from copilot_nb.widgets.assets import texts

MOST_TURNS = 60  # a longer run keeps its last turns; the log has them all


def say(key: str, **values: Any) -> str:
    """A text of ``texts.json`` with its ``{names}`` filled in; ``n`` picks one or many."""
    found: Any = texts()
    for part in key.split("."):
        found = found[part]
    if isinstance(found, dict):
        found = found["one" if values["n"] == 1 else "many"]
    for name, value in values.items():
        found = found.replace(f"{{{name}}}", f"{value:,}" if isinstance(value, int) else str(value))
    return str(found)


def chosen(state: SessionState, runs: Sequence[Run] | None) -> list[Run]:
    """The runs that are meant: those given, else the last."""
    return list(runs) if runs is not None else state.runs[-1:]


def secs(x: float) -> str:
    """A duration as one says it."""
    if x < 0.095:
        return f"{max(0, round(x * 1000))} ms"
    if x < 10:
        return f"{max(0.0, x):.1f} s"
    if x < 120:
        return f"{x:.0f} s"
    return f"{x // 60:.0f} min {x % 60:.0f} s" if x < 7200 else f"{x // 3600:.0f} h {x % 3600 // 60:.0f} min"


def kilo(n: int) -> str:
    """``1.8k``."""
    return str(n) if n < 1000 else f"{n / 1000:.1f}k" if n < 1_000_000 else f"{n / 1e6:.2f}M"


def when(t: float | None) -> str:
    """Date and time in UTC."""
    return "" if t is None else datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M UTC")


def end_of(run: Run) -> float:
    """When a run ended, or what is known of it so far."""
    if run.t1 is not None:
        return run.t1
    last = run.turns[-1] if run.turns else None
    return (last and (last.t1 or last.said_at or last.t0)) or run.t0


def headline(run: Run) -> str:
    """``Run 1, finished``."""
    words = {"done": "done", "running": "running", "aborted": "aborted", "failed": "failedRun"}[run.state]
    return f"{say('record.run', n=run.n)}, {say(f'record.{words}')}"


def amounts(run: Run) -> str:
    """``59 s, 5 turns, 9 tool calls``."""
    parts = [secs(end_of(run) - run.t0), say("turns", n=len(run.turns))]
    calls = sum(len(turn.tools) for turn in run.turns)
    return ", ".join(parts + ([say("record.calls", n=calls)] if calls else []))


def who(state: SessionState, model: str) -> str:
    """Model and context, as the header says it."""
    name = model or (state.turn and state.turn.model) or state.model
    used = f"{kilo(state.context_tokens)}" if state.context_tokens else ""
    limit = f" of {kilo(state.context_limit).replace('.0k', 'k')}" if state.context_limit and used else ""
    return ", ".join(part for part in (name, f"{used}{limit} {say('bar.tokens')}" if used else "") if part)


def answer_of(run: Run) -> Turn | None:
    """The turn that holds the answer: the last one that said something and called nothing."""
    for turn in reversed(run.turns):
        if any(turn.text):
            return turn
    return None


def turn_facts(turn: Turn) -> str:
    """``6.3 s, 1.8k tokens in, 96 out``."""
    parts = [secs((turn.t1 or turn.said_at or turn.t0) - turn.t0)]
    if turn.tokens_in or turn.tokens_out:
        words = texts()["record"]["tokens"]
        parts.append(
            words.replace("{in}", kilo(turn.tokens_in or 0)).replace("{out}", kilo(turn.tokens_out or 0))
        )
    if turn.partial:
        parts.append(say("turn.partial"))
    return ", ".join(parts)


def tool_facts(tool: Tool, summary: str) -> str:
    """``2.7 s, 9 columns``."""
    parts = [secs((tool.t1 or tool.t0) - tool.t0)]
    if tool.state == "failed":
        last = (tool.error or tool.result).strip().rpartition("\n")[2]
        parts.append(last.partition(":")[0][:60])
    elif tool.state == "interrupted":
        parts.append(say("record.interrupted"))
    elif summary:
        parts.append(summary)
    return ", ".join(part for part in parts if part)


def steer_facts(message: Message) -> str:
    """``into turn 3, 5.6 s after sending``."""
    waited = (
        secs((message.landed_at or 0) - message.sent_at) if message.sent_at and message.landed_at else secs(0)
    )
    return say("record.steerInto", turn=message.turn or 1, time=waited)


def meanwhile(state: SessionState, runs: Iterable[Run]) -> list[tuple[str, str]]:
    """What was sent during these runs and is not in them: text and what became of it."""
    shown = list(runs)
    if not shown:
        return []
    after = state.runs[shown[-1].n :]
    a, b = shown[0].t0, after[0].t0 if after else float("inf")
    numbers = {run.n for run in shown}
    found = []
    for message in state.messages.values():
        at = message.sent_at
        if at is None or not a <= at <= b or message.nudge or message.run in numbers:
            continue
        if message.state == "removed":
            fate = say("record.discarded", why=say(f"removed.{message.reason or 'removed'}"))
        elif message.run is not None:
            fate = say("record.queuedLater", run=message.run)
        else:
            fate = say("record.queuedStill")
        found.append((message.text, fate))
    return found


def shown_turns(run: Run) -> tuple[int, list[Turn]]:
    """How many turns are left out at the front, and the others."""
    left = max(0, len(run.turns) - MOST_TURNS)
    return left, run.turns[left:]


def mark_words(mark: Mark) -> str:
    """An event between turns, in words."""
    pattern = texts()["mark"].get(mark.kind, mark.kind)
    for name, value in {**mark.data, "text": mark.text}.items():
        pattern = pattern.replace(f"{{{name}}}", str(value))
    known = mark.kind in ("abort", "compaction_complete") or mark.text in pattern
    return str(pattern) if known or not mark.text else f"{pattern}: {mark.text}"


def short(session_id: str) -> str:
    """A session's id where there is little room: of a UUID its first part."""
    return session_id[:8] if len(session_id) == 36 and session_id.count("-") == 4 else session_id
