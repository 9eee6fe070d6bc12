"""The output of a launching cell: a live panel while its runs go on, a static record afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from copilot_nb.events import Event, new_id
from copilot_nb.fold.items import Message, Run
from copilot_nb.record import bundle
from copilot_nb.record.facts import say
from copilot_nb.widgets.panel import Panel

if TYPE_CHECKING:
    from copilot_nb.session import Session


class CellOutput:
    """Shows a session in the running cell and later replaces that by the record, without a widget in it.

    While live, the bundle also carries text and HTML for whoever cannot draw widgets. The record comes when
    the session is idle, or, for all but the last launching cell of a drain, when its own runs have ended. A
    saved notebook so never shows a dead widget (field case 45).

    Parameters
    ----------
    session
        The message that the cell is about to send is the first that this session gets from now on.
    live
        Show a panel meanwhile. Without it only the record comes: nbclient would keep a dead widget's whole
        state in the notebook's metadata.
    """

    def __init__(self, session: Session, *, live: bool = True) -> None:
        self.session = session
        self.display_id = new_id()
        self.finished = False
        self._known = len(session.state.messages)
        self._first: Message | None = None
        self._channel = _Channel()
        self.panel = Panel(session) if live else None
        view = (self.panel and self.panel._repr_mimebundle_()) or ({}, {})
        text = f"{say('state.starting')} …"
        _publish({**view[0], "text/html": f"<p>{text}</p>", "text/plain": text}, self.display_id)
        _outputs.setdefault(session, []).append(self)
        self._off = session.on(self._event)

    def _event(self, event: Event) -> None:
        state = self.session.state
        if self._first is None and len(state.messages) > self._known:
            self._first = list(state.messages.values())[self._known]
        if event.type == "session.idle" or (event.type == "user.message" and self._is_over()):
            self._write()

    def _is_over(self) -> bool:
        """Whether another launching cell's run has begun and this one's are done."""
        runs = self.runs()
        return bool(runs) and all(run.t1 is not None for run in runs) and self._next_start() is not None

    def _next_start(self) -> int | None:
        """The number of the first run that belongs to a later launching cell."""
        outputs = _outputs.get(self.session, [])
        later = outputs[outputs.index(self) + 1 :] if self in outputs else []
        starts = [o._first.run for o in later if o._first is not None and o._first.run is not None]
        return min(starts, default=None)

    def runs(self) -> list[Run]:
        """The runs that this cell shows: from the one its message started to the next launching cell's."""
        if self._first is None or self._first.run is None:
            return []
        stop = self._next_start()
        runs = self.session.state.runs[self._first.run - 1 : None if stop is None else stop - 1]
        return runs or self.session.state.runs[self._first.run - 1 : self._first.run]

    def bundle(self) -> dict[str, str]:
        """The record of this cell's runs."""
        return bundle(self.session.state, self.runs(), model=self.session.model_label)

    def _write(self) -> None:
        """Replace the panel, from the background: the message belongs to the launching cell."""
        self._channel.update(self.bundle(), self.display_id)
        self._end()

    def finish(self) -> None:
        """Write the record anew from a waiting cell.

        Headless front ends keep only what the running cell itself sends (jupyter-facts Q4).
        """
        _update(self.bundle(), self.display_id)
        self._end()

    def _end(self) -> None:
        if self.finished:
            return
        self.finished = True
        self._off()
        if self.panel is not None:
            self.panel.rest()


_outputs: WeakKeyDictionary[Any, list[CellOutput]] = WeakKeyDictionary()


class _Channel:
    """Display messages under the cell that was running when this was made.

    Display calls of a background task would land in the cell that ran last on ipykernel 6, and use the
    task's own context on 7 (jupyter-facts Q4). Sending with the saved header is right on both. Outside a
    kernel it is an ordinary display.
    """

    def __init__(self) -> None:
        from IPython.core.getipython import get_ipython

        shell: Any = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
        self._kernel = getattr(shell, "kernel", None)
        self._parent = self._kernel.get_parent("shell") if self._kernel is not None else None

    def update(self, data: dict[str, Any], display_id: str) -> None:
        """Replace it."""
        if self._kernel is None:
            _update(data, display_id)
            return
        content = {"data": data, "metadata": {}, "transient": {"display_id": display_id}}
        self._kernel.session.send(
            self._kernel.iopub_socket,
            "update_display_data",
            content,
            parent=self._parent,
            ident=b"display_data",
        )


def _publish(data: dict[str, Any], display_id: str) -> None:
    from IPython import display

    show: Any = display.publish_display_data
    show(data, {}, transient={"display_id": display_id})


def _update(data: dict[str, Any], display_id: str) -> None:
    from IPython import display

    update: Any = display.update_display
    update(data, display_id=display_id, raw=True)
