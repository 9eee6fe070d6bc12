"""What a run says in events and history: the messages it starts with, steers, answers."""

from __future__ import annotations

import json
import time

from msgspec import Struct, field

from copilot_nb.events import JSON, new_id
from copilot_nb.models.base import Reply, ToolCall
from copilot_nb.runtimes.base import Message
from copilot_nb.runtimes.engine import attachments, words
from copilot_nb.runtimes.engine.calls import NotAnObject, parse
from copilot_nb.runtimes.engine.core import Core
from copilot_nb.runtimes.engine.lanes import Item
from copilot_nb.runtimes.engine.model_call import Deltas


class Run(Struct):
    """One run: all that one message causes. `turn` is its number, from 0; `unanswered`: a person waits."""

    message_id: str
    interaction_id: str
    agent_mode: str | None = None
    turn: int = 0
    tokens: int = 0
    first_event: str | None = None
    unanswered: bool = False
    started: float = field(default_factory=time.monotonic)

    @property
    def where(self) -> JSON:
        """The keys that tie an event to its turn."""
        return {"turnId": str(self.turn), "interactionId": self.interaction_id}


class Speech:
    """Says a run's messages, in log and history alike."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._noticed = "interactive"

    def is_autopilot(self, run: Run) -> bool:
        """Whether ``task_complete`` is offered: by the session's mode or the message's own (reference §9)."""
        return "autopilot" in (self._core.mode, run.agent_mode)

    def system_message(self) -> JSON:
        """The system prompt as the first message of a request."""
        prompt = self._core.config.system_prompt
        return {"role": "system", "content": words.SYSTEM_PROMPT if prompt is None else prompt}

    def begin(self, run: Run, item: Item | None) -> None:
        """What starts a run: a nudge, the end of a background task, or messages of a person."""
        if item is None:
            self._nudge(run)
        elif item.notice is not None:
            self._notice(run, item.notice)
            return
        elif item.late:
            self._late(item.late)
        else:
            for place, (message_id, message) in enumerate(item.messages):
                last = place == len(item.messages) - 1
                self._message(run, message_id, message, "idle" if item.from_idle else "queued", last)
        self._system(run)

    def _message(self, run: Run, message_id: str, message: Message, delivery: str, last: bool) -> None:
        core = self._core
        run.agent_mode = mode = message.agent_mode
        due = core.config.system_prompt is None and core.mode != self._noticed
        notice = f"<mode>{words.MODE_NOTICE[core.mode]}</mode>\n\n" if due else ""
        text = attachments.stamped(notice + message.prompt, message.attachments, with_time=last)
        attached, content = self._attach(text, message)
        shown = message.display_prompt or message.prompt
        data: JSON = {"content": shown, "transformedContent": text, **attached}
        data |= {"messageId": message_id, "delivery": delivery, **run.where}
        if mode is not None:
            data["agentMode"] = mode
        if message.source is not None:
            data["source"] = message.source
        event = core.stored("user.message", data)
        run.unanswered = True
        run.first_event = run.first_event or event.id
        if due:
            self._noticed = core.mode
            core.stored("session.mode_notice_delivered", {"mode": core.mode})
        core.history.add_user(content, message.prompt)

    def steer(self, run: Run, item: Item) -> None:
        """An injected steer: raw text at the end of the request (reference §3)."""
        for message_id, message in item.messages:
            attached, content = self._attach(message.prompt, message)
            data: JSON = {"content": message.display_prompt or message.prompt, **attached}
            data |= {"messageId": message_id, "delivery": "steering", **run.where}
            if message.agent_mode is not None:
                data["agentMode"] = message.agent_mode
            self._core.stored("user.message", data)
            run.unanswered = True
            self._core.history.add_user(content, message.prompt)

    def _attach(self, text: str, message: Message) -> tuple[JSON, str | list[JSON]]:
        """What the event says of the attachments, and the wire content; images go to the disk alone."""
        if not message.attachments:
            return {}, text
        kept, images = attachments.as_stored(message.attachments)
        for image in images:
            self._core.stored("session.binary_asset", image, deliver=False)
        assets = {image["assetId"]: image for image in images}
        return {"attachments": kept}, attachments.content(text, kept, assets)

    def _nudge(self, run: Run) -> None:
        text = attachments.stamped(words.NUDGE)
        data: JSON = {"content": "", "transformedContent": text, "source": "autopilot"}
        data |= {"messageId": run.message_id, "delivery": "idle", "agentMode": "autopilot", **run.where}
        self._core.stored("user.message", {**data, "isAutopilotContinuation": True})
        self._core.history.add_user(text)
        run.agent_mode = "autopilot"  # to its end, whatever becomes of the session's mode (reference §9)

    def _notice(self, run: Run, notice: JSON) -> None:
        """The end of a background task, and its output as if the model had asked for it (reference §3)."""
        core, content, read = self._core, str(notice["content"]), notice["read"]
        core.stored("system.notification", {"content": content, "kind": notice["kind"]})
        core.history.add_user(content)
        arguments = read["arguments"]
        call = ToolCall(new_id(), read["name"], json.dumps(arguments, separators=(",", ":")))
        request = {"toolCallId": call.id, "name": call.name, "arguments": arguments, "type": "function"}
        core.stored("assistant.message", {"messageId": new_id(), "content": "", "toolRequests": [request]})
        start = {"toolCallId": call.id, "toolName": call.name, "arguments": arguments}
        core.stored("tool.execution_start", start)
        done = {"toolCallId": call.id, "success": True, "result": {"content": read["result"]}}
        core.stored("tool.execution_complete", done)
        core.history.add_assistant("", [call])
        core.history.add_results([call], [read["result"]])

    def _late(self, results: list[JSON]) -> None:
        """Results that came after a resume (reference §13)."""
        for late in results:
            self._core.stored("external_tool.completed", {"requestId": late["requestId"]})
            done = {"toolCallId": late["toolCallId"], "success": True, "result": {"content": late["result"]}}
            self._core.stored("tool.execution_complete", done)

    def _system(self, run: Run) -> None:
        """Delivered with every run, stored when it changed (reference §1)."""
        core, content = self._core, self.system_message()["content"]
        data = {"role": "system", "content": content, "interactionId": run.interaction_id}
        if content == core.last_system:
            core.ephemeral("system.message", data)
        else:
            core.last_system = content
            core.stored("system.message", data)

    def answer(self, run: Run, reply: Reply, deltas: Deltas) -> None:
        """A complete answer; none is said when a call's arguments are no object (reference §12)."""
        parsed = [(call, parse(call.arguments)) for call in reply.tool_calls]
        if any(isinstance(arguments, NotAnObject) for _, arguments in parsed):
            return
        requests = [
            {
                "toolCallId": call.id,
                "name": call.name,
                "arguments": arguments if isinstance(arguments, dict) else {},
                "type": "function",
            }
            for call, arguments in parsed
        ]
        data: JSON = {
            "messageId": deltas.message_id,
            "originatingMessageId": run.message_id,
            "model": self._core.config.model.name,
            "content": reply.text,
            "toolRequests": requests,
            "apiCallId": deltas.message_id,
            **run.where,
        }
        if reply.reasoning:
            data["reasoningText"] = reply.reasoning
        self._core.stored("assistant.message", data)
        if reply.reasoning:
            told = {"reasoningId": deltas.reasoning_id or new_id(), "content": reply.reasoning}
            self._core.ephemeral("assistant.reasoning", told)

    def partial(self, run: Run, deltas: Deltas) -> None:
        """Keep the text of an aborted turn as an event of our own; the reference loses it (§8)."""
        text = "".join(deltas.chunks)
        if text and not deltas.answered and self._core.config.extras:
            data = {"messageId": deltas.message_id, "content": text, "reason": "aborted", **run.where}
            self._core.stored("jupyter.partial", data)
