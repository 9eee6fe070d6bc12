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
_EXPORTED: Final = re.compile(r"\s*(?:async\s+)?(?:function\*?|class|const|let)\s+(\w+)")
_ENTRY: Final = "main.js"
STYLES: Final = ("base.css", "conversation.css", "timeline.css", "queue.css", "events.css", "narrow.css")
_STATIC: Final = files("copilot_nb.widgets") / "static"


def _read(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")


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
    last = text.rfind("\nimport ")
    top = text.find("\n", last + 1) + 1 if last >= 0 or text.startswith("import ") else 0
    head, body = text[:top], text[top:]  # imports come first: the patterns need not walk the rest
    for match in _IMPORT.finditer(head):
        _load(match[3], done, (*path, name))
    head = _IMPORT.sub(_as_const, head)
    if name == _ENTRY:
        done[name] = head + body
        return
    parts = ("\n" + body).split("\nexport ")
    names = [found[1] for part in parts[1:] if (found := _EXPORTED.match(part))]
    body = "\n".join(parts)[1:]
    done[name] = f"const {_variable(name)} = (() => {{\n{head}{body}return {{ {', '.join(names)} }};\n}})();"


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
