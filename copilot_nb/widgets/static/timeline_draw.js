// Drawing of the timeline: rows of bars, marks for messages, or shares per column when there are too many bars.
import { g, kilo, plural, say, secs, secs1 } from "./dom.js";

const CHAR = 6.1; // px of a character of the drawing's 11-px text
const chars = n => n * CHAR;
const fit = (text, room) => (room < 18 ? "" : chars(text.length) <= room ? text : room < 40 ? "" : `${text.slice(0, Math.max(1, Math.floor(room / CHAR) - 1))}…`);

// The bars of a window: {row, kind, a, b, …}. `now` ends what is still open.
export function bars(data, now) {
  const list = [];
  for (const r of data.runs || []) {
    const b = r.b ?? now;
    list.push({ row: "runs", kind: "run", key: r.key, item: r.key, event: r.event, a: r.a, b, live: r.b == null, label: say("run.name", r), short: String(r.n), arg: r.prompt.replaceAll("`", ""), title: say("run.name", r), facts: [[say("timeline.turns"), r.turns]] });
  }
  for (const t of data.turns || []) turnBars(t, now, list);
  return list;
}

function turnBars(t, now, list) {
  const end = t.b ?? now, said = t.said ?? end, first = Math.min(t.first ?? said, said), text = Math.min(t.text ?? (t.first == null ? first : said), said);
  const live = t.b == null;
  const tokens = t.in || t.out ? [say("timeline.tokens"), say("timeline.tokensInOut", { in: kilo(t.in || 0), out: kilo(t.out || 0) })] : null;
  const common = { item: t.key, event: t.event };
  list.push({ ...common, row: "turns", kind: "turn", key: t.key, a: t.a, b: end, live, label: say("turn.name", t), short: String(t.n), title: say("turn.name", t), facts: [[say("timeline.model"), secs1(said - t.a)], [say("timeline.toolCalls"), t.tools.length], tokens] });
  if (first > t.a) list.push({ ...common, row: "model", kind: "wait", key: `${t.key}w`, a: t.a, b: first, live: live && t.first == null, label: "", title: say("timeline.waitFirst"), facts: [[say("timeline.turn"), t.n]] });
  if (t.first != null && said > first) list.push({ ...common, row: "model", kind: "stream", key: `${t.key}s`, a: first, b: said, split: text, live: live && t.said == null, label: "", title: say("timeline.streams"), facts: [text > first && [say("timeline.reasoning"), secs1(text - first)], said > text && [say("timeline.text"), secs1(said - text)], tokens] });
  for (const c of t.tools) {
    const stop = c.b ?? now;
    const kind = { ask: "ask", running: "run", failed: "fail" }[c.state] || "ok";
    list.push({ ...common, row: "tools", kind, key: c.key, part: c.key, event: c.event, a: c.a, b: stop, ask: c.asked != null ? [c.asked, c.answered ?? stop] : null, live: c.b == null, label: c.name, arg: c.arg, title: c.name, note: c.arg,
      facts: [[say("timeline.turn"), t.n], c.asked != null && [say("timeline.waited"), secs1((c.answered ?? stop) - c.asked)], c.state === "failed" && [say("timeline.error"), c.error.split("\n").at(-1)]] });
  }
}

export function marks(data, now) {
  return data.messages.filter(m => m.sent != null).map(m => {
    const mode = m.lane === "steering" ? "steer" : m.lane === "queue" ? "queue" : "idle";
    return { ...m, mode, until: m.state === "removed" ? m.removed : m.state === "landed" ? m.landed : now };
  });
}

// The first lane that is free; how many there are.
export function pack(list) {
  const ends = [];
  for (const x of [...list].sort((p, q) => p.a - q.a)) {
    let k = ends.findIndex(end => end <= x.a);
    if (k < 0) k = ends.push(0) - 1;
    ends[k] = x.b + 0.05;
    x.lane = k;
  }
  return Math.min(8, Math.max(1, ends.length));
}

export class Drawing {
  // `margin` is drawn on both sides of what is in sight, in widths of it: moving within it needs no new drawing.
  constructor({ width, win, data, now, picked, ids, on, margin = 0 }) {
    Object.assign(this, { W: width, win, data, now, picked, ids, on });
    const d = (win[1] - win[0]) * margin;
    this.drawn = [win[0] - d, win[1] + d];
    this.L = width < 520 ? 48 : 64;
    this.R = 8;
    this.span = win[1] - win[0];
    this.live = data.live;
  }

  x(t) { return this.L + ((t - this.win[0]) / this.span) * (this.W - this.L - this.R); }

  svg() {
    const { data, now, W } = this;
    this.bars = bars(data, now).filter(i => i.b >= this.drawn[0] && i.a <= this.drawn[1]);
    const lanes = pack(this.bars.filter(i => i.row === "tools"));
    this.marks = marks(data, now).filter(m => m.until >= this.drawn[0] && m.sent <= this.drawn[1]);
    const steers = this.marks.filter(m => m.mode === "steer"), queued = this.marks.filter(m => m.mode !== "steer");
    this.place(this.marks);
    this.rows = {};
    let y = 26;
    const row = (name, n, height, gap) => { this.rows[name] = { y, h: height }; y += n * height + gap; };
    row("queue", Math.min(7, Math.max(1, this.stack(queued))), 20, 8);
    row("steers", Math.min(5, Math.max(1, this.stack(steers))), 20, 8);
    row("runs", 1, 20, 4);
    row("turns", 1, 20, 4);
    row("model", 1, 20, 10);
    row("tools", data.columns ? 2 : lanes, 22, 10);
    row("context", 1, 32, 0);
    this.H = y + 6;
    const svg = g("svg", { width: W, height: this.H, viewBox: `0 0 ${W} ${this.H}`, role: "group", "aria-label": say("timeline.label") });
    const plot = (this.moving = g("g"));
    svg.append(this.defs(), g("g", { "clip-path": `url(#${this.ids.clip})` }, plot));
    this.grid(svg, plot);
    this.context(plot);
    if (data.columns) this.columns(plot);
    for (const item of this.bars) plot.append(this.bar(item));
    for (const m of [...queued, ...steers]) plot.append(this.mark(m));
    if (this.live) this.nowLine(svg, plot);
    return svg;
  }

  // Show another window of the same width by moving what is drawn; false when that does not reach.
  move(win) {
    const same = Math.abs(win[1] - win[0] - this.span) < this.span * 1e-6;
    if (!same || win[0] < this.drawn[0] || win[1] > this.drawn[1]) return false;
    this.moving.setAttribute("transform", `translate(${((this.win[0] - win[0]) / this.span) * (this.W - this.L - this.R)},0)`);
    return true;
  }

  defs() {
    return g("defs", {},
      g("pattern", { id: this.ids.hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, g("rect", { width: 6, height: 6, class: "hatch-bg" }), g("rect", { width: 2.4, height: 6, class: "hatch-fg" })),
      g("clipPath", { id: this.ids.clip }, g("rect", { x: this.L, y: 0, width: Math.max(0, this.W - this.L - this.R + 1), height: this.H })));
  }

  grid(svg, plot) {
    const { L, R, W, H, rows } = this;
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400];
    const step = steps.find(k => (k / this.span) * (W - L - R) >= 64) || 172800;
    const words = t => (step < 1 ? `${t.toFixed(1)} s` : step < 60 ? `${Math.round(t)} s` : step < 3600 ? `${Math.round(t / 60)} min` : `${Math.round(t / 3600)} h`);
    for (let t = Math.ceil(Math.max(0, this.drawn[0]) / step) * step; t <= this.drawn[1]; t += step) {
      plot.append(g("line", { x1: this.x(t), x2: this.x(t), y1: 22, y2: H - 6, class: "grid" }));
      if (!this.live || Math.abs(this.x(t) - this.x(this.now)) > 46) plot.append(g("text", { x: this.x(t), y: 13, class: "tick", "text-anchor": "middle", text: words(t) }));
    }
    for (const name of ["steers", "runs", "tools", "context"]) {
      const y = rows[name].y - (name === "runs" || name === "steers" ? 4 : 5);
      svg.append(g("line", { x1: 0, x2: W, y1: y, y2: y, class: "rowline" }));
    }
    for (const name of Object.keys(rows)) svg.append(g("text", { x: 0, y: rows[name].y + (name === "queue" || name === "steers" ? 13 : 14), class: "rowname", text: say(`timeline.${name}`) }));
  }

  // a step line of the context's size
  context(plot) {
    const steps = this.data.context;
    if (!steps.length) return;
    const { y, h } = this.rows.context;
    const top = Math.max(1000, ...steps.map(s => s[1])) * 1.15;
    const yy = n => y + h - 2 - (n / top) * (h - 6);
    const x0 = Math.max(this.x(0), this.L - 2);
    let d = `M${x0},${yy(0)}`, last = 0, at = x0;
    for (const [t, n] of steps) { at = this.x(t); d += `L${at.toFixed(1)},${yy(last).toFixed(1)}L${at.toFixed(1)},${yy(n).toFixed(1)}`; last = n; }
    const end = Math.max(at, Math.min(this.x(this.live ? this.now : this.data.end), this.W - this.R));
    d += `L${end},${yy(last)}`;
    plot.append(g("path", { d: `${d}L${end},${yy(0)}Z`, class: "ctx-area" }), g("path", { d, class: "ctx-line" }));
    if (end > this.L + 60) plot.append(g("text", { x: end - 6, y: yy(last) - 5 < y + 8 ? yy(last) + 12 : yy(last) - 5, class: "ctx-text", "text-anchor": "end", text: `${kilo(last)} ${say("timeline.tokens")}` }));
  }

  columns(plot) {
    const { columns: shares, from, to } = this.data;
    const n = shares.wait.length, x0 = this.x(from), w = (this.x(to) - x0) / n;
    const path = (row, height, kind, base, least = 0) => {
      let d = "";
      for (let k = 0; k < n; k += 1) {
        const part = Math.min(100, shares[kind][k]), low = base ? Math.min(100, base(k)) : 0;
        const px = Math.max(part > 0 ? least : 0, (part / 100) * height);
        if (px > 0.2) d += `M${(x0 + k * w).toFixed(1)},${(row.y + height * (1 - low / 100)).toFixed(1)}v${(-Math.min(px, height * (1 - low / 100))).toFixed(1)}h${Math.max(0.6, w).toFixed(2)}v${Math.min(px, height * (1 - low / 100)).toFixed(1)}z`;
      }
      if (d) plot.append(g("path", { d, class: `col ${kind}` }));
    };
    const { model, tools, turns } = this.rows;
    plot.append(g("text", { x: this.L + 6, y: turns.y + 12, class: "msgtext", text: say("timeline.many", { n: this.data.count.toLocaleString("en") }) }));
    path(model, 16, "stream");
    path(model, 16, "think", k => shares.stream[k]);
    path(model, 16, "wait", k => shares.stream[k] + shares.think[k]);
    path(tools, 40, "tool");
    path(tools, 40, "ask", k => shares.tool[k], 3);
    path(tools, 40, "fail", null, 3);
  }

  bar(i) {
    const row = this.rows[i.row], y = row.y + Math.min(i.lane || 0, 7) * row.h, h = row.h - 4;
    const x0 = Math.max(this.x(i.a), this.x(this.drawn[0]) - 4), x1 = Math.min(this.x(i.b), this.x(this.drawn[1]) + this.R), w = Math.max(2, x1 - x0);
    const inset = i.row === "turns" ? 1 : 0;
    const picked = this.picked?.key === i.key && this.picked?.row === i.row;
    const node = g("g", { class: `bar ${i.kind}${i.live ? " live" : ""}${picked ? " picked" : ""}`, tabindex: picked ? 0 : -1, role: "img", "aria-label": `${i.title}, ${say("timeline.to", { a: secs1(i.a), b: secs1(i.b) })}` });
    const rect = (a, b, cls) => g("rect", { x: a.toFixed(1), y, width: Math.max(1.5, b - a - inset).toFixed(1), height: h, rx: Math.min(3, Math.max(0, (b - a) / 2)), class: cls });
    if (i.kind === "stream" && i.split > i.a) {
      node.append(rect(x0, x1, "fill"), g("rect", { x: x0.toFixed(1), y, width: Math.max(0, Math.min(x1, this.x(i.split)) - x0).toFixed(1), height: h, class: "think", rx: 1 }));
    } else if (i.ask) {
      const a1 = Math.min(x1, this.x(i.ask[1]));
      node.append(g("rect", { x: x0.toFixed(1), y, width: Math.max(1.5, a1 - x0).toFixed(1), height: h, rx: 3, class: "askfill", fill: `url(#${this.ids.hatch})` }));
      if (x1 - a1 > 1) node.append(rect(a1, x1, "fill"));
    } else node.append(rect(x0, x1, "fill"));
    this.label(node, i, x0, x1, w, y, h, inset);
    node.addEventListener("pointermove", e => this.on.tip(i, e));
    node.addEventListener("pointerleave", () => this.on.tip(null));
    node.addEventListener("click", () => this.on.pick(i));
    node.addEventListener("focus", () => this.on.focus(i));
    i.node = node;
    return node;
  }

  label(node, i, x0, x1, w, y, h, inset) {
    const room = w - 12, text = i.short && chars(i.label.length) > room ? i.short : i.label, shown = fit(text, room);
    if (shown) {
      const left = room - chars(shown.length) - 10;
      const extra = i.kind === "ask" ? fit(say("timeline.ask"), left) : i.arg ? fit(i.arg, left) : "";
      const middle = i.row === "turns" && w < 40;
      node.append(g("text", { x: middle ? x0 + w / 2 - inset / 2 : x0 + 6, y: y + h / 2 + 4, "text-anchor": middle ? "middle" : "start", class: "lbl" }, shown, extra && g("tspan", { class: "arg", dx: 7, text: extra })));
    } else if (i.row === "tools" && this.bars.length < 300) {
      const next = Math.min(this.W, ...this.bars.filter(k => k.row === "tools" && k.lane === i.lane && k.a > i.a).map(k => this.x(k.a)), this.live ? this.x(this.now) : this.W);
      if (next - x1 > chars(i.label.length) + 7) node.append(g("text", { x: x1 + 5, y: y + h / 2 + 4, class: "lbl out", text: i.label }));
    }
  }

  // a label stands right of its mark, above the line; left of it when it would run over the edge
  place(list) {
    for (const m of list) {
      m.x = this.x(m.sent);
      m.xe = this.x(m.until);
      const text = m.text.replace(/\s+/g, " ").replaceAll("`", ""), edge = this.live ? this.x(this.now) - 4 : this.W - this.R, room = edge - m.x - 8;
      const cut = (w, n) => (chars(text.length) <= w && text.length <= n ? text : `${text.slice(0, Math.max(4, Math.min(n - 1, Math.floor(w / CHAR) - 1))).trimEnd()}…`);
      m.left = chars(Math.min(text.length, 34)) > room && m.x - this.L - 8 > room;
      m.shown = m.mode === "idle" ? "" : cut(m.left ? Math.min(m.x - this.L - 8, 210) : Math.max(room, 30), 34);
      m.from = m.left ? m.x - 10 - chars(m.shown.length) : m.x - 6;
      m.to = Math.max(m.xe + 12, m.left ? 0 : m.x + 10 + chars(m.shown.length));
      m.lane2 = null;
    }
  }

  // in the order they were sent: nobody stands above a message that was sent before and still waits
  stack(list) {
    const lanes = [];
    const open = [];
    for (const m of [...list].sort((p, q) => p.sent - q.sent)) {
      for (let k = open.length - 1; k >= 0; k -= 1) if (open[k].until <= m.sent) open.splice(k, 1);
      let k = Math.max(0, ...open.map(o => o.lane2 + 1));
      while (lanes[k]?.some(o => o.from < m.to && m.from < o.to)) k += 1;
      (lanes[k] ||= []).push(m);
      m.lane2 = k;
      open.push(m);
    }
    return lanes.length;
  }

  mark(m) {
    const row = this.rows[m.mode === "steer" ? "steers" : "queue"], xs = m.x, xe = m.xe;
    const yl = row.y + Math.min(m.lane2 || 0, m.mode === "steer" ? 4 : 6) * row.h + row.h - 4;
    const node = g("g", { class: `sent ${m.mode} ${m.state}`, role: "img", "aria-label": `${this.title(m)}: ${m.text}, ${this.words(m)}` });
    if (m.state === "landed") {
      const yt = (m.mode === "steer" && m.turn ? this.rows.model.y : this.rows.runs.y) - 1, r = Math.min(5, Math.max(0, xe - xs));
      node.append(g("path", { d: `M${xs},${yl}H${xe - r}Q${xe},${yl} ${xe},${yl + r}V${yt - 4}`, class: "way" }), g("path", { d: `M${xe - 4},${yt - 5}h8l-4,6z`, class: "head" }));
    } else {
      node.append(g("path", { d: `M${xs},${yl}H${xe - (m.state === "removed" ? 4 : 0)}`, class: "way" }));
      node.append(m.state === "removed" ? g("path", { d: `M${xe - 3},${yl - 3}l6,6m0,-6l-6,6`, class: "gone" }) : g("circle", { cx: xe, cy: yl, r: 2.5, class: "open" }));
    }
    node.append(m.mode === "steer" ? g("path", { d: `M${xs},${yl - 4}l4,4l-4,4l-4,-4z`, class: "mark" }) : m.mode === "queue" ? g("rect", { x: xs - 3, y: yl - 3, width: 6, height: 6, rx: 1, class: "mark" }) : g("circle", { cx: xs, cy: yl, r: 3, class: "mark" }));
    node.append(g("text", { x: m.left ? xs - 8 : xs + 8, y: m.left ? yl + 3 : yl - 5, "text-anchor": m.left ? "end" : "start", class: "msgtext", text: m.shown }));
    const item = { key: m.key, item: m.state === "landed" ? m.key : null, event: m.event, title: this.title(m), note: m.text, a: m.sent, b: m.until, live: m.state === "pending", facts: [["", this.words(m)]] };
    node.addEventListener("pointermove", e => this.on.tip(item, e));
    node.addEventListener("pointerleave", () => this.on.tip(null));
    node.addEventListener("click", () => this.on.pick(item));
    return node;
  }

  title(m) { return say(`timeline.${{ steer: "steerMessage", queue: "queuedMessage", idle: "message" }[m.mode]}`); }
  words(m) {
    const after = { ...m, at: secs1(m.until), time: secs(m.until - m.sent) };
    if (m.state === "removed") return say("timeline.removedAt", { ...after, why: say(`removed.${m.reason || "removed"}`) });
    if (m.state === "pending") return say("timeline.waiting", after);
    return say({ steer: "timeline.landedSteer", queue: "timeline.landedQueue", idle: "timeline.started" }[m.mode], after);
  }

  nowLine(svg, plot) {
    const x = this.x(this.now), label = secs(this.now), w = label.length * 6.4 + 10, left = Math.min(x - w / 2, this.W - w);
    plot.append(g("line", { x1: x, x2: x, y1: 20, y2: this.H - 6, class: "now" }));
    if (x >= this.L && x <= this.W) svg.append(g("g", { class: "nowtag" }, g("rect", { x: left, y: 1, width: w, height: 17, rx: 3 }), g("text", { x: left + w / 2, y: 13, "text-anchor": "middle", text: label })));
  }
}

// The strip above: the whole session, and what of it is in sight.
export function overview({ width, left, right, over, full, win, now, live }) {
  const H = 30, X = t => left + ((t - full[0]) / (full[1] - full[0])) * (width - left - right);
  const svg = g("svg", { width, height: H, "aria-hidden": "true" }, g("rect", { x: left, y: 0, width: Math.max(0, width - left - right), height: H, rx: 4, class: "ov-bg" }));
  const shares = over.columns, n = shares?.wait.length, w = (X(over.end) - X(0)) / n;
  const path = (kinds, y, h, cls, least = 0.5) => {
    let d = "";
    for (let k = 0; k < n; k += 1) {
      const part = Math.min(100, kinds.reduce((sum, kind) => sum + shares[kind][k], 0));
      if (part > 0) { const px = Math.max(least, (part / 100) * h); d += `M${(X(0) + k * w).toFixed(1)},${(y + h).toFixed(1)}v${-px.toFixed(1)}h${Math.max(0.7, w).toFixed(2)}v${px.toFixed(1)}z`; }
    }
    if (d) svg.append(g("path", { d, class: cls }));
  };
  if (over.bars) {
    const tools = over.bars.filter(bar => !["wait", "think", "stream"].includes(bar[0])).map(([kind, a, b]) => ({ kind, a, b: b ?? now }));
    for (const [kind, a, b] of over.bars) if (["wait", "think", "stream"].includes(kind)) svg.append(g("rect", { x: X(a), y: 4, width: Math.max(0.7, X(b ?? now) - X(a)), height: 6, class: `ov ${kind}` }));
    pack(tools);
    for (const i of tools) svg.append(g("rect", { x: X(i.a), y: 13 + Math.min(i.lane, 2) * 5, width: Math.max(1, X(i.b) - X(i.a)), height: 3, class: `ov ${i.kind}` }));
  } else {
    path(["wait", "think", "stream"], 3, 10, "ov wait");
    path(["stream"], 3, 10, "ov stream");
    path(["tool"], 16, 10, "ov tool");
    path(["ask"], 16, 10, "ov ask", 3);
    path(["fail"], 16, 10, "ov fail", 3);
  }
  for (const t of over.steers) svg.append(g("line", { x1: X(t), x2: X(t), y1: 2, y2: H - 2, class: "ov-steer" }));
  if (live) svg.append(g("line", { x1: X(now), x2: X(now), y1: 2, y2: H - 2, class: "now" }));
  const a = X(win[0]), b = X(win[1]);
  if (win[1] - win[0] < (full[1] - full[0]) * 0.995) svg.append(g("rect", { x: left, y: 0, width: Math.max(0, a - left), height: H, class: "ov-shade" }), g("rect", { x: b, y: 0, width: Math.max(0, width - right - b), height: H, class: "ov-shade" }));
  svg.append(g("rect", { x: a + 0.5, y: 0.5, width: Math.max(1, b - a - 1), height: H - 1, rx: 3, class: "ov-win" }));
  for (const x of [a, b]) svg.append(g("rect", { x: x - 2, y: H / 2 - 6, width: 4, height: 12, rx: 2, class: "ov-grip" }));
  svg.append(g("text", { x: 0, y: 19, class: "rowname", text: say("timeline.all") }));
  return svg;
}

export const legend = () => [["wait", "wait"], ["think", "think"], ["stream", "stream"], ["tool", "tool"], ["ask", "ask"], ["fail", "fail"], ["you", "steer"], ["qd", "queued"]].map(([cls, key]) => [cls, say(`timeline.${key}`)]);
export const turnsWord = n => plural(n, "turns");
