"""The transformer that lets a cell wait (jupyter facts Q3), against IPython's own transformer."""

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from copilot_nb.notebook.waiting import transform


def cell(text):
    return "".join(transform(TransformerManager().transform_cell(text).splitlines(keepends=True)))


@pytest.fixture(autouse=True)
def attended(monkeypatch):
    monkeypatch.setenv("COPILOT_NB_WAIT", "0")


@pytest.mark.parametrize(
    "text",
    [
        "%copilot wait",
        "x = 1\n%copilot wait\ny = 2",
        "for i in range(2):\n    %copilot wait",
        "r = %copilot queue list",
        "%%copilot --wait\nit's a \"prompt\"\nwith {x} $y 'quotes'\n",
        "%%copilot -m demo --wait\n\nafter a blank line",
        "%copilot queue edit 3 it's new",
    ],
)
def test_waiting_magics_are_awaited(text):
    code = cell(text)
    assert code.count("await ") == 1
    compile(code, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(
    "text",
    [
        "%%copilot\nplain",
        "%%copilot --no-wait\nplain",
        "%%copilot\nwith --wait in the body",
        "%%copilot # trailing --wait\nis an error that the magic reports",
        "%copilot status",
        "%copilot",
        "%steer --wait",
        "print('%copilot wait')",
        's = """\n%copilot wait\n"""',
        "get_ipython().run_line_magic('copilot', name)",
        "def f():\n    %copilot wait",
    ],
)
def test_everything_else_is_left_alone(text):
    assert "await" not in cell(text).replace("--wait", "").replace("%copilot wait", "")


def test_the_body_arrives_as_written():
    body = "it's \"x\"\n\n  {y} $z \\n 'q'\n"
    call = ast.parse(cell("%%copilot --wait\n" + body)).body[0].value.value
    assert [ast.literal_eval(argument) for argument in call.args] == ["--wait", body]


def test_headless_waits_by_itself(monkeypatch):
    monkeypatch.setenv("COPILOT_NB_WAIT", "1")
    assert "await " in cell("%%copilot\nplain")
    assert "await " not in cell("%%copilot --no-wait\nplain")
