"""Which failed model calls are tried again, how often, after how long (reference §11)."""

from __future__ import annotations

import random

from msgspec import Struct

from copilot_nb.errors import ModelError


class Rule(Struct, frozen=True):
    """What is done about one kind of failure.

    Attributes
    ----------
    reason
        The ``reason`` of ``assistant.turn_retry``.
    error_type
        The ``errorType`` of the final ``session.error``.
    waits
        Seconds before each retry, before jitter; their number is the number of retries.
    """

    reason: str
    error_type: str
    waits: tuple[float, ...]

    def wait(self, attempt: int, asked: float | None) -> float | None:
        """Seconds before retry `attempt` (from 0); None: give up. The provider's own wish is honoured."""
        if attempt >= len(self.waits):
            return None
        if asked is not None:
            return asked + random.uniform(0.0, 0.25)
        return self.waits[attempt] * random.uniform(0.9, 1.1)


_SERVER = Rule("api_error", "query", (0.8, 1.1, 2.2, 4.5, 9.0))
_RATE = Rule("rate_limit", "rate_limit", (5.0, 7.0, 9.0, 11.0, 19.0))
_AUTH = Rule("transient_auth_error", "authentication", (1.0, 1.0))
_STREAM = Rule("streaming_error", "query", (1.1, 1.1, 1.1, 1.1, 1.1))
_FORBIDDEN = Rule("", "authentication", ())
_REFUSED = Rule("", "query", ())


def rule_for(error: ModelError) -> Rule:
    """The rule for a failure; no status means that the connection or the stream broke."""
    status = error.status
    if status is None:
        return _STREAM
    if status == 401:
        return _AUTH
    if status == 403:
        return _FORBIDDEN
    if status == 429:
        return _RATE
    if status >= 500 or status in (408, 409):
        return _SERVER
    return _REFUSED
