"""The numbered changes of a panel: whoever applies them all has what the kernel has."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from copilot_nb.events import EventSource
from copilot_nb.state import SessionState
from copilot_nb.widgets import view
from copilot_nb.widgets.feed import Feed

STEPS = st.lists(
    st.sampled_from(
        ["user", "steer", "turn", "delta", "think", "start", "retry", "message", "other", "tool", "out",
         "done", "ask", "allow", "usage", "end", "error", "queue", "idle", "flush", "flush"]
    ),
    max_size=60,
)  # fmt: skip


class Client:
    """Applies operations as static/store.js does."""

    def __init__(self):
        self.items, self.order = {}, []

    def apply(self, ops):
        for op, key, *rest in ops:
            if op == "item":
                self.put(key, rest[0])
            elif op in ("text", "think"):
                piece, replace = rest
                item = self.items[key]
                item[op] = piece if replace else item.get(op, "") + piece
            elif op == "tool":
                tools = self.items[key]["tools"]
                known = next((tool for tool in tools if tool["key"] == rest[0]["key"]), None)
                if known is None:
                    tools.append(dict(rest[0]))
                else:
                    known.update(rest[0])
            else:
                tool = next(tool for tool in self.items[key]["tools"] if tool["key"] == rest[0])
                tool["output"] = tool.get("output", "") + rest[1]

    def put(self, item, before):
        if item["key"] in self.items:
            self.items[item["key"]].update(item)
        elif item["kind"] != "message" or item["state"] == "landed":
            self.items[item["key"]] = dict(item)
            if before in self.order:
                self.order.insert(self.order.index(before), item["key"])
            else:
                self.order.append(item["key"])


def play(step, n, feed):
    key = f"c{n // 4}"
    data = {
        "user": ("user.message", {"content": f"u{n}", "delivery": "queued", "messageId": f"m{n}"}),
        "steer": ("user.message", {"content": f"s{n}", "delivery": "steering", "messageId": f"m{n}"}),
        "turn": ("assistant.turn_start", {"turnId": "0"}),
        "delta": ("assistant.message_delta", {"messageId": "a", "deltaContent": f"<{n}>"}),
        "think": ("assistant.reasoning_delta", {"reasoningId": "r", "deltaContent": f"({n})"}),
        "start": ("assistant.message_start", {"messageId": f"a{n}"}),
        "retry": ("assistant.turn_retry", {"turnId": "0", "reason": "streaming_error"}),
        "message": ("assistant.message", {"messageId": "a", "content": feed.said(), "toolRequests": []}),
        "other": ("assistant.message", {"messageId": "a", "content": f"quite other {n}", "toolRequests": []}),
        "tool": ("tool.execution_start", {"toolCallId": key, "toolName": "x", "arguments": {"n": n}}),
        "out": ("tool.execution_partial_result", {"toolCallId": key, "partialOutput": f"[{n}]"}),
        "done": ("tool.execution_complete", {"toolCallId": key, "success": n % 2 == 0}),
        "ask": ("permission.requested", {"requestId": key, "permissionRequest": {"toolCallId": key}}),
        "allow": ("permission.completed", {"requestId": key, "toolCallId": key}),
        "usage": ("assistant.usage", {"apiCallId": f"u{n}", "inputTokens": n, "outputTokens": 1}),
        "end": ("assistant.turn_end", {"turnId": "0"}),
        "error": ("session.error", {"errorType": "query", "message": "no"}),
        "queue": ("jupyter.queue", {"op": "add", "lane": "queue", "messageId": f"q{n}", "prompt": "q"}),
        "idle": ("session.idle", {"mode": "interactive"}),
    }  # fmt: skip
    feed(*data[step])


class Session:
    def __init__(self):
        self.state, self.source = SessionState(), EventSource()
        self.feed = Feed(self.state)

    def said(self):
        return "".join(self.state.turn.text) if self.state.turn else ""

    def __call__(self, type, data):
        self.state.apply(self.source.stored(type, data))
        if self.state.touched is not None:
            self.feed.dirty[self.state.touched] = None


@settings(deadline=None, max_examples=150)
@given(STEPS)
def test_changes_add_up_to_the_whole(steps):
    """A view that got every message shows what one that asks for the whole is given."""
    session, client = Session(), Client()
    for n, step in enumerate(steps):
        if step == "flush":
            client.apply(session.feed.flush())
        else:
            play(step, n, session)
    client.apply(session.feed.flush())
    for turn in session.state.turns:
        whole, ours = view.turn_json(turn), client.items[turn.key]
        assert {**ours, "tools": 0} == {**whole, "tools": 0}
        assert [(t["key"], t["state"], t["output"]) for t in ours["tools"]] == [
            (t["key"], t["state"], t["output"]) for t in whole["tools"]
        ]
    order = [view.key_of(item) for run in session.state.runs for item in run.items]
    assert [key for key in client.order if not key.startswith("r")] == order
    for run in session.state.runs:
        assert client.items[f"r{run.n}"] == view.run_json(run)
