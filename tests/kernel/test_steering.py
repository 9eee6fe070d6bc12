"""Prompt in one cell, steer in the next, queue in a third, on both sides of ipykernel 7 (issue 2)."""

import pytest

#: a model whose first turn calls a tool that waits; its requests are kept for looking at
SESSION = """
import asyncio, copilot_nb
from copilot_nb.models.scripted import ScriptedModel
gate = asyncio.Event()
async def hold() -> str:
    "Wait until the gate opens."
    await gate.wait()
    return "the gate is open"
model = ScriptedModel([
    {"tool_calls": [{"id": "c1", "name": "hold", "args": {}}]},
    {"text": ["the ", "answer"]}, "second answer", "third answer",
])
session = copilot_nb.open_session(model=model, tools=[hold], allow=["hold"])
def events(*types):
    return [e for e in copilot_nb_events() if e.type in types]
def copilot_nb_events():
    from copilot_nb.events import from_line
    return [from_line(line) for line in session.log_path.read_bytes().splitlines()]
def sent():
    return [[(m["role"], m.get("content")) for m in r["messages"]] for r in model.requests]
"""


@pytest.fixture
def running(kernel):
    """A run that is in its waiting tool."""
    kernel.ok(SESSION)
    kernel.ok("%%copilot\nstart")  # done although the run is not: the tool waits for a later cell
    kernel.until("[t.name for t in session.state.running_tools()] == ['hold']")
    return kernel


def test_a_steer_from_the_next_cell_joins_the_running_run(running):
    told = running.ok("%steer use the median")
    assert "before the next model call" in told.text
    running.ok("gate.set()")
    running.ok("%copilot wait")
    second = running.value("sent()[1][-3:]")
    assert [role for role, _ in second] == ["assistant", "tool", "user"]
    assert second[1][1] == "the gate is open"
    assert second[2][1] == "use the median"
    users = running.value("[(e.data['content'], e.data['delivery']) for e in events('user.message')]")
    assert users == [("start", "idle"), ("use the median", "steering")]
    assert running.value("len(events('assistant.turn_start'))") == 2


def test_queued_cells_run_in_order_after_it(running):
    running.ok("%enqueue first in line")
    running.ok("%%enqueue\nsecond in line\nwith a second line")
    listed = running.ok("%copilot queue").text
    assert listed.index("first in line") < listed.index("second in line")
    running.ok("gate.set()")
    running.ok("%copilot wait")
    users = running.value("[(e.data['content'], e.data['delivery']) for e in events('user.message')]")
    assert users[1:] == [("first in line", "queued"), ("second in line\nwith a second line", "queued")]
    assert running.value("model.requests.__len__()") == 4


def test_two_steers_arrive_in_order_in_one_request(running):
    """Field cases 1 and 2 (copilot-cli#4372, vscode#317129), from cells."""
    running.ok("%steer A")
    running.ok("%steer B")
    running.ok("gate.set()\n%copilot wait")
    assert running.value("[c for r, c in sent()[1] if r == 'user'][-2:]") == ["A", "B"]


def test_an_idle_steer_starts_a_run_and_says_so(kernel):
    """Field case 5 (hermes-agent#64578): it must not be stranded."""
    kernel.ok(SESSION + "gate.set()")
    cell = kernel.ok("%steer go")
    assert "started a run" in cell.text
    kernel.ok("%copilot wait")
    assert kernel.value("[e.data['delivery'] for e in events('user.message')]") == ["idle"]


def test_stop_keeps_the_queue_paused_and_all_clears_it(running):
    """Field case 13 (copilot-cli#3692)."""
    running.ok("%enqueue later")
    assert "waiting, paused" in running.ok("%copilot abort").text
    assert running.value("len(session.state.queue)") == 1
    running.ok("%copilot queue resume")
    running.ok("%copilot wait")
    assert running.value("[e.data['content'] for e in events('user.message')]") == ["start", "later"]


def test_the_queue_can_be_edited_by_magic(running):
    """Field case 50: items can be changed without stopping the run."""
    for word in ("one", "two", "three"):
        running.ok(f"%enqueue {word}")
    running.ok("ids = [item['id'] for item in (await session.queue.pending_items())['items']]")
    ids = running.value("ids")
    running.ok(f"%copilot queue mv {ids[2]} 1")
    running.ok(f"%copilot queue edit {ids[0]} it's {{one}} again")
    running.ok(f"%copilot queue rm {ids[1]}")
    assert running.value("[m.text for m in session.state.queue]") == ["three", "it's {one} again"]
    running.ok(f"%copilot queue steer {ids[2]}")
    assert running.value("[m.text for m in session.state.steers]") == ["three"]
    assert "there is no item" in running.run("%copilot queue rm 999").error["evalue"]
    running.ok("%copilot queue rm s1")
    assert running.value("[m.text for m in session.state.steers]") == []
    running.ok("%copilot queue pause")
    assert "paused already" in running.ok("%copilot queue pause").text
    running.ok("%copilot queue clear")
    assert running.value("session.state.queue") == []
    running.ok("gate.set()")


def test_permission_is_answered_by_magic(kernel):
    kernel.ok(SESSION.replace('allow=["hold"]', "allow=[]") + "gate.set()")
    kernel.ok("%%copilot\nstart")
    kernel.until("len(session.state.permissions) == 1")
    waits = kernel.ok("%steer meanwhile").text
    assert "your answer" in waits  # field case 8: it must not look hung
    assert "hold" in kernel.ok("%allow").text
    kernel.ok("%copilot wait")
    assert kernel.value("[c for r, c in sent()[1]][-2:]") == ["the gate is open", "meanwhile"]
    assert "Nothing asks" in kernel.run("%allow").error["evalue"]


def test_deny_with_feedback_goes_on_and_without_it_ends(kernel):
    kernel.ok(SESSION.replace('allow=["hold"]', "allow=[]"))
    kernel.ok("%%copilot\nstart")
    kernel.until("len(session.state.permissions) == 1")
    kernel.ok("%deny use {something} else")
    kernel.ok("%copilot wait")
    assert kernel.value("'use {something} else' in sent()[1][-1][1]")
    assert kernel.value("session.state.last_answer") == "the answer"
