// Both lanes as a small graph: the running run is the trunk, steers branch into it, numbers are the runs to come.
import { spans } from "./markdown.js";
import { CTRL, button, clock, h, icon, plural, pressed, replace, say, since } from "./dom.js";

export class QueueView {
  constructor(ctx) {
    this.ctx = ctx;
    this.gone = new Map(); // message id -> place it was taken from, for Undo
    this.put = new Set(); // ids of discarded messages that were put back
    this.el = h("div", { class: "cnb-queue" });
    this.held = pressed(this.el, () => this.draw());
    this.draw();
  }

  change(change) { if (change.type === "head" || change.type === "full") this.draw(); }
  shown() { this.draw(); }

  draw() {
    const { head } = this.ctx.store;
    const print = JSON.stringify([head.steers, head.flying, head.queue, head.removed, head.paused, head.run, head.turn, head.phase, head.busy, head.asks.length, this.editing, [...this.put], this.width()]);
    if (print === this.print || ((this.dragging || this.held()) && this.print)) return;
    this.print = print;
    const focus = this.el.contains(document.activeElement) && document.activeElement.dataset.focus;
    const edited = this.el.querySelector(".cnb-q-edit textarea")?.value;
    this.graph = h("div", { class: "cnb-graph" }, this.running(head), this.steering(head), this.queued(head), this.discarded(head));
    replace(this.el, this.graph);
    if (edited != null) { const area = this.el.querySelector(".cnb-q-edit textarea"); if (area) area.value = edited; }
    if (focus) this.el.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
    this.trunk(head);
  }

  width() { return this.el.clientWidth; }
  act(name, args) { return this.ctx.act(name, args); }
  tool(label, name, run, text, focus) {
    return this.ctx.readonly() ? null : button({ class: text ? "cnb-btn small" : "cnb-icon", label: text ? null : label, title: label, "data-focus": focus, onClick: run }, icon(name), text);
  }

  running(head) {
    const words = !head.busy ? say("queue.nothingRuns") : head.asks.length ? say("state.ask") : head.phase ? say(`queue.phase.${head.phase}`) : say("state.starting");
    return h("ol", { "aria-label": say("queue.running") }, h("li", { class: "cnb-q now" }, h("span", { class: `cnb-node run ${head.asks.length ? "ask" : head.busy ? "run" : "idle"}`, "aria-hidden": "true" }),
      h("div", { class: "cnb-q-text" },
        h("p", {}, head.run ? h("b", { text: say("run.name", { n: head.run }) }) : null, head.run && head.busy ? `, ${head.turn ? say("queue.turn", head) : ""}${words}` : head.run ? `, ${say("queue.done")}` : words),
        h("span", { class: "cnb-dim" }, spans(head.prompt)))));
  }

  steering(head) {
    const hint = head.steers.length ? say("queue.steersJoin") : head.busy ? say("queue.noSteers", { key: `${CTRL} Enter`, run: head.run }) : say("queue.noSteersIdle");
    return h("section", { "aria-label": say("queue.steerLane") },
      h("header", { class: "cnb-lane" }, h("h3", { text: say("queue.steering") }), h("span", { class: "cnb-dim", text: hint })),
      h("ol", {}, head.flying.map(m => h("li", { class: "cnb-q steer flying", "data-ref": m.key }, h("span", { class: "cnb-node steer", "aria-hidden": "true" }),
        h("div", { class: "cnb-q-text" }, h("p", {}, spans(m.text)), h("span", { class: "cnb-dim", text: say("queue.flying", { turn: m.turn }) })))),
      head.steers.map(m => this.editing === m.id ? this.editor(m, "steer") : h("li", { class: "cnb-q steer", "data-ref": m.key },
        h("span", { class: "cnb-node steer", "aria-hidden": "true" }),
        h("div", { class: "cnb-q-text" }, h("p", {}, spans(m.text)), h("span", { class: "cnb-dim" }, say("queue.lands", { turn: head.turn + 1 }), ", ", say("queue.waits"), " ", since(m.sent))),
        h("div", { class: "cnb-q-do" },
          this.tool(say("queue.toQueue"), "queue", () => this.act("steer.withdraw", { message: m.id, text: m.text, mode: "enqueue" })),
          this.tool(say("queue.edit"), "edit", () => this.edit(m.id)),
          this.tool(say("queue.remove"), "trash", () => this.act("steer.withdraw", { message: m.id })))))));
  }

  queued(head) {
    const some = head.queued > 0;
    return h("section", { "aria-label": say("queue.queueLane") },
      h("header", { class: "cnb-lane" }, h("h3", { text: say("queue.queue") }), h("span", { class: "cnb-dim", text: say(head.paused ? "queue.paused" : some ? "queue.each" : "queue.empty") }), h("span", { class: "cnb-gap" }),
        this.tool(say(head.paused ? "queue.resumeNote" : "queue.pauseNote"), head.paused ? "play" : "pause", () => this.act("queue.pause", { paused: !head.paused }), say(head.paused ? "queue.resume" : "queue.pause"), "pause"),
        some && this.tool(say("queue.clearNote"), "trash", () => this.clear(head), say("queue.clear"), "clear")),
      h("ol", { onDragenter: e => this.over(e), onDragover: e => this.over(e), onDrop: e => this.drop(e) }, head.queue.map((m, i) => this.item(m, i, head)),
        head.queued > head.queue.length && h("li", { class: "cnb-q cnb-dim" }, h("div", { class: "cnb-q-text", text: say("queue.more", { n: head.queued - head.queue.length }) }))));
  }

  item(m, i, head) {
    if (this.editing === m.id) return this.editor(m, "queue", i);
    const grip = this.ctx.readonly() ? null : button({ class: "cnb-grip", label: say("queue.grip", { n: i + 1 }), "data-focus": `grip-${m.id}`, onKeydown: e => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[e.key];
      if (!step) return;
      e.preventDefault();
      this.move(m, i, i + step);
    } }, icon("grip"));
    const missed = m.reason === "missed" ? `${say("queue.missed")}, ` : "";
    const next = i === 0 && head.busy && !head.paused ? `, ${say("queue.next", { run: head.run })}` : "";
    return h("li", { class: `cnb-q${missed ? " missed" : ""}`, "data-ref": m.key, "data-id": m.id, draggable: this.ctx.readonly() ? null : "true",
      onDragstart: e => { this.dragging = m.id; e.dataTransfer.setData("text/plain", m.text); e.dataTransfer.effectAllowed = "move"; }, onDragend: () => this.dropped() },
    h("span", { class: "cnb-node", "aria-hidden": "true", text: String(i + 1) }), grip,
    h("div", { class: "cnb-q-text" }, h("p", {}, spans(m.text)), h("span", { class: "cnb-dim cnb-num" }, missed, say("queue.sent", { time: clock(m.sent) }), ", ", say("queue.waits"), " ", since(m.sent), next)),
    h("div", { class: "cnb-q-do" },
      head.busy && !this.ctx.readonly() && button({ class: "cnb-btn small ghost", title: say("queue.steerNote"), onClick: () => this.act("queue.steer", { message: m.id }) }, icon("steer"), say("queue.steerNow")),
      this.tool(say("queue.edit"), "edit", () => this.edit(m.id)),
      this.tool(say("queue.duplicate"), "copy", () => this.act("queue.duplicate", { message: m.id })),
      this.tool(say("queue.remove"), "trash", () => this.remove(m, i))));
  }

  editor(m, lane, i = 0) {
    const save = () => {
      const text = area.value;
      if (!text.trim()) return area.focus();
      this.editing = null;
      if (lane === "steer") this.act("steer.withdraw", { message: m.id, text, mode: "immediate" });
      else this.act("queue.edit", { message: m.id, text });
      this.draw();
    };
    const cancel = () => { this.editing = null; this.draw(); };
    const area = h("textarea", { rows: 2, "aria-label": say("queue.editMessage"), onKeydown: e => {
      e.stopPropagation();
      if (e.key === "Escape") cancel();
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) save();
    } });
    area.value = m.text;
    return h("li", { class: `cnb-q editing ${lane}`, "data-ref": m.key }, h("span", { class: `cnb-node ${lane === "steer" ? "steer" : ""}`, "aria-hidden": "true", text: lane === "steer" ? "" : String(i + 1) }),
      h("div", { class: "cnb-q-edit" }, area, h("div", {}, button({ class: "cnb-btn small primary", onClick: save }, say("queue.save")), button({ class: "cnb-btn small", onClick: cancel }, say("queue.cancel")))));
  }

  edit(id) {
    this.editing = id;
    this.draw();
    this.el.querySelector(".cnb-q-edit textarea")?.focus();
  }

  discarded(head) {
    const list = head.removed.filter(m => m.reason !== "replaced").reverse();
    if (!list.length) return null;
    const batch = list.filter(m => this.gone.get(m.id)?.batch && this.gone.get(m.id).batch === this.gone.get(list[0].id)?.batch && !this.put.has(m.id));
    return h("section", { "aria-label": say("queue.discarded") },
      h("header", { class: "cnb-lane" }, h("h3", { text: say("queue.discarded") }), h("span", { class: "cnb-dim", text: say("queue.stays") }), h("span", { class: "cnb-gap" }),
        batch.length > 1 && this.tool(say("queue.undoClearNote"), "undo", () => this.undo(batch), say("queue.undoClear"), "undo")),
      h("ol", {}, list.map(m => h("li", { class: "cnb-q discarded", "data-ref": m.key }, h("span", { class: "cnb-node x", "aria-hidden": "true" }, icon("cross")),
        h("div", { class: "cnb-q-text" }, h("p", {}, h("s", {}, spans(m.text))), h("span", { class: "cnb-dim", text: say("queue.why", { why: say(`removed.${m.reason || "removed"}`), time: clock(m.removed) }) })),
        h("div", { class: "cnb-q-do" }, this.put.has(m.id) ? h("span", { class: "cnb-dim", text: say("queue.isBack") }) : this.tool(say("queue.putBackNote"), "undo", () => this.undo([m]), say("queue.putBack")))))));
  }

  // --- doing ---
  move(m, from, to) {
    const { head } = this.ctx.store;
    if (to < 0 || to >= head.queued || to === from) return;
    this.act("queue.move", { message: m.id, to });
  }

  remove(m, i) {
    this.gone.set(m.id, { place: i });
    this.act("queue.remove", { message: m.id });
  }

  clear(head) {
    const batch = Symbol("clear");
    head.queue.forEach((m, place) => this.gone.set(m.id, { place, batch }));
    this.act("queue.clear");
  }

  async undo(messages) {
    const back = [...messages].sort((a, b) => (this.gone.get(a.id)?.place ?? 0) - (this.gone.get(b.id)?.place ?? 0));
    for (const m of back) {
      const place = this.gone.get(m.id)?.place;
      const done = await this.act("queue.insert", { text: m.text, ...(place == null ? {} : { position: place }) });
      if (done !== false) this.put.add(m.id);
    }
    this.draw();
  }

  over(event) {
    if (!this.dragging) return;
    event.preventDefault();
    const row = event.target.closest("li[data-id]");
    for (const li of this.el.querySelectorAll(".drop-before, .drop-after")) li.classList.remove("drop-before", "drop-after");
    if (!row) return;
    const box = row.getBoundingClientRect();
    row.classList.add(event.clientY < box.top + box.height / 2 ? "drop-before" : "drop-after");
  }

  drop(event) {
    event.preventDefault();
    const row = event.target.closest("li[data-id]");
    const { queue } = this.ctx.store.head;
    const from = queue.findIndex(m => m.id === this.dragging);
    if (row && from >= 0) {
      let to = queue.findIndex(m => m.id === row.dataset.id) + (row.classList.contains("drop-after") ? 1 : 0);
      if (to > from) to -= 1;
      this.move(queue[from], from, to);
    }
    this.dropped();
  }

  dropped() {
    this.dragging = null;
    this.print = null;
    this.draw();
  }

  // from the running run down to the last queued message; dashed behind a pause
  trunk(head) {
    const top = this.graph.getBoundingClientRect().top;
    const at = el => el.getBoundingClientRect().top - top;
    const nodes = [...this.graph.querySelectorAll(".cnb-node:not(.steer):not(.x)")];
    if (nodes.length < 2 || !this.el.isConnected) return;
    const line = (a, b) => this.graph.prepend(h("span", { class: `cnb-trunk${head.paused ? " paused" : ""}`, style: `top:${a}px;height:${b - a}px` }));
    line(at(nodes[0]) + 17, at(nodes[1]));
    line(at(nodes[1]), at(nodes.at(-1)));
  }
}
