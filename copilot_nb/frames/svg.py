"""The timeline of a log as static SVG: no extra, no script, no style sheet; it takes the page's ink."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from copilot_nb.frames.log import NamedTables

_WIDTH, _LEFT, _ROW, _TOP = 720, 110, 26, 6
_MOST: Final = 2000  # bars a row; beyond that they could not be told apart


def timeline_svg(log: NamedTables) -> str:
    """Turns, tool calls, permissions and waiting messages over time.

    Presentation attributes and ``currentColor`` only: it survives notebook sanitisers and both themes.
    Names from the log are escaped; they are the bars' tooltips.
    """
    lanes = [
        ("turns", _bars(log.turns(), "started", "ended", _turn_words), 0.75),
        ("tools", _bars(log.tools(), "started", "ended", _tool_words), 0.55),
        ("permissions", _bars(log.permissions(), "asked_at", "answered_at", _permission_words), 0.35),
        ("waiting", _bars(log.messages(), "sent_at", "landed_at", _message_words), 0.25),
    ]
    moments = [moment for _, bars, _ in lanes for start, end, _ in bars for moment in (start, end)]
    first = min(moments, default=0)
    length = max(max(moments, default=0) - first, 1e-6)
    scale = (_WIDTH - _LEFT - 10) / length
    height = _TOP + _ROW * len(lanes) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="11" fill="currentColor" role="img" '
        f'aria-label="Timeline of {escape(_span(length))}">'
    ]
    for place, (name, bars, opacity) in enumerate(lanes):
        y = _TOP + place * _ROW
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        for start, end, words in bars[:_MOST]:
            x, wide = _LEFT + (start - first) * scale, max((end - start) * scale, 1)
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{wide:.1f}" height="{_ROW - 8}" rx="1.5" '
                f'fill-opacity="{opacity}"><title>{escape(_printable(words))}</title></rect>'
            )
    base = _TOP + _ROW * len(lanes) + 2
    parts.append(
        f'<path d="M{_LEFT} {base}H{_WIDTH - 10}" stroke="currentColor" stroke-opacity="0.4" fill="none"/>'
    )
    for part in range(5):
        x, anchor = (
            _LEFT + part * (_WIDTH - _LEFT - 10) / 4,
            "start" if part == 0 else "end" if part == 4 else "middle",
        )
        parts.append(
            f'<text x="{x:.1f}" y="{base + 15}" text-anchor="{anchor}" fill-opacity="0.7">'
            f"{escape(_span(length * part / 4))}</text>"
        )
    return "".join(parts) + "</svg>"


def _bars(frame: Any, start: str, end: str, words: Any) -> list[tuple[float, float, str]]:
    known = frame[frame[start].notna() & frame[end].notna()]
    begins, ends = (known[column].astype("int64") / 1e6 for column in (start, end))
    return [
        (begin, finish, f"{words(row)}, {_span(finish - begin)}")
        for begin, finish, row in zip(begins, ends, known.itertuples(), strict=True)
    ]


def _turn_words(row: Any) -> str:
    return f"run {row.run}, turn {row.turn}: {row.status}"


def _tool_words(row: Any) -> str:
    return f"{row.tool}: {row.status}"


def _permission_words(row: Any) -> str:
    return f"permission for {row.tool}: {row.status}"


def _message_words(row: Any) -> str:
    return f"{row.delivery} message"


def _printable(text: str) -> str:
    """Without the control characters that XML forbids."""
    return "".join(character if character.isprintable() else " " for character in text)


def _span(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
