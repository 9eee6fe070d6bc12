"""The small timeline of a record: a table whose cells hold text and an SVG without text.

Without style or SVG (GitHub removes styles) the table still reads. Attributes and ``currentColor`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from copilot_nb.fold.items import Message, Run, Tool
from copilot_nb.record.facts import end_of, say, secs

W = 560
BRAND = "var(--jp-brand-color1,#1976d2)"
ERROR = "var(--jp-error-color1,#d32f2f)"
WARN = "var(--jp-warn-color1,#f57c00)"
Scale = Callable[[float], float]
MOST = 160  # bars in a row; more are too thin to see


def timeline(run: Run) -> str:
    """Rows for what the person sent, turns, the model and the tools."""
    a, b = run.t0, max(end_of(run), run.t0 + 0.001)

    def x(t: float) -> float:
        return max(0.0, min(float(W), (t - a) / (b - a) * W))

    rows = [_you(run, x), _turns(run, b, x), _model(run, b, x), _tools(run, b, x)]
    return f'<table class="tl">\n{"".join(row for row in rows if row)}</table>'


def _row(label: str, words: str, height: int, shapes: Sequence[str], aria: str) -> str:
    svg = (
        f'<svg viewBox="0 0 {W} {height}" width="100%" height="{height}" style="height:{height}px" '
        f'preserveAspectRatio="none" role="img" aria-label="{escape(aria)}">{"".join(shapes)}</svg>'
    )
    return (
        f'<tr><th align="left">{escape(label)}</th><td class="sum">{escape(words)}</td><td>{svg}</td></tr>\n'
    )


def _bar(x: float, y: float, width: float, height: float, fill: str, opacity: float | None = None) -> str:
    shade = f' fill-opacity="{opacity}"' if opacity is not None else ""
    box = f'x="{x:.1f}" y="{y:g}" width="{max(1.5, width):.1f}" height="{height:g}"'
    return f'<rect {box} rx="2" fill="{fill}"{shade}/>'


def _you(run: Run, x: Scale) -> str:
    steers = [m for m in run.items if isinstance(m, Message) and m.delivery == "steering"]
    shapes = []
    for message in steers[:MOST]:
        sent = x(message.sent_at or message.landed_at or run.t0)
        landed = x(message.landed_at or run.t0)
        shapes += [
            _bar(sent, 4.25, landed - sent, 1.5, BRAND),
            _bar(max(0, sent - 3), 2, 6, 6, BRAND),
            _bar(max(0, landed - 1.8), 0, 1.8, 10, BRAND),
        ]
    shapes.append(_bar(0, 2, 6, 6, BRAND))
    words = say("record.steers", n=len(steers)) if steers else ""
    return _row(say("record.you"), words, 10, shapes, "steers: a line from sent to landed")


def _turns(run: Run, end: float, x: Scale) -> str:
    shapes = [
        _bar(x(t.t0) + 0.5, 1, x(t.t1 or end) - x(t.t0) - 1.5, 8, "currentColor", 0.16)
        for t in run.turns[-MOST:]
    ]
    words = say("record.turnsSum", n=len(run.turns), time=secs(end - run.t0))
    return _row(say("record.turns"), words, 10, shapes, "turns") if shapes else ""


def _model(run: Run, end: float, x: Scale) -> str:
    shapes, total, waited = [], 0.0, 0.0
    for turn in run.turns[-MOST:]:
        said = turn.said_at or turn.t1 or end
        first = min(turn.first_at or said, said)
        shapes.append(_bar(x(turn.t0) + 0.5, 1, x(first) - x(turn.t0), 8, "currentColor", 0.18))
        shapes.append(_bar(x(first) + 0.5, 1, x(said) - x(first), 8, "currentColor", 0.58))
    for turn in run.turns:
        said = turn.said_at or turn.t1 or end
        total += said - turn.t0
        waited += min(turn.first_at or turn.t0, said) - turn.t0
    words = say("record.modelSum", time=secs(total), wait=secs(waited)) if waited else secs(total)
    return _row(say("record.model"), words, 10, shapes, "model: waiting, then streaming") if shapes else ""


def _tools(run: Run, end: float, x: Scale) -> str:
    tools = [tool for turn in run.turns for tool in turn.tools]
    if not tools:
        return ""
    shapes, ends, lanes = [], list[float](), 0
    for tool in tools[-MOST:]:
        lane = next((k for k, free in enumerate(ends) if free <= tool.t0), len(ends))
        if lane > 4:
            continue
        ends[lane : lane + 1] = [tool.t1 or end]
        lanes = max(lanes, lane + 1)
        shapes += _tool(tool, 1 + 9 * lane, end, x)
    failed = sum(tool.state == "failed" for tool in tools)
    asked = sum((t.answered_at or t.t1 or end) - t.asked_at for t in tools if t.asked_at and not t.reason)
    words = [say("record.calls", n=len(tools)).replace("tool ", "")]
    words += [say("record.failed", n=failed)] if failed else []
    words += [say("record.waitingYou", time=secs(asked))] if asked > 0.05 else []
    return _row(say("record.tools"), ", ".join(words), 1 + 9 * lanes, shapes, "tools")


def _tool(tool: Tool, y: int, end: float, x: Scale) -> list[str]:
    stop = tool.t1 or end
    fill, opacity = (ERROR, 0.9) if tool.state == "failed" else ("currentColor", 0.34)
    if tool.asked_at is None or tool.reason is not None:
        return [_bar(x(tool.t0), y, x(stop) - x(tool.t0), 7, fill, opacity)]
    answered = tool.answered_at or stop
    return [
        _bar(x(tool.asked_at), y, x(answered) - x(tool.asked_at), 7, WARN, 0.42),
        _bar(x(answered), y, x(stop) - x(answered), 7, fill, opacity),
    ]
