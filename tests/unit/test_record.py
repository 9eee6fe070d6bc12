"""The static record: escaped, small, complete, readable in every form."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import nbformat
import pytest

from copilot_nb.errors import StoreError, UsageError
from copilot_nb.events import EventSource
from copilot_nb.record import bundle, export, record_html, record_markdown, record_text
from copilot_nb.state import SessionState

EVIL = '<img src=x onerror=alert(1)></script><script>alert(2)</script> "quoted" \' & [x](javascript:alert(3))'


class Source:
    model_label = "demo model, no LLM"

    def __init__(self, state):
        self.state = state


def session(said="An answer.", prompt="Do it.", turns=2, result="4", detail=None):
    source, state = EventSource(), SessionState()

    def feed(type, **data):
        state.apply(source.stored(type, data))

    feed("session.start", sessionId="s1", selectedModel="demo")
    feed("user.message", content=prompt, delivery="idle", messageId="m")
    for n in range(turns - 1):
        feed("assistant.turn_start", turnId=str(n))
        feed("assistant.message", messageId=f"a{n}", content="Looking.", toolRequests=[])
        feed("tool.execution_start", toolCallId=f"c{n}", toolName="python", arguments={"code": "2 + 2"})
        outcome = {"content": result} | ({"detailedContent": detail} if detail else {})
        feed("tool.execution_complete", toolCallId=f"c{n}", success=True, result=outcome)
        feed("assistant.turn_end", turnId=str(n))
    feed("jupyter.queue", op="add", lane="steering", messageId="st", prompt="use the median")
    feed("assistant.turn_start", turnId="9")
    feed("user.message", content="use the median", delivery="steering", messageId="st")
    feed("assistant.message", messageId="z", content=said, toolRequests=[])
    feed("assistant.turn_end", turnId="9")
    feed("jupyter.queue", op="add", lane="queue", messageId="q", prompt="later")
    feed("jupyter.queue", op="remove", messageId="q", reason="cleared")
    feed("session.idle", mode="interactive")
    return state


class Reader(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("br", "img", "rect", "meta", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_nothing_of_a_run_becomes_markup():
    """Field case 52: text of a model, a tool or a person may not run in a saved notebook."""
    page = Reader(record_html(session(said=EVIL, prompt=EVIL, result=EVIL)))
    assert page.open == []
    assert not {"script", "img", "iframe", "object", "a"} & set(page.tags)
    assert not [
        name for name, value in page.attributes if name.startswith("on") or "javascript" in str(value)
    ]


def test_markdown_form_has_no_html_either():
    """Lab does not sanitise Markdown output once a cell was executed (jupyter-facts Q8)."""
    from markdown_it import MarkdownIt

    text = record_markdown(session(said=EVIL, prompt=EVIL, result=EVIL))
    html = MarkdownIt("commonmark", {"html": True}).render(text)
    assert not {"script", "img"} & set(Reader(html).tags)


def test_every_form_has_the_answer_the_steer_and_what_was_discarded():
    forms = bundle(session(), model="demo model, no LLM")
    assert set(forms) == {"text/html", "text/markdown", "text/plain"}
    for text in forms.values():
        assert "An answer." in text
        assert "use the median" in text
        assert "demo model, no LLM" in text
        assert "later" in text


@pytest.mark.parametrize(("turns", "size"), [(400, 3_000), (5, 900_000), (2, 5)])
def test_at_most_200_kb(turns, size):
    """A long run must not make the notebook unreadable; the answer stays."""
    text = record_html(session(turns=turns, result="x " * size))
    assert len(text.encode()) <= 200_000
    assert "An answer." in text


def test_a_huge_answer_is_cut_and_says_so():
    text = record_html(session(said="word " * 200_000))
    assert len(text.encode()) <= 200_000
    assert "more characters" in text


def test_reads_without_style_and_svg():
    """GitHub removes both: what is left must still tell what happened."""
    text = record_html(session())
    bare = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.S)
    words = re.sub(r"<[^>]+>", " ", bare)
    assert "finished" in words
    assert "Turns" in words
    assert "1 steer" in words


def test_diffs_are_shown_as_diffs():
    detail = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new"
    text = record_html(session(detail=detail))
    assert '<span class="add">+new</span>' in text
    assert "+1 −1" in text  # noqa: RUF001


def test_export(tmp_path):
    """Each ending makes a file that its own reader accepts."""
    state = session()
    page = export(Source(state), tmp_path / "run.html").read_text()
    assert page.startswith("<!doctype html>")
    Reader(page)
    assert "An answer." in export(Source(state), tmp_path / "run.md").read_text()
    book = nbformat.read(export(Source(state), tmp_path / "run.ipynb"), 4)
    nbformat.validate(book)
    assert book.cells[2].source == "%%copilot\nDo it."
    assert book.cells[3].source == "%%steer\nuse the median"
    assert "An answer." in json.dumps(book.cells[2].outputs[0]["data"])


def test_export_says_what_is_wrong(tmp_path):
    with pytest.raises(UsageError, match="end the name in"):
        export(Source(session()), tmp_path / "run.pdf")
    with pytest.raises(StoreError, match="Cannot write"):
        export(Source(session()), tmp_path / "no" / "run.md")


def test_nothing_sent_yet():
    state = SessionState()
    assert "Nothing has been sent yet." in record_html(state)
    assert "Nothing has been sent yet." in record_text(state)
