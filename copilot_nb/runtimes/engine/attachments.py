"""Files, selections and blobs that come with a message (reference §19)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON

_NEEDED = {
    "file": ("path",),
    "directory": ("path",),
    "selection": ("filePath", "text"),
    "blob": ("data", "mimeType"),
}


def check_attachments(attached: Iterable[JSON]) -> None:
    """Refuse attachments of an unknown or incomplete kind with a `UsageError`, before anything is sent."""
    for one in attached:
        needed = _NEEDED.get(str(one.get("type")))
        if needed is None:
            raise UsageError(f"An attachment's type is one of {', '.join(_NEEDED)}, not {one.get('type')!r}.")
        if missing := [name for name in needed if not isinstance(one.get(name), str)]:
            raise UsageError(f"A {one['type']} attachment needs {' and '.join(missing)} as text.")
        if one["type"] == "blob":
            try:
                base64.b64decode(one["data"], validate=True)
            except ValueError as error:
                raise UsageError(f"A blob attachment's data is base64: {error}.") from error


def stamped(prompt: str, attached: Iterable[JSON] = (), *, with_time: bool = True) -> str:
    """The text of a message as it is stored: selections, the time, the prompt."""
    attached = list(attached)
    before = "".join(_selection(a) for a in attached if a.get("type") == "selection")
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    clock = f"<current_datetime>{when}</current_datetime>\n\n" if with_time else ""
    return f"{before}{clock}{prompt}"


def _describe_path(path: Path) -> str:
    try:
        if path.is_dir():
            return f"{path} ({sum(1 for _ in path.iterdir())} items)"
        lines = path.read_bytes().count(b"\n") + 1
        return f"{path} ({lines} lines)"
    except OSError as error:
        return f"{path} ({type(error).__name__}: {error.strerror})"


def _selection(attached: JSON) -> str:
    start = (attached.get("selection") or {}).get("start") or {}
    where = f' line="{start["line"] + 1}"' if isinstance(start.get("line"), int) else ""
    name = attached.get("displayName") or attached.get("filePath") or ""
    return f'<selection file="{name}"{where}>\n{attached.get("text", "")}\n</selection>\n\n'


def content(text: str, attached: Iterable[JSON], assets: Mapping[Any, JSON]) -> str | list[JSON]:
    """The wire content of a user message: text with a list of tagged files, and parts for blobs."""
    attached = list(attached)
    if entries := [str(one["taggedFilesEntry"]) for one in attached if one.get("taggedFilesEntry")]:
        text = "\n".join((f"{text}\n\n<attached>", *entries, "</attached>"))
    parts: list[JSON] = []
    for blob in attached:
        if blob.get("type") != "blob":
            continue
        asset = assets.get(blob.get("assetId"))
        data = str(asset["data"] if asset else blob.get("data", ""))
        mime, name = str(blob.get("mimeType", "")), str(blob.get("displayName", ""))
        if mime.startswith("image/"):
            url = {"url": f"data:{mime};base64,{data}"}
            parts += [{"type": "text", "text": name}, {"type": "image_url", "image_url": url}]
        else:
            body = base64.b64decode(data).decode("utf-8", "replace")
            parts.append(
                {"type": "text", "text": f'<attachment type="{mime}" name="{name}">\n{body}\n</attachment>'}
            )
    return [{"type": "text", "text": text}, *parts] if parts else text


def as_stored(attached: Iterable[JSON]) -> tuple[list[JSON], list[JSON]]:
    """Attachments as they are stored, and the images taken out of them (``session.binary_asset``).

    A file or folder gets a line that tells its size, not its content.
    """
    kept: list[JSON] = []
    images: list[JSON] = []
    for one in attached:
        if one.get("type") != "blob" or not str(one.get("mimeType", "")).startswith("image/"):
            tagged = one.get("type") in ("file", "directory")
            entry = {"taggedFilesEntry": f"* {_describe_path(Path(one['path']))}"} if tagged else {}
            kept.append({**one, **entry})
            continue
        raw = base64.b64decode(str(one.get("data", "")))
        mime = one["mimeType"]
        asset_id = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        images.append(
            {
                "assetId": asset_id,
                "type": "image",
                "mimeType": mime,
                "byteLength": len(raw),
                "data": one["data"],
            }
        )
        reference = {key: value for key, value in one.items() if key != "data"}
        kept.append({**reference, "assetId": asset_id, "byteLength": len(raw)})
    return kept, images
