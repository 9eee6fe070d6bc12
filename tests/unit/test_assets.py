"""The front end as one module: what the assembler must keep right."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from copilot_nb.widgets import assets

STATIC = files("copilot_nb.widgets").joinpath("static")
NAMES = sorted(item.name for item in STATIC.iterdir())


def test_every_file_is_in_the_module_once():
    """A module that nobody imports, or a style that is not listed, would silently not ship."""
    text = assets.esm()
    for name in NAMES:
        if name.endswith((".js", ".json")) and name != "main.js":
            assert text.count(f"const {assets._variable(name)} = ") == 1, name
    assert sorted(name for name in NAMES if name.endswith(".css")) == sorted(assets.STYLES)


def test_no_import_is_left_and_one_default_export():
    """anywidget loads the text from a blob URL, where relative imports do not resolve."""
    text = assets.esm()
    assert not re.search(r"^\s*import\b.* from ", text, re.M)
    assert re.findall(r"^export\b.*", text, re.M) == ["export default {"]


def test_it_parses(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    path = tmp_path / "panel.mjs"
    path.write_text(assets.esm())
    result = subprocess.run([node, "--check", str(path)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_every_text_that_is_used_exists_and_the_other_way_round():
    """A key that is misspelt shows as a key; one that nobody uses is translated for nothing."""

    def flat(value, path=""):
        if isinstance(value, dict) and not set(value) <= {"one", "many"}:
            for key, part in value.items():
                yield from flat(part, f"{path}.{key}" if path else key)
        else:
            yield path

    keys = set(flat(assets.texts()))
    code = "\n".join(STATIC.joinpath(name).read_text() for name in NAMES if name.endswith(".js"))
    used = set(re.findall(r"\bsay\(\s*\"([\w.]+)\"", code)) | set(
        re.findall(r"plural\([^()]*(?:\([^()]*\))?[^()]*, \"([\w.]+)\"\)", code)
    )
    assert used <= keys


def test_nothing_from_the_network_and_no_markup_from_data():
    """Text of models, tools and files is text: the front end never parses it as HTML."""
    code = assets.esm()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        " fetch(",
        "XMLHttpRequest",
        "import(",
    ):
        assert word not in code, word
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", code)
