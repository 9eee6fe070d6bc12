// The event table: only rows in sight exist; they come from the kernel in windows.
import { button, clockMs, h, icon, plural, replace, say } from "./dom.js";
import { copyText } from "./code.js";

const ROW = 24; // px
const PAGE = 200; // rows asked for at once
const MOST = 12_000_000; // px; browsers cap the height of an element, so above this the scroll bar is scaled
const GROUPS = ["user", "assistant", "tool", "permission", "session", "lanes", "other"];
const COLUMNS = ["time", "delta", "type", "turn", "tool", "ms", "tokens", "summary"];
const WIDTHS = { time: "64px", delta: "48px", type: "minmax(96px, 168px)", turn: "32px", tool: "84px", ms: "56px", tokens: "56px", summary: "minmax(0, 1fr)" };
const NUMBERS = new Set(["time", "delta", "turn", "ms", "tokens"]);
const SORTS = { time: "seq", type: "type", turn: "turn", tool: "tool", ms: "ms", tokens: "tokens", summary: "summary" };

export function groupOf(type) {
  if (type.startsWith("pending_") || type === "jupyter.queue") return "lanes";
  if (type.startsWith("external_tool.")) return "tool";
  const first = type.split(".")[0];
  return GROUPS.includes(first) ? first : "other";
}

export class EventsView {
  constructor(ctx) {
    this.ctx = ctx;
    this.off = new Set(); // groups that are hidden
    this.ephemeral = false;
    this.find = "";
    this.sort = ["seq", true];
    this.shownColumns = new Set(["time", "delta", "type", "turn", "summary"]);
    this.following = true;
    this.pages = new Map(); // page number -> rows, or a promise
    this.count = 0;
    this.build();
  }

  build() {
    const { ctx } = this;
    this.input = h("input", { type: "search", placeholder: say("events.find"), "aria-label": say("events.find"), onInput: () => { this.find = this.input.value; this.soon(); }, onKeydown: e => e.stopPropagation() });
    this.total = h("span", { class: "cnb-dim cnb-num", "aria-live": "polite" });
    this.tail = button({ class: "cnb-icon on", label: say("events.follow"), "aria-pressed": "true", onClick: () => this.follow(!this.following) }, icon("follow"));
    this.menu = h("div", { class: "cnb-menu", role: "group", "aria-label": say("events.columns"), hidden: true }, COLUMNS.map(name => h("label", {}, h("input", { type: "checkbox", checked: this.shownColumns.has(name), disabled: name === "type", onChange: e => this.column(name, e.target.checked) }), say(`head.${name}`))));
    this.chooser = button({ class: "cnb-icon", label: say("events.columns"), "aria-expanded": "false", onClick: () => { this.menu.hidden = !this.menu.hidden; this.chooser.setAttribute("aria-expanded", String(!this.menu.hidden)); } }, icon("columns"));
    const frame = button({ class: "cnb-btn small", title: say("events.dataframeNote"), onClick: () => this.dataframe() }, icon("table"), say("events.dataframe"));
    this.chips = GROUPS.map(name => button({ class: "cnb-chip ev", "data-g": name, "aria-pressed": "true", onClick: e => this.toggle(name, e.currentTarget) }, h("i", { class: "cnb-dot", "data-g": name }), say(`group.${name}`), h("span", { class: "cnb-dim cnb-num" })));
    this.eph = button({ class: "cnb-chip ev", "aria-pressed": "false", title: say("events.ephemeralNote"), onClick: () => { this.ephemeral = !this.ephemeral; this.eph.setAttribute("aria-pressed", String(this.ephemeral)); this.reload(); } }, h("i", { class: "cnb-dot eph" }), say("events.ephemeral"), h("span", { class: "cnb-dim cnb-num" }));
    this.head = h("div", { class: "cnb-ev-row head", role: "row", "aria-rowindex": 1 });
    this.space = h("div", { class: "cnb-ev-space", role: "presentation" });
    this.none = h("p", { class: "cnb-empty", text: say("events.none"), hidden: true });
    this.scroll = h("div", { class: "cnb-ev-scroll", tabindex: 0, role: "rowgroup", "aria-label": say("events.grid") }, this.space);
    this.scroll.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.scroll.addEventListener("keydown", e => this.key(e));
    this.space.addEventListener("click", event => {
      const i = Number(event.target.closest(".cnb-ev-row")?.dataset.i ?? -1), e = this.rowNow(i);
      if (e) this.choose(e, i);
    });
    this.table = h("div", { class: "cnb-ev-table", role: "grid", "aria-label": say("tab.events") }, h("div", { role: "rowgroup" }, this.head), this.scroll);
    this.sheet = h("div", { class: "cnb-ev-sheet" }, this.none, this.table);
    this.detail = h("aside", { class: "cnb-ev-detail", "aria-label": say("events.details"), tabindex: 0 });
    this.el = h("div", { class: "cnb-ev" },
      h("div", { class: "cnb-ev-bar" }, h("label", { class: "cnb-search" }, icon("search"), this.input), this.total, h("span", { class: "cnb-gap" }), this.chooser, this.menu, this.tail, frame),
      h("div", { class: "cnb-chips" }, this.chips, this.eph),
      h("div", { class: "cnb-ev-main" }, this.sheet, this.detail));
    this.heads();
    this.reload();
  }

  // --- asking ---
  filter() {
    const types = this.off.size ? Object.keys(this.types ?? {}).filter(type => !this.off.has(groupOf(type))) : null;
    return { types, text: this.find || null, ephemeral: this.ephemeral };
  }

  async reload() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    try {
      const { types, all } = await this.ctx.store.do("events.types");
      if (turn !== this.turn) return;
      this.types = types;
      this.all = all;
      const { count } = await this.ctx.store.do("events.count", this.filter());
      if (turn !== this.turn) return;
      this.count = count;
      this.pages = new Map();
      this.tally();
      this.resize();
      if (this.following && this.sort[0] === "seq" && this.sort[1]) this.toEnd();
      this.paint();
      if (this.wanted) this.find_(this.wanted);
    } catch (error) { this.ctx.fail(error); }
  }

  soon() { clearTimeout(this.timer); this.timer = setTimeout(() => this.reload(), 180); }

  // New events while the tab is open: look again, at most once a second.
  change(change) {
    if (change.type !== "events" && change.type !== "full") return;
    this.stale = true;
  }

  shown() { if (this.types && this.stale) this.reload(); this.paint(); }

  tick() {
    const now = performance.now();
    if (!this.stale || now - (this.looked ?? 0) < 1000) return;
    this.looked = now;
    this.stale = false;
    this.grow();
  }

  async grow() {
    const before = this.count;
    const { types, all } = await this.ctx.store.do("events.types");
    this.types = types;
    this.all = all;
    const { count } = await this.ctx.store.do("events.count", this.filter());
    this.tally();
    if (count === before) return;
    const onlyAtEnd = this.sort[0] === "seq" && this.sort[1] && !this.find && count > before;
    this.pages = new Map(onlyAtEnd ? [...this.pages].filter(([n, rows]) => rows && (n + 1) * PAGE <= before) : []);
    this.count = count;
    this.resize();
    if (this.following) this.toEnd();
    this.paint();
  }

  page(n) {
    if (this.pages.has(n)) return this.pages.get(n);
    const { pages } = this; // another map takes its place when the filter or the count changes: what comes then is old
    pages.set(n, null);
    this.ctx.store.do("events.rows", { ...this.filter(), start: n * PAGE, stop: Math.min(this.count, (n + 1) * PAGE), sort: this.sort }).then(({ rows }) => {
      if (pages !== this.pages) return;
      pages.set(n, rows);
      if (pages.size > 40) pages.delete(pages.keys().next().value);
      this.paint();
    }).catch(error => { pages.delete(n); this.ctx.fail(error); });
    return null;
  }

  row(i) { return i < 0 ? null : this.page(Math.floor(i / PAGE))?.[i % PAGE] ?? null; }
  rowNow(i) { return i < 0 ? null : this.pages.get(Math.floor(i / PAGE))?.[i % PAGE] ?? null; }

  // --- drawing ---
  heads() {
    const columns = COLUMNS.filter(name => this.shownColumns.has(name));
    this.el.style.setProperty("--cnb-ev-columns", columns.map(name => WIDTHS[name]).join(" "));
    replace(this.head, columns.map(name => {
      const key = SORTS[name], on = this.sort[0] === key;
      const label = h("span", { text: say(`head.${name}`) });
      return h("span", { role: "columnheader", class: `c-${name}`, "aria-sort": on ? (this.sort[1] ? "ascending" : "descending") : null },
        key ? h("button", { type: "button", onClick: () => this.order(key) }, label, on && key !== "seq" || (on && !this.sort[1]) ? icon(this.sort[1] ? "up" : "down") : null) : label);
    }));
    this.columns = columns;
    this.pool = [];
    this.space.replaceChildren();
  }

  tally() {
    const counts = {};
    let eph = 0;
    for (const [type, [n, stored]] of Object.entries(this.types)) {
      eph += n - stored;
      counts[groupOf(type)] = (counts[groupOf(type)] ?? 0) + (this.ephemeral ? n : stored);
    }
    for (const chip of this.chips) { const n = counts[chip.dataset.g] ?? 0; chip.hidden = !n; chip.lastChild.textContent = n.toLocaleString("en"); }
    this.eph.hidden = !eph;
    this.eph.lastChild.textContent = eph.toLocaleString("en");
  }

  resize() {
    const height = this.count * ROW;
    this.scale = Math.max(1, height / MOST);
    this.space.style.height = `${Math.min(height, MOST)}px`;
    this.table.setAttribute("aria-rowcount", this.count + 1);
    this.total.textContent = this.count === this.all ? plural(this.count, "eventsCount") : say("events.of", { n: this.count.toLocaleString("en"), all: this.all.toLocaleString("en") });
  }

  // Above the height that browsers allow, the scroll bar's way stands for the whole table's.
  top() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroll;
    return this.scale > 1 ? (scrollTop / Math.max(1, scrollHeight - clientHeight)) * (this.count * ROW - clientHeight) : scrollTop;
  }
  first() { return Math.floor(this.top() / ROW); }
  goTo(y) {
    const { scrollHeight, clientHeight } = this.scroll;
    this.scroll.scrollTop = this.scale > 1 ? (y / Math.max(1, this.count * ROW - clientHeight)) * (scrollHeight - clientHeight) : y;
  }

  scrolled() {
    const end = this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < ROW;
    if (!this.moving && this.following !== end) this.follow(end, true);
    this.moving = false;
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
  }

  // The few rows in sight are kept and filled anew; what they show is fetched when the scrolling slows down.
  paint() {
    if (!this.types || !this.scroll.clientHeight) return;
    const high = Math.ceil(this.scroll.clientHeight / ROW);
    const a = Math.max(0, Math.min(this.first() - 4, this.count - high - 4)), b = Math.min(this.count, a + high + 9);
    const shift = this.scale > 1 ? this.scroll.scrollTop - this.top() : 0;
    while (this.pool.length < b - a) this.pool.push(this.makeRow());
    for (const row of this.pool.splice(Math.max(0, b - a))) row.el.remove();
    for (let i = a; i < b; i += 1) this.fill(this.pool[i - a], i, i * ROW + shift);
    this.none.hidden = this.count > 0;
    this.sight = [a, b];
    if (!this.waiting) this.waiting = setTimeout(() => { this.waiting = 0; this.look(); }, 50);
  }

  look() {
    const [a, b] = this.sight;
    if (a >= b) return;
    this.page(Math.floor(a / PAGE));
    this.page(Math.floor((b - 1) / PAGE));
  }

  makeRow() {
    const cells = this.columns.map(name => h("span", { role: "gridcell", class: `c-${name}${NUMBERS.has(name) ? " cnb-num" : ""}` }));
    const row = { el: h("div", { class: "cnb-ev-row", role: "row" }, cells), cells, texts: cells.map(() => "") };
    const type = this.columns.indexOf("type");
    row.dot = h("i", { class: "cnb-dot" });
    row.type = document.createTextNode("");
    cells[type].append(row.dot, row.type);
    this.space.append(row.el);
    return row;
  }

  fill(row, i, top) {
    const e = this.rowNow(i);
    row.el.style.transform = `translateY(${top}px)`;
    if (row.i !== i) {
      row.i = i;
      row.el.dataset.i = i;
      row.el.setAttribute("aria-rowindex", i + 2);
    }
    const print = e ? `${e.seq} ${this.picked?.seq === e.seq} ${this.rowNow(i - 1)?.seq}` : "waits";
    if (row.print === print) return;
    row.print = print;
    const on = Boolean(e) && this.picked?.seq === e.seq;
    const bad = e && (e.type === "session.error" || /^(?:failed|error)\b/i.test(e.summary || ""));
    row.el.className = `cnb-ev-row${e ? "" : " wait"}${on ? " on" : ""}${e?.ephemeral ? " eph" : ""}${bad ? " bad" : ""}`;
    row.el.setAttribute("aria-selected", String(on));
    this.columns.forEach((name, k) => {
      if (name === "type") {
        row.type.data = e ? e.type : "…";
        row.dot.dataset.g = e ? groupOf(e.type) : "other";
        return;
      }
      const text = e ? this.text(name, e, i) : "";
      if (row.texts[k] !== text) row.cells[k].textContent = row.texts[k] = text;
      if (name === "delta") row.cells[k].classList.toggle("big", text.length > 1 && parseFloat(text) >= 1);
      if (name === "time" && e?.time != null) row.cells[k].title = clockMs((this.ctx.store.head.started ?? 0) + e.time);
    });
  }

  text(name, e, i) {
    if (name === "time") return e.time?.toFixed(3) ?? "";
    if (name === "delta") {
      const before = this.rowNow(i - 1);
      if (before?.time == null || e.time == null || this.sort[0] !== "seq") return "";
      const d = Math.abs(e.time - before.time);
      return `+${d < 10 ? d.toFixed(2) : d.toFixed(1)}`;
    }
    if (name === "turn") return e.turn == null ? "" : `${(e.run ?? 0) + 1}.${e.turn + 1}`; // both count from 0 in the log's tables
    if (name === "summary") return (e.summary || "").replace(/\n/g, " ⏎ ").slice(0, 300);
    const value = e[name];
    return value == null ? "" : typeof value === "number" ? Math.round(value).toLocaleString("en") : String(value);
  }

  // --- doing ---
  toggle(name, chip) {
    if (this.off.has(name)) this.off.delete(name); else this.off.add(name);
    chip.setAttribute("aria-pressed", String(!this.off.has(name)));
    this.reload();
  }

  column(name, on) {
    if (on) this.shownColumns.add(name); else this.shownColumns.delete(name);
    this.heads();
    this.paint();
  }

  order(key) {
    this.sort = this.sort[0] === key ? [key, !this.sort[1]] : [key, key === "seq" || key === "type"];
    this.follow(key === "seq" && this.sort[1]);
    this.heads();
    this.reload();
    this.scroll.scrollTop = 0;
  }

  follow(on, quiet) {
    this.following = on;
    this.tail.setAttribute("aria-pressed", String(on));
    this.tail.classList.toggle("on", on);
    if (on && !quiet) this.toEnd();
  }

  toEnd() { this.moving = true; this.scroll.scrollTop = this.scroll.scrollHeight; }

  async choose(e, i) {
    this.picked = e;
    this.at = i;
    this.paint();
    const event = e.id ? await this.ctx.act("event", { id: e.id }) : e;
    if (this.picked !== e || event === false) return;
    const text = JSON.stringify(event, null, 2);
    const copy = button({ class: "cnb-icon", label: say("events.copy"), onClick: () => copyText(text, copy) }, icon("copy"));
    replace(this.detail, h("header", {}, h("i", { class: "cnb-dot", "data-g": groupOf(e.type) }), h("b", { text: e.type }), h("span", { class: "cnb-gap" }), copy),
      h("div", { class: "cnb-json" }, Object.entries(event).map(([key, value]) => tree(value, key, 1))));
    this.detail.scrollTop = 0;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    const i = Math.max(0, Math.min(this.count - 1, (this.at ?? this.first()) + step));
    this.at = i;
    this.reveal(i);
    const e = this.row(i);
    if (e) this.choose(e, i);
  }

  reveal(i) {
    const y = i * ROW, high = this.scroll.clientHeight, top = this.top();
    if (y < top) this.goTo(y);
    else if (y + ROW > top + high) this.goTo(y + ROW - high);
    this.paint();
  }

  // From the timeline: the row of an event, in the log's order and whatever the filter was.
  jump(ref) {
    this.wanted = ref;
    if (!this.types) return;
    this.sort = ["seq", true];
    this.off.clear();
    for (const chip of this.chips) chip.setAttribute("aria-pressed", "true");
    this.find = this.input.value = "";
    this.heads();
    this.reload();
  }

  async find_(ref) {
    this.wanted = null;
    this.follow(false);
    const { index } = await this.ctx.act("events.find", { ...this.filter(), event: ref.event });
    if (index == null) return;
    this.goTo(Math.max(0, index * ROW - 60));
    this.paint();
    for (let wait = 0; wait < 40 && !this.row(index); wait += 1) await new Promise(done => setTimeout(done, 50));
    const e = this.row(index);
    if (e) this.choose(e, index);
  }

  async dataframe() {
    const done = await this.ctx.act("events.dataframe", this.filter());
    if (done) this.ctx.composer.fail(say("events.dataframeDone", done));
  }

  close() { clearTimeout(this.timer); clearTimeout(this.waiting); cancelAnimationFrame(this.frame); }
}

// A value as a tree that opens; long texts are cut on screen, the copy button has them whole.
function tree(value, key, depth) {
  const name = key != null && h("span", { class: "j-key", text: key });
  if (value === null || typeof value !== "object") {
    const text = typeof value === "string" ? JSON.stringify(value.length > 2000 ? `${value.slice(0, 2000)}…` : value) : String(value);
    return h("div", { class: "j-row" }, name, h("span", { class: `j-${value === null ? "null" : typeof value === "string" ? "str" : "num"}`, text }));
  }
  const keys = Object.keys(value), list = Array.isArray(value);
  if (!keys.length) return h("div", { class: "j-row" }, name, h("span", { class: "cnb-dim", text: list ? "[]" : "{}" }));
  return h("details", { class: "j-node", open: depth < 3 }, h("summary", {}, icon("chevron", "turn"), name, h("span", { class: "cnb-dim", text: list ? `[${keys.length}]` : `{${keys.length}}` })),
    h("div", {}, keys.slice(0, 200).map(k => tree(value[k], k, depth + 1)), keys.length > 200 && h("div", { class: "j-row cnb-dim", text: `… ${keys.length - 200}` })));
}
