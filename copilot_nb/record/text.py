"""The record as plain text and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from copilot_nb.fold.items import Mark, Message, Run, Tool, Turn
from copilot_nb.record import facts
from copilot_nb.record.facts import say
from copilot_nb.state import SessionState
from copilot_nb.widgets import view


def record_text(state: SessionState, runs: Sequence[Run] | None = None, *, model: str = "") -> str:
    """The answer and one line per step: for terminals, diffs and screen readers."""
    parts = []
    wanted = facts.chosen(state, runs)
    for run in wanted:
        parts.append(f"{facts.headline(run)} ({facts.amounts(run)}; {facts.who(state, model)})")
        for item in run.items:
            parts += _text_item(item)
        answer = facts.answer_of(run)
        if answer is not None:
            parts += ["", view.cut("".join(answer.text), 20_000), ""]
    for text, fate in facts.meanwhile(state, wanted):
        parts.append(f"- {text[:200]} ({fate})")
    return "\n".join(parts).rstrip() or say("conversation.empty")


def _text_item(item: Message | Turn | Mark) -> list[str]:
    if isinstance(item, Message):
        who = say("record.steered") if item.delivery == "steering" else say("record.you")
        return [f"{who}: {item.text[:500]}"] if not item.nudge else [say("message.nudge")]
    if isinstance(item, Mark):
        return [view.cut(facts.mark_words(item), 500)]
    calls = ", ".join(f"{tool.name} {tool.state}" for tool in item.tools)
    return [f"  {say('record.turn', n=item.n)}: {facts.turn_facts(item)}{'; ' + calls if calls else ''}"]


def record_markdown(state: SessionState, runs: Sequence[Run] | None = None, *, model: str = "") -> str:
    """The record as Markdown without any HTML: answer first, then the steps."""
    parts: list[str] = []
    wanted = facts.chosen(state, runs)
    for run in wanted:
        parts.append(f"**{facts.headline(run)}** · {facts.amounts(run)} · {_plain(facts.who(state, model))}")
        parts += [
            _quote(say("record.you"), m)
            for m in run.items
            if isinstance(m, Message) and m.delivery != "steering"
        ]
        answer = facts.answer_of(run)
        if answer is not None:
            parts += [f"#### {say('record.answer')}", harmless(view.cut("".join(answer.text), 20_000))]
        steps = [part for item in run.items for part in _steps(item, answer)]
        if steps:
            parts += [f"#### {say('record.stepsAll', n=len(run.turns))}", *steps]
    sent = facts.meanwhile(state, wanted)
    if sent:
        lines = "\n".join(f"- {_plain(text[:300])} *({_plain(fate)})*" for text, fate in sent)
        parts += [say("record.meanwhile"), lines]
    return "\n\n".join(parts) + "\n"


def _steps(item: Message | Turn | Mark, answer: Turn | None) -> list[str]:
    if isinstance(item, Message):
        return (
            [_quote(f"{say('record.steered')} ({facts.steer_facts(item)})", item)]
            if item.delivery == "steering"
            else []
        )
    if isinstance(item, Mark):
        return [f"*{_plain(view.cut(facts.mark_words(item), 500))}*"]
    parts = [f"**{say('record.turn', n=item.n)}** · {facts.turn_facts(item)}"]
    said = "".join(item.text)
    if item is answer:
        parts.append(say("record.answerAbove"))
    elif said:
        parts.append(harmless(view.cut(said, 4_000)))
    return [*parts, *(_tool(tool) for tool in item.tools)]


def _tool(tool: Tool) -> str:
    code, lang = view.code_of(tool.name, tool.arguments)
    head = f"- `{tool.name}` {tool.state}, {_plain(facts.tool_facts(tool, view.summary(tool)))}"
    blocks = [_fence(view.cut(code, 2_000), lang)] if code else []
    text = tool.error or tool.detail or tool.result
    if text:
        blocks.append(_fence(view.cut(text, 2_000), "text"))
    return "\n\n".join([head, *("\n".join(f"  {line}" for line in block.split("\n")) for block in blocks)])


def _fence(text: str, lang: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{lang}\n{text}\n{mark}"


def _quote(who: str, message: Message) -> str:
    lines = (message.text or say("message.nudge")).splitlines() or [""]
    return "\n".join([f"> **{_plain(who)}**", ">", *(f"> {_plain(line)}" for line in lines)])


def _plain(text: str) -> str:
    """Text that stays text in Markdown."""
    return re.sub(r"([\\`*_\[\]#|])", r"\\\1", text).replace("<", "&lt;")


def harmless(text: str) -> str:
    """A model's Markdown with its HTML and images turned to text; code stays as it is."""
    pieces = re.split(
        r"(^ {0,3}(?:```|~~~)[\s\S]*?(?:^ {0,3}(?:```|~~~)[ \t]*$|\Z)|`+[^`]*`+)", text, flags=re.M
    )
    return "".join(
        piece if place % 2 else piece.replace("<", "&lt;").replace("![", "!\\[")
        for place, piece in enumerate(pieces)
    )
