"""``%copilot queue …``: look at and edit what waits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from copilot_nb.errors import UsageError
from copilot_nb.events import JSON
from copilot_nb.notebook.arguments import unknown
from copilot_nb.notebook.desk import Desk

if TYPE_CHECKING:
    from copilot_nb.session import Session

Edit = Callable[["Session", str], Coroutine[Any, Any, str]]


async def run(desk: Desk, rest: str) -> None:
    """``%copilot queue [list | mv ID PLACE | edit ID TEXT | rm ID | steer ID | pause | resume | clear]``."""
    word, _, rest = rest.partition(" ")
    session = desk.current()
    if word and word not in EDITS:
        raise UsageError(unknown("queue command", word, EDITS))
    print(await EDITS[word or "list"](session, rest.strip()))


async def _list(session: Session, rest: str) -> str:
    pending = await session.queue.pending_items()
    steers, items = pending["steeringMessages"], pending["items"]
    lines = [f"{len(steers)} steering (before the next model call)"]
    lines += [f"  s{n:<5}{_short(text)}" for n, text in enumerate(steers, 1)]
    lines += [
        f"{len(items)} queued (a run each, in this order){', paused' if session.state.queue_paused else ''}"
    ]
    lines += [f"  {item['id']:<6}{_short(item.get('displayText', ''))}" for item in items]
    return "\n".join(lines)


async def _move(session: Session, rest: str) -> str:
    key, _, place = rest.partition(" ")
    items = await _items(session)
    _known(key, items, "mv ID PLACE")
    if not place.strip().isdigit() or not 1 <= int(place) <= len(items):
        raise UsageError(f"%copilot queue mv ID PLACE: the place is a number from 1 to {len(items)}.")
    await session.queue.move_item(key, int(place) - 1)
    return await _list(session, "")


async def _edit(session: Session, rest: str) -> str:
    key, _, text = rest.partition(" ")
    _known(key, await _items(session), "edit ID TEXT")
    if not text.strip():
        raise UsageError("%copilot queue edit ID TEXT: the new text is missing.")
    await session.queue.update_text(key, text.strip())
    return await _list(session, "")


async def _remove(session: Session, rest: str) -> str:
    steers = session.state.steers
    if rest[:1] == "s" and rest[1:].isdigit() and 1 <= int(rest[1:]) <= len(steers):
        steer = steers[int(rest[1:]) - 1]
        await session.withdraw(steer.id, steer.text)
    else:
        _known(rest, await _items(session), "rm ID")
        await session.queue.remove_at(rest)
    return await _list(session, "")


async def _steer(session: Session, rest: str) -> str:
    _known(rest, await _items(session), "steer ID")
    await session.queue.send_now(rest)
    return await _list(session, "")


async def _pause(session: Session, rest: str) -> str:
    if session.state.queue_paused:
        return "The queue is paused already: %copilot queue resume lets it go on."
    await session.queue.set_drain_paused(True)
    return "The queue is paused: the running run goes on, no new one starts."


async def _resume(session: Session, rest: str) -> str:
    if not session.state.queue_paused:
        return "The queue is not paused."
    await session.queue.set_drain_paused(False)
    return "The queue goes on."


async def _clear(session: Session, rest: str) -> str:
    count = len(session.state.queue) + len(session.state.steers)
    await session.queue.clear()
    return f"{count} removed; the running run goes on." if count else "Nothing was waiting."


EDITS: dict[str, Edit] = {
    "list": _list,
    "mv": _move,
    "edit": _edit,
    "rm": _remove,
    "steer": _steer,
    "pause": _pause,
    "resume": _resume,
    "clear": _clear,
}


async def _items(session: Session) -> list[JSON]:
    items: list[JSON] = (await session.queue.pending_items())["items"]
    return items


def _known(key: str, items: list[JSON], form: str) -> None:
    ids = [str(item["id"]) for item in items]
    if key in ids:
        return
    there = f"in the queue: {', '.join(ids)}" if ids else "the queue is empty"
    raise UsageError(f"%copilot queue {form}: there is no item {key!r} ({there}).")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"
