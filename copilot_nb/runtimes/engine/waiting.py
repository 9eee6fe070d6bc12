"""What still waited when a session was last open, read from its ``jupyter.queue`` events."""

from __future__ import annotations

from collections.abc import Iterable

from copilot_nb.events import JSON, Event


def waiting_messages(events: Iterable[Event]) -> list[JSON]:
    """``[{messageId, prompt}]`` in the order they would have run: leftover steers first."""
    queue: list[JSON] = []
    steering: list[JSON] = []
    for event in events:
        data = event.data
        if event.type == "user.message":
            message_id = data.get("messageId")
            queue = [entry for entry in queue if entry["messageId"] != message_id]
            steering = [entry for entry in steering if entry["messageId"] != message_id]
        elif event.type == "jupyter.queue":
            queue, steering = _fold(queue, steering, data)
    return steering + queue


def _fold(queue: list[JSON], steering: list[JSON], data: JSON) -> tuple[list[JSON], list[JSON]]:
    op, message_id = data.get("op"), data.get("messageId")
    if op == "restored":
        return [{"messageId": i["messageId"], "prompt": i["prompt"]} for i in data.get("items", [])], []
    if op not in ("add", "remove", "move", "edit"):
        return queue, steering
    known = next((entry for entry in queue + steering if entry["messageId"] == message_id), None)
    entry = known or {"messageId": message_id, "prompt": data.get("prompt", "")}
    if op == "edit":
        entry["prompt"] = data.get("prompt", "")
        return queue, steering
    queue = [other for other in queue if other is not known]
    steering = [other for other in steering if other is not known]
    if op != "remove":
        lane = steering if data.get("lane") == "steering" else queue
        lane.insert(int(data.get("position", len(lane))), entry)
    return queue, steering
