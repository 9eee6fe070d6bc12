"""From Python values to what the model reads (capped text) and what the person sees (a mime bundle)."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from copilot_nb.events import JSON, clean

VALUE_LIMIT = 8_000  # characters of one value's text
RICH = ("image/svg+xml", "image/png", "image/jpeg", "text/html", "text/markdown", "text/latex")


def cap(text: str, limit: int = VALUE_LIMIT) -> str:
    """At most `limit` characters, cut in the middle with a mark that says how much is missing."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} of {len(text)} characters left out …\n{text[-half:]}"


def safe_repr(value: Any) -> str:
    """`repr`, capped; a foreign ``__repr__`` that raises does no harm."""
    try:
        return cap(repr(value))
    except Exception as error:
        return f"<{type(value).__name__} object; its repr raised {type(error).__name__}: {error}>"


def value_text(value: Any) -> str:
    """A tool function's return value for the model: text as it is, data as JSON, tables as text."""
    if value is None:
        return "(done; nothing was returned)"
    if isinstance(value, str):
        return value
    if is_table(value):
        return table_text(value)
    if isinstance(
        value, dict | list | tuple | int | float | bool | msgspec.Struct
    ) or dataclasses.is_dataclass(value):
        try:
            return msgspec.json.encode(value, enc_hook=_plain).decode()
        except (ValueError, TypeError, OverflowError, RecursionError):
            return json.dumps(clean(value), ensure_ascii=False)
    return safe_repr(value)


def _plain(value: Any) -> Any:
    if is_table(value):
        return table_text(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else safe_repr(value)


def is_table(value: Any) -> bool:
    """Whether it is a pandas (or alike) DataFrame or Series; asks without importing pandas."""
    return type(value).__name__ in ("DataFrame", "Series") and hasattr(value, "shape")


def table_text(table: Any) -> str:
    """A table as text, with its size; long ones in part."""
    shape = " x ".join(str(size) for size in table.shape)
    text = table.to_string(max_rows=40) if hasattr(table, "to_string") else str(table)
    return f"{cap(text)}\n[{type(table).__name__} {shape}]"


def value_bundle(value: Any) -> JSON | None:
    """How a value shows itself: a table or anything with ``_repr_html_``; None when only as text."""
    if callable(getattr(value, "_repr_html_", None)) and not isinstance(value, type):
        html = value._repr_html_()
        if isinstance(html, str):
            return {"text/html": html, "text/plain": safe_repr(value)}
    return None


def note(bundle: JSON) -> str:
    """What the model is told of a displayed bundle: its text, or the kind and size of an image."""
    for mime in ("image/png", "image/jpeg", "image/svg+xml"):
        if mime in bundle:
            return f"[{mime}{_size(bundle[mime]) if mime == 'image/png' else ''}]"
    return cap(str(bundle.get("text/plain", f"[{', '.join(bundle)}]")))


def as_json(bundle: JSON) -> JSON:
    """A bundle whose images are base64 text."""
    return {
        mime: base64.b64encode(data).decode() if isinstance(data, bytes) else clean(data)
        for mime, data in bundle.items()
    }


def rich(bundles: Iterable[JSON]) -> list[JSON]:
    """The bundles worth showing to a person beside the text, at most the last twenty."""
    return [as_json(bundle) for bundle in bundles if any(mime in bundle for mime in RICH)][-20:]


def _size(png: Any) -> str:
    try:
        head = png[:24] if isinstance(png, bytes) else base64.b64decode(str(png)[:32])
        width, height = struct.unpack(">II", head[16:24])
    except (struct.error, binascii.Error):
        return ""
    return f" {width}x{height}"
