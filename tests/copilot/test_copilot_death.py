"""What happens when the CLI, or the kernel, is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from copilot_rig import call


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int, seconds: float) -> bool:
    """Wait until a process has ended."""
    end = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


async def test_killed_in_mid_tool(rig):
    """The run ends with an error, the queue is kept, nothing hangs, the next prompt works."""
    r = rig([call("c1", "gate"), {"text": ["kept"]}, {"text": ["next"]}])
    await r.send("go")
    await r.in_tool.wait()
    await r.send("queued")
    await r.send("steer", "immediate")
    await asyncio.sleep(1)  # the CLI writes its log a little later (reference §14)
    pid = r.runtime._client.pid
    killed = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    await r.event("session.error")
    seconds = time.perf_counter() - killed
    await r.idle()
    await asyncio.wait_for(r.cancelled.wait(), 10)
    assert seconds < 20
    assert "SIGKILL" in r.of("session.error")[0]["message"]
    assert [d["state"] for d in r.of("jupyter.runtime")] == ["starting", "ready", "died"]
    assert r.lane_ops[-1] == ("pause", True)
    r.in_tool.clear()
    await r.send("next prompt")
    await r.idle(2)
    assert [d["content"] for d in r.of("user.message")] == ["go", "steer", "queued", "next prompt"]
    assert [d["content"] for d in r.of("assistant.message")][-1] == "(exhausted)"
    assert r.lane_ops[-1] == ("pause", False)
    assert r.of("session.warning")[0]["warningType"] == "interrupted_tools"
    print(f"\nkill -9 of the CLI to session.error: {seconds * 1000:.0f} ms")


async def test_killed_with_open_requests(rig):
    """A permission that waits is closed: nobody can answer it any more."""
    r = rig([call("c1", "gate"), {"text": ["x"]}], skip_permission=False)
    await r.send("go")
    asked = await r.event("permission.requested")
    os.kill(r.runtime._client.pid, signal.SIGKILL)
    await r.idle()
    assert r.of("permission.completed")[0]["requestId"] == asked["requestId"]
    await r.send("again")
    await r.idle(2)


async def test_killed_while_idle(rig):
    """No run, no error: only the notice, and a new start with the next prompt."""
    r = rig([{"text": ["one"]}, {"text": ["two"]}])
    await r.send("a")
    await r.idle()
    os.kill(r.runtime._client.pid, signal.SIGKILL)
    await r.until(lambda: r.of("jupyter.runtime")[-1]["state"] == "died")
    assert not r.of("session.error")
    await r.send("b")
    await r.idle(2)
    assert [m["content"] for m in r.model.requests[-1]["body"]["messages"] if m["role"] == "assistant"] == [
        "one"
    ]


async def test_one_process_for_all_sessions_of_a_kernel(rig):
    a, b = rig([{"text": ["one"]}]), rig([{"text": ["two"]}], session_id="s2")
    await asyncio.gather(a.send("a"), b.send("b"))
    await asyncio.gather(a.idle(), b.idle())
    assert a.runtime._client is b.runtime._client
    pid = a.runtime._client.pid
    assert os.getpgid(pid) != os.getpgid(0)  # a kernel interrupt goes to the kernel's group
    await a.runtime.close()
    assert alive(pid)
    await b.runtime.close()
    assert gone(pid, 20)


KERNEL = """
    import asyncio, os, sys
    from pathlib import Path
    from copilot_nb.permissions import Policy
    from copilot_nb.runtimes.base import Message
    from copilot_nb.runtimes.copilot.options import CopilotOptions, Provider
    from copilot_nb.runtimes.copilot.runtime import CopilotRuntime

    url, home, fork = sys.argv[1:]

    def emit(event):
        if event.type == "tool.shell_output":  # the shell runs
            if fork == "fork" and not os.fork():
                import time
                time.sleep(60)  # this child holds the CLI's stdin open
            print(runtime._client.pid, event.data["text"].strip(), flush=True)

    async def main():
        global runtime
        options = CopilotOptions(
            "s1", Path(home), Policy(allow={"shell"}), model="fake-model",
            provider=Provider(url, wire_api="completions"),
        )
        runtime = CopilotRuntime(emit, options)
        await runtime.send(Message("go"))
        await asyncio.sleep(300)

    asyncio.run(main())
"""


def test_a_killed_kernel_leaves_no_cli(tmp_path, cli_path):
    """jupyter-facts Q5: after kill -9 of the kernel nothing runs ``finally`` or ``atexit``."""
    from model_server import ModelServer

    for fork in ("", "fork"):
        model = ModelServer([call("c1", "bash", command="echo $$; sleep 300", description="wait")])
        kernel = subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(KERNEL),
                model.base_url,
                str(tmp_path / f"home{fork}"),
                fork,
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        with kernel:
            cli, shell = map(int, kernel.stdout.readline().split())
            assert alive(cli) and alive(shell)
            kernel.kill()
        killed = time.perf_counter()
        try:
            assert gone(cli, 20)
            seconds = time.perf_counter() - killed
            print(f"\nkill -9 of the kernel{' with a fork' if fork else ''}: CLI gone in {seconds:.2f} s")
            assert gone(shell, 20)
        finally:
            model.close()
            if fork:
                os.killpg(kernel.pid, signal.SIGKILL)
