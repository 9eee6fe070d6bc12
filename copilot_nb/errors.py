"""Every error that copilot_nb raises on purpose.

::

    CopilotNbError
    ├── UsageError            the words of a call are off (also a ValueError)
    ├── SessionError
    │   ├── NoSession         there is no session to steer, queue or show
    │   ├── SessionNotFound   no such session in this home
    │   ├── SessionInUse      another process holds it
    │   └── SessionClosed     it was closed
    ├── StoreError            the log cannot be read or written
    │   └── CorruptLog        the file is no session log
    ├── ModelError            one model call failed
    ├── ToolError             a tool reports a failure to the model
    ├── RuntimeUnavailable    the Copilot CLI is missing, too old, not logged in …
    └── WaitTimeout           a wait ended before the run did (also a TimeoutError)

Each message says what happened and what to do next.
"""

from __future__ import annotations


class CopilotNbError(Exception):
    """Base of all errors raised on purpose."""


class UsageError(CopilotNbError, ValueError):
    """The words of a call are off."""


class SessionError(CopilotNbError):
    """Something about a session."""


class NoSession(SessionError):
    """There is no session to act on."""


class SessionNotFound(SessionError):
    """No session of that id in this home."""


class SessionInUse(SessionError):
    """Another live process holds the session."""


class SessionClosed(SessionError):
    """The session was closed; open or resume one."""


class StoreError(CopilotNbError):
    """The log cannot be read or written."""


class CorruptLog(StoreError):
    """The file is there, but it is no session log that can be resumed."""


class ModelError(CopilotNbError):
    """One model call failed.

    Parameters
    ----------
    message
        What the provider or the network said.
    status
        HTTP status; None when no answer came (connection refused, stream cut).
    code
        The provider's own error code.
    retry_after
        Seconds the provider asks to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after


class ToolError(CopilotNbError):
    """A tool's own failure; the text goes to the model, and the run goes on."""


class RuntimeUnavailable(CopilotNbError):
    """The runtime cannot start; the message says what to type."""


class WaitTimeout(CopilotNbError, TimeoutError):
    """A wait ended before the run did; the run itself goes on."""
