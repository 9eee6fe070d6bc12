"""Loading and unloading, in real kernels (jupyter facts Q9, Q10; issue 2, Must show 5)."""

import pytest

HEAVY = (
    "pandas",
    "pyarrow",
    "openai",
    "copilot",
    "pydantic_ai",
    "duckdb",
    "dask",
    "matplotlib",
    "nest_asyncio2",
)


@pytest.mark.parametrize("version", ["6.29.5", "7.4.0"])
def test_loading_brings_in_nothing_heavy(start, version):
    kernel = start(version)
    before = kernel.value("__import__('sys').modules.keys().__len__()")
    kernel.ok("%load_ext copilot_nb")
    loaded = kernel.value(f"[name for name in {HEAVY!r} if name in __import__('sys').modules]")
    assert loaded == []  # ipykernel 7.3+ imports nest_asyncio2 only for %gui
    assert kernel.value("'nest_asyncio' in __import__('sys').modules") is False
    assert before > 0


@pytest.mark.parametrize("version", ["6.29.5", "7.4.0"])
def test_what_the_first_cell_needs_comes_while_the_kernel_is_idle(start, version):
    kernel = start(version)
    kernel.ok("%load_ext copilot_nb")
    there = "[name for name in warmup.FIRST_CELL if name in sys.modules] == list(warmup.FIRST_CELL)"
    kernel.ok("import sys; from copilot_nb.notebook import warmup")
    kernel.until(there)
    assert kernel.value(f"[name for name in {HEAVY!r} if name in sys.modules]") == []


def test_unloading_leaves_the_rest(start):
    kernel = start("7.4.0")
    kernel.ok("%load_ext copilot_nb\n%unload_ext copilot_nb")
    kernel.ok("import asyncio; await asyncio.sleep(0.5)")
    assert kernel.value("'copilot_nb.widgets.cell' in __import__('sys').modules") is False


def test_loading_twice_gives_one_of_everything(kernel):
    kernel.ok("import copilot_nb; copilot_nb.load_ipython_extension(get_ipython())")
    kernel.ok("%load_ext copilot_nb")
    kernel.ok("from copilot_nb.notebook.waiting import transform")
    assert kernel.value("get_ipython().input_transformers_post.count(transform)") == 1
    assert kernel.value("len(get_ipython().Completer.custom_matchers)") == 1


def test_unloading_removes_everything(kernel):
    look = (
        "[len(get_ipython().input_transformers_post), len(get_ipython().Completer.custom_matchers),"
        " sum('copilot' in n or n in ('steer', 'enqueue', 'allow', 'deny')"
        " for kind in get_ipython().magics_manager.magics.values() for n in kind),"
        " 'CopilotMagics' in get_ipython().magics_manager.registry,"
        " sum(type(c).__name__ == 'CopilotMagics' for c in get_ipython().configurables)]"
    )
    assert kernel.value(look) == [1, 1, 8, True, 1]
    kernel.ok("%unload_ext copilot_nb")
    assert kernel.value(look) == [0, 0, 0, False, 0]
    kernel.ok("%load_ext copilot_nb")
    assert kernel.value(look) == [1, 1, 8, True, 1]


def test_configuration_and_reload(kernel):
    kernel.ok("%config CopilotMagics.model = 'nobody'")
    assert "no model 'nobody'" in kernel.run("%%copilot\nhello").error["evalue"]
    kernel.ok("%reload_ext copilot_nb")
    assert "CopilotMagics" in kernel.ok("%config").stdout


def test_completion_knows_options_and_words(kernel):
    def complete(code):
        reply = kernel.client.complete(code, reply=True, timeout=30)["content"]
        return reply["matches"], code[reply["cursor_start"] :]

    assert complete("%%copilot --max")[0] == ["--max-seconds", "--max-tokens", "--max-turns"]
    assert "queue" in complete("%copilot ")[0]
    assert complete("%copilot queue ")[0] == ["clear", "edit", "list", "mv", "pause", "resume", "rm", "steer"]
