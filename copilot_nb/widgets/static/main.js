// The widget: one store per panel, one set of views per place where it is shown.
import { h, replace, say, secs, unique } from "./dom.js";
import { storeOf } from "./store.js";
import { Bar, Tabs, state } from "./bar.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { Timeline } from "./timeline.js";
import { QueueView } from "./queue.js";
import { EventsView } from "./events.js";
import { askStrip } from "./ask.js";
import { Notices } from "./notify.js";

const VIEWS = { conversation: Conversation, timeline: Timeline, queue: QueueView, events: EventsView };
const NAMES = Object.keys(VIEWS);

class PanelView {
  constructor(model, el) {
    this.store = storeOf(model);
    this.prefix = unique();
    this.view = NAMES.includes(model.get("tab")) ? model.get("tab") : NAMES[0];
    this.made = new Map(); // name -> view, made when first shown
    this.root = h("section", { class: "cnb", "data-lm-suppress-shortcuts": "true" });
    this.bar = new Bar(this);
    this.tabs = new Tabs(this, NAMES);
    this.body = h("div", { class: "cnb-body", id: this.id("body"), role: "tabpanel", tabindex: -1 });
    this.strip = h("div", { class: "cnb-askstrip", role: "alert", hidden: true });
    this.gone = h("div", { class: "cnb-gone", role: "alert", hidden: true });
    this.composer = new Composer(this);
    this.notices = new Notices(this);
    this.root.append(this.bar.el, this.tabs.el, this.gone, this.body, this.strip, this.composer.el);
    for (const type of ["keydown", "keyup", "keypress"]) this.root.addEventListener(type, e => e.stopPropagation());
    el.append(this.root);
    this.off = this.store.subscribe(change => this.change(change));
    this.clock = setInterval(() => this.tick(), 200);
    this.resize = new ResizeObserver(() => this.made.get(this.view)?.shown?.());
    this.resize.observe(this.body);
    if (this.store.head) this.go(this.view);
    else replace(this.body, h("p", { class: "cnb-empty", text: say("panel.loading") }));
    this.store.ask();
  }

  // --- what views use ---
  id(name) { return `${this.prefix}-${name.replace(/[^\w-]/g, "_")}`; }
  readonly() { return this.store.head?.readonly || this.store.head?.closed; }
  edit(message) { this.go("conversation"); this.composer.edit(message); }
  fail(error) { this.composer.fail(error?.message || String(error)); }

  // Ask the kernel; false when it refused, and the reason is shown.
  async act(name, args) {
    try {
      const value = await this.store.do(name, args);
      return value ?? true;
    } catch (error) {
      this.fail(error);
      return false;
    }
  }

  go(name, ref) {
    this.view = name;
    this.counted = 0; // the tabs show at once where one is
    let view = this.made.get(name);
    if (!view) this.made.set(name, (view = new VIEWS[name](this)));
    this.body.className = `cnb-body ${name}`;
    this.body.setAttribute("aria-labelledby", this.id(`tab-${name}`));
    if (this.body.firstChild !== view.el || this.body.childNodes.length !== 1) this.body.replaceChildren(view.el);
    this.facts();
    view.shown?.();
    if (ref) view.jump?.(ref);
  }

  // --- changes ---
  change(change) {
    if (!this.store.head) return;
    if (change.type === "silent") return this.silence();
    if (!this.made.size) return this.go(this.view);
    for (const [name, view] of this.made) {
      if (name === "conversation" || name === this.view) view.change?.(change);
      else view.stale = true;
    }
    if (change.type === "head" || change.type === "full") this.facts();
    else if (change.type === "events") this.count();
  }

  facts() {
    const { head } = this.store;
    this.root.setAttribute("aria-label", say("bar.session", head));
    this.bar.update(head);
    this.composer.update(head, this.view);
    askStrip(this.strip, this.view === "conversation" ? { asks: [] } : head, () => this.go("conversation"));
    this.count();
    this.notices.update(head, state(head));
    this.silence();
  }

  count() {
    const now = performance.now();
    if (now - (this.counted ?? 0) < 400) { this.late ??= setTimeout(() => { this.late = null; this.count(); }, 420); return; }
    this.counted = now;
    this.tabs.update(this.view, this.store.head, this.store.events);
  }

  silence() {
    const { silent, head } = this.store;
    const notice = head?.notices.at(-1);
    this.gone.hidden = !silent && !(notice && notice.level === "error");
    this.gone.textContent = silent ? say("panel.silent") : notice?.message || "";
    this.root.classList.toggle("gone", silent);
  }

  // Running clocks: every element that says since when.
  tick() {
    if (document.hidden || !this.root.isConnected) return;
    const now = this.store.now();
    for (const span of this.root.querySelectorAll("[data-since]")) {
      const text = secs(now - Number(span.dataset.since));
      if (span.textContent !== text) span.textContent = text;
    }
    this.made.get(this.view)?.tick?.(now);
  }

  close() {
    this.off();
    clearInterval(this.clock);
    clearTimeout(this.late);
    this.resize.disconnect();
    for (const view of this.made.values()) view.close?.();
    this.notices.close();
    this.root.remove();
  }
}

export default {
  initialize({ model }) {
    const store = storeOf(model);
    return () => store.close();
  },
  render({ model, el }) {
    const view = new PanelView(model, el);
    return () => view.close();
  },
};
