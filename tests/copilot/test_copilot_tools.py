"""The kernel's tools on the CLI: results, failures, progress, displays."""

from __future__ import annotations

from copilot_rig import call

from copilot_nb.errors import ToolError
from copilot_nb.tools.base import Tool, ToolResult


async def test_results_and_failures_reach_the_model(rig):
    """Reference §12: a failure is told to the model, and the run goes on."""

    def add(arguments, context):
        return ToolResult(str(arguments["a"] + arguments["b"]), detail="long form")

    def refuse(arguments, context):
        raise ToolError("no such column")

    async def fail(arguments, context):
        return ToolResult("it failed because X", error="X")

    tools = [
        Tool(name, name, handler, skip_permission=True)
        for name, handler in (("add", add), ("refuse", refuse), ("fail", fail))
    ]
    script = [call("c1", "add", a=1, b=2), call("c2", "refuse"), call("c3", "fail"), {"text": ["done"]}]
    r = rig(script, more_tools=tools)
    await r.send("go")
    await r.idle()
    done = {data["toolCallId"]: data for data in r.of("tool.execution_complete")}
    assert done["c1"]["result"]["content"] == "3"
    assert done["c1"]["result"]["detailedContent"] == "long form"
    assert not done["c2"]["success"] and "no such column" in done["c2"]["error"]["message"]
    assert done["c3"]["error"] == {"message": "X", "code": "failure"}
    told = [m["content"] for m in r.model.requests[-1]["body"]["messages"] if m["role"] == "tool"]
    assert told[0] == "3" and "no such column" in told[1] and told[2] == "it failed because X"


async def test_progress_displays_and_steers_reach_the_call_and_the_panel(rig):
    steered = []

    async def work(arguments, context):
        off = context.when_steered(lambda: steered.append(context.call_id))
        context.progress("half")
        started.append(context.working_directory)
        await r.gate.wait()
        off()
        return ToolResult("ok", display={"text/plain": "a figure"})

    started: list[str] = []
    r = rig(
        [call("c1", "work"), {"text": ["done"]}],
        more_tools=[Tool("work", "works", work, skip_permission=True)],
    )
    await r.send("go")
    await r.until(lambda: started)
    assert started == [r.options.working_directory]
    await r.send("hurry", "immediate")
    r.gate.set()
    await r.idle()
    assert steered == ["c1"]
    assert r.of("tool.execution_partial_result")[0] == {"toolCallId": "c1", "partialOutput": "half"}
    assert r.of("jupyter.tool_display") == [{"toolCallId": "c1", "bundle": {"text/plain": "a figure"}}]


async def test_a_terminal_tool_ends_the_run(rig):
    """Reference §2."""
    end = Tool(
        "end", "ends", lambda arguments, context: ToolResult("ended"), skip_permission=True, is_terminal=True
    )
    r = rig([call("c1", "end"), {"text": ["never"]}], more_tools=[end])
    await r.send("go")
    await r.idle()
    assert len(r.model.requests) == 1


async def test_our_shell_is_not_offered_beside_the_clis(rig):
    """The CLI has its own ``bash``; two of a name would clash."""
    shell = Tool("bash", "our shell", lambda arguments, context: ToolResult("ours"), kind="shell")
    r = rig([{"text": ["hi"]}], more_tools=[shell])
    await r.send("go")
    await r.idle()
    offered = [tool["function"] for tool in r.model.requests[0]["body"]["tools"]]
    assert "our shell" not in [tool["description"] for tool in offered]
