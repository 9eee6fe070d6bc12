// One turn: what the model said, and a row per tool call. Parts are kept and brought up to date, not drawn anew.
import { button, clock, g, h, icon, kilo, plural, replace, say, secs, secs1, since } from "./dom.js";
import { codeBlock, diff, isDiff } from "./code.js";
import { Growing, spans } from "./markdown.js";
import { permission } from "./ask.js";

export class TurnView {
  constructor(turn, ctx) {
    this.ctx = ctx;
    this.tools = new Map(); // key -> ToolView
    this.head = h("header");
    this.think = h("details", { class: "cnb-think", hidden: true }, h("summary"), h("p"));
    this.text = new Growing(turn.text || "");
    this.list = h("div", { class: "cnb-tools", hidden: true });
    this.asks = h("div");
    this.el = h("section", { class: "cnb-turn", "data-ref": turn.key, "aria-label": say("turn.name", turn) },
      this.head, this.think, this.text.el, this.list, this.asks);
    this.update(turn);
  }

  update(turn) {
    this.turn = turn;
    const live = turn.t1 == null;
    this.el.classList.toggle("live", live);
    const tokens = turn.in || turn.out ? say("turn.tokens", { in: kilo(turn.in || 0), out: kilo(turn.out || 0) }) : "";
    replace(this.head, h("h3", { text: say("turn.name", turn) }),
      live ? since(turn.t0, { class: "cnb-dim cnb-num" }) : h("span", { class: "cnb-dim cnb-num", text: secs1(turn.t1 - turn.t0) }),
      tokens && h("span", { class: "cnb-dim cnb-num cnb-tok", text: tokens }),
      turn.phase === "wait" && h("span", { class: "cnb-dim cnb-tok", text: say("phase.wait") }),
      turn.retries?.length > 0 && h("span", { class: "cnb-retry cnb-tok", text: plural(turn.retries.length, "turn.retries") }),
      turn.partial && h("span", { class: "cnb-retry cnb-tok", text: say("turn.partial") }));
    this.thought();
    if (!live || turn.said != null) this.text.finish(turn.text || "");
    else if (turn.text !== undefined && this.text.text.length !== turn.text.length) this.text.finish(turn.text);
    this.text.el.classList.toggle("writing", turn.phase === "write");
    for (const tool of turn.tools || []) this.tool(tool);
  }

  thought() {
    const { turn } = this;
    const running = turn.phase === "reason";
    this.think.hidden = !turn.think && !running;
    if (this.think.hidden) return;
    const end = turn.textAt ?? turn.said ?? turn.t1;
    const words = running || turn.first == null || end == null ? say(running ? "turn.thinking" : "turn.thought") : say("turn.thoughtFor", { time: secs(end - turn.first) });
    replace(this.think.firstChild, icon("chevron", "turn"), words);
    if (this.think.lastChild.textContent !== turn.think) this.think.lastChild.textContent = turn.think || "";
  }

  piece(change) {
    if (change.type === "think") return this.thought();
    if (change.replace) this.text.set(this.turn.text);
    else this.text.append(change.piece);
  }

  tool(tool) {
    let view = this.tools.get(tool.key);
    const asking = tool.state === "ask";
    if (!view || view.asking !== asking) {
      view?.el.remove();
      view = asking ? new AskView(tool, this.ctx) : new ToolView(tool, this.turn, this.ctx);
      view.asking = asking;
      this.tools.set(tool.key, view);
      if (asking) this.asks.append(view.el);
      else {
        const later = this.turn.tools.slice(this.turn.tools.indexOf(tool) + 1).map(t => this.tools.get(t.key)).find(v => v && !v.asking);
        this.list.insertBefore(view.el, later ? later.el : null);
      }
    } else view.update(tool, this.turn);
    const rows = this.list.childElementCount;
    this.list.hidden = !rows;
    this.list.setAttribute("role", "list");
    this.list.setAttribute("aria-label", rows > 1 ? plural(rows, "tool.parallel") : say("tool.one"));
  }

  out(key, piece) { this.tools.get(key)?.out?.(piece); }
}

class AskView {
  constructor(tool, ctx) { this.el = permission(tool, ctx); }
  update() { /* the card stays as it is until it is answered: nothing moves under the pointer */ }
}

class ToolView {
  constructor(tool, turn, ctx) {
    this.ctx = ctx;
    this.key = tool.key;
    this.id = ctx.id(tool.key);
    this.body = h("div", { class: "cnb-tool-body", id: this.id, hidden: true });
    this.row = button({ class: "cnb-tool-row", "aria-expanded": "false", "aria-controls": this.id, onClick: () => this.toggle() });
    this.error = h("p", { class: "cnb-tool-err", hidden: true });
    this.el = h("div", { class: "cnb-tool", role: "listitem", "data-ref": tool.key }, this.row, this.error, this.body);
    this.update(tool, turn);
    if (tool.state === "running" || isDiff(tool.result)) this.toggle(true);
  }

  update(tool, turn) {
    this.data = tool;
    const live = tool.t1 == null;
    this.el.className = `cnb-tool ${tool.state}`;
    const state = { ok: ["check", "ok"], failed: ["cross", "fail"], interrupted: ["minus", ""] }[tool.state];
    replace(this.row,
      state ? icon(...state) : h("span", { class: "cnb-spin", "aria-hidden": "true" }),
      h("span", { class: "cnb-tool-name", text: tool.name }), h("span", { class: "cnb-tool-arg", text: tool.arg }),
      h("span", { class: "cnb-tool-res", text: live ? "" : say(`tool.state.${tool.state}`, { sum: tool.sum }) }),
      gantt(tool, turn, this.ctx.store.now()),
      live ? since(tool.t0, { class: "cnb-tool-dur cnb-num" }) : h("span", { class: "cnb-tool-dur cnb-num", text: secs1(tool.t1 - tool.t0) }),
      icon("chevron", "turn"));
    const first = tool.state === "failed" && (tool.error || tool.result || "").trim().split("\n").at(-1);
    this.error.hidden = !first || this.open;
    this.error.textContent = first || "";
    if (this.open) this.fill();
  }

  toggle(open = !this.open) {
    this.open = open;
    this.body.hidden = !open;
    this.row.setAttribute("aria-expanded", String(open));
    this.error.hidden = open || !this.error.textContent;
    if (open) this.fill();
  }

  fill() {
    const tool = this.data;
    const text = tool.t1 == null ? tool.output || "" : tool.result || tool.error || tool.output || "";
    this.printed = h("pre", { class: "cnb-out", tabindex: 0, role: "region", "aria-label": say("tool.output", tool), hidden: !text, text });
    if (tool.state === "failed") this.printed.classList.add("err");
    const who = tool.reason ? say("tool.rule", tool) : tool.answer && say(`answer.${tool.answer}`, { time: secs((tool.answered ?? 0) - (tool.asked ?? tool.answered ?? 0)) });
    replace(this.body,
      tool.code && !(isDiff(tool.result) && tool.lang === "json") && codeBlock(tool.code, tool.lang),
      isDiff(tool.result) ? diff(tool.result) : this.printed,
      tool.cut && button({ class: "cnb-link", onClick: e => this.whole(e.currentTarget) }, say("tool.whole")),
      (tool.display || []).map(shown => display(shown, tool)),
      who && h("p", { class: "cnb-tool-note" }, icon("lock"), who),
      tool.feedback && h("p", { class: "cnb-tool-note" }, say("tool.feedback", tool)));
  }

  async whole(link) {
    const { text } = await this.ctx.act("tool", { id: this.data.id });
    this.printed.textContent = text;
    link.remove();
  }

  out(piece) {
    if (!this.open || !this.printed || this.data.t1 != null) return;
    const end = this.printed.scrollHeight - this.printed.scrollTop - this.printed.clientHeight < 24;
    this.printed.hidden = false;
    this.printed.append(piece);
    if (end) this.printed.scrollTop = this.printed.scrollHeight;
  }
}

// Images come as data; nothing else of a bundle is trusted to be more than text.
function display(shown, tool) {
  if (!shown.mime.startsWith("image/")) return h("pre", { class: "cnb-out", tabindex: 0, text: shown.data });
  const data = shown.mime === "image/svg+xml" ? `;utf8,${encodeURIComponent(shown.data)}` : `;base64,${shown.data.replace(/\s/g, "")}`;
  return h("figure", { class: "cnb-figure" }, h("img", { src: `data:${shown.mime}${data}`, alt: say("tool.figure", tool) }));
}

// Who ran when within the turn, and what of it was waiting for the person.
function gantt(tool, turn, now) {
  const a = turn.said ?? turn.t0, b = Math.max(turn.t1 ?? now, a + 0.05), W = 72;
  const x = t => Math.min(W, Math.max(0, ((t - a) / (b - a)) * W));
  const bar = (t0, t1, cls) => g("rect", { x: x(t0).toFixed(1), y: 1, width: Math.max(2, x(t1) - x(t0)).toFixed(1), height: 4, rx: 1.5, class: cls });
  const end = tool.t1 ?? now;
  return g("svg", { class: "cnb-gantt", width: W, height: 6, "aria-hidden": "true" }, g("rect", { x: 0, y: 2.5, width: W, height: 1, class: "track" }),
    tool.asked && bar(tool.asked, tool.answered ?? end, "ask"), bar(tool.answered ?? tool.t0, end, tool.state));
}

export function messageView(m, ctx) {
  const [name, way] = delivered(m, ctx);
  const kind = m.lane === "steering" && m.delivery !== "queued" ? "steer" : m.delivery === "queued" || m.lane === "queue" ? "queue" : "idle";
  const at = m.sent ?? m.landed;
  return h("article", { class: `cnb-msg ${kind} ${m.state}${m.nudge ? " nudge" : ""}`, "data-ref": m.key },
    h("header", {}, h("b", { text: say(m.nudge ? "message.autopilot" : "message.you") }), h("span", { class: `cnb-mark ${kind}` }, icon(name), h("span", {}, way)),
      at != null && h("time", { class: "cnb-num", text: clock(at) })),
    m.text && h("p", {}, spans(m.text)),
    m.files?.length > 0 && h("p", { class: "cnb-files" }, m.files.map(file => h("code", { text: file }))),
    m.state === "pending" && pendingFooter(m, ctx));
}

function delivered(m, ctx) {
  if (m.nudge) return ["undo", say("message.nudge")];
  if (m.state === "pending") return ["steer", [say("message.steerWaits"), " ", since(m.sent)]];
  const time = m.sent != null && m.landed != null ? secs(m.landed - m.sent) : "";
  if (m.delivery === "steering") return ["steer", say(time && m.landed - m.sent > 0.05 ? "message.steered" : "message.steeredNow", { ...m, time })];
  if (m.reason === "missed") return ["queue", say("message.missed", { ...m, time })];
  if (m.delivery === "queued" && time) return ["queue", say("message.queued", { ...m, time })];
  return ["send", say(m.source && m.source !== "user" ? "message.source" : "message.started", m)];
}

function pendingFooter(m, ctx) {
  const { head } = ctx.store;
  return h("footer", {}, h("span", { text: say("message.joins", { run: head.run, turn: head.turn + 1 }) }),
    !ctx.readonly() && [button({ class: "cnb-link", onClick: () => ctx.edit(m) }, say("queue.edit")),
      button({ class: "cnb-link", onClick: () => ctx.act("steer.withdraw", { message: m.id }) }, say("message.takeBack"))]);
}

export function markView(mark) {
  const kind = { error: "fail", abort: "fail", limit: "fail", warning: "fail" }[mark.what] || "";
  const name = { error: "cross", abort: "stop", compaction_complete: "fold", task_complete: "check", notification: "bell", limit: "warn", warning: "warn" }[mark.what] || "minus";
  const words = say(`mark.${mark.what}`, { ...mark.data, text: mark.text });
  const long = mark.text && mark.what !== "abort" && !words.includes(mark.text);
  return h("div", { class: `cnb-event ${mark.what} ${kind}`, "data-ref": mark.key, role: mark.what === "error" ? "alert" : null }, icon(name, kind || (mark.what === "task_complete" ? "ok" : "")),
    long ? h("details", {}, h("summary", {}, icon("chevron", "turn"), words), h("p", { text: mark.text })) : h("span", { text: words }), h("time", { class: "cnb-num cnb-dim", text: clock(mark.t) }));
}

export function runView(run) {
  const words = run.t1 == null ? [say("run.running"), " ", since(run.t0)] : say(`run.${run.state}`, { time: secs(run.t1 - run.t0) });
  return h("div", { class: `cnb-runhead ${run.state}`, "data-ref": run.key }, h("h3", { text: say("run.name", run) }), h("span", { class: "cnb-dim cnb-num" }, words));
}
