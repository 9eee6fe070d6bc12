"""Messages and the two lanes they wait in, folded from ``user.message`` and ``jupyter.queue``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from copilot_nb.frames.records import LaneChange, Message
from copilot_nb.frames.wire import string, whole

QUEUE, STEERING = "queue", "steering"


class LaneBook:
    """Every message by id, and every change of the lanes."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.changes: list[LaneChange] = []
        self.paused = False
        self._by_id: dict[str, int] = {}
        self._waiting: dict[str, str] = {}  # message id -> lane

    def landed(self, row: int, data: Mapping[str, Any], run: int, turn: int) -> int:
        """A message reached the conversation; its index."""
        key, delivery, source = (
            string(data.get("messageId")),
            string(data.get("delivery")),
            string(data.get("source")),
        )
        index = self._by_id.get(key, -1) if key is not None else -1
        if index < 0 or self.messages[index].landed >= 0:
            index = self._new(key, source)
        message = self.messages[index]
        message.landed, message.delivery, message.run, message.turn = row, delivery, run, turn
        message.source = source or message.source
        if delivery == "steering":
            message.lane = STEERING
        elif delivery == "queued":
            message.lane = message.lane or QUEUE
        if delivery in ("queued", "steering") or (key is not None and key in self._waiting):
            self._waiting.pop(key or "", None)
            self._note(row, "land", run, message.lane, key)
        return index

    def change(self, row: int, run: int, data: Mapping[str, Any]) -> str | None:
        """Fold one ``jupyter.queue`` event; the prompt it names."""
        op = string(data.get("op")) or "?"
        key, lane, prompt = (
            string(data.get("messageId")),
            string(data.get("lane")),
            string(data.get("prompt")),
        )
        reason = string(data.get("reason"))
        position = whole(data.get("position"))
        if op == "pause":
            self.paused = data.get("paused") is True
        elif op == "restored":
            for item in data.get("items") or ():
                if isinstance(item, Mapping):
                    self._add(
                        row,
                        string(item.get("messageId")),
                        string(item.get("lane")),
                        string(item.get("prompt")),
                    )
        elif key is not None:
            if op == "add":
                self._add(row, key, lane, prompt)
            elif op == "remove":
                self._remove(row, key, reason)
            elif key in self._by_id:
                message = self.messages[self._by_id[key]]
                if op == "move" and lane is not None:
                    message.lane = self._waiting[key] = lane
                elif op == "edit":
                    message.prompt = prompt
        if lane is None and key in self._by_id:
            lane = self.messages[self._by_id[key]].lane
        self._note(row, op, run, lane, key, prompt, position, reason)
        return prompt

    def _new(self, key: str | None, source: str | None) -> int:
        self.messages.append(Message(key, source=source or "user"))
        if key is not None:
            self._by_id[key] = len(self.messages) - 1
        return len(self.messages) - 1

    def _add(self, row: int, key: str | None, lane: str | None, prompt: str | None) -> None:
        if key is None:
            return
        index = self._by_id.get(key, -1)
        if index < 0:
            index = self._new(key, None)
            self.messages[index].sent = row
        message = self.messages[index]
        message.lane, message.prompt = lane or QUEUE, prompt
        message.removed, message.reason = -1, None  # restored after a restart: it waits again
        self._waiting[key] = message.lane

    def _remove(self, row: int, key: str, reason: str | None) -> None:
        self._waiting.pop(key, None)
        index = self._by_id.get(key, -1)
        if index < 0:
            index = self._new(key, None)
        self.messages[index].removed, self.messages[index].reason = row, reason

    def _note(
        self,
        row: int,
        op: str,
        run: int,
        lane: str | None,
        key: str | None,
        prompt: str | None = None,
        position: int | None = None,
        reason: str | None = None,
    ) -> None:
        lanes = list(self._waiting.values())
        self.changes.append(
            LaneChange(
                row,
                op,
                run,
                lane,
                key,
                prompt,
                position,
                reason,
                lanes.count(QUEUE),
                lanes.count(STEERING),
                self.paused,
            )
        )
