// The bar: state in words first, then model, context, mode and Stop; and the tabs.
import { button, g, h, icon, kilo, nameOf, plural, replace, say, since } from "./dom.js";

const MODES = ["interactive", "plan", "autopilot"];

function ring(share) {
  const c = 2 * Math.PI * 6;
  return g("svg", { viewBox: "0 0 16 16", width: 16, height: 16, class: "cnb-ring", "aria-hidden": "true" },
    g("circle", { cx: 8, cy: 8, r: 6, class: "bg" }),
    g("circle", { cx: 8, cy: 8, r: 6, class: "fg", "stroke-dasharray": `${(c * Math.max(share, 0.02)).toFixed(2)} ${c.toFixed(2)}`, transform: "rotate(-90 8 8)" }));
}

// What goes on: the tone that colours the dot, words, and since when.
export function state(head) {
  if (head.asks.length) {
    const ask = head.asks[0];
    return { tone: "ask", words: say("state.ask"), verb: ask.name || say(`question.kind.${ask.kind}`), since: ask.asked, also: head.tools };
  }
  if (!head.busy) {
    const words = head.closed ? "state.closed" : head.counts.runs ? "state.idle" : "state.ready";
    return { tone: "idle", words: say(words), verb: head.counts.runs ? `${plural(head.counts.runs, "runs")}, ${plural(head.counts.turns, "turns")}` : "" };
  }
  const where = head.turn ? say(head.run > 1 ? "state.runTurn" : "state.turn", head) : say("state.starting");
  const tools = head.tools.length > 3 ? plural(head.tools.length, "tools") : head.tools.join(", ");
  const verb = head.phase === "tools" ? (tools ? say("phase.tools", { tools }) : say("phase.finishing"))
    : head.phase === "done" ? say(head.background ? "phase.background" : "phase.finishing") : head.phase ? say(`phase.${head.phase}`) : "";
  return { tone: "run", words: where, verb, since: head.since };
}

export class Bar {
  constructor(ctx) {
    this.ctx = ctx;
    this.words = h("span", { class: "cnb-state-words" });
    this.status = h("div", { class: "cnb-state" }, h("span", { class: "cnb-pulse", "aria-hidden": "true" }), this.words);
    this.spoken = h("span", { class: "cnb-offscreen", role: "status" }); // the words without the running clock
    this.facts = h("div", { class: "cnb-facts" });
    this.mode = h("select", { class: "cnb-chip cnb-mode", "aria-label": say("bar.mode"), onKeydown: e => e.stopPropagation(),
      onChange: () => ctx.act("mode", { mode: this.mode.value }) }, MODES.map(mode => h("option", { value: mode, text: say(`mode.${mode}`) })));
    this.modes = h("span", { class: "cnb-modes" }, this.mode, icon("down"));
    this.stop = button({ class: "cnb-btn cnb-stop", "aria-label": say("bar.stopRun"), title: say("bar.stopNote"), onClick: () => ctx.act("stop") }, icon("stop"), say("bar.stop"));
    this.el = h("header", { class: "cnb-bar" }, this.status, this.facts, this.stop, this.spoken);
  }

  update(head) {
    const now = state(head);
    this.el.setAttribute("data-tone", now.tone);
    replace(this.words, h("b", { text: now.words }), now.verb && h("span", { text: now.verb }), now.since != null && since(now.since, { class: "cnb-dim cnb-num" }),
      now.also?.length > 0 && h("span", { class: "cnb-dim cnb-also", text: say("state.also", { tools: now.also.join(", ") }) }),
      head.runtime?.state && head.runtime.state !== "ready" && h("span", { class: "cnb-dim", text: head.runtime.message || head.runtime.state }));
    const spoken = [now.words, now.verb].filter(Boolean).join(", ");
    if (this.spoken.textContent !== spoken) this.spoken.textContent = spoken;
    const used = head.context, limit = head.limit;
    const title = limit ? say("bar.context", { used: used.toLocaleString("en"), limit: limit.toLocaleString("en"), share: Math.round((100 * used) / limit) }) : say("bar.contextOnly", { used: used.toLocaleString("en") });
    const total = say("bar.total", { in: kilo(head.tokens[0]), out: kilo(head.tokens[1]) });
    replace(this.facts,
      h("span", { class: "cnb-model", "data-kind": head.kind, title: say("bar.runtime", { runtime: head.runtimeName }) }, head.kind === "demo" ? [say("bar.demo"), h("span", { class: "cnb-model-note", text: say("bar.noLLM") })] : head.model),
      used > 0 && h("span", { class: "cnb-ctx", title: `${title}\n${total}` }, limit ? ring(used / limit) : null, h("span", { class: "cnb-num" }, kilo(used), limit ? h("span", { class: "cnb-dim", text: ` / ${kilo(limit).replace(".0k", "k")}` }) : h("span", { class: "cnb-dim", text: ` ${say("bar.tokens")}` }))),
      head.readonly ? h("span", { class: "cnb-chip cnb-readonly", text: say("bar.log") }) : this.modes);
    if (this.mode.value !== head.mode) this.mode.value = head.mode;
    this.stop.hidden = head.readonly;
    this.stop.disabled = !head.busy;
  }
}

export class Tabs {
  constructor(ctx, names) {
    this.ctx = ctx;
    this.names = names;
    this.tabs = new Map(names.map(name => [name, h("button", { type: "button", role: "tab", id: ctx.id(`tab-${name}`), "aria-controls": ctx.id("body"), onClick: () => ctx.go(name) }, h("span", { text: say(`tab.${name}`) }))]));
    this.session = h("span", { class: "cnb-session" });
    this.el = h("div", { class: "cnb-tabs" }, h("div", { role: "tablist", "aria-label": say("tab.views"), onKeydown: e => this.key(e) }, [...this.tabs.values()]), this.session);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = this.names[(this.names.indexOf(this.view) + step + this.names.length) % this.names.length];
    this.ctx.go(next);
    this.tabs.get(next).focus();
  }

  update(view, head, events) {
    this.view = view;
    const waiting = head.steers.length + head.queued;
    for (const [name, tab] of this.tabs) {
      tab.setAttribute("aria-selected", String(name === view));
      tab.tabIndex = name === view ? 0 : -1;
      const count = name === "queue" ? waiting : name === "events" ? events : null;
      replace(tab, h("span", { text: say(`tab.${name}`) }),
        count > 0 && h("span", { class: `cnb-count${name === "queue" && head.steers.length ? " steer" : ""}`, text: count < 1e4 ? String(count) : kilo(count) }),
        name === "conversation" && head.asks.length > 0 && view !== name && h("span", { class: "cnb-askdot", role: "img", "aria-label": say("state.ask") }));
    }
    this.session.textContent = nameOf(head);
    this.session.title = say("bar.session", head);
  }
}
