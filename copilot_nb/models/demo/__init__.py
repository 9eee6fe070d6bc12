"""The demo model: a deterministic analyst that needs no account and no network, and is no language model.

It sees what any model sees, messages and tools, and answers with real tool calls over several turns; its
numbers are those the calls gave. A steer changes its plan in the same run.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping

from copilot_nb.errors import UsageError
from copilot_nb.events import new_id
from copilot_nb.models.base import ModelKind, Reply, Request, Sink, ToolCall, Usage
from copilot_nb.models.demo.code import is_demo_code
from copilot_nb.models.demo.plan import think
from copilot_nb.models.demo.reading import Situation, read
from copilot_nb.models.demo.report import LABEL, write
from copilot_nb.models.demo.wishes import understand
from copilot_nb.models.wire import text_of

__all__ = ["LABEL", "PACE", "DemoModel", "is_demo_code"]

PACE = 0.5  # seconds a turn: slow enough to be steered
_piece = re.compile(r"\S+\s*(?:\S+\s*)?")


class DemoModel:
    """Answers turns by rules.

    Parameters
    ----------
    pace
        Seconds a turn takes, at least; 0 answers at once.
    """

    name = "demo"
    label = LABEL
    kind: ModelKind = "demo"
    max_prompt_tokens: int | None = None

    def __init__(self, pace: float = PACE) -> None:
        self.pace = pace

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> DemoModel:
        """With the pace of ``COPILOT_NB_DEMO_PACE``, in seconds."""
        text = environ.get("COPILOT_NB_DEMO_PACE")
        if not text:
            return cls()
        try:
            pace = float(text)
        except ValueError:
            pace = -1.0
        if not 0 <= pace < 60:
            raise UsageError(f"COPILOT_NB_DEMO_PACE={text!r} is no number of seconds from 0 to 60.")
        return cls(pace)

    async def reply(self, request: Request, sink: Sink) -> Reply:
        """The next step of the plan, or the report."""
        if self.pace:
            await asyncio.sleep(self.pace)
        text, call = _answer(request)
        calls = [] if call is None else [call]
        await self._say(text, sink)
        for made in calls:
            sink.tool_arguments(made.id, made.name, made.arguments)
        written = len(text) + sum(len(made.arguments) for made in calls)
        read_chars = sum(len(text_of(message.get("content") or "")) for message in request.messages)
        usage = Usage(input_tokens=read_chars // 4, output_tokens=max(1, written // 4))
        return Reply(text, tool_calls=calls, finish="tool_calls" if calls else "stop", usage=usage)

    async def _say(self, text: str, sink: Sink) -> None:
        pieces = _piece.findall(text)
        pause = min(self.pace / 12, 4 * self.pace / max(1, len(pieces)))
        lead = text[: len(text) - len(text.lstrip())]
        for number, piece in enumerate(pieces):
            sink.text(lead + piece if number == 0 else piece)
            if pause:
                await asyncio.sleep(pause)

    async def close(self) -> None:
        """Nothing to free."""


def _answer(request: Request) -> tuple[str, ToolCall | None]:
    situation = read(request)
    last = situation.texts[-1] if situation.texts else ""
    if not situation.done and len(situation.texts) == 1 and "summary" in last and "conversation" in last:
        return _recall(request), None
    if not situation.done and "task_complete" in last and "task_complete" in situation.tools:
        return "", _call(
            "task_complete", {"summary": situation.answer.splitlines()[0] if situation.answer else "Done."}
        )
    wish, facts, step = think(situation)
    if step is not None:
        arguments = {"code": step.code} if step.code else {}
        return f"{_heard(situation)}{step.sentence}", _call(step.tool, arguments)
    report = write(situation, wish, facts)
    if "task_complete" in situation.tools:
        return report, _call("task_complete", {"summary": report.splitlines()[0]})
    return report, None


def _heard(situation: Situation) -> str:
    """What was understood of the steers that have just come."""
    if not situation.fresh or situation.fresh == len(situation.texts):
        return ""
    listed = situation.result("list_variables") or "{}"
    try:
        variables = json.loads(listed)["variables"]
    except (ValueError, KeyError, TypeError):
        variables = []
    columns = [column for variable in variables for column in variable.get("columns") or ()]
    steers = ["", *situation.texts[-situation.fresh :]]
    notes = understand(steers, [variable["name"] for variable in variables], columns).notes
    return f"Understood: {'; '.join(notes)}. " if notes else ""


def _call(name: str, arguments: dict[str, str]) -> ToolCall:
    return ToolCall(f"call_{new_id()}", name, json.dumps(arguments))


def _recall(request: Request) -> str:
    """A summary of the conversation: what was asked, and the answers' first lines."""
    lines = []
    for message in request.messages[:-1]:
        text = text_of(message.get("content") or "").strip()
        if text and message.get("role") in ("user", "assistant"):
            lines.append(
                f"- {message['role']}: {text.splitlines()[-1 if message['role'] == 'user' else 0][:200]}"
            )
    return f"Summary by the {LABEL}:\n" + "\n".join(lines[-40:])
