"""The panel's Markdown beside markdown-it-py's, and what must never become markup."""

from __future__ import annotations

import pytest

from copilot_nb.widgets import assets

DOCUMENTS = [
    "Plain words.",
    "Two\nlines, and a hard  \nbreak.",
    "One paragraph.\n\nAnother one.",
    "# One\n\n## Two ##\n\n###### Six\n\nNot#a heading\n\n####### seven",
    "Title\n=====\n\nSecond\n------\n\ntext",
    "**bold** and *emphasis* and ***both*** and __b__ _e_",
    "snake_case_name and 2*3*4 and a * b * c and **not closed",
    "*a **b** c* and **a *b* c** ~~gone~~",
    "`code` and ``a ` b`` and `un closed",
    "`**not bold**` and \\*escaped\\* and \\_x\\_",
    "- one\n- two\n- three",
    "* one\n* two\n\n  more of two\n* three",
    "1. one\n2. two\n3. three",
    "7. seven\n8. eight",
    "- a\n  - b\n    - c\n- d",
    "- a\n\n- b\n\n- c",
    "1. a\n   - b\n   - c\n2. d",
    "- item\n\n  ```python\n  x = 1\n  ```\n- next",
    "text\n- list right after\n- two\n\nend",
    "text\n1. starts a list\n\ntext\n2. does not",
    "> quoted\n> more\n\nafter",
    "> lazy\ncontinues\n\n> - list\n> - in it",
    "```python\ndef f(x):\n    return x  # <b>\n```",
    "~~~\ntildes ``` inside\n~~~",
    "````\n```\ninner\n```\n````",
    "```\nnever closed\nstill code",
    "    indented code\n    more\n\nafter",
    "---\n\n***\n\n_ _ _",
    "| a | b |\n| --- | ---: |\n| 1 | 2 |\n| 3 | 4 |",
    "a | b\n--- | ---\n1 | 2\n\nafter",
    "| a | b |\n|---|---|\n| `x|y` | z\\|w |\n| only one |",
    "text before\n| a |\n| - |\n| 1 |",
    "[link](https://example.org) and [with title](https://example.org/a_b 'T')",
    "<https://example.org> and [a **b** c](https://example.org/(x))",
    "[not a link] and [neither](",
    "Mixed:\n\n1. **Bold** item with `code`\n2. Second\n\n   Paragraph in it\n\n> quote\n\nEnd.",
    "Line one\n\n- a\n- b\n\nLine two\n\n- c",
    "- [ ] open\n- [x] done",
    "Ends with spaces   ",
    "5 < 6 & 7 > 3, a&b;",
    "* * *\n- - -\n+ item",
    "a\n\n\n\nb",
    "**Note:** word.\n**Second:** word",
    "(*em*), \"**strong**\", 'a_b_c'",
]

HARM = [
    "<script>window.__bad = 1</script>",
    '<img src=x onerror="window.__bad = 1">',
    "[click](javascript:window.__bad=1)",
    "[click](data:text/html,<script>window.__bad=1</script>)",
    "![image](https://example.org/track.png)",
    "<svg onload=window.__bad=1>",
    "`<img src=x onerror=window.__bad=1>`",
    "```\n</code><script>window.__bad=1</script>\n```",
    "| <img src=x onerror=window.__bad=1> |\n| --- |\n| <b>x</b> |",
    "<a href='javascript:window.__bad=1'>x</a>",
    "[a](vbscript:x) [b](//example.org) [c](file:///etc/passwd)",
    "\u202etext \u0000 \ud83d",
]

NORMAL = """
html => {
  const doc = typeof html === 'string' ? new DOMParser().parseFromString(html, 'text/html').body : html;
  const walk = node => {
    const out = [];
    const text = part => typeof part === 'string';
    const add = part => {
      if (text(part) && text(out.at(-1))) out[out.length - 1] += part; else out.push(part);
    };
    for (const kid of node.childNodes) {
      if (kid.nodeType === 3) { add(kid.data); continue; }
      const name = kid.tagName.toLowerCase();
      if (name === 'button') continue;
      if (kid.matches('.cnb-tight, .cnb-code, .cnb-tablewrap, .cnb-md, [class^=tok-], thead, tbody')) {
        walk(kid).forEach(add); continue;
      }
      add([name, walk(kid)]);
    }
    const inPre = node.closest('pre');
    const tidy = part => inPre ? part.replace(/\\n$/, '') : part.replace(/\\s+/g, ' ').trim();
    return out.map(part => text(part) ? tidy(part) : part).filter(part => part !== '');
  };
  return walk(doc);
}
"""


@pytest.fixture(scope="module")
def md(browser):
    """A page with the panel's Markdown module on it."""
    page = browser.context.new_page()
    done: dict[str, str] = {}
    assets._load("markdown.js", done, ())
    page.goto("about:blank")
    page.add_script_tag(
        content="\n".join(done.values()) + f";window.md = _markdown_js; window.normal = {NORMAL.strip()};"
    )
    yield page
    page.close()


def test_same_structure_as_markdown_it(md):
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    different = []
    for text in DOCUMENTS:
        theirs = md.evaluate("html => normal(html)", parser.render(text))
        ours = md.evaluate("text => normal(md.markdown(text))", text)
        if ours != theirs:
            different.append((text, ours, theirs))
    assert different == []


@pytest.mark.parametrize("size", [1, 3, 17])
def test_growing_text_ends_like_whole_text(md, size):
    """However the pieces are cut, the result is that of the whole."""
    different = []
    for text in DOCUMENTS:
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        grown, whole = md.evaluate(
            """([pieces, text]) => { const g = new md.Growing(''); for (const p of pieces) g.append(p);
            g.finish(text); g.draw(); return [normal(g.el), normal(md.markdown(text))]; }""",
            [pieces, text],
        )
        if grown != whole:
            different.append((text, grown, whole))
    assert different == []


def test_nothing_becomes_markup(md):
    """52: no element, no address and no image comes out of a model's text but what Markdown itself makes."""
    for text in HARM:
        found = md.evaluate(
            """text => { const el = md.markdown(text); document.body.replaceChildren(el);
            return [...el.querySelectorAll('script, img, svg:not(.cnb-i), iframe, b')].map(e => e.outerHTML)
              .concat([...el.querySelectorAll('a')].map(a => a.getAttribute('href'))
                .filter(href => !/^https?:/.test(href))); }""",
            text,
        )
        assert found == [], text
    md.wait_for_timeout(300)
    assert md.evaluate("window.__bad") is None
