"""SessionState: what is true of a session after the events so far, for every view and every wait."""

from __future__ import annotations

import time
from collections.abc import Iterable

from copilot_nb.events import Event
from copilot_nb.fold import Fold
from copilot_nb.fold.items import Message, Tool


class SessionState(Fold):
    """What is true of a session after the events applied so far.

    Attributes
    ----------
    busy
        From the first message of a drain until ``session.idle``.
    runs, turns
        Of the whole session, in order; `run` and `turn` are the last ones.
    tools
        Every call, by tool call id.
    messages
        Everything sent, by message id: pending, landed or removed.
    in_flight
        Steers that joined the present model call and are not answered yet.
    permissions, questions
        What waits for the person, by request id.
    touched
        The item that the last `apply` changed, for views that send changes on; None for a change of
        small facts only (lanes, mode, context …), which are cheap to send whole.
    generation
        Goes up when `rebuild` threw everything away (a rewind): views draw anew.
    """

    @classmethod
    def from_events(cls, events: Iterable[Event], *, settled: bool = True) -> SessionState:
        """Fold a log. `settled` closes what a finished or broken-off session left open."""
        state = cls()
        for event in events:
            state.apply(event)
        if settled:
            state.settle()
        return state

    @property
    def steers(self) -> list[Message]:
        """Steers that wait for the next model call, in order."""
        return [self.messages[key] for key in self.lanes["steering"]]

    @property
    def queue(self) -> list[Message]:
        """Messages that wait for a run of their own, in order."""
        return [self.messages[key] for key in self.lanes["queue"]]

    def running_tools(self) -> list[Tool]:
        """Calls of the last turn that run now (not those that wait for an answer)."""
        return [tool for tool in self.turn.tools if tool.state == "running"] if self.turn else []

    def describe(self, now: float | None = None) -> str:
        """What goes on, in words: ``turn 3, running python for 4.2 s, 1 steer and 2 queued waiting``."""
        words = [self._doing(time.time() if now is None else now)]
        steers, queued = len(self.lanes["steering"]), len(self.lanes["queue"])
        waiting = [f"{steers} steer{'s' * (steers != 1)}"] if steers else []
        if queued:
            waiting.append(f"{queued} queued")
        if waiting:
            words.append(" and ".join(waiting) + (" (queue paused)" if self.queue_paused else " waiting"))
        return ", ".join(words)

    def _doing(self, now: float) -> str:
        asks = [*self.permissions.values(), *self.questions.values()]
        if asks:
            name = asks[0].data.get("toolName") or asks[0].kind.replace("_", " ")
            return f"waiting for your answer about {name} for {max(0.0, now - asks[0].asked_at):.1f} s"
        if not self.busy:
            return "idle"
        run, turn = self.run, self.turn
        if run is None or turn is None or turn.run != run.n:
            return "starting"
        head = f"turn {turn.n}" if run.n == 1 else f"run {run.n}, turn {turn.n}"
        phase = turn.phase()
        if phase == "done" and self.background:
            return f"{head} done, background work still running"
        names = ", ".join(tool.name for tool in self.running_tools())
        doing = {
            "wait": "waiting for the model",
            "reason": "thinking",
            "write": "writing",
            "tools": f"running {names}" if names else "finishing",
            "done": "finishing",
        }[phase]
        return f"{head}, {doing} for {max(0.0, now - turn.since()):.1f} s"
