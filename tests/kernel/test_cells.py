"""What a notebook's cells show and survive (jupyter facts Q3-Q5; field cases 21-24, 27, 31; M9-M14)."""

import pytest
from test_steering import SESSION


def test_output_goes_to_the_launching_cell_only(kernel):
    """Field case 21: ipykernel 6 sends a task's output to the cell that ran last."""
    kernel.ok(SESSION)
    first = kernel.ok("%%copilot\nstart")
    kernel.until("session.state.running_tools() != []")
    other = kernel.ok("print('mine')")
    kernel.ok("gate.set()")
    kernel.until("not session.state.busy")
    kernel.listen(1.5)
    last = kernel.ok("print('also mine')")
    assert [o.get("text") for o in other.outputs] == ["mine\n"]
    assert [o.get("text") for o in last.outputs] == ["also mine\n"]
    assert len(first.outputs) == 1
    assert "the answer" in first.html
    assert "application/vnd.jupyter.widget-view+json" not in first.outputs[0]["data"]


def test_braces_and_quotes_arrive_as_written(kernel):
    """Field case 31 (jupyter-ai#27; ipython#10072): also on the line, which IPython would expand."""
    kernel.ok(SESSION + "gate.set()\nx = 'X'\ny = 1")
    body = "{'foo': 'bar'} f\"{y + 1}\" {In[3]} $x ${x} {{x}} {x} it's"
    kernel.ok(f"%%copilot --wait\n{body}")
    kernel.ok(f"%steer {body}")
    kernel.ok("%copilot wait")
    expected = "{'foo': 'bar'} f\"{y + 1}\" {In[3]} $x $X {x} X it's"
    users = kernel.value("[e.data['content'].strip() for e in events('user.message')]")
    assert users == [expected, expected]
    assert "no variable" in kernel.ok("%steer about {nothing_like_this}").text


def test_waiting_cell_is_interrupted_and_the_run_goes_on(kernel):
    """Field case 27, M9, M10."""
    kernel.ok(SESSION)
    kernel.ok("%%copilot\nstart")
    kernel.until("session.state.running_tools() != []")
    waiting = kernel.start("%copilot wait")
    kernel.listen(1)
    kernel.interrupt()
    kernel.finish(waiting)
    assert waiting.status == "error"
    assert waiting.error["traceback"] == [
        "Interrupted: this cell no longer waits; the run goes on (%copilot abort ends it)."
    ]
    kernel.ok("gate.set()")
    kernel.ok("%copilot wait")
    assert kernel.value("session.state.last_answer") == "the answer"


def test_interrupt_while_idle_leaves_the_run_alone(kernel):
    kernel.ok(SESSION)
    kernel.ok("%%copilot\nstart")
    kernel.until("session.state.running_tools() != []")
    kernel.interrupt()
    kernel.ok("gate.set()")
    kernel.ok("%copilot wait")
    assert kernel.value("session.state.last_answer") == "the answer"


def test_a_timeout_says_what_it_waited_for(kernel):
    """Field case 9 (copilot-sdk#794)."""
    kernel.ok(SESSION)
    kernel.ok("%%copilot\nstart")
    kernel.until("session.state.running_tools() != []")
    kernel.ok("%enqueue later")
    error = kernel.run("%copilot wait 0.3").error
    assert error["ename"] == "WaitTimeout"
    assert "hold" in error["evalue"] and "1 queued" in error["evalue"]
    kernel.ok("gate.set()")


def test_session_run_in_a_for_loop(kernel):
    """Field case 23: from plain synchronous code inside the running loop."""
    kernel.ok(SESSION + "gate.set()")
    cell = kernel.ok("for n in range(2):\n    print(session.run(f'question {n}'))")
    assert cell.stdout == "the answer\nsecond answer\n"


@pytest.mark.parametrize("version", ["6.29.5", "7.4.0"])
def test_with_nest_asyncio_applied_by_the_user(start, version):
    """Field case 24: somebody else nested the loop."""
    kernel = start(version)
    kernel.ok("import nest_asyncio2; nest_asyncio2.apply()\n%load_ext copilot_nb")
    kernel.ok(SESSION + "gate.set()")
    kernel.ok("%%copilot\nstart")
    kernel.ok("%copilot wait")
    assert kernel.value("session.state.last_answer") == "the answer"


def test_a_blocking_cell_delays_but_loses_nothing(kernel):
    kernel.ok(SESSION + "gate.set()")
    kernel.ok("%%copilot\nstart")
    kernel.ok("import time; time.sleep(1)")
    kernel.ok("%copilot wait")
    assert kernel.value("session.state.last_answer") == "the answer"


def test_reset_and_rerun_do_not_break_waiting(kernel):
    """The transformer's call must not depend on names in the user's namespace."""
    kernel.ok(SESSION + "gate.set()")
    kernel.ok("%reset -f")
    kernel.ok("%%copilot --wait\nstart")
    kernel.ok("%%copilot --wait\nstart")
    assert kernel.ok("%copilot status").text.count("idle") == 1


def test_waiting_inside_a_function_says_what_to_write(kernel):
    kernel.ok(SESSION)
    kernel.ok("def f():\n    %copilot wait")
    error = kernel.run("f()").error
    assert error["ename"] == "UsageError" and "session.wait()" in error["evalue"]


def test_unloading_stops_the_run(kernel):
    kernel.ok(SESSION)
    kernel.ok("%%copilot\nstart")
    kernel.until("session.state.running_tools() != []")
    kernel.ok("%unload_ext copilot_nb")
    kernel.until("session.closed")
    kernel.until("'session.shutdown' in session.log_path.read_text()")
    assert "not found" in kernel.run("%steer hello").text


@pytest.mark.parametrize("version", ["7.0.1", "7.2.0", "7.3.0"])
def test_spot_check_of_the_versions_between(start, version):
    kernel = start(version)
    kernel.ok("%load_ext copilot_nb")
    kernel.ok(SESSION)
    kernel.ok("%%copilot\nstart")
    kernel.until("session.state.running_tools() != []")
    kernel.ok("%steer use the median")
    kernel.ok("%enqueue next")
    kernel.ok("gate.set()")
    kernel.ok("%copilot wait")
    users = kernel.value("[(e.data['content'], e.data['delivery']) for e in events('user.message')]")
    assert users == [("start", "idle"), ("use the median", "steering"), ("next", "queued")]
