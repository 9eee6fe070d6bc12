"""The panel: one widget class for a running session, a finished one and a log file."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anywidget
import traitlets

from copilot_nb.events import JSON, Event, new_id
from copilot_nb.fold.items import Turn
from copilot_nb.widgets import assets
from copilot_nb.widgets.actions import Actions
from copilot_nb.widgets.feed import Feed
from copilot_nb.widgets.source import Source, facts_of
from copilot_nb.widgets.table import EventTable
from copilot_nb.widgets.timeline import Timeline

RATE = 20  # messages a second at most
SNAPSHOT_CHARS_PER_SECOND = 30_000


class Panel(anywidget.AnyWidget):
    """The live view of one session.

    Parameters
    ----------
    source
        A `Session`, or a read-only log with the same attributes (`copilot_nb.open_log`).
    tab
        ``conversation``, ``timeline``, ``queue`` or ``events``: shown first.
    loop
        The loop that everything happens on; the running one when absent.

    Notes
    -----
    Changes go out as numbered messages, at most 20 a second. `snap` is a low-rate copy for what was saved
    or is drawn while the kernel cannot answer. A view that was just drawn, or sees a gap, asks for the whole.
    """

    _esm = assets.esm()
    _css = assets.css()
    snap = traitlets.Dict({"seq": -1}).tag(sync=True)
    uid = traitlets.Unicode().tag(sync=True)
    tab = traitlets.Unicode("conversation").tag(sync=True)

    def __init__(
        self, source: Source, *, tab: str = "conversation", loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.source = source
        self.loop = loop or getattr(source, "loop", None) or asyncio.get_running_loop()
        self.feed = Feed(source.state)
        self.actions = Actions(self)
        self.table = EventTable(source)
        self.timeline = Timeline(source)
        self._seq = 0
        self._generation = source.state.generation
        self._head: JSON = {}
        self._facts = False
        self._timer: asyncio.TimerHandle | None = None
        self._snap_at = 0.0
        self._context = contextvars.copy_context()
        super().__init__(tab=tab, uid=new_id(), snap=self._whole())
        self.on_msg(self._received)
        self._off: Callable[[], None] | None = None
        self._over = False
        self._listen()

    def _listen(self) -> None:
        if self._off is None:
            self._off = self.source.on(self._event)

    def rest(self) -> None:
        """Send no more: its place was taken by the record.

        The model stays, because a page that was reloaded in mid-run still shows it (jupyter-facts Q7): as
        soon as a view says anything, changes are sent again.
        """
        self._over = True
        self._flush_quietly()
        if self._off is not None:
            self._off()
            self._off = None

    def close(self) -> None:
        """Let go of the session and of the front end's model."""
        self.rest()
        super().close()

    # --- session to views ---

    def _event(self, event: Event) -> None:
        """On the session's loop, once per event: remember what changed, send later."""
        touched = self.source.state.touched
        if touched is not None:
            self.feed.dirty[touched] = None
        if type(touched) is not Turn or event.type not in _DELTAS:
            self._facts = True
        if self._timer is None:
            self._timer = self.loop.call_later(1 / RATE, self._flush)

    def _flush(self) -> None:
        self._timer = None
        state = self.source.state
        if state.generation != self._generation:
            self._generation, self.feed = state.generation, Feed(state)
            self.send_whole()
            return
        ops = self.feed.flush()
        message: JSON = {"kind": "d", "ops": ops, "events": state.events}
        head = self._changed_head()
        if head is not None:
            message["head"] = head
        if ops or head is not None or self._facts:
            self._facts = False
            self._seq += 1
            self.send({**message, "seq": self._seq})
            self._snapshot(ended=not state.busy)

    def _changed_head(self) -> JSON | None:
        head = facts_of(self.source)
        if head == self._head:
            return None
        self._head = head
        return {**head, "now": time.time()}

    def _whole(self) -> JSON:
        self._head = facts_of(self.source)
        head = {**self._head, "now": time.time()}
        return {"seq": self._seq, "head": head, "events": self.source.state.events, **self.feed.tail()}

    def send_whole(self) -> None:
        """Everything a view starts with, numbered like the changes before it."""
        self._flush_quietly()
        self.send({"kind": "full", **self._whole()})

    def _flush_quietly(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _snapshot(self, ended: bool) -> None:
        now = time.monotonic()
        if ended or now >= self._snap_at:
            snap = self._whole()
            size = sum(len(item.get("text") or "") for item in snap["items"])
            self._snap_at = now + max(2.0, size / SNAPSHOT_CHARS_PER_SECOND)
            self.snap = snap

    # --- views to session ---

    def _received(self, _widget: Any, content: JSON, _buffers: list[Any]) -> None:
        """Perhaps on a subshell's thread and loop (ipykernel 7.0-7.3): only pass it on."""
        self.loop.call_soon_threadsafe(self._act, content, context=self._context)

    def _act(self, content: JSON) -> None:
        if content.get("kind") == "bye":  # the last view is gone
            if self._over:
                self.rest()
            return
        self._listen()
        if content.get("kind") == "resync":
            self.send_whole()
        else:
            self.start(self.actions.perform(content))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a piece of work on the loop; it reports its own failures."""
        task = self.loop.create_task(work)
        _running.add(task)
        task.add_done_callback(_running.discard)


_running: set[asyncio.Task[None]] = set()
_DELTAS = frozenset({"assistant.message_delta", "assistant.reasoning_delta", "assistant.streaming_delta"})
