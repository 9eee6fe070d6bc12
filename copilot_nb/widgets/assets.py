"""The panel's front end as one module text and one style sheet.

anywidget loads ``_esm`` as a single module from a blob URL, where relative imports do not resolve. The
files in ``static/`` are plain ES modules all the same, and run unchanged from any web server. Here they are
put in one text: each becomes a block with its own scope that hands out what it exports.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

_IMPORT: Final = re.compile(
    r'^import\s+(?:\{([^}]*)\}|(\w+))\s+from\s+"\./([\w.]+)"(?:\s+with\s+\{[^}]*\})?;\n', re.M
)
_EXPORT: Final = re.compile(r"^export\s+(?:async\s+)?(?:function\*?|class|const|let)\s+(\w+)", re.M)
_ENTRY: Final = "main.js"
STYLES: Final = ("base.css", "conversation.css", "timeline.css", "queue.css", "events.css", "narrow.css")


def _read(name: str) -> str:
    return files("copilot_nb.widgets").joinpath("static", name).read_text(encoding="utf-8")


@cache
def texts() -> dict[str, Any]:
    """Every English text of the panel and the record, by key: ``static/texts.json``."""
    result: dict[str, Any] = json.loads(_read("texts.json"))
    return result


@cache
def esm() -> str:
    """All modules as one, in the order of their imports; ``main.js`` last, with the default export."""
    done: dict[str, str] = {}
    _load(_ENTRY, done, ())
    return "\n".join(done.values())


def _load(name: str, done: dict[str, str], path: tuple[str, ...]) -> None:
    if name in done:
        return
    if name in path:
        raise ImportError(f"static modules import each other in a circle: {' -> '.join([*path, name])}")
    text = _read(name)
    if name.endswith(".json"):
        done[name] = f"const {_variable(name)} = {text.strip()};"
        return
    for match in _IMPORT.finditer(text):
        _load(match[3], done, (*path, name))
    body = _IMPORT.sub(_as_const, text)
    if name == _ENTRY:
        done[name] = body
        return
    names = _EXPORT.findall(body)
    body = re.sub(r"^export\s+", "", body, flags=re.M)
    done[name] = f"const {_variable(name)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();"


def _as_const(match: re.Match[str]) -> str:
    if match[1] is None:
        return f"const {match[2]} = {_variable(match[3])};\n"
    return f"const {{{match[1].replace(' as ', ': ')}}} = {_variable(match[3])};\n"


def _variable(name: str) -> str:
    return "_" + re.sub(r"\W", "_", name)


@cache
def css() -> str:
    """The style sheet."""
    return "\n".join(_read(name) for name in STYLES)
