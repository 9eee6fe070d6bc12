"""How fast logs become tables, against what a person would write, on the same file in the same run.

    python tests/benchmarks/log_bench.py [--quick]

Full size is the issue's: 330,000 events (about 300 MB) and 1,100,000 (about 1 GB); ``--quick`` takes a tenth.
Times are processor time of this process unless they say *wall*, the best of alternated rounds, with the files
in the page cache.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "log"))
sys.path.insert(0, str(HERE.parent.parent))

EVENTS, LONG = 330_000, 1_100_000
ROUNDS = 3


def rows(quick: bool) -> list[dict[str, Any]]:
    """All rows: ``name, peer, ratio, goal, reached, detail``."""
    from make_log import make_log

    share = 10 if quick else 1
    with tempfile.TemporaryDirectory() as folder:
        log = make_log(EVENTS // share, Path(folder) / "events.jsonl")
        found = [*reading(log), memory(log), *appending(LONG // share)]
        log.unlink()
        long = make_log(LONG // share, Path(folder) / "long.jsonl")
        return [*found, first_rows(long), fleet(long), window(long)]


def row(name: str, peer: str, ratio: float, goal: float, at_least: bool, detail: str) -> dict[str, Any]:
    """One line of the table; `ratio` may also be a measure that has a limit."""
    reached = ratio >= goal if at_least else ratio <= goal
    words = f"{'≥' if at_least else '≤'} {goal:g}"
    return {
        "name": name,
        "peer": peer,
        "ratio": round(ratio, 3),
        "goal": words,
        "reached": reached,
        "detail": detail,
    }


def best(
    jobs: dict[str, Callable[[], Any]], clock: Callable[[], float], rounds: int = ROUNDS
) -> dict[str, float]:
    """The least time of each job; the jobs take turns, so that a busy moment hits all alike."""
    least: dict[str, float] = {}
    for _ in range(rounds):
        for name, job in jobs.items():
            gc.collect()
            start = clock()
            result = job()
            took = clock() - start
            del result
            least[name] = min(took, least.get(name, took))
    return least


# --- reading ------------------------------------------------------------------------------------------


def ours(log: Path) -> Any:
    from copilot_nb.frames import read_log

    return read_log(log).events()


def by_json_normalize(log: Path) -> Any:
    """What a person would write."""
    import pandas as pd

    frame = pd.read_json(log, lines=True)
    return frame.drop(columns="data").join(pd.json_normalize(frame["data"].tolist()))


class Tokens(msgspec.Struct, gc=False):
    inputTokens: int | None = None
    outputTokens: int | None = None


class Result(msgspec.Struct, gc=False):
    content: str | None = None


class Data(msgspec.Struct, gc=False):
    turnId: str | None = None
    toolName: str | None = None
    content: str | None = None
    result: Result | None = None
    usage: Tokens | None = None


class Line(msgspec.Struct, gc=False):
    type: str
    data: Data
    id: str | None = None
    timestamp: str | None = None
    parentId: str | None = None
    ephemeral: bool = False


def typed_parse(log: Path) -> Callable[[], None]:
    """The bare msgspec parse of the same keys, line by line, nothing kept."""
    decode = msgspec.json.Decoder(Line).decode

    def parse() -> None:
        with log.open("rb") as file:
            for line in file:
                decode(line)

    return parse


def reading(log: Path) -> list[dict[str, Any]]:
    """``read_log(path).events()`` by processor time."""
    ours(log), typed_parse(log)()  # imports, page cache
    took = best({"ours": lambda: ours(log), "parse": typed_parse(log)}, time.process_time)
    jobs = {"peer": lambda: by_json_normalize(log), "ours": lambda: ours(log), "parse": typed_parse(log)}
    again = best(jobs, time.process_time, rounds=2)
    mine, bare, peer = min(took["ours"], again["ours"]), min(took["parse"], again["parse"]), again["peer"]
    size = log.stat().st_size / 1e6
    return [
        row(
            "read_log(path).events(), processor time",
            "pd.read_json(lines=True) + json_normalize",
            peer / mine,
            13,
            True,
            f"{mine:.2f} s against {peer:.2f} s, {size:.0f} MB",
        ),
        row(
            "read_log(path).events(), share of the parse's speed",
            "bare msgspec typed parse",
            bare / mine,
            0.30,
            True,
            f"{mine:.2f} s against {bare:.2f} s",
        ),
    ]


_MEMORY = """
import resource, sys
from pathlib import Path
import numpy, pandas, pyarrow, pyarrow.compute
from copilot_nb.frames import read_log

def peak():
    status = Path("/proc/self/status")  # ru_maxrss begins with the peak of the parent process
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

read_log(sys.argv[2]).events()
before = peak()
frame = read_log(sys.argv[1]).events()
print(peak() - before)
"""


def memory(log: Path) -> dict[str, Any]:
    """Peak memory above the imports, in a process of its own."""
    small = log.with_name("small.jsonl")
    with log.open("rb") as file:
        small.write_bytes(b"".join(file.readline() for _ in range(100)))
    command = [sys.executable, "-c", _MEMORY, str(log), str(small)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent.parent)
    peak = int(run.stdout)
    size = log.stat().st_size
    return row(
        "read_log(path).events(), peak memory",
        "the file's size",
        peak / size,
        1.3,
        False,
        f"{peak / 1e6:.0f} MB for {size / 1e6:.0f} MB",
    )


# --- live ---------------------------------------------------------------------------------------------


def delivered(count: int) -> list[Any]:
    """Events as a session delivers them: the recorded kinds, with a delta for every 24 characters."""
    from make_log import Maker

    from copilot_nb.events import UNSET, Event, from_line

    maker, events = Maker(), []
    maker.start()
    while len(events) < count:
        maker.lines.clear()
        maker.run()
        for event in map(from_line, maker.lines):
            if event.type == "assistant.message":
                text, message = event.data["content"], event.data["messageId"]
                for start in range(0, len(text), 24):
                    delta = {"messageId": message, "deltaContent": text[start : start + 24]}
                    events.append(
                        Event(
                            "assistant.message_delta",
                            delta,
                            maker.id(),
                            event.timestamp,
                            event.parent_id,
                            UNSET,
                            True,
                        )
                    )
            events.append(event)
    return events[:count]


def appending(count: int) -> list[dict[str, Any]]:
    """Appending to a live log, and its frame when it is short and when it is long."""
    from copilot_nb.frames import LiveLog

    block = delivered(20_000)

    def fill(times: int) -> LiveLog:
        log = LiveLog(Path("events.jsonl"))
        append = log.append
        for _ in range(times):
            for event in block:
                append(event)
        return log

    took = best({"append": lambda: fill(1)}, time.process_time, rounds=10)["append"]
    micro = took / len(block) * 1e6
    short, long = LiveLog(), fill(max(1, count // len(block)))
    for event in block[:1000]:
        short.append(event)
    short.events(), long.events()  # the first call imports pandas

    def after_one(log: LiveLog) -> Callable[[], Any]:
        def frame() -> Any:
            log.append(block[0])
            return log.events()

        return frame

    frames = best({"short": after_one(short), "long": after_one(long)}, time.perf_counter, rounds=15)
    size = len(long.events())
    return [
        row("append to a live log", "µs an event", micro, 4, False, f"{len(block)} events, deltas included"),
        row(
            f"events() of a live log of {size:,}",
            "ms, wall",
            frames["long"] * 1e3,
            40,
            False,
            f"at 1,000 events {frames['short'] * 1e3:.1f} ms",
        ),
    ]


# --- long files -----------------------------------------------------------------------------------------


def first_rows(log: Path) -> dict[str, Any]:
    """The first screenful of a long file."""
    from copilot_nb.frames import read_log

    def show() -> str:
        return read_log(log).head(1000)._repr_html_()

    took = best({"head": show}, time.perf_counter)["head"]
    return row(
        "first 1,000 rows on screen", "s, wall", took, 1, False, f"{log.stat().st_size / 1e6:.0f} MB file"
    )


def window(log: Path) -> dict[str, Any]:
    """A sorted and filtered screenful, when all is read."""
    from copilot_nb.frames import read_log

    view = read_log(log).window()
    view.rows(0, 60, sort=("ms", False))

    def scroll() -> Any:
        return view.rows(500, 560, sort=("ms", False))

    took = best({"rows": scroll}, time.perf_counter, rounds=10)["rows"]
    words = f"{view.count():,} events, sorted by duration"
    return row("60 rows of the event window", "ms, wall", took * 1e3, 50, False, words)


def fleet(log: Path) -> dict[str, Any]:
    """An aggregate by DuckDB, through our view and by hand."""
    import duckdb

    from copilot_nb.frames import read_logs

    raw = duckdb.connect()
    by_hand = (
        "SELECT data.toolName, count(*), sum(data.usage.inputTokens), max(timestamp) "
        f"FROM read_json('{log}', format = 'newline_delimited') GROUP BY 1"
    )
    by_view = "SELECT tool, count(*), sum(input_tokens), max(time) FROM events GROUP BY 1"
    fleet = read_logs(log, engine="duckdb")
    jobs = {"ours": lambda: fleet.sql(by_view), "raw": lambda: raw.execute(by_hand).df()}
    took = best(jobs, time.perf_counter)
    return row(
        "fleet aggregate, duckdb",
        "DuckDB's read_json on the same file",
        took["ours"] / took["raw"],
        1.3,
        False,
        f"{took['ours']:.2f} s against {took['raw']:.2f} s wall, {log.stat().st_size / 1e6:.0f} MB",
    )


def main() -> int:
    """Print the table; 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description="Logs to tables, measured.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    found = rows(parser.parse_args().quick)
    for line in found:
        mark = "ok  " if line["reached"] else "MISS"
        print(mark, "{name}: {ratio} ({goal}), {peer}; {detail}".format(**line))
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0 if all(line["reached"] for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
