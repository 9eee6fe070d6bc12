"""Runs one client in a process of its own, and measures what it is told to.

    python harness.py DRIVER PORT

Each line on standard input is an order, ``{"do": "turns", "n": 10}``; each answer is one line that starts
with ``RESULT``. The parent gives the same order to every client in turn, so that all of them meet the same
machine. Runs in the peers' environments: only the standard library is imported here.

A driver is a module of ``drivers/`` with

``open(base_url)``                    connect; the context that the others get
``fresh(context, model, history=0)``  begin an empty conversation, or one with that many earlier turns
``run(context, token)``               send "go" and wait for the end; ``token()`` at each piece of text
``close(context)``
``TREE``                              the work is done in child processes
``steer(context, model, text)``       in the first tool call of a run, steer; when that call had returned
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
import os
import statistics
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
RESULT = "line of tool output 0123456789\n" * 64  # 2 KB
SYSTEM = "You are a helpful agent."
PARAMETERS = {
    "type": "object",
    "properties": {"x": {"type": "string", "description": "arg"}},
    "required": ["x"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "step", "description": "Do a step.", "parameters": PARAMETERS},
}
MARK = "BENCHMARK STEER"
clock = time.perf_counter


def past(turns: int) -> list[dict[str, Any]]:
    """A conversation of that many turns, as chat messages: what a client had said and heard before."""
    if not turns:
        return []
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(turns - 1):
        function = {"name": "step", "arguments": '{"x":"go"}'}
        call = {"id": f"past_{turn:06d}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": RESULT})
    return [*messages, {"role": "assistant", "content": "Done now."}]


def family(field: int) -> dict[int, list[str]]:
    """``/proc/PID/stat`` of this process and all below it."""
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    kept = {os.getpid()}
    for _ in range(len(stats)):
        more = {pid for pid, stat in stats.items() if int(stat[1]) in kept} - kept
        if not more:
            break
        kept |= more
    return {pid: stats[pid] for pid in kept if pid in stats}


class Client:
    """The driver and what was measured of it."""

    def __init__(self, driver: Any, port: int) -> None:
        self.driver, self.port = driver, port
        self.tree = getattr(driver, "TREE", False)
        self.context: Any = None

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}") as answer:
            return json.load(answer)

    def cpu(self) -> float:
        """Seconds of CPU so far. Of a process tree it is counted in ticks of 10 ms."""
        if not self.tree:
            return time.process_time()
        ticks = sum(int(stat[11]) + int(stat[12]) for stat in family(0).values())
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes."""
        pages = sum(int(stat[21]) for pid, stat in family(0).items() if self.tree or pid == os.getpid())
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def often(self, repeat: int) -> int:
        """How often to measure: less where each new conversation takes a second of getting ready."""
        return min(repeat, 3) if self.tree else repeat

    async def start(self) -> dict[str, Any]:
        begun, cpu = clock(), time.process_time()
        self.context = await self.driver.open(f"http://127.0.0.1:{self.port}/v1")
        opened = {"seconds": clock() - begun, "cpu": time.process_time() - cpu}
        for model in ("n3", "s50", "n0"):  # connections, caches, code of a first time
            await self.driver.fresh(self.context, model)
            await self.driver.run(self.context, _nothing)
        return opened

    async def turns(self, n: int, repeat: int = 1, history: int = 0) -> dict[str, Any]:
        """A message that causes `n` tool calls: cost of a turn, and the time from result to request."""
        costs, walls, gaps = [], [], []
        for _ in range(self.often(repeat)):
            await self.driver.fresh(self.context, f"n{n}", history)
            if history:  # the first request on it builds what later ones reuse
                await self.driver.run(self.context, _nothing)
            self.get("reset")
            cpu, begun = self.cpu(), clock()
            await self.driver.run(self.context, _nothing)
            wall, cpu = clock() - begun, self.cpu() - cpu
            seen = self.get("stats")
            if len(seen) != n + 1:
                raise RuntimeError(f"{len(seen)} requests instead of {n + 1}")
            costs.append(cpu / (n + 1))
            walls.append((wall - sum(s[2] - s[1] for s in seen)) / (n + 1))
            gaps += [after[1] - before[2] for before, after in itertools.pairwise(seen)]
        result = {"cpu": statistics.median(costs), "wall": statistics.median(walls)}
        if self.tree:  # in ticks: the mean says more
            result["cpu"] = statistics.mean(costs)
        if gaps:
            result["gap"] = statistics.median(gaps)
            result["gap_last"] = statistics.median(gaps[-10:])
        return result

    async def chunks(self, kind: str, n: int) -> dict[str, Any]:
        """A streamed answer of `n` pieces."""
        await self.driver.fresh(self.context, f"{kind}{n}")
        count = 0

        def token(pieces: int = 1) -> None:
            nonlocal count
            count += pieces

        cpu, begun = self.cpu(), clock()
        await self.driver.run(self.context, token)
        cpu, wall = self.cpu() - cpu, clock() - begun
        if count != n:
            raise RuntimeError(f"{count} pieces of {n} arrived")
        return {"cpu": cpu / n, "wall": wall / n}

    async def plain(self, repeat: int) -> dict[str, Any]:
        """A question and its answer, without tools: time to the first piece of text, and to the end."""
        firsts, ends, costs = [], [], []
        for _ in range(self.often(repeat)):
            await self.driver.fresh(self.context, "n0")
            first: list[float] = []
            cpu, begun = self.cpu(), clock()
            await self.driver.run(self.context, lambda _=1, first=first: first.append(clock()))
            ends.append(clock() - begun)
            costs.append(self.cpu() - cpu)
            firsts.append(first[0] - begun)
        return {
            "first": statistics.median(firsts),
            "end": statistics.median(ends),
            "cpu": statistics.mean(costs) if self.tree else statistics.median(costs),
        }

    async def steer(self, repeat: int) -> dict[str, Any]:
        """A steer out of a running tool: how long until it is in a request, and in the how manieth."""
        late, delays = [], []
        for _ in range(repeat):
            await self.driver.fresh(self.context, "n3")
            self.get("reset")
            sent = await self.driver.steer(self.context, MARK)
            seen = self.get("stats")
            after = [request for request in seen if request[1] > sent]
            place = next((k for k, request in enumerate(after) if request[5]), None)
            if place is None:
                raise RuntimeError("the steer came in no request")
            late.append(place)
            delays.append(after[place][1] - sent)
        return {"wall": statistics.median(delays), "late": max(late)}

    async def many(self, sessions: int, n: int) -> dict[str, Any]:
        """As many conversations at once, each of `n` tool calls."""
        contexts = [await self.driver.open(f"http://127.0.0.1:{self.port}/v1") for _ in range(sessions)]
        for model in ("n1", f"n{n}"):
            for context in contexts:
                await self.driver.fresh(context, model)
            cpu, begun = self.cpu(), clock()
            await asyncio.gather(*(self.driver.run(context, _nothing) for context in contexts))
            cpu, wall = self.cpu() - cpu, clock() - begun
        for context in contexts:
            await self.driver.close(context)
        return {"cpu": cpu / sessions / (n + 1), "wall": wall / sessions / (n + 1)}

    async def memory_after(self) -> dict[str, Any]:
        """Memory after what was done so far."""
        return {"mb": self.memory()}


def _nothing(_pieces: int = 1) -> None:
    """A subscriber that does not care."""


async def main(name: str, port: int) -> None:
    """Open the driver, then follow orders until standard input ends."""
    driver = importlib.import_module(f"drivers.{name}")
    client = Client(driver, port)
    loop = asyncio.get_running_loop()
    _say(await client.start())
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        work = order.pop("do")
        try:
            _say(await getattr(client, work)(**order))
        except Exception as error:  # told to the parent, which names the row that fell out
            _say({"error": f"{type(error).__name__}: {error}"[:300]})
    await driver.close(client.context)


def _say(result: dict[str, Any]) -> None:
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    sys.modules["harness"] = sys.modules["__main__"]  # drivers import from here
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
