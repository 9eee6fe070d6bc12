"""The loop: a message starts a run, a run is a chain of turns, a turn is one model call and its tools.

``_drain`` runs what waits until nothing is left; it is the only task that starts runs. ``_one_run`` is one
message's work, ``_turn`` one model call. Everything else (lanes, retries, permissions, autopilot,
compaction) lives in a file of its own. The section numbers are those of the reference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from copilot_nb.errors import ModelError
from copilot_nb.events import JSON, new_id
from copilot_nb.models.base import Reply, Request
from copilot_nb.runtimes.engine import words
from copilot_nb.runtimes.engine.asks import Asks
from copilot_nb.runtimes.engine.autopilot import Autopilot
from copilot_nb.runtimes.engine.background import Background
from copilot_nb.runtimes.engine.broadcast import Broadcast
from copilot_nb.runtimes.engine.calls import Calls, Outcome, as_sent
from copilot_nb.runtimes.engine.compaction import Compaction
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.lanes import Item
from copilot_nb.runtimes.engine.limits import limit_reached, time_limit, turn_limit
from copilot_nb.runtimes.engine.model_call import CallFailed, Deltas, call_model
from copilot_nb.runtimes.engine.queue import EngineQueue
from copilot_nb.runtimes.engine.rewind import rewind
from copilot_nb.runtimes.engine.speech import Run, Speech

End = Literal["done", "error", "aborted", "rejected", "task_complete", "limit"]


class Loop:
    """One session's loop."""

    def __init__(self, core: Core, queue: EngineQueue, asks: Asks) -> None:
        self.core, self.queue = core, queue
        self.background = Background(core, self.wake)
        self.calls = Calls(core, asks, self.background)
        self.autopilot = Autopilot(core)
        self.compaction = Compaction(core)
        self.last_interaction = ""
        self.run: Run | None = None
        self.task: asyncio.Task[None] | None = None
        self.run_task: asyncio.Task[End] | None = None
        self.held = False  # open calls of a resumed session come first
        self.stop: str | None = None  # why the running run is being cancelled
        self._woken = asyncio.Event()
        self.settled = Broadcast()  # the end of a cancelled run has been said
        self.say = Speech(core)

    def wake(self) -> None:
        """Have the drain look at the lanes; it starts when none runs."""
        self._woken.set()
        lanes = self.core.lanes
        if self.core.closed or self.held or self.task is not None:
            return
        if lanes.now or (lanes and not lanes.paused):
            self.core.processing = True
            self.task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        core, end, ran = self.core, "done", False
        try:
            while True:
                while (item := self._next(after_run=ran)) is not None:
                    end, ran = await self._one_run(item), True
                if self.stop:  # an abort between runs
                    end, ran, self.stop = "aborted", True, None
                core.processing = False
                if ran:
                    core.ephemeral("assistant.idle", {"aborted": True} if end == "aborted" else {})
                self.settled.happen()
                ran = False
                if not core.lanes and self.autopilot.wants_nudge(end):
                    core.pending_modified()
                    end, ran = await self._one_run(None), True
                elif not (core.lanes.queue and not core.lanes.paused):
                    if not self.background:
                        return
                    self._woken.clear()
                    await self._woken.wait()
                    core.processing, end = bool(core.lanes), "done"
        finally:  # whatever happens, idle is said and the next message starts a drain (copilot-sdk#794)
            self.task, core.processing, self.stop = None, False, None
            self.settled.happen()
            core.store.sync_soon()
            aborted = {"aborted": True} if end == "aborted" else {}
            core.ephemeral("session.idle", {"mode": core.mode, **aborted})
            self.compaction.apply_ready(keep_newer=False)

    def _next(self, *, after_run: bool) -> Item | None:
        """The next queue item; a steer that missed the run before it comes first (§4)."""
        lanes = self.core.lanes
        if lanes.now is None and (after_run or not lanes.queue or lanes.paused):
            for place, missed in enumerate(lanes.promote(all_of_them=lanes.paused)):
                move = {"messageId": missed.message_id, "lane": "queue", "position": place}
                self.core.journal("move", **move, reason="missed")
                self.core.pending_modified()
        return lanes.take_next()

    async def _one_run(self, item: Item | None) -> End:
        """One run from its message to its end; None is a nudge of the autopilot (§9)."""
        core = self.core
        core.processing, self.stop = True, None
        if item is None or not item.announced:
            core.pending_modified()
        reuse = item is not None and item.continues
        interaction = self.last_interaction if reuse and self.last_interaction else new_id()
        run = self.run = Run(item.message_id if item else new_id(), interaction)
        self.last_interaction = run.interaction_id
        core.run_events.clear()
        core.history.begin_run()
        self.say.begin(run, item)
        if item is not None and item.messages:
            self.queue.running = run.message_id
            self.autopilot.started(run.message_id)
        self.run_task = asyncio.create_task(self._turns(run))
        timer = time_limit(core, self.cancel_run)
        try:
            end = await self.run_task
        except asyncio.CancelledError:
            if core.closed or not self.run_task.cancelled():
                raise
            end = "aborted"
        finally:
            timer.cancel()
            self.run_task = self.run = self.queue.running = None
            core.lanes.in_flight.clear()
        return self._ended(run, end)

    def _ended(self, run: Run, end: End) -> End:
        """Say what the end of a run calls for (§8 to §11)."""
        core, stop, self.stop = self.core, self.stop, None
        if end == "aborted" and stop == "seconds":
            limit_reached(core, self.queue, "seconds", core.config.limits.seconds)
            return "limit"
        if stop in ("abort", "interrupt", "withdraw"):  # also when the run ended at the same moment
            end = "aborted"
        if end in ("aborted", "error"):
            broken = run.where["turnId"] if end == "aborted" else None
            core.history.as_recorded(core.run_events, broken_turn=broken)
        if end == "rejected":
            core.stored("abort", {"reason": "user_initiated"})
            self.queue.discard_all("rejected")
            core.pending_modified()
        if stop in ("interrupt", "withdraw"):
            core.stored("abort", {"reason": "user_abort"})
            if stop == "withdraw" and run.first_event:
                rewind(core, run.first_event, delivered=True)
        if end in ("task_complete", "error", "aborted"):
            self.autopilot.stopped(end)
        if stop == "abort":
            core.pending_modified()
        return end

    async def _turns(self, run: Run) -> End:
        """Turn after turn, until the model asks for no tool."""
        core = self.core
        try:
            while (end := await self._turn(run)) is None:
                run.turn += 1
                self.compaction.apply_ready(keep_newer=True)
                if turn_limit(core, self.queue, run):
                    return "limit"
            return end
        except CallFailed as failure:
            told: JSON = {"errorType": failure.error_type, "message": str(failure)}
            if failure.error.status is not None:
                told["statusCode"] = failure.error.status
        except Exception as error:  # a fault of a model or of ours ends this run, not the session
            told = {"errorType": "internal", "message": f"{type(error).__name__}: {error}"}
        core.stored("session.error", {**told, "originatingMessageId": run.message_id})
        return "error"

    async def _turn(self, run: Run) -> End | None:
        """One model call and its tools; None: the run goes on."""
        core = self.core
        core.stored("assistant.turn_start", run.where)
        deltas = Deltas(core, self.queue.answer_begins)
        try:
            reply = await call_model(core, run.turn, self._prepare(run), deltas)
            return await self._commit(run, reply, deltas)
        except asyncio.CancelledError:
            self.say.partial(run, deltas)
            raise
        finally:
            core.stored("assistant.turn_end", {"turnId": run.where["turnId"]})

    async def _commit(self, run: Run, reply: Reply, deltas: Deltas) -> End | None:
        """Take a complete answer into log and history, then run its tools."""
        core = self.core
        if core.lanes.in_flight:  # the steers of this request are answered now (§3)
            core.lanes.in_flight.clear()
            core.pending_modified()
        self.queue.answer_begins()
        if reply.usage is not None:
            run.tokens += (reply.usage.input_tokens or 0) + (reply.usage.output_tokens or 0)
        calls = reply.tool_calls
        if reply.finish == "length" and not calls:
            core.history.add_assistant(reply.text)
            core.history.add_user(words.CONTINUE)
            return None
        self.say.answer(run, reply, deltas)
        unanswered, run.unanswered = run.unanswered, False
        if not calls:
            core.history.add_assistant(reply.text, (), reply.reasoning, core.config.streaming)
            if not reply.text and unanswered:
                core.history.run_start = None  # what the model saw stays as it was
                raise CallFailed(ModelError(words.EMPTY_REPLY), "query")
            return "done"
        outcome = Outcome([None] * len(calls))
        try:
            await self.calls.run(calls, run.where, outcome, self.say.is_autopilot(run))
        finally:  # every call is answered in the history, also after an abort (copilot-cli#3183)
            core.history.add_assistant(reply.text, as_sent(calls), reply.reasoning, core.config.streaming)
            core.history.add_results(calls, outcome.results)
        if outcome.rejected:
            return "rejected"
        if outcome.summary is not None:
            return "task_complete"
        return "done" if outcome.terminal else None

    def _prepare(self, run: Run) -> Callable[[], Request]:
        """Makes the turn's request; pending steers are drained each time, so also before a retry (§0.3)."""
        core, tools = self.core, self.calls.specs(self.say.is_autopilot(run))

        def request() -> Request:
            for steer in core.lanes.take_steers():
                core.pending_modified()
                self.say.steer(run, steer)
            return Request([self.say.system_message(), *core.history.messages], tools, core.config.streaming)

        self.compaction.begin_turn(Request([self.say.system_message()], tools), first=run.turn == 0)
        return request

    def cancel_run(self, why: str) -> None:
        """Cancel the running run; what that means is told at its end."""
        self.stop = why
        if self.run_task is not None:
            self.run_task.cancel()
        self._woken.set()
