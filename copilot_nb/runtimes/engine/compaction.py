"""A long history is replaced by a summary: on request, or in the background near the limit (§17)."""

from __future__ import annotations

import asyncio
import contextlib

from msgspec import Struct, field

from copilot_nb.errors import ModelError
from copilot_nb.events import JSON, new_id
from copilot_nb.models.base import Reply, Request
from copilot_nb.runtimes.engine import words
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.history import estimate_tokens
from copilot_nb.runtimes.engine.model_call import Silent

_DEFAULT_WINDOW = 128_000  # tokens, said in events when a model does not tell its own


class Sizes(Struct):
    """Estimated tokens of a request."""

    system: int
    conversation: int
    tools: int
    limit: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.system + self.conversation + self.tools

    def to_dict(self) -> JSON:
        """As the reference's events say it."""
        return {
            "systemTokens": self.system,
            "conversationTokens": self.conversation,
            "toolDefinitionsTokens": self.tools,
            "currentTokens": self.total,
            "tokenLimit": self.limit,
        }


class Compaction(Struct):
    """Makes summaries and puts them in the history's place at a moment that breaks no exchange."""

    core: Core
    count: int = 0
    _task: asyncio.Task[None] | None = None
    _ready: tuple[JSON, int] | None = None
    _tools_size: dict[int, int] = field(default_factory=dict)

    def sizes(self, request: Request) -> Sizes:
        """What a request comes to; the history's share is kept up to date, not counted again."""
        key = id(request.tools)
        if key not in self._tools_size:
            self._tools_size = {key: estimate_tokens(request.tools)}
        window = self.core.config.model.max_prompt_tokens or _DEFAULT_WINDOW
        system = estimate_tokens(request.messages[0])
        return Sizes(system, self.core.history.tokens, self._tools_size[key], window)

    def begin_turn(self, request: Request, *, first: bool) -> None:
        """Say what the window holds; start a summary, or drop old exchanges, when it fills up."""
        config, sizes = self.core.config, self.sizes(request)
        info = {"messagesLength": len(self.core.history.messages) + 1, **sizes.to_dict()}
        self.core.ephemeral("session.usage_info", {**info, "isInitial": True} if first else info)
        if config.model.max_prompt_tokens is None or sizes.total <= config.compact_at * sizes.limit:
            return
        starting = self._task is None and self._ready is None
        attempt = new_id()
        if starting:
            self._say_start(attempt, sizes, "threshold")
        if sizes.total > config.truncate_at * sizes.limit:
            self._truncate(sizes)
        if starting:
            system = request.messages[0]
            asked = Request([system, *self.core.history.messages], request.tools, request.stream)
            self._task = asyncio.create_task(self._in_background(attempt, asked, sizes))

    def _truncate(self, sizes: Sizes) -> None:
        """Drop the oldest tool exchanges until the rest fits."""
        history, room = self.core.history, int(self.core.config.truncate_at * sizes.limit)
        before, tokens = len(history.messages), history.tokens
        history.run_start = None
        while history.tokens + sizes.system + sizes.tools > room:
            start = next((i for i, m in enumerate(history.messages) if m.get("tool_calls")), None)
            if start is None:
                break
            end = start + 1
            while end < len(history.messages) and history.messages[end]["role"] == "tool":
                end += 1
            history.tokens -= sum(estimate_tokens(m) for m in history.messages[start:end])
            del history.messages[start:end]
        if len(history.messages) == before:
            return
        self.core.stored(
            "session.truncation",
            {
                "tokenLimit": sizes.limit,
                "preTruncationTokensInMessages": tokens,
                "preTruncationMessagesLength": before,
                "postTruncationTokensInMessages": history.tokens,
                "postTruncationMessagesLength": len(history.messages),
                "tokensRemovedDuringTruncation": tokens - history.tokens,
                "messagesRemovedDuringTruncation": before - len(history.messages),
                "performedBy": "copilot_nb",
            },
        )

    async def now(self, request: Request, instructions: str | None) -> JSON:
        """Summarise at once (``session.history.compact``); what ``session.compaction_complete`` says."""
        attempt, sizes = new_id(), self.sizes(request)
        self._say_start(attempt, sizes, None)
        if not self.core.history.messages:
            data: JSON = {"success": False, "outcome": "nothing", "compactionAttemptId": attempt}
        else:
            data = await self._summarise(attempt, request, sizes, instructions)
        self._apply(data, len(self.core.history.messages))
        return data

    async def _in_background(self, attempt: str, request: Request, sizes: Sizes) -> None:
        data = await self._summarise(attempt, request, sizes, None)
        self._ready = ({**data, "trigger": "threshold"}, len(request.messages) - 1)
        self._task = None
        if not self.core.processing:
            self.apply_ready(keep_newer=False)

    def apply_ready(self, *, keep_newer: bool) -> None:
        """Put a finished summary in place: between turns with the newer messages kept, or when idle."""
        if self._ready is not None:
            data, covered = self._ready
            self._ready = None
            self._apply(data, covered if keep_newer else len(self.core.history.messages))

    def _apply(self, data: JSON, covered: int) -> None:
        history = self.core.history
        if data["success"]:
            before, newer = len(history.messages), history.messages[covered:]
            history.replace_by(data["summaryContent"])
            for message in newer:
                history.keep(message)
            data["messagesRemoved"] = before - len(history.messages)
            data["postCompactionTokens"] = (
                data["systemTokens"] + data["toolDefinitionsTokens"] + history.tokens
            )
            self._write_checkpoint(data)
        self.core.stored("session.compaction_complete", data)

    def _say_start(self, attempt: str, sizes: Sizes, trigger: str | None) -> None:
        data = {"compactionAttemptId": attempt, "model": self.core.config.model.name, **sizes.to_dict()}
        self.core.stored(
            "session.compaction_start", data if trigger is None else {**data, "trigger": trigger}
        )

    async def _summarise(
        self, attempt: str, request: Request, sizes: Sizes, instructions: str | None
    ) -> JSON:
        text = words.COMPACT if not instructions else f"{words.COMPACT}\n{instructions}"
        messages = [*request.messages, {"role": "user", "content": text}]
        data: JSON = {
            "success": False,
            "compactionAttemptId": attempt,
            "preCompactionMessagesLength": len(request.messages) - 1,
            "preCompactionTokens": sizes.total,
            **sizes.to_dict(),
        }
        del data["currentTokens"]
        try:
            reply = await self.core.config.model.reply(
                Request(messages, request.tools, request.stream), Silent()
            )
        except ModelError as error:
            return {**data, "outcome": "failed", "error": str(error)}
        if not reply.text:
            return {**data, "outcome": "failed", "error": "the model gave no summary"}
        used = {"model": self.core.config.model.name, **_used(reply)}
        return {
            **data,
            "success": True,
            "outcome": "applied",
            "summaryContent": reply.text,
            "compactionTokensUsed": used,
        }

    def _write_checkpoint(self, data: JSON) -> None:
        self.count += 1
        folder = self.core.store.folder / "checkpoints"
        path = folder / f"{self.count:03d}.md"
        with contextlib.suppress(OSError):  # a copy for people; the event holds the summary
            folder.mkdir(mode=0o700, exist_ok=True)
            path.write_text(data["summaryContent"], encoding="utf-8", errors="replace")
            data["checkpointNumber"], data["checkpointPath"] = self.count, str(path)

    def cancel(self) -> None:
        """Give up a summary under way (the session closes)."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def _used(reply: Reply) -> JSON:
    if reply.usage is None:
        return {}
    counted = {"inputTokens": reply.usage.input_tokens, "outputTokens": reply.usage.output_tokens}
    return {key: value for key, value in counted.items() if value is not None}
