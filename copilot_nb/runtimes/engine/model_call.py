"""One turn's model call: the request, the deltas on their way, the retries, the bill."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from copilot_nb.errors import ModelError
from copilot_nb.events import JSON, new_id
from copilot_nb.models.base import Reply, Request
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.retry import rule_for


class Deltas:
    """Turns a model's chunks into events, each passed on as it is; one object per turn."""

    def __init__(self, core: Core, begins: Callable[[], None]) -> None:
        self._say = core.ephemeral
        self._begins = begins
        self.restart()

    def restart(self) -> None:
        """Begin a new attempt: a new message id (reference §11)."""
        self.message_id = new_id()
        self.reasoning_id = ""
        self.first: float | None = None
        self.chunks: list[str] = []
        self.answered = False

    def text(self, chunk: str) -> None:
        """See `Sink`."""
        if not self.chunks:
            self._mark()
            self._say("assistant.message_start", {"messageId": self.message_id})
        self.chunks.append(chunk)
        self._say("assistant.message_delta", {"messageId": self.message_id, "deltaContent": chunk})

    def reasoning(self, chunk: str) -> None:
        """See `Sink`."""
        if not self.reasoning_id:
            self.reasoning_id = new_id()
            self._mark()
        self._say("assistant.reasoning_delta", {"reasoningId": self.reasoning_id, "deltaContent": chunk})

    def tool_arguments(self, call_id: str, name: str, piece: str) -> None:
        """See `Sink`."""
        self._mark()
        if piece:
            data = {"toolCallId": call_id, "toolName": name, "toolType": "function", "inputDelta": piece}
            self._say("assistant.tool_call_delta", data)

    def _mark(self) -> None:
        if self.first is None:
            self._begins()
            self.first = time.perf_counter()


class Silent:
    """A sink for a reply that nobody watches."""

    def text(self, chunk: str) -> None:
        """See `Sink`."""

    def reasoning(self, chunk: str) -> None:
        """See `Sink`."""

    def tool_arguments(self, call_id: str, name: str, piece: str) -> None:
        """See `Sink`."""


class CallFailed(Exception):
    """The call failed for good; carries what ``session.error`` says."""

    def __init__(self, error: ModelError, error_type: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.error_type = error_type


async def call_model(core: Core, turn: int, request: Callable[[], Request], deltas: Deltas) -> Reply:
    """Ask the model, with retries inside the same turn (reference §11).

    `request` is called before every attempt: it drains the steering lane (reference §0.3). A new attempt
    starts `deltas` anew: what an earlier one had streamed is void.

    Raises
    ------
    CallFailed
        After the last retry.
    """
    model, turn_id, attempt = core.config.model, str(turn), 0
    while True:
        asked, started = request(), time.perf_counter()
        core.ephemeral("model.call_start", {"turnId": turn_id, "model": model.name})
        try:
            reply = await model.reply(asked, deltas if asked.stream else Silent())
            if reply.finish is None and not (reply.text or reply.tool_calls):
                raise ModelError("The answer ended before it began.")
        except ModelError as error:
            _say_failure(core, error, attempt, started)
            rule = rule_for(error)
            wait = rule.wait(attempt, error.retry_after)
            if wait is None:
                raise CallFailed(error, rule.error_type) from error
            retry = {"turnId": turn_id, "model": model.name, "reason": rule.reason}
            try:
                await asyncio.sleep(wait * core.config.retry_scale)
            finally:  # also said when an abort ends the wait (reference §8)
                core.ephemeral("assistant.turn_retry", retry)
            attempt += 1
            deltas.restart()
            continue
        deltas.answered = True
        _bill(core, reply, deltas, started, "agent" if turn else "user")
        return reply


def _say_failure(core: Core, error: ModelError, attempt: int, started: float) -> None:
    data: JSON = {
        "model": core.config.model.name,
        "errorMessage": str(error),
        "failureKind": "api" if error.status is not None else "transport",
        "retryAttempt": attempt,
        "durationMs": round((time.perf_counter() - started) * 1000),
    }
    if error.status is not None:
        data["statusCode"] = error.status
    if error.code is not None:
        data["errorCode"] = error.code
    core.ephemeral("model.call_failure", data)


def _bill(core: Core, reply: Reply, deltas: Deltas, started: float, initiator: str) -> None:
    """Record what a call used: once, whatever the number of attempts (ccstatusline#549)."""
    usage: JSON = {
        "model": core.config.model.name,
        "duration": round((time.perf_counter() - started) * 1000),
        "initiator": initiator,
        "apiCallId": deltas.message_id,
        "numToolCalls": len(reply.tool_calls),
        "finishReason": reply.finish or "stop",
    }
    if deltas.first is not None:
        usage["timeToFirstTokenMs"] = round((deltas.first - started) * 1000, 3)
    if core.config.model.max_prompt_tokens is not None:
        usage["maxPromptTokens"] = core.config.model.max_prompt_tokens
    if reply.usage is not None:
        counted = {
            "inputTokens": reply.usage.input_tokens,
            "outputTokens": reply.usage.output_tokens,
            "cacheReadTokens": reply.usage.cache_read_tokens,
            "cacheWriteTokens": reply.usage.cache_write_tokens,
            "reasoningTokens": reply.usage.reasoning_tokens,
        }
        usage.update({key: value for key, value in counted.items() if value is not None})
    core.ephemeral("assistant.usage", usage)
    core.stored("session.usage_record", {"usage": usage})
