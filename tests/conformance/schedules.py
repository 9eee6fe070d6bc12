"""Random schedules: cases whose actions happen only at moments where the reference is not racy.

What a schedule is stands in `following`; here they are made, from a seed, and made smaller.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from following import gate_name

JSON = dict[str, Any]

# --- making one ---------------------------------------------------------------------------------


def make_schedule(seed: int) -> JSON:
    """The case of a seed."""
    return _Maker(seed).case()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.texts = self.calls = 0

    def case(self) -> JSON:
        dice = self.random
        self.autopilot = dice.random() < 0.25
        self.asking = dice.random() < 0.2
        config: JSON = {}
        self.streaming = dice.random() > 0.1
        if not self.streaming:
            config["streaming"] = False
        if self.autopilot:
            config |= {"extra_tools": ["task_complete"], "sdk": {"autopilot": {"max_continues": 2}}}
        if self.asking:
            config["skip_permission"] = False
        self.decisions: JSON = {}
        script, blocks = [], []
        failed = False
        for reply in range(dice.randint(3, 8)):
            one, stops = self._reply(reply, may_fail=not failed)
            failed = "http_error" in one or "disconnect_after_chunks" in one
            script.append(one)
            blocks.append(stops)
        idles = [self._idle(first=k == 0) for k in range(dice.randint(1, 3))]
        return {
            "name": f"seed{self.seed}",
            "config": config,
            "tools": ["gate", "echo", "boom", "fail", "none"],
            **({"permissions": self.decisions} if self.asking else {}),
            "model_script": script,
            "actions": [{"do": "follow", "plan": {"blocks": blocks, "idles": idles}}],
        }

    def _text(self, word: str) -> str:
        self.texts += 1
        return f"{word}{self.texts}"

    def _idle(self, *, first: bool) -> list[JSON]:
        actions: list[JSON] = []
        if self.autopilot and (first or self.random.random() < 0.3):
            actions.append(self._mode("autopilot" if first or self.random.random() < 0.5 else "interactive"))
        mode = self.random.choice([{}, {}, {"mode": "enqueue"}, {"mode": "immediate"}])
        return [*actions, {"do": "send", "prompt": self._text("idle "), **mode}]

    @staticmethod
    def _mode(mode: str) -> JSON:
        return {"do": "rpc", "method": "session.mode.set", "params": {"mode": mode}}

    def _reply(self, reply: int, *, may_fail: bool) -> tuple[JSON, list[JSON]]:
        dice = self.random
        one: JSON = {"text": []}
        blocks: list[JSON] = []
        if dice.random() < 0.35:
            one["gate"] = gate_name(reply, "pre")
            blocks.append({"at": "pre", "do": self._actions()})
        kind = dice.random()
        if may_fail and kind < 0.06:
            one["http_error"] = {"status": 400, "message": "bad request"}
            return one, blocks
        if may_fail and kind < 0.09:
            one["http_error"] = {"status": 500, "message": "server error"}
            return one, blocks
        if may_fail and kind < 0.12 and self.streaming and not self.asking:
            one |= {"text": [self._text("cut "), " rest"], "disconnect_after_chunks": 1}
            return one, blocks
        if kind < 0.15:
            one |= {"text": [self._text("long ")], "finish": "length"}
            return one, blocks
        if kind < 0.17:
            return one, blocks  # an empty reply
        with_tools = dice.random() < 0.5
        if not with_tools or dice.random() < 0.3:
            one["text"] = [self._text("say "), self._text(" and ")]
            if self.streaming and dice.random() < 0.5:
                one["gate_after_chunk"] = {"1": gate_name(reply, "mid")}
                blocks.append({"at": "mid", "do": self._actions()})
        if with_tools:
            one["tool_calls"], stops = self._tool_calls()
            blocks += stops
        return one, blocks

    def _tool_calls(self) -> tuple[list[JSON], list[JSON]]:
        dice = self.random
        gates = dice.choice([0, 1, 1, 1, 2, 3]) if not self.asking else dice.choice([0, 1])
        calls = [self._call("gate") for _ in range(gates)]
        if not gates or (not self.asking and dice.random() < 0.3):
            calls.insert(dice.randint(0, len(calls)), self._other_call())
        order = [call["id"] for call in calls if call["name"] == "gate"]
        dice.shuffle(order)
        stops = [{"at": call_id, "do": self._actions()} for call_id in order]
        for stop in stops:
            if dice.random() < 0.1:
                stop["finish"] = {"error": "broken"}
        return calls, stops

    def _call(self, name: str, **more: Any) -> JSON:
        self.calls += 1
        call_id = f"c{self.calls}"
        args = {"id": call_id} if name == "gate" else {"text": f"said {call_id}"}
        if self.asking and name in ("gate", "echo"):
            choices = ["approve-once", "approve-once", "feedback", "reject", "user-not-available", "session"]
            self.decisions[call_id] = self._decision(self.random.choice(choices), name)
        return {"id": call_id, "name": name, "args": args, **more}

    @staticmethod
    def _decision(kind: str, tool: str) -> JSON:
        if kind == "feedback":
            return {"kind": "reject", "feedback": "please do not"}
        if kind == "session":
            return {"kind": "approve-for-session", "approval": {"toolName": tool}}
        return {"kind": kind}

    def _other_call(self) -> JSON:
        names = ["echo", "echo", "boom", "fail", "none", "nosuch", "bad json"]
        if self.asking:
            names = ["echo", "echo", "nosuch"]
        if self.autopilot:
            names += ["task_complete"] * 4
        name = self.random.choice(names)
        if name == "task_complete":
            self.calls += 1
            return {"id": f"c{self.calls}", "name": name, "args": {"summary": self._text("done ")}}
        if name == "bad json":
            return self._call("echo", args_raw='{"text": "cut')
        return self._call(name)

    def _actions(self) -> list[JSON]:
        dice = self.random
        actions = [self._action() for _ in range(dice.choice([0, 0, 1, 1, 1, 2, 3]))]
        if dice.random() < 0.06:
            actions.append({"do": dice.choice(["abort", "abort", "interrupt"])})
        return actions

    def _action(self) -> JSON:
        dice = self.random
        kind = dice.random()
        if kind < 0.38:
            return {"do": "send", "prompt": self._text("queue ")}
        if kind < 0.76:
            return {"do": "send", "prompt": self._text("steer "), "mode": "immediate"}
        if self.autopilot and kind < 0.82:
            return self._mode(dice.choice(["autopilot", "interactive"]))
        return {"do": "queue", **self._edit()}

    def _edit(self) -> JSON:
        dice = self.random
        place = dice.randint(0, 3)
        message = {"prompt": self._text("inserted ")}
        return dice.choice(
            [
                {"method": "moveItem", "place": place, "params": {"toPosition": dice.randint(0, 2)}},
                {"method": "removeAt", "place": place},
                {"method": "updateText", "place": place, "params": {"prompt": self._text("edited ")}},
                {"method": "duplicateAt", "place": place},
                {"method": "insertAt", "params": {"position": 0, "message": message}},
                {"method": "sendNow", "place": place},
                {"method": "removeMostRecent"},
                {"method": "clear"},
                {"method": "withdrawMessage", "place": place},
            ]
        )


# --- making one smaller -------------------------------------------------------------------------


def smaller(case: JSON) -> Iterator[JSON]:
    """Schedules that are one step simpler, the boldest first."""
    plan = case["actions"][0]["plan"]
    for k in range(len(plan["idles"]) - 1, 0, -1):
        yield _without(case, lambda plan, script, k=k: plan["idles"].pop(k))
    for reply in range(len(plan["blocks"]) - 1, -1, -1):
        yield _without(case, lambda plan, script, r=reply: _drop_reply(plan, script, r))
    for reply, blocks in enumerate(plan["blocks"]):
        for k, block in enumerate(blocks):
            for i in range(len(block["do"]) - 1, -1, -1):
                yield _without(
                    case, lambda plan, script, p=(reply, k, i): plan["blocks"][p[0]][p[1]]["do"].pop(p[2])
                )
            if block["at"] in ("pre", "mid") and not block["do"]:
                yield _without(case, lambda plan, script, p=(reply, k): _drop_gate(plan, script, *p))
    for reply in range(len(plan["blocks"])):
        calls = case["model_script"][reply].get("tool_calls", [])
        for call in calls if len(calls) > 1 else []:
            yield _without(case, lambda plan, script, r=reply, c=call["id"]: _drop_call(plan, script, r, c))
    for k, idle in enumerate(plan["idles"]):
        if len(idle) > 1:
            yield _without(case, lambda plan, script, k=k: plan["idles"][k].pop(0))


def _without(case: JSON, change: Any) -> JSON:
    small = copy.deepcopy(case)
    change(small["actions"][0]["plan"], small["model_script"])
    return small


def _drop_reply(plan: JSON, script: list[JSON], reply: int) -> None:
    plan["blocks"].pop(reply)
    script.pop(reply)
    for k in range(reply, len(script)):  # gates are named by place
        if "gate" in script[k]:
            script[k]["gate"] = gate_name(k, "pre")
        if "gate_after_chunk" in script[k]:
            script[k]["gate_after_chunk"] = {"1": gate_name(k, "mid")}


def _drop_gate(plan: JSON, script: list[JSON], reply: int, block: int) -> None:
    at = plan["blocks"][reply].pop(block)["at"]
    script[reply].pop("gate" if at == "pre" else "gate_after_chunk", None)


def _drop_call(plan: JSON, script: list[JSON], reply: int, call_id: str) -> None:
    script[reply]["tool_calls"] = [call for call in script[reply]["tool_calls"] if call["id"] != call_id]
    plan["blocks"][reply] = [block for block in plan["blocks"][reply] if block["at"] != call_id]
