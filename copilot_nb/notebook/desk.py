"""The sessions of one notebook: which is current, how one is opened, and what its cells send and show."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from copilot_nb.errors import CopilotNbError, NoSession, SessionInUse, UsageError
from copilot_nb.notebook.arguments import Options
from copilot_nb.notebook.front_end import nobody_there
from copilot_nb.notebook.templating import fill
from copilot_nb.permissions import allow_tools
from copilot_nb.store import holders, session_folder

if TYPE_CHECKING:
    from copilot_nb.runtimes.base import Delivery
    from copilot_nb.session import Session
    from copilot_nb.widgets.cell import CellOutput

LIMITS = ("max_turns", "max_tokens", "max_seconds")
Future = asyncio.Future[Any] | concurrent.futures.Future[Any]


class Desk:
    """What the magics work on; it lives as long as the extension is loaded.

    Parameters
    ----------
    variables
        The user's namespace, for ``{name}`` in prompts.
    settings
        Has ``model``, ``runtime``, ``base_url``, ``wire_api``, ``allow``: for cells that do not say.
    """

    def __init__(self, variables: Mapping[str, Any], settings: Any) -> None:
        self.variables = variables
        self.settings = settings
        self.outputs: list[CellOutput] = []
        self.sending: dict[str, Future] = {}
        self.failed: dict[str, CopilotNbError] = {}  # sends that a waiting cell has not told of yet

    # --- which session -----------------------------------------------------------------------------

    def current(self) -> Session:
        """The session that is meant where none is named."""
        from copilot_nb.session import current

        session = current()
        if session is None:
            raise NoSession(
                "There is no session yet: start one with a %%copilot cell, or go on with %copilot resume ID."
            )
        return session

    def session_for(self, options: Options) -> Session:
        """The session that a ``%%copilot`` cell means.

        The current one goes on (jupyter-ai#783: cells without memory), unless another id, model or runtime is
        asked for.
        """
        from copilot_nb.session import choose, current

        session = self.find(options.session) if options.session is not None else current()
        if session is None:
            return self.open(options)
        if _asks_for_another(session, options):
            if options.session is not None:
                raise UsageError(
                    f"Session {session.id} answers with {session.model}: leave -s out for a new one."
                )
            session = self.open(options)
            say(f"A new session ({session.id}), because this cell asks for {session.model_label}.")
            return session
        choose(session)
        self.adjust(session, options)
        return session

    def find(self, session_id: str) -> Session | None:
        """A session that is open here, by its id or the beginning of it."""
        from copilot_nb.session import sessions

        found = [one for key, one in sessions.items() if key.startswith(session_id) and not one.closed]
        exact = [one for one in found if one.id == session_id]
        if len(found) > 1 and not exact:
            raise UsageError(f"{session_id!r} begins {len(found)} open sessions: write more of it.")
        return next(iter(exact or found), None)

    def open(self, options: Options, *, existing: bool = False) -> Session:
        """Open a session from options and configuration; it becomes the current one."""
        from copilot_nb.session import open_session, resume_session

        if options.session is not None and not options.in_use:
            _check_free(options.session)
        names = ("model", "runtime", "base_url", "wire_api")
        more: dict[str, Any] = {
            name: getattr(options, name) or getattr(self.settings, name) or None for name in names
        }
        more |= {name: getattr(options, name) for name in LIMITS}
        more |= {"allow": [*self.settings.allow, *options.allow], "yolo": options.yolo}
        if existing:
            return resume_session(str(options.session), restore_queue=True, **more)
        return open_session(session_id=options.session, **more)

    def adjust(self, session: Session, options: Options) -> None:
        """Apply the options that can change while a session is open."""
        session.policy.allow |= allow_tools(options.allow) | ({"*"} if options.yolo else set())
        asked = {name.removeprefix("max_"): getattr(options, name) for name in LIMITS}
        limits = getattr(getattr(session.runtime, "config", None), "limits", None)
        for name, value in asked.items():
            if value is not None and limits is None:
                raise UsageError(
                    f"--max-{name} works with the engine, not with runtime {session.runtime_name}."
                )
            if value is not None:
                setattr(limits, name, value)

    # --- sending -----------------------------------------------------------------------------------

    def start(self, options: Options, text: str) -> None:
        """Send the text of a ``%%copilot`` cell, without waiting; this cell shows the run."""
        prompt = self.prompt(text)
        session = self.session_for(options)
        self._show(session)
        self._post(session, _send(session, prompt, options))

    async def start_and_wait(self, options: Options, text: str) -> None:
        """Send the text of a ``%%copilot`` cell and wait for idle."""
        prompt = self.prompt(text)
        session = self.session_for(options)
        self._show(session)
        await _send(session, prompt, options)
        await self.settle(session)

    def add(self, text: str, mode: Delivery) -> None:
        """Steer or enqueue. From idle, either starts a run at once, which this cell then shows."""
        prompt = self.prompt(text)
        session = self.current()
        state = session.state
        if not session.busy and session.id not in self.sending:
            say("Nothing was running, so this started a run.")
            self._show(session)
        elif mode == "enqueue":
            say(f"Queued at place {len(state.queue) + 1}{', paused' if state.queue_paused else ''}.")
        else:
            first = ", after your answer" if state.permissions or state.questions else ""
            say(f"Steer sent: it joins before the next model call{first}, or runs next if there is none.")
        self._post(session, session.send(prompt, mode))

    def _show(self, session: Session) -> None:
        from copilot_nb.widgets.cell import CellOutput

        watched = not nobody_there()
        if watched:
            self.outputs = [output for output in self.outputs if not output.finished]
        self.outputs.append(CellOutput(session, live=watched))

    def _post(self, session: Session, sending: Coroutine[Any, Any, str]) -> None:
        """Send in the background; what goes wrong becomes a notice in the panel."""
        future = session.schedule(self._watched(session, sending))
        self.sending[session.id] = future  # the last one: they leave in order

        def sent(_: object) -> None:
            if self.sending.get(session.id) is future:
                del self.sending[session.id]

        future.add_done_callback(sent)

    async def _watched(self, session: Session, sending: Coroutine[Any, Any, str]) -> str:
        try:
            return await sending
        except CopilotNbError as error:
            self.failed[session.id] = error
            raise

    def prompt(self, text: str) -> str:
        """The prompt with its ``{name}`` filled in; empty is an error, a name that is none a warning."""
        if not text.strip():
            raise UsageError("The prompt is empty: write what the agent should do.")
        prompt, missing = fill(text, self.variables)
        for name in missing:
            say(f"{{{name}}} is no variable here, so it was sent as written.")
        return prompt

    # --- answering, waiting, ending ----------------------------------------------------------------

    def allow(self, *, always: bool) -> None:
        """Allow what asks."""
        session, request = self._asked()
        session.schedule(session.allow(request.id, for_session=always))
        say(
            f"Allowed{' for this session' if always else ''}: {request.data.get('toolName') or request.kind}."
        )

    def deny(self, feedback: str | None) -> None:
        """Deny what asks."""
        session, request = self._asked()
        session.schedule(session.deny(feedback, request.id))
        after = (
            "the run goes on with your feedback" if feedback else "the run ends and both lanes are emptied"
        )
        say(f"Denied: {request.data.get('toolName') or request.kind}; {after}.")

    def _asked(self) -> tuple[Session, Any]:
        session = self.current()
        request = next(iter(session.state.permissions.values()), None)
        if request is None:
            raise UsageError(f"Nothing asks for permission now ({session.state.describe()}).")
        return session, request

    async def settle(self, session: Session, seconds: float | None = None) -> None:
        """Wait for idle, then write the outputs anew from within the waiting cell.

        A headless front end keeps only what the running cell itself sends (jupyter facts Q4).
        """
        from copilot_nb.widgets.progress import wait_line

        with wait_line(session):
            while session.id in self.sending and not session.busy:  # noqa: ASYNC110 - a step or two of the loop
                await asyncio.sleep(0.01)
            result = await session.wait(timeout=seconds)
        for output in self.outputs:
            if output.session is session and (nobody_there() or not output.finished):
                output.finish()
        self.outputs = [output for output in self.outputs if output.session is not session]
        for text in result.errors:
            say(f"The run ended with an error: {text}")
        failed = self.failed.pop(session.id, None)
        if failed is not None:
            raise failed

    def close(self) -> None:
        """End all runs and let go of the logs."""
        from copilot_nb.session import sessions

        for session in sessions.values():
            if not session.closed:
                session.schedule(session.close())
        self.outputs.clear()


def _asks_for_another(session: Session, options: Options) -> bool:
    return (
        options.runtime not in (None, session.runtime_name)
        or options.model not in (None, session.model)
        or options.base_url is not None
        or options.wire_api is not None
    )


def _check_free(session_id: str) -> None:
    """A log with two writers is read as one conversation (reference §13): only on a clear yes."""
    pids = holders(session_folder(session_id))
    if pids:
        by = ", ".join(map(str, pids))
        raise SessionInUse(f"Session {session_id} is in use by process {by}: --in-use opens it all the same.")


async def _send(session: Session, prompt: str, options: Options) -> str:
    if options.autopilot:
        await session.set_mode("autopilot")
    return await session.send(prompt)


def say(text: str) -> None:
    """A word to the person, in the running cell's output."""
    print(text)
