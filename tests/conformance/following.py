"""Follows a schedule: a case with the one action ``follow``.

Each reply of its model script may *block*: before it answers (``pre``), in the middle of its text (``mid``),
or in each of its gated tools (the call's id). At a block everything stands still on every runtime; there the
schedule's actions are done, and then the block is released. When the session is idle, the next entry of
``idles`` is done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rig import Rig

JSON = dict[str, Any]
MOMENT = 0.03  # s for what was accepted to settle before a block is released


def gate_name(reply: int, at: str) -> str:
    """The gate of the model server that a block stands for."""
    return f"{at}{reply}"


class Course:
    """One schedule on one rig."""

    def __init__(self, rig: Rig, plan: JSON) -> None:
        self.rig = rig
        self.blocks: list[list[JSON]] = plan["blocks"]
        self.idles: list[list[JSON]] = list(plan["idles"])
        self.released: set[tuple[int, int]] = set()
        self.finished: set[str] = set()  # calls of gated tools that were let go
        self.idles_awaited = 0  # the session is idle when it has said so this often

    async def follow(self) -> None:
        """Go on until the session is idle and nothing is left to do."""
        while await self.rig.until(self._standing, 40, "the next block, or idle"):
            block = self._block()
            if block is not None:
                await self._pass(*block)
            elif self.idles:
                await self._at_idle(self.idles.pop(0))
            else:
                return

    def _standing(self) -> bool:
        return self._block() is not None or self.rig.count("session.idle") >= self.idles_awaited

    def _block(self) -> tuple[int, int] | None:
        """The block that the newest request stands at."""
        reply = len(self.rig.model.requests) - 1
        if not 0 <= reply < len(self.blocks):
            return None
        for k, place in enumerate(self.blocks[reply]):
            if (reply, k) not in self.released:
                return (reply, k) if self._reached(reply, place["at"]) else None
        return None

    def _reached(self, reply: int, at: str) -> bool:
        script = self.rig.spec["model_script"][reply]
        if at == "pre":
            return True
        if at == "mid":
            return self.rig.count("assistant.message_delta", {"deltaContent": script["text"][0]}) > 0
        gated = [call["id"] for call in script["tool_calls"] if call["name"] == "gate"]
        # task_complete is held back until the others are done (reference §9)
        done = [call["id"] for call in script["tool_calls"] if call["name"] not in ("gate", "task_complete")]
        done += [call for call in gated if call in self.finished]
        return all(call in self.rig.tools_started for call in gated) and all(
            self.rig.count("tool.execution_complete", {"toolCallId": call}) for call in done
        )

    async def _pass(self, reply: int, k: int) -> None:
        place = self.blocks[reply][k]
        self.released.add((reply, k))
        aborted = await self._do_all(place["do"])
        await asyncio.sleep(MOMENT)
        if aborted:
            self.released |= {(reply, other) for other in range(len(self.blocks[reply]))}
        elif place["at"] in ("pre", "mid"):
            self.rig.model.gate(gate_name(reply, place["at"])).set()
        else:
            self.finished.add(place["at"])
            await self.rig.act({"do": "finish_tool", "id": place["at"], **place.get("finish", {})})

    async def _at_idle(self, actions: list[JSON]) -> None:
        before = self.rig.count("session.idle")
        await self._do_all(actions)
        if any(action["do"] == "send" for action in actions):
            self.idles_awaited = before + 1

    async def _do_all(self, actions: list[JSON]) -> bool:
        """Do actions; whether they ended the run."""
        for action in actions:
            if action["do"] in ("abort", "interrupt"):
                self.idles_awaited = max(self.idles_awaited, self.rig.count("session.idle") + 1)
                interrupt = {"do": "rpc", "method": "session.interruptMainTurn"}
                await self.rig.act(action if action["do"] == "abort" else interrupt)
                return True
            if action["do"] == "queue":
                await self._edit_queue(action)
            else:
                await self.rig.act(action)
        return False

    async def _edit_queue(self, action: JSON) -> None:
        """Edit the queue item at a place, and note what the lanes hold afterwards."""
        items = (await self.rig.rpc("session.queue.pendingItems", {}))["items"]
        params = dict(action.get("params", {}))
        if "place" in action:
            if not items:
                return
            item = items[action["place"] % len(items)]
            withdraw = action["method"] == "withdrawMessage"
            message = {"messageId": item["messageId"], "expectedPrompt": item["displayText"]}
            params |= message if withdraw else {"id": item["id"]}
        await self.rig.act({"do": "rpc", "method": f"session.queue.{action['method']}", "params": params})
        now = await self.rig.rpc("session.queue.pendingItems", {})
        self.rig.views.append([[item["displayText"] for item in now["items"]], now["steeringMessages"]])
