"""Windows, comparisons, plots, SVG and the shell commands."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pandas as pd
import pytest
from logs import LogWriter

from copilot_nb.errors import UsageError
from copilot_nb.events import Event
from copilot_nb.frames import LiveLog, compare, read_log, timeline_svg


def session(answer: str = "done", calls: tuple[str, ...] = ("c1",)) -> LogWriter:
    log = LogWriter().start()
    log.user("first", run="i1")
    log.turn("0", "i1", text="same", calls=("c0",))
    log.add("pending_messages.modified", ephemeral=True)
    log.user("second", "queued", run="i2")
    log.turn("0", "i2", text=answer, calls=calls)
    log.add("jupyter.queue", {"op": "add", "lane": "steering", "messageId": "s", "prompt": "steer"})
    log.user("steer", "steering", "0", "i2", messageId="s")
    return log


def both(log: LogWriter, tmp_path):
    """The log of a file and the same live."""
    live = LiveLog()
    for line in log.lines:
        live.append(Event.from_dict(line))
    return read_log(log.write(tmp_path / "log.jsonl")), live


def test_windows_show_what_the_events_say(tmp_path):
    for log in both(session(), tmp_path):
        window = log.window()
        events = log.events()
        rows = window.rows(0, 1000)
        assert [row["id"] for row in rows] == list(events["id"])
        assert rows[0]["time"] == 0.0 and rows[1]["time"] == 1.0
        assert window.count() == len(events)
        assert window.count(ephemeral=False) == len(events) - 1
        assert sum(window.type_counts().values()) == len(events)
        tools = window.rows(0, 10, types={"tool.execution_complete"})
        assert [(row["tool"], row["ms"], row["run"]) for row in tools] == [
            ("echo", 1000.0, 0),
            ("echo", 1000.0, 1),
        ]
        assert [row["seq"] for row in window.rows(0, 10, text="SECOND")] == [
            row["seq"] for row in rows if row["summary"] == "second"
        ]
        starts = window.rows(0, 1, types={"tool.execution_start"})
        assert starts[0]["summary"] == '{"text":"c0"}'
        assert window.rows(3, 5) == rows[3:5]
        for column in ("seq", "time", "type", "run", "turn", "tool", "ms", "tokens"):
            up = [row[column] for row in window.rows(0, 1000, sort=(column, True))]
            down = [row[column] for row in window.rows(0, 1000, sort=(column, False))]
            known = [value for value in up if value is not None]
            assert known == sorted(known)
            assert [value for value in down if value is not None] == known[::-1]
            assert up[len(known) :] == [None] * (len(up) - len(known)) == down[len(known) :]
        with pytest.raises(UsageError, match="Cannot sort"):
            window.rows(0, 1, sort=("nope", True))


def test_a_window_follows_a_running_session():
    log, live = session(), LiveLog()
    window = live.window()
    for number, line in enumerate(log.lines, 1):
        live.append(Event.from_dict(line))
        assert window.count() == number
        assert window.rows(number - 1, number)[0]["id"] == line["id"]
    assert window.rows(0, 5, sort=("ms", False))[0]["ms"] == 5000.0


def test_the_head_of_a_long_file_does_not_read_it_all(tmp_path):
    log = LogWriter().start()
    for number in range(3000):
        log.add("user.message", {"content": "x" * 200, "n": number})
    read = read_log(log.write(tmp_path / "log.jsonl"))
    head = read.head(100)
    assert len(head) == 100 and not read.complete
    rows = read.window().rows(0, 50)
    assert len(rows) == 50 and not read.complete
    assert len(read.events()) == 3001 and read.complete
    assert len(read.runs()) == 3000
    assert head.equals(read.events().iloc[:100])


def test_comparing_two_sessions(tmp_path):
    a = read_log(session().write(tmp_path / "a.jsonl"))
    b = read_log(session("other", ("c1", "c2")).write(tmp_path / "b.jsonl"))
    found = compare(a, b)
    assert found.parted == 1
    assert list(found.turns["same"]) == [True, False]
    assert list(found.turns["shared"]) == [False, False]
    assert found.turns["tools_b"].iloc[1] == "echo, echo"
    assert "-done" in found.diff() and "+other" in found.diff()
    assert found.totals()["tools"].to_dict() == {"a": 2, "b": 3}
    assert "part at run 1, turn 0" in str(found)
    same = a.compare(a)
    assert same.parted is None and same.turns["shared"].all() and "The same" in str(same)


def test_comparing_forks(tmp_path):
    """Forks share the very events of their common past (reference §18)."""
    past = LogWriter().start()
    past.user("first", run="i1")
    past.turn("0", "i1")
    fork = LogWriter()
    fork.lines, fork.parent, fork.at = list(past.lines), past.parent, past.at
    past.user("left", run="i2")
    past.turn("0", "i2")
    past.turn("1", "i2")
    fork.user("right", run="i3")
    fork.turn("0", "i3")
    found = compare(past.write(tmp_path / "a.jsonl"), fork.write(tmp_path / "b.jsonl"))
    assert list(found.turns["shared"]) == [True, False, False]
    assert list(found.turns["there_b"]) == [True, True, False]
    assert found.parted == 1 and "-left" in found.diff()


def test_sessions_part_where_a_steer_landed_not_before(tmp_path):
    """A steer is no part of the turns that ended before it came."""
    paths = []
    for steered in (False, True):
        log = LogWriter().start()
        log.user("go")
        log.turn("0", calls=("c",))
        log.add("assistant.turn_start", {"turnId": "1", "interactionId": "i1"})
        if steered:
            log.user("hurry", "steering", "1")
        log.add("assistant.message", {"content": "done", "turnId": "1", "interactionId": "i1"})
        log.add("assistant.turn_end", {"turnId": "1"})
        paths.append(log.write(tmp_path / f"{steered}.jsonl"))
    found = compare(*paths)
    assert list(found.turns["same"]) == [True, False] and found.parted == 1
    assert list(found.turns["prompt_b"]) == ["go", "go\nhurry"]
    assert "+hurry" in found.diff() and found.diff(0) == ""
    with pytest.raises(UsageError, match="2 turns were compared"):
        found.diff(2)


def test_turns_without_a_start_are_not_the_same_events(tmp_path):
    """Of both only the end is in the log, so neither has an event id that could be shared, nor tokens."""
    for name in "ab":
        log = LogWriter()
        log.add("assistant.turn_end", {"turnId": "3"})
        log.write(tmp_path / name)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert list(found.turns["shared"]) == [False]
    assert found.turns[["tokens_a", "duration_a"]].isna().all(axis=None)
    assert list(found.totals()["tokens"]) == [0, 0]


def test_plots_take_an_axes_and_give_it_back(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for log in (*both(session(), tmp_path), read_log(io.BytesIO(b""))):
        for plot in (log.plot, log.plot.tokens, log.plot.tools, log.plot.waits):
            figure, ax = plt.subplots()
            assert plot(ax) is ax
            assert ax.get_title() and ax.get_xlabel()
            figure.canvas.draw()
            plt.close(figure)
    assert log.plot().get_xlabel().endswith("(s)")
    alone = LogWriter()  # a log that begins with a call, of a tool whose name would be a formula
    alone.add("tool.execution_start", {"toolCallId": "c", "toolName": "$a^$", "arguments": {}})
    alone.add("tool.execution_complete", {"toolCallId": "c", "success": True})
    log = read_log(alone.write(tmp_path / "alone.jsonl"))
    for plot in (log.plot, log.plot.tools):
        plot().figure.canvas.draw()
    assert log.plot().get_xlim()[1] >= 1
    plt.close("all")


def test_the_svg_needs_no_extra_and_trusts_no_text(tmp_path):
    log = session()
    evil = '"><script>alert(1)</script>\x00'
    log.add("tool.execution_start", {"toolCallId": "e", "toolName": evil, "arguments": {}})
    log.add("tool.execution_complete", {"toolCallId": "e", "success": True})
    for source in both(log, tmp_path):
        text = timeline_svg(source)
        root = ET.fromstring(text)
        assert root.tag.endswith("svg")
        assert "<script" not in text and "style" not in text and "currentColor" in text
        titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
        assert any("echo: ok" in title for title in titles)
    assert ET.fromstring(timeline_svg(read_log(io.BytesIO(b"")))) is not None


def shell(*arguments: str, **env: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "copilot_nb", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **env}
    )


def test_the_shell_shows_any_text_on_any_terminal(tmp_path):
    """A terminal, or a pipe, whose encoding lacks characters of the log."""
    log = LogWriter().start()
    log.user("caf\u00e9 \u2713 " + "x" * 100)
    path = str(log.write(tmp_path / "log.jsonl"))
    for form in ([], ["--csv"], ["--json"]):
        shown = shell("log", path, "--table", "messages", *form, PYTHONIOENCODING="ascii:strict")
        assert shown.returncode == 0 and r"\u2713" in shown.stdout, shown.stderr


def test_the_shell_commands(tmp_path):
    path = session().write(tmp_path / "session-state" / "s1" / "events.jsonl")
    path.write_text(path.read_text() + "broken\n")
    home = ("--home", str(tmp_path))
    shown = shell("log", "s1", *home)
    assert shown.returncode == 0 and "completed" in shown.stdout
    assert "1 odd line" in shown.stderr
    rows = [
        json.loads(line) for line in shell("log", str(path), "--table", "tools", "--json").stdout.splitlines()
    ]
    assert [row["tool"] for row in rows] == ["echo", "echo"] and rows[0]["duration"] == 1.0
    csv = pd.read_csv(io.StringIO(shell("log", "s1", "--table", "events", "--csv", *home).stdout))
    assert len(csv) == len(session().lines)
    csv = pd.read_csv(io.StringIO(shell("log", "s1", "--table", "tools", "--csv", *home).stdout))
    assert list(csv["duration"]) == [1.0, 1.0]  # as in JSON: seconds, not words
    target = tmp_path / "out.parquet"
    assert shell("log", "s1", "--parquet", str(target), *home).returncode == 0
    assert len(pd.read_parquet(target)) == 2
    problems = shell("log", "s1", "--table", "problems", "--json", *home).stdout
    assert json.loads(problems)["line"] == len(session().lines) + 1
    listed = shell("sessions", *home)
    assert "s1" in listed.stdout and "first" in listed.stdout
    for nowhere in (tmp_path, tmp_path / "none" / "out.parquet"):
        refused = shell("log", "s1", "--parquet", str(nowhere), *home)
        assert refused.returncode == 2 and refused.stderr.splitlines()[-1].startswith("copilot-nb: ")
    missing = shell("log", "nobody", *home)
    assert missing.returncode == 2 and "no session 'nobody'" in missing.stderr
