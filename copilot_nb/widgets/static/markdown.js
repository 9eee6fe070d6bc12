// Markdown as DOM nodes, never as HTML: what a model writes cannot become markup. Raw HTML stays text, links open only
// web and mail addresses, images are links, math is its source. A test holds it beside markdown-it-py.
import { h } from "./dom.js";
import { codeBlock } from "./code.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( {0,3})([-+*]|\d{1,9}[.)])(?:([ \t]+)(.*)|[ \t]*)$/;
const QUOTE = /^ {0,3}>[ ]?/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const MATH = /^ {0,3}\$\$/;

// --- blocks: text -> [{type, …, start, end}], lines counted from 0 ---
export function blocks(text) {
  return parse(text.replace(/\r\n?/g, "\n").split("\n"));
}

function starts(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || MATH.test(line);
}

function parse(lines) {
  const out = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    if (!line.trim()) { i += 1; continue; }
    const start = i;
    let m;
    if (/^(?: {4}|\t)/.test(line)) {
      while (i < lines.length && (/^(?: {4}|\t)/.test(lines[i]) || !lines[i].trim())) i += 1;
      const body = lines.slice(start, i).map(l => l.replace(/^(?: {4}|\t)/, ""));
      while (body.length && !body[body.length - 1].trim()) body.pop();
      out.push({ type: "code", text: body.join("\n"), lang: "", start, end: i });
    } else if ((m = FENCE.exec(line))) {
      const [mark, indent] = [m[1], line.search(/\S/)];
      const close = new RegExp(`^ {0,3}${mark[0] === "`" ? "`" : "~"}{${mark.length},}[ \\t]*$`);
      i += 1;
      const body = [];
      while (i < lines.length && !close.test(lines[i])) body.push(lines[i++].replace(new RegExp(`^ {0,${indent}}`), ""));
      const closed = i < lines.length;
      if (closed) i += 1;
      out.push({ type: "code", text: body.join("\n"), lang: m[2].trim().split(/\s/)[0] || "", open: !closed, start, end: i });
    } else if (MATH.test(line)) {
      i += 1;
      if (!/\$\$[^$]*\$\$\s*$/.test(line)) {
        while (i < lines.length && !/\$\$\s*$/.test(lines[i])) i += 1;
        i = Math.min(lines.length, i + 1);
      }
      out.push({ type: "math", text: lines.slice(start, i).join("\n"), start, end: i });
    } else if ((m = HEADING.exec(line))) {
      i += 1;
      out.push({ type: "heading", level: m[1].length, text: m[2] || "", start, end: i });
    } else if (RULE.test(line)) {
      i += 1;
      out.push({ type: "rule", start, end: i });
    } else if (QUOTE.test(line)) {
      const body = [];
      while (i < lines.length && (QUOTE.test(lines[i]) || (lines[i].trim() && !starts(lines[i]) && !ITEM.test(lines[i]) && body.at(-1)?.trim())))
        body.push(lines[i++].replace(QUOTE, ""));
      out.push({ type: "quote", kids: parse(body), start, end: i });
    } else if ((m = ITEM.exec(line))) {
      i = list(lines, i, m, out);
    } else if (tableAt(lines, i)) {
      i = table(lines, i, out);
    } else {
      i = paragraph(lines, i, out);
    }
  }
  return out;
}

const tableAt = (lines, i) => lines[i].includes("|") && i + 1 < lines.length && DELIMITERS.test(lines[i + 1]) && cells(lines[i]).length === cells(lines[i + 1]).length;

function paragraph(lines, i, out) {
  const start = i;
  const body = [];
  while (i < lines.length && lines[i].trim()) {
    const line = lines[i];
    if (i > start) {
      const under = /^ {0,3}(=+|-+)[ \t]*$/.exec(line);
      if (under) {
        out.push({ type: "heading", level: under[1][0] === "=" ? 1 : 2, text: body.join("\n"), start, end: i + 1 });
        return i + 1;
      }
      const item = ITEM.exec(line);
      if (starts(line) || tableAt(lines, i) || (item && item[4]?.trim() && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2])))) break;
    }
    body.push(line.replace(/^[ \t]+/, ""));
    i += 1;
  }
  out.push({ type: "p", text: body.join("\n"), start, end: i });
  return i;
}

function list(lines, i, first, out) {
  const start = i;
  const kind = mark => (/\d/.test(mark) ? mark.at(-1) : mark);
  const same = kind(first[2]);
  const items = [];
  let loose = false;
  while (i < lines.length) {
    const m = ITEM.exec(lines[i]);
    if (!m || kind(m[2]) !== same || RULE.test(lines[i])) break;
    const pad = !m[3] || m[3].length > 4 || !m[4] ? 1 : m[3].replace("\t", "    ").length;
    const indent = m[1].length + m[2].length + pad;
    const body = [m[4] == null ? "" : (m[3].length > 4 ? m[3].slice(1) : "") + m[4]];
    i += 1;
    let blank = false;
    while (i < lines.length) {
      const line = lines[i].replace(/\t/g, "    ");
      if (!line.trim()) {
        if (body.length === 1 && !body[0].trim()) break; // an item that begins with an empty line ends with the next
        blank = true; body.push(""); i += 1; continue;
      }
      if (line.search(/\S/) >= indent) {
        if (blank && outside(body)) loose = true;
        blank = false; body.push(line.slice(indent)); i += 1; continue;
      }
      if (blank || ITEM.test(lines[i]) || starts(lines[i]) || !lazy(body)) break;
      body.push(lines[i++].trimStart());
    }
    while (body.length && !body.at(-1).trim()) body.pop();
    items.push(parse(body));
    const next = i < lines.length && ITEM.exec(lines[i]);
    if (blank && next && kind(next[2]) === same && !RULE.test(lines[i])) loose = true;
    if (!next && i < lines.length && !lines[i].trim()) { i += 1; if (!ITEM.test(lines[i] ?? "")) break; loose = true; }
  }
  out.push({ type: "list", ordered: /\d/.test(first[2]), from: parseInt(first[2], 10), items, loose, start, end: i });
  return i;
}

// Blank lines inside a fence or a deeper list do not make the outer list loose.
function outside(body) {
  const last = parse(body).at(-1);
  return !(last && (last.type === "list" || (last.type === "code" && last.open)));
}
const lazy = body => parse(body).at(-1)?.type === "p" || parse(body).at(-1)?.type === "quote";

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return text.split(/(?<!\\)\|/).map(cell => cell.trim().replace(/\\\|/g, "|"));
}
function table(lines, i, out) {
  const start = i;
  const head = cells(lines[i]);
  const align = cells(lines[i + 1]).map(c => (/^:.*:$/.test(c) ? "center" : c.endsWith(":") ? "right" : c.startsWith(":") ? "left" : ""));
  const rows = [];
  for (i += 2; i < lines.length && lines[i].trim() && !starts(lines[i]) && !ITEM.test(lines[i]); i += 1) {
    const row = cells(lines[i]);
    rows.push(head.map((_, k) => row[k] ?? ""));
  }
  out.push({ type: "table", head, align, rows, start, end: i });
  return i;
}

// --- inline: text -> nodes ---
const SAFE = /^(?:https?:|mailto:)/i;
const PIECE = /(`+)|\\([!-/:-@[-`{-~]|\n)|(!?\[)|<((?:https?|mailto):[^\s<>]*)>|(\*+|_+|~~)|( *\n)|(\$)/;

export function inline(text) {
  const out = []; // nodes, strings and open delimiters {mark, n, at}
  const opens = [];
  let last = " ";
  let rest = text;
  const push = piece => { if (typeof piece === "string" && typeof out.at(-1) === "string") out[out.length - 1] += piece; else out.push(piece); };
  while (rest) {
    const m = PIECE.exec(rest);
    if (!m) { push(rest); break; }
    if (m.index) { push(rest.slice(0, m.index)); last = rest[m.index - 1]; }
    rest = rest.slice(m.index);
    let used = m[0].length;
    if (m[1]) {
      const close = new RegExp(`(?<!\`)\`{${m[1].length}}(?!\`)`);
      const end = rest.slice(used).search(close);
      if (end < 0) push(m[0]);
      else {
        let code = rest.slice(used, used + end).replace(/\n/g, " ");
        if (/^ .* $/.test(code) && code.trim()) code = code.slice(1, -1);
        push(h("code", { text: code }));
        used += end + m[1].length;
      }
    } else if (m[2]) push(m[2] === "\n" ? h("br") : m[2]);
    else if (m[3]) {
      const link = LINK.exec(rest.slice(m[3].length - 1));
      if (link) { push(anchor(link[1], link[2] ?? link[3])); used = m[3].length - 1 + link[0].length; } else push(m[0]);
    } else if (m[4]) push(anchor(m[4], m[4], true));
    else if (m[5]) {
      const next = rest[used] ?? " ";
      delimiter(m[5], last, next, out, opens);
    } else if (m[6]) push(m[6].length > 2 ? h("br") : "\n");
    else if (m[7]) {
      const math = /^\$(?=\S)[^$\n]*?\S\$(?!\d)|^\$\S\$(?!\d)/.exec(rest); // kept as it is, stars and all
      push(math ? math[0] : "$");
      if (math) used = math[0].length;
    }
    last = rest[used - 1];
    rest = rest.slice(used);
  }
  return out.map(piece => (piece.mark ? piece.mark.repeat(piece.n) : piece));
}
const LINK = /^\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/;

function anchor(label, href, plain) {
  const kids = plain ? [label] : inline(label);
  if (!SAFE.test(href)) return h("span", { class: "cnb-nolink", title: href }, kids);
  return h("a", { href, target: "_blank", rel: "noopener noreferrer" }, kids);
}

// Emphasis by the rule of flanking: an opening run touches text on its right, a closing one on its left.
function delimiter(run, before, after, out, opens) {
  const space = c => /\s/.test(c);
  const punct = c => /[!-/:-@[-`{-~\u2010-\u2027\u3001-\u3003]/.test(c);
  const left = !space(after) && (!punct(after) || space(before) || punct(before));
  const right = !space(before) && (!punct(before) || space(after) || punct(after));
  const word = run[0] === "_";
  const canOpen = left && (!word || !right || punct(before));
  const canClose = right && (!word || !left || punct(after));
  let n = run.length;
  while (canClose && n > 0) {
    let k = opens.length - 1;
    while (k >= 0 && !(opens[k].mark === run[0] && closes(opens[k], n, canOpen))) k -= 1;
    if (k < 0) break;
    const open = opens[k];
    const size = run[0] === "~" ? 2 : Math.min(2, n, open.n);
    const at = out.indexOf(open);
    const kids = out.splice(at + 1).map(piece => (piece.mark ? piece.mark.repeat(piece.n) : piece));
    opens.length = open.n > size ? k + 1 : k;
    open.n -= size;
    if (!open.n) out.splice(at, 1);
    out.push(h(run[0] === "~" ? "s" : size === 2 ? "strong" : "em", {}, kids));
    n -= size;
  }
  if (!n) return;
  const rest = { mark: run[0], n, both: canOpen && canClose, whole: run.length };
  out.push(canOpen && (run[0] !== "~" || n === 2) ? rest : run[0].repeat(n));
  if (out.at(-1) === rest) opens.push(rest);
}
// CommonMark's rule of three for runs that could do both
const closes = (open, n, both) => !((open.both || both) && (open.whole + n) % 3 === 0 && !(open.whole % 3 === 0 && n % 3 === 0));

// What a person wrote: only `code` is told apart.
export function spans(text) {
  return text.split(/(`[^`\n]+`)/).map(part => (/^`[^`]+`$/.test(part) ? h("code", { text: part.slice(1, -1) }) : part));
}

// --- nodes ---
const NUMBER = /^[-+−]?[\d,.]+\s?%?$/;
function node(block, tight) {
  switch (block.type) {
    case "code": return codeBlock(block.text, block.lang);
    case "math": return h("pre", { class: "cnb-math", text: block.text });
    case "heading": return h(`h${block.level}`, {}, inline(block.text));
    case "rule": return h("hr");
    case "quote": return h("blockquote", {}, block.kids.map(kid => node(kid)));
    case "list": return h(block.ordered ? "ol" : "ul", { start: block.ordered && block.from !== 1 ? block.from : null },
      block.items.map(kids => h("li", {}, kids.map(kid => node(kid, !block.loose)))));
    case "table": return h("div", { class: "cnb-tablewrap", tabindex: 0, role: "region", "aria-label": "Table" }, h("table", {},
      h("thead", {}, h("tr", {}, block.head.map((c, k) => h("th", { class: side(block, k) }, inline(c))))),
      h("tbody", {}, block.rows.map(row => h("tr", {}, row.map((c, k) => h("td", { class: side(block, k) }, inline(c))))))));
    default: return tight ? h("span", { class: "cnb-tight" }, inline(block.text)) : h("p", {}, inline(block.text));
  }
}
function side(block, k) {
  if (block.align[k]) return block.align[k] === "right" ? "num" : block.align[k];
  return block.rows.length && block.rows.every(row => NUMBER.test(row[k]) || !row[k]) ? "num" : null;
}
export function markdown(text) {
  return h("div", { class: "cnb-md" }, blocks(text).map(block => node(block)));
}

// Text that grows: blocks that are closed stay; only the last is made again, and not more often than it can be afforded.
const CALM = /^[\p{L}\p{N} ,.;:()'"%/=+–—-]*$/u; // continues a line of plain text without changing what it is
export class Growing {
  constructor(text = "") {
    this.el = h("div", { class: "cnb-md" });
    this.set(text);
  }

  set(text) {
    this.text = text.replaceAll("\r", "");
    this.from = 0; // where the open block begins in the text
    this.cost = 0; // ms that drawing it took
    this.open = null; // its node
    this.el.replaceChildren();
    this.draw();
  }

  append(piece) {
    this.text += piece.replaceAll("\r", "");
    if (!this.timer && this.calm(piece)) return;
    const now = performance.now();
    const due = (this.last ?? 0) + this.cost * 8; // a large block is drawn less often
    clearTimeout(this.timer);
    if (now >= due) this.draw();
    else this.timer = setTimeout(() => this.draw(), Math.min(200, due - now));
  }

  // Plain words at the end of a long line of a paragraph only lengthen its last text.
  calm(piece) {
    const end = this.open?.tagName === "P" ? this.open.lastChild : null;
    if (end?.nodeType !== 3 || !CALM.test(piece) || end.length < 24 || end.data.slice(-24).includes("\n")) return false;
    end.appendData(piece);
    return true;
  }

  draw() {
    const began = performance.now();
    clearTimeout(this.timer);
    this.timer = 0;
    this.open?.remove();
    const rest = this.text.slice(this.from);
    const made = blocks(rest);
    const nodes = made.map(block => node(block));
    this.el.append(...nodes);
    this.open = nodes.at(-1) ?? null;
    const start = made.at(-1)?.start ?? 0;
    let cut = 0;
    for (let line = 0; line < start; line += 1) cut = rest.indexOf("\n", cut) + 1;
    this.from += cut;
    this.last = performance.now();
    this.cost = this.last - began;
  }

  finish(text) {
    if (text.replaceAll("\r", "") !== this.text) this.set(text);
    else if (this.timer) this.draw();
  }
}
