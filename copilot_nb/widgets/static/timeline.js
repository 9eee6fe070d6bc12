// The timeline tab: what is in sight, moving it, picking from it. The kernel sends windows; drawing is next door.
import { button, h, icon, replace, say, secs1 } from "./dom.js";
import { Drawing, legend, overview } from "./timeline_draw.js";

const PAD = 1; // windows are fetched with this much on both sides, in widths of what is in sight
const FRESH = 900; // ms between two fetches while a run goes on

export class Timeline {
  constructor(ctx) {
    this.ctx = ctx;
    this.ids = { hatch: ctx.id("hatch"), clip: ctx.id("clip") };
    this.tipBox = h("div", { class: "cnb-tip", role: "tooltip", hidden: true });
    this.over = h("div", { class: "cnb-tl-over" });
    this.plot = h("div", { class: "cnb-tl-plot" });
    this.info = h("div", { class: "cnb-tl-info", "aria-live": "polite" });
    this.follow = button({ class: "cnb-chip", "aria-pressed": "true", onClick: () => this.setFollow(true) }, h("span", { class: "cnb-livedot" }), say("timeline.follow"));
    this.empty = h("p", { class: "cnb-empty", text: say("timeline.none"), hidden: true });
    const zoom = (label, name, run) => button({ class: "cnb-icon", label: say(`timeline.${label}`), onClick: run }, icon(name));
    this.el = h("div", { class: "cnb-tl" },
      h("div", { class: "cnb-tl-bar" },
        h("div", { class: "cnb-legend" }, legend().map(([cls, words]) => h("span", {}, h("i", { class: cls }), words))),
        h("div", { class: "cnb-tl-zoom" }, zoom("out", "minus", () => this.zoom(1.5)), zoom("in", "plus", () => this.zoom(0.66)), zoom("fit", "fit", () => this.fitAll()), this.follow)),
      this.empty, this.over, this.plot, this.info, this.tipBox);
    this.following = true; // the end stays in sight
    this.whole = true; // and the begin too
    this.win = null;
    this.plot.addEventListener("keydown", e => this.key(e));
    this.plot.addEventListener("wheel", e => this.wheel(e), { passive: false });
    this.plot.addEventListener("pointerdown", e => this.grab(e));
    this.over.addEventListener("pointerdown", e => this.grabOver(e));
  }

  get store() { return this.ctx.store; }
  width() { return Math.max(280, this.plot.clientWidth || this.el.clientWidth - 32 || 728); }
  now() { return this.data?.live ? Math.max(this.data.end, this.store.now() - this.data.zero) : this.data?.end ?? 0; }
  full() { const end = this.now(); return [-end * 0.012, end * (this.data?.live ? 1.045 : 1.012)]; }

  change(change) {
    if (["full", "head", "item", "tool"].includes(change.type)) this.stale = true;
  }

  shown() { this.load(); }

  tick() {
    if (!this.data) return;
    if (this.stale && performance.now() - (this.fetched ?? 0) > FRESH) this.load();
    else if (this.data.live) this.draw();
  }

  async load() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    this.stale = false;
    this.fetched = performance.now();
    const [a, b] = this.whole || !this.win ? [null, null] : this.win;
    const args = a == null ? {} : { from: Math.max(0, a - (b - a) * PAD), to: b + (b - a) * PAD };
    try {
      this.data = await this.store.do("timeline", { ...args, width: this.width() });
      this.reach = a == null ? [-Infinity, Infinity] : [args.from <= 0 ? -Infinity : args.from, args.to];
      this.draw();
      if (!this.picked) this.choose();
    } catch (error) { this.ctx.fail(error); } finally {
      this.busy = false;
      if (this.again) { this.again = false; this.load(); }
    }
  }

  // --- what is in sight ---
  setWin(a, b, keep) {
    if (!this.data) return;
    const full = this.full();
    const d = Math.max(0.5, Math.min(b - a, full[1] - full[0]));
    a = Math.max(full[0], Math.min(a, full[1] - d));
    this.win = [a, a + d];
    this.whole = d >= (full[1] - full[0]) * 0.995;
    if (!keep) this.following = this.whole || a + d >= full[1] - d * 0.02;
    this.soon();
    const many = this.data.columns && d < this.columnsFor * 0.7;
    if (a < this.reach[0] || a + d > this.reach[1] || many) { clearTimeout(this.later); this.later = setTimeout(() => this.load(), 90); }
  }

  zoom(f) {
    const [a, b] = this.win ?? this.full(), keep = this.following && this.data?.live, c = keep ? b : (a + b) / 2;
    this.setWin(c - (c - a) * f, c + (b - c) * f, keep);
  }
  fitAll() { this.whole = true; this.setWin(...this.full()); this.load(); }
  setFollow() { this.following = true; const d = Math.min(20, this.now()); this.setWin(this.now() - d, this.now() + d * 0.06); this.load(); }

  soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.data.live || !this.drawing?.move(this.win)) return this.draw(0.5);
      clearTimeout(this.rest);
      this.rest = setTimeout(() => this.draw(), 160); // labels and the strip above, once it stands still
    });
  }

  draw(margin = 0) {
    if (!this.data) return;
    clearTimeout(this.rest);
    if (margin) this.rest = setTimeout(() => this.draw(), 160);
    const nothing = !this.data.count && !this.data.messages.length;
    this.empty.hidden = !nothing;
    this.over.hidden = this.plot.hidden = nothing;
    if (nothing) return;
    const full = this.full(), now = this.now();
    if (this.whole || !this.win) this.win = full;
    else if (this.following && this.data.live) { const d = this.win[1] - this.win[0]; this.win = [Math.max(full[0], now + d * 0.06 - d), Math.max(full[0] + d, now + d * 0.06)]; }
    if (this.data.columns) this.columnsFor = this.data.to - this.data.from;
    const focused = this.plot.contains(document.activeElement);
    this.drawing = new Drawing({ width: this.width(), win: this.win, data: this.data, now, picked: this.picked, ids: this.ids, margin, on: { tip: (i, e) => this.tip(i, e), pick: i => this.pick(i), focus: i => this.focus(i) } });
    this.plot.replaceChildren(this.drawing.svg());
    const { W, L, R } = this.drawing;
    if (!margin || !this.over.firstChild) replace(this.over, overview({ width: W, left: L, right: R, over: this.data.over, full, win: this.win, now, live: this.data.live }));
    if (!this.picked || !this.plot.querySelector(".picked")) this.drawing.bars.find(i => i.row === "turns")?.node.setAttribute("tabindex", "0");
    if (focused) this.plot.querySelector(".picked")?.focus({ preventScroll: true });
    this.follow.hidden = !this.data.live;
    this.follow.setAttribute("aria-pressed", String(this.following));
    this.follow.classList.toggle("on", this.following);
  }

  // --- picking ---
  choose() {
    const { bars } = this.drawing ?? {};
    const start = bars?.find(i => i.kind === "ask") ?? bars?.filter(i => i.row === "turns").at(-1);
    if (start) this.pick(start);
  }

  facts(i) {
    return [h("header", {}, h("b", { text: i.title }), h("span", { class: "cnb-num cnb-dim", text: say("timeline.to", { a: secs1(i.a), b: secs1(i.b) }) + (i.live ? ` (${say("timeline.now")})` : "") })),
      i.note && h("code", { text: i.note }),
      h("dl", {}, [[say("timeline.duration"), secs1(i.b - i.a)], ...i.facts].filter(Boolean).map(([k, t]) => h("div", {}, k && h("dt", { text: k }), h("dd", { class: "cnb-num", text: String(t) }))))];
  }

  // By key or by click: the bar in focus is the picked one.
  focus(i) { if (this.picked?.key !== i.key || this.picked?.row !== i.row) this.pick(i); }

  pick(i) {
    this.picked = i;
    replace(this.info, this.facts(i), h("span", { class: "cnb-tl-go" },
      i.item && button({ class: "cnb-link", onClick: () => this.ctx.go("conversation", { item: i.item, part: i.part }) }, say("timeline.inConversation")),
      i.event && button({ class: "cnb-link", onClick: () => this.ctx.go("events", { event: i.event }) }, say("timeline.inEvents"))));
    this.draw();
  }

  jump(ref) { if (ref.time != null) this.setWin(ref.time - 10, ref.time + 10); }

  tip(i, event) {
    if (!i || this.dragging) { this.tipBox.hidden = true; return; }
    replace(this.tipBox, this.facts(i));
    this.tipBox.hidden = false;
    const box = this.el.getBoundingClientRect(), w = this.tipBox.offsetWidth, height = this.tipBox.offsetHeight;
    this.tipBox.style.left = `${Math.max(4, Math.min(event.clientX - box.left + 12, box.width - w - 4))}px`;
    const below = event.clientY - box.top + 16;
    this.tipBox.style.top = `${below + height > box.height ? event.clientY - box.top - height - 10 : below}px`;
  }

  // --- keys, wheel, drag ---
  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const row = this.drawing.bars.filter(i => i.row === (this.picked?.row || "turns")).sort((a, b) => a.a - b.a);
      const at = row.findIndex(i => i.key === this.picked?.key);
      const next = row[at + step];
      if (next) { this.pick(next); this.plot.querySelector(".picked")?.focus({ preventScroll: true }); }
      event.preventDefault();
    }
    const other = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (other) {
      const rows = ["runs", "turns", "model", "tools"].filter(name => this.drawing.bars.some(i => i.row === name));
      const name = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(this.picked?.row) + other))];
      const near = this.drawing.bars.filter(i => i.row === name).sort((a, b) => Math.abs(a.a - (this.picked?.a ?? 0)) - Math.abs(b.a - (this.picked?.a ?? 0)))[0];
      if (near) { this.pick(near); this.plot.querySelector(".picked")?.focus({ preventScroll: true }); }
      event.preventDefault();
    }
    if (event.key === "+") this.zoom(0.66);
    if (event.key === "-") this.zoom(1.5);
    if (event.key === "0") this.fitAll();
  }

  scale() { const { W, L, R } = this.drawing; return (this.win[1] - this.win[0]) / (W - L - R); }

  wheel(event) {
    if (!this.drawing) return;
    const zooms = event.ctrlKey || event.metaKey;
    if (!zooms && Math.abs(event.deltaX) < Math.abs(event.deltaY) && !event.shiftKey) return;
    event.preventDefault();
    if (zooms) {
      const box = this.plot.getBoundingClientRect(), t = this.win[0] + (event.clientX - box.left - this.drawing.L) * this.scale(), f = Math.exp(event.deltaY * 0.003);
      this.setWin(t - (t - this.win[0]) * f, t + (this.win[1] - t) * f);
    } else { const d = (event.deltaX || event.deltaY) * this.scale(); this.setWin(this.win[0] + d, this.win[1] + d); }
  }

  // The window moves with the pointer. Nothing is captured before it has moved, so that a click stays a click.
  grab(event) {
    if (event.button || !this.drawing) return;
    const start = event.clientX, win = [...this.win], scale = this.scale();
    this.drag(e => {
      if (!this.dragging && Math.abs(e.clientX - start) < 4) return;
      this.dragging = true;
      const d = (start - e.clientX) * scale;
      this.setWin(win[0] + d, win[1] + d);
    });
  }

  grabOver(event) {
    if (!this.drawing) return;
    const { W, L, R } = this.drawing, full = this.full(), box = this.over.getBoundingClientRect();
    const time = e => full[0] + ((e.clientX - box.left - L) / (W - L - R)) * (full[1] - full[0]);
    const X = t => L + ((t - full[0]) / (full[1] - full[0])) * (W - L - R);
    const px = event.clientX - box.left, win = [...this.win], from = time(event);
    const near = k => Math.abs(px - X(win[k])) < 7;
    const inside = px > X(win[0]) && px < X(win[1]) && !this.whole;
    this.drag(e => {
      this.dragging = true;
      const t = time(e);
      if (near(0)) this.setWin(Math.min(t, win[1] - 0.5), win[1]);
      else if (near(1)) this.setWin(win[0], Math.max(t, win[0] + 0.5));
      else if (inside) this.setWin(win[0] + t - from, win[1] + t - from);
      else if (Math.abs(t - from) > (full[1] - full[0]) / 300) this.setWin(Math.min(t, from), Math.max(t, from));
    });
  }

  drag(move) {
    const up = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", up); setTimeout(() => { this.dragging = false; }); };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
  }

  close() { cancelAnimationFrame(this.frame); clearTimeout(this.rest); clearTimeout(this.later); }
}
