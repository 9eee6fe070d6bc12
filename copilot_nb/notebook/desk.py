"""The sessions of one notebook: which is current, how one is opened, and what its cells send and show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from copilot_nb import loops
from copilot_nb.errors import NoSession, UsageError
from copilot_nb.notebook.arguments import Options
from copilot_nb.notebook.templating import fill

if TYPE_CHECKING:
    from copilot_nb.runtimes.base import Delivery
    from copilot_nb.session import Session
    from copilot_nb.widgets.cell import CellOutput


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
        self.sessions: dict[str, Session] = {}
        self.outputs: list[CellOutput] = []

    # --- which session -----------------------------------------------------------------------------

    def current(self) -> Session:
        """The session that is meant where none is named."""
        from copilot_nb.session import current

        session = current()
        if session is None or session.closed:
            raise NoSession(
                "There is no session yet. Start one with a %%copilot cell, or %copilot resume ID."
            )
        return session

    def session_for(self, options: Options) -> Session:
        """The session that a ``%%copilot`` cell means.

        The current one goes on (jupyter-ai#783: cells without memory), unless another id, model or runtime is
        asked for.
        """
        if options.session is not None:
            return self.find(options.session) or self.open(options)
        try:
            session = self.current()
        except NoSession:
            return self.open(options)
        if not _asks_for_another(session, options):
            self.permit(session, options)
            return session
        fresh = self.open(options)
        say(f"A new session ({fresh.id}), because this cell asks for {fresh.model_label}.")
        return fresh

    def find(self, session_id: str) -> Session | None:
        """A session that is open here, by its id or the beginning of it."""
        found = {
            key: one for key, one in self.sessions.items() if key.startswith(session_id) and not one.closed
        }
        if session_id in found:
            return found[session_id]
        if len(found) > 1:
            raise UsageError(
                f"{session_id!r} begins the ids of {len(found)} sessions here: write more of it."
            )
        return next(iter(found.values()), None)

    def open(self, options: Options) -> Session:
        """Open a session from options and configuration; it becomes the current one."""
        from copilot_nb.session import open_session

        names = ("model", "runtime", "base_url", "wire_api")
        chosen = {name: getattr(options, name) or getattr(self.settings, name) or None for name in names}
        allow = [*self.settings.allow, *options.allow]
        session = open_session(session_id=options.session, allow=allow, yolo=options.yolo, **chosen)
        self.sessions[session.id] = session
        return session

    def permit(self, session: Session, options: Options) -> None:
        """Open tools up for the rest of a session that is there already."""

    # --- sending -----------------------------------------------------------------------------------

    def start(self, options: Options, text: str) -> Session:
        """Send the text of a ``%%copilot`` cell; the running cell shows the run."""
        prompt = self.prompt(text)
        session = self.session_for(options)
        self._launch(session, prompt, "enqueue")
        return session

    def add(self, text: str, mode: Delivery) -> None:
        """Steer or enqueue. From idle, either starts a run at once, which this cell then shows."""
        prompt = self.prompt(text)
        session = self.current()
        state = session.state
        if not state.busy:
            say("Nothing was running, so this started a run.")
            self._launch(session, prompt, mode)
            return
        waiting_for = next(iter([*state.permissions.values(), *state.questions.values()]), None)
        session.schedule(session.send(prompt, mode))
        if mode == "immediate":
            held = " It waits for your answer first." if waiting_for else ""
            say(f"Steer sent: it joins the run before the next model call.{held}")
        else:
            say(f"Queued at place {len(state.queue) + 1}.")

    def _launch(self, session: Session, prompt: str, mode: Delivery) -> None:
        from copilot_nb.widgets.cell import CellOutput

        output = CellOutput(session)
        self.outputs.append(output)
        session.schedule(session.send(prompt, mode))

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
        await loops.on(session.loop, session.wait(timeout=seconds))
        for output in self.outputs:
            if output.session is session:
                output.finish()
        self.outputs = [output for output in self.outputs if output.session is not session]

    def close(self) -> None:
        """End all runs and let go of the logs."""
        for session in self.sessions.values():
            if not session.closed:
                session.schedule(session.close())
        self.sessions.clear()
        self.outputs.clear()


def _asks_for_another(session: Session, options: Options) -> bool:
    return (
        options.runtime not in (None, session.runtime_name)
        or options.model not in (None, session.model)
        or options.base_url is not None
        or options.wire_api is not None
    )


def say(text: str) -> None:
    """A word to the person, in the running cell's output."""
    print(text)
