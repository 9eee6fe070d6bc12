"""The `python` tool in real kernels: its output is its own, and an interrupt reaches it."""

SETUP = """
import asyncio
from copilot_nb.tools import kernel_tools

class Context:
    session_id, call_id, tool_name, working_directory = "s", "c", "python", "."
    def __init__(self):
        self.said = []
    def progress(self, text):
        self.said.append(text)

python = kernel_tools(get_ipython())[0]

def call(code):
    global context
    context = Context()
    return asyncio.get_running_loop().create_task(python.handler({"code": code}, context))
"""

TALKS = """
import asyncio, sys, threading, logging
from IPython.display import display, HTML
print("tool says 1")
await asyncio.sleep(0.3)
print("tool says 2", file=sys.stderr)
display(HTML("<b>tool shows</b>"))
thread = threading.Thread(target=print, args=("tool thread",))
thread.start()
thread.join()
await asyncio.sleep(0.3)
print("tool says 3")
"tool value"
"""


def test_output_of_the_code_reaches_the_model_and_no_cell(shared_kernel):
    """Where background output goes differs between ipykernel 6 and 7 (jupyter-facts Q4)."""
    kernel = shared_kernel
    kernel.ok(SETUP)
    first = kernel.ok(f"task = call({TALKS!r})")
    second = kernel.ok(
        "print('cell 2')\nfor _ in range(8):\n    await asyncio.sleep(0.1)\nprint('cell 2 ends')\n2"
    )
    kernel.until("task.done()")
    text = kernel.value("task.result().text")
    assert text.split("\n") == [
        "tool says 1",
        "tool says 2",
        "tool thread",
        "tool says 3",
        "'tool value'",
        "<IPython.core.display.HTML object>",
    ]
    assert kernel.value("task.result().display[0]['text/html']") == "<b>tool shows</b>"
    assert kernel.value("''.join(context.said)").count("tool") == 4
    assert first.outputs == []
    assert second.stdout == "cell 2\ncell 2 ends\n"
    assert [output["data"] for output in second.outputs if "data" in output] == [{"text/plain": "2"}]


def test_errors_and_figures_of_the_code_stay_out_of_the_cells(shared_kernel):
    kernel = shared_kernel
    kernel.ok(SETUP)
    count = kernel.value("get_ipython().execution_count")
    failing = kernel.ok("task = call('1/0')\nawait asyncio.sleep(0.2)")
    assert failing.outputs == []
    assert "ZeroDivisionError" in kernel.value("task.result().text")
    drawing = kernel.ok(
        "task = call('import matplotlib.pyplot as plt\\nplt.plot([1, 2]);')\nresult = await task"
    )
    assert drawing.outputs == []
    assert kernel.value("result.text").startswith("[image/png ")
    assert kernel.value("get_ipython().execution_count") == count + 5  # our cells alone
    own = kernel.ok("plt.plot([1, 2]);")
    assert any("image/png" in output.get("data", {}) for output in own.outputs)


def test_an_interrupt_stops_the_code_while_no_cell_runs(shared_kernel):
    """Between cells the kernel ignores the signal, and the code would run to its end (jupyter-facts Q5)."""
    kernel = shared_kernel
    kernel.ok(SETUP)
    kernel.ok("loop = asyncio.get_running_loop()\nwaiting = []")
    kernel.ok("code = 'import time\\nfor _ in range(600): time.sleep(0.1)'")
    kernel.ok("loop.call_later(0.3, lambda: waiting.append(call(code)))")
    kernel.listen(1.5)
    kernel.manager.interrupt_kernel()
    kernel.until("bool(waiting) and waiting[0].done()")
    assert kernel.value("waiting[0].result().error") == "KeyboardInterrupt: the person interrupted the code"
    assert kernel.value("1 + 1") == 2
