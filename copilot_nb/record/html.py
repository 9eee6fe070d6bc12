"""The record as HTML: everything escaped, the answer first, the steps folded below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from copilot_nb.fold.items import Mark, Message, Run, Tool, Turn
from copilot_nb.record import facts
from copilot_nb.record.drawing import timeline
from copilot_nb.record.facts import say
from copilot_nb.state import SessionState
from copilot_nb.widgets import view
from copilot_nb.widgets.assets import texts

_NUMBER = re.compile(r"[-+−]?[\d,. ]*\d\s?%?")  # noqa: RUF001
LIMIT = 200_000  # bytes of the whole record
SIZES = (
    (4_000, 6_000),
    (1_200, 2_000),
    (300, 600),
    (0, 200),
)  # characters of a tool's texts, of what was said


def record_html(state: SessionState, runs: Sequence[Run] | None = None, *, model: str = "") -> str:
    """The record of runs (the last one when None): at most 200 KB of static HTML.

    When it gets larger, the steps' texts are cut, then steps are left out from the front; the answer stays.
    """
    wanted = facts.chosen(state, runs)
    for tool_chars, said_chars in SIZES:
        for most in (facts.MOST_TURNS, 12):
            text = _Writer(state, model, tool_chars, said_chars, most).record(wanted)
            if len(text.encode()) <= LIMIT:
                return text
    return _Writer(state, model, 0, 200, 3, answer_chars=20_000).record(wanted[-3:])


@cache
def _style() -> str:
    return files("copilot_nb.record").joinpath("style.css").read_text(encoding="utf-8")


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.add_render_rule("table_open", lambda *_: '<table class="data">\n')
    parser.core.ruler.push("numbers", _numbers_right)
    return parser


def _numbers_right(state: Any) -> None:
    """Columns of a table that hold only numbers stand to the right."""
    columns: dict[int, list[Any]] = {}
    column = 0
    for place, token in enumerate(state.tokens):
        if token.type == "table_open":
            columns = {}
        elif token.type == "tr_open":
            column = 0
        elif token.type in ("th_open", "td_open"):
            columns.setdefault(column, []).append((token, state.tokens[place + 1].content))
            column += 1
        elif token.type == "table_close":
            for cells in columns.values():
                texts = [text for token, text in cells if token.type == "td_open"]
                if texts and all(_NUMBER.fullmatch(text) for text in texts):
                    for token, _ in cells:
                        token.attrSet("style", "text-align:right")


def markdown(text: str) -> str:
    """Markdown as HTML without any raw HTML, images or odd links in it."""
    html: str = _parser().render(text)
    return html.strip()


class _Writer:
    """Writes one record with given limits."""

    def __init__(
        self,
        state: SessionState,
        model: str,
        tool_chars: int,
        said_chars: int,
        most: int,
        answer_chars: int = 60_000,
    ) -> None:
        self.state, self.model = state, model
        self.tool_chars, self.said_chars, self.most, self.answer_chars = (
            tool_chars,
            said_chars,
            most,
            answer_chars,
        )

    def record(self, runs: Sequence[Run]) -> str:
        parts = ['<div class="cnb-record">', f"<style>\n{_style()}</style>"]
        for run in runs:
            parts += self.run(run)
        if not runs:
            parts.append(f"<p>{escape(say('conversation.empty'))}</p>")
        sent = facts.meanwhile(self.state, runs)
        if sent:
            items = "".join(
                f"<li>{escape(text[:300])} <em>({escape(fate)})</em></li>" for text, fate in sent[:40]
            )
            parts.append(f'<div class="foot dim">{escape(say("record.meanwhile"))}<ul>{items}</ul></div>')
        return "\n".join([*parts, "</div>"])

    def run(self, run: Run) -> list[str]:
        answer = facts.answer_of(run)
        parts = [self.head(run)]
        parts += [self.message(item) for item in run.items if isinstance(item, Message) and not _steer(item)]
        if run.turns:
            parts.append(timeline(run))
        if answer is not None:
            text = view.cut("".join(answer.text), self.answer_chars)
            parts.append(
                f'<div class="answer">\n<h4>{escape(say("record.answer"))}</h4>\n{markdown(text)}\n</div>'
            )
        parts += self.steps(run, answer)
        return parts

    def head(self, run: Run) -> str:
        session = f"{escape(say('record.session'))} <code>{escape(facts.short(self.state.session_id))}</code>"
        bits = [
            escape(facts.amounts(run)),
            escape(facts.who(self.state, self.model)),
            ", ".join(part for part in (session, escape(facts.when(run.t0))) if part),
        ]
        dim = "".join(f'<span class="sep"> · </span><span class="dim">{bit}</span>' for bit in bits if bit)
        return f'<p class="head"><strong>{escape(facts.headline(run))}</strong>{dim}</p>'

    def message(self, message: Message) -> str:
        who = say("message.autopilot" if message.nudge else "record.you")
        text = _spans(view.cut(message.text, 8_000)) or f"<em>{escape(say('message.nudge'))}</em>"
        return f"<blockquote><p><strong>{escape(who)}</strong><br>{text}</p></blockquote>"

    def steps(self, run: Run, answer: Turn | None) -> list[str]:
        last = run.turns[-1] if run.turns else None
        whole = answer is not None and answer is last and not answer.tools
        count = len(run.turns) - bool(whole)
        others = [
            item
            for item in run.items
            if isinstance(item, Mark) or (isinstance(item, Message) and _steer(item))
        ]
        if count <= 0 and not others:
            return []
        left = max(0, len(run.turns) - self.most)
        shown = set(map(id, run.turns[left:]))
        parts = [f'<p class="dim">{escape(say("record.cutTurns", n=left))}</p>'] if left else []
        for item in run.items:
            if isinstance(item, Turn) and id(item) in shown:
                parts.append(self.turn(item, answer))
            elif isinstance(item, Message) and _steer(item):
                parts.append(self.steer(item))
            elif isinstance(item, Mark):
                parts.append(self.mark(item))
        title = say("record.steps" if whole else "record.stepsAll", n=count)
        opened = " open" if count <= 12 else ""
        return [
            f'<details class="steps"{opened}>',
            f"<summary>{escape(title)}</summary>",
            *parts,
            "</details>",
        ]

    def turn(self, turn: Turn, answer: Turn | None) -> str:
        head = f'<h5>{escape(say("record.turn", n=turn.n))}<span class="sep">:</span> '
        parts = [f'{head}<span class="dim">{escape(facts.turn_facts(turn))}</span></h5>']
        think = "".join(turn.reasoning)
        if think and self.tool_chars:
            text = escape(view.cut(think, self.tool_chars))
            title = escape(say("record.thinking"))
            parts.append(f'<details class="said"><summary>{title}</summary><p>{text}</p></details>')
        said = "".join(turn.text)
        if turn is answer:
            parts.append(f"<p>{escape(say('record.answerAbove'))}</p>")
        elif said:
            parts.append(f'<div class="said">{markdown(view.cut(said, self.said_chars))}</div>')
        if turn.tools:
            parts.append(f'<div class="tools">\n{"".join(self.tool(tool) for tool in turn.tools[:60])}</div>')
        return "\n".join(parts)

    def tool(self, tool: Tool) -> str:
        code, _ = view.code_of(tool.name, tool.arguments)
        failed = tool.state == "failed"
        name = f"<code>{escape(tool.name)}</code>"
        if failed:
            name = f"<strong>{escape(say('tool.state.failed'))}</strong> {name}"
        line = escape(view.first_line(code)[:120])
        arg = f' <span class="arg"><code>{line}</code></span>' if line else ""
        summary = f'{name}{arg} <span class="dim">{escape(facts.tool_facts(tool, view.summary(tool)))}</span>'
        body = self.tool_body(tool, code)
        opening = '<details class="fail">' if failed else "<details>"
        return f"{opening}\n<summary>{summary}</summary>\n{body}\n</details>\n"

    def tool_body(self, tool: Tool, code: str) -> str:
        if not self.tool_chars:
            return ""
        parts = [f"<pre><code>{escape(view.cut(code, self.tool_chars))}</code></pre>"] if code else []
        text = tool.detail or tool.result or "".join(tool.output)
        if view.diff_counts(text):
            parts = [_diff(view.cut(text, self.tool_chars))]
        elif text and text != tool.error:
            parts.append(f'<pre class="out">{escape(view.cut(text, self.tool_chars))}</pre>')
        if tool.error:
            parts.append(f'<pre class="out"><b>{escape(view.cut(tool.error, self.tool_chars))}</b></pre>')
        for bundle in tool.display:
            image = bundle.get("image/png")
            if isinstance(image, str) and len(image) < 60_000 and self.tool_chars >= 1_000:
                data = "".join(ch for ch in image if ch.isalnum() or ch in "+/=")
                alt = escape(say("tool.figure", name=tool.name))
                parts.append(f'<p><img class="figure" alt="{alt}" src="data:image/png;base64,{data}"></p>')
        if tool.reason:
            parts.append(f'<p class="dim">{escape(say("tool.rule", reason=tool.reason))}</p>')
        elif tool.answer:
            waited = facts.secs((tool.answered_at or 0) - (tool.asked_at or tool.answered_at or 0))
            words = texts()["answer"].get(tool.answer, tool.answer).replace("{time}", waited)
            parts.append(f'<p class="dim">{escape(words)}</p>')
        return "".join(parts)

    def steer(self, message: Message) -> str:
        into = f'<span class="dim">{escape(facts.steer_facts(message))}</span>'
        head = f"<strong>{escape(say('record.steered'))}</strong> {into}"
        text = _spans(view.cut(message.text, 4_000))
        return f'<blockquote class="steer"><p>{head}<br>{text}</p></blockquote>'

    def mark(self, mark: Mark) -> str:
        bad = mark.kind in ("error", "abort", "limit", "warning")
        words = facts.mark_words(mark)
        return f'<p class="mark{" fail" if bad else ""}">{escape(view.cut(words, 1_000))}</p>'


def _spans(text: str) -> str:
    """What a person wrote: only lines and `code` are told apart."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text)).replace("\n", "<br>")


def _steer(message: Message) -> bool:
    return message.delivery == "steering"


def _diff(text: str) -> str:
    kinds = {"+": "add", "-": "del", "@": "hunk"}
    lines = [
        line for line in text.split("\n") if not line.startswith(("--- ", "+++ ", "diff --git", "index "))
    ]
    spans = [f'<span class="{kinds.get(line[:1], "same")}">{escape(line) or " "}</span>' for line in lines]
    return f'<pre class="diff">{chr(10).join(spans)}</pre>'
