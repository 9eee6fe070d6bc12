// The conversation: one rail, a node per turn; steers join it before the turn they landed in.
import { button, h, icon, pressed, replace, say } from "./dom.js";
import { question, refreshAsks } from "./ask.js";
import { TurnView, markView, messageView, runView } from "./turn.js";

const NEAR = 48; // px from the end within which the view sticks to it

export class Conversation {
  constructor(ctx) {
    this.ctx = ctx;
    this.views = new Map(); // key -> {el, turn?}
    this.above = button({ class: "cnb-link cnb-above", onClick: () => this.earlier() }, say("conversation.earlier"));
    this.rows = h("div");
    this.pending = h("div");
    this.questions = h("div");
    this.cards = new Map(); // request id -> the card of a question
    this.list = h("div", { class: "cnb-conv", role: "log", "aria-label": say("tab.conversation") }, this.above, this.rows, this.questions, this.pending);
    this.below = button({ class: "cnb-below", hidden: true, onClick: () => this.toEnd(true) }, icon("down"), say("conversation.latest"));
    this.empty = h("p", { class: "cnb-empty", text: say("conversation.empty") });
    this.el = h("div", { class: "cnb-scroll" }, this.empty, this.list, this.below);
    this.stick = true;
    this.held = pressed(this.el, () => this.edges());
    this.el.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.full();
  }

  get store() { return this.ctx.store; }

  full() {
    this.views.clear();
    this.rows.replaceChildren(...this.store.order.map(key => this.make(key)));
    this.lanes();
    this.edges();
  }

  make(key) {
    const item = this.store.items.get(key);
    const view = item.kind === "turn" ? new TurnView(item, this.ctx)
      : { el: item.kind === "message" ? messageView(item, this.ctx) : item.kind === "run" ? runView(item) : markView(item) };
    this.views.set(key, view);
    return view.el;
  }

  change(change) {
    const view = this.views.get(change.key);
    if (change.type === "full") this.full();
    else if (change.type === "head") this.lanes();
    else if (change.type === "item") {
      if (!view) this.rows.insertBefore(this.make(change.key), this.views.get(change.before)?.el ?? null);
      else if (view instanceof TurnView) view.update(this.store.items.get(change.key));
      else this.again(change.key, view);
    } else if (change.type === "trim") for (const key of change.keys) { this.views.get(key)?.el.remove(); this.views.delete(key); }
    else if (change.type === "earlier") return this.prepend(change.keys);
    else if (!view) return;
    else if (change.type === "tool") view.tool(view.turn.tools.find(tool => tool.key === change.tool));
    else if (change.type === "out") view.out(change.tool, change.piece);
    else view.piece(change);
    this.edges();
  }

  again(key, view) {
    const old = view.el;
    old.replaceWith(this.make(key));
  }

  // What waits is told whole with the head: steers at the end of the rail, questions before them.
  lanes() {
    const { head } = this.store;
    if (!head) return;
    const print = JSON.stringify([head.steers, head.run, head.turn, head.readonly]);
    if (print !== this.lanePrint) {
      this.lanePrint = print;
      replace(this.pending, head.steers.map(m => messageView(m, this.ctx)));
    }
    const open = head.asks.filter(ask => ask.kind !== "permission");
    for (const [id, el] of this.cards) if (!open.some(ask => ask.id === id)) { el.remove(); this.cards.delete(id); }
    for (const ask of open) { // a card stays as it is until it is answered: what was typed in it must not go
      if (this.cards.has(ask.id)) continue;
      this.cards.set(ask.id, question(ask, this.ctx));
      this.questions.append(this.cards.get(ask.id));
    }
    refreshAsks(this.el, head);
    this.edges();
  }

  edges() {
    const { store } = this;
    this.above.hidden = !store.more;
    this.empty.hidden = store.order.length > 0 || store.head?.steers.length > 0;
    this.list.hidden = !this.empty.hidden;
    if (this.stick && store.tail && !this.held()) this.toEnd();
    this.below.hidden = this.stick && store.tail;
  }

  toEnd(asked) {
    if (asked && !this.store.tail) { this.stick = true; this.store.tail = true; this.store.seq = -1; this.store.ping(); return; }
    this.stick = true;
    this.el.scrollTop = this.el.scrollHeight;
    this.below.hidden = true;
  }

  scrolled() {
    const left = this.el.scrollHeight - this.el.scrollTop - this.el.clientHeight;
    this.stick = left < NEAR;
    this.below.hidden = this.stick && this.store.tail;
    if (this.el.scrollTop < 300 && this.store.more && this.el.clientHeight) this.earlier();
  }

  earlier() { this.store.earlier().catch(error => this.ctx.fail(error)); }

  prepend(keys) {
    const before = this.el.scrollHeight - this.el.scrollTop;
    this.rows.prepend(...keys.map(key => this.make(key)));
    this.el.scrollTop = this.el.scrollHeight - before;
    this.above.hidden = !this.store.more;
  }

  shown() { if (this.stick) this.toEnd(); }

  async jump(ref) {
    this.stick = false;
    await this.store.around(ref.item || ref);
    const row = this.el.querySelector(`[data-ref="${CSS.escape(ref.part || ref.item || ref)}"]`) || this.views.get(ref.item || ref)?.el;
    if (!row) return;
    const box = this.el.getBoundingClientRect();
    this.el.scrollTop += row.getBoundingClientRect().top - box.top - 40;
    this.stick = false;
    for (const old of this.el.querySelectorAll(".cnb-flash")) old.classList.remove("cnb-flash");
    void row.offsetWidth; // starts the flash again
    row.classList.add("cnb-flash");
    row.setAttribute("tabindex", "-1");
    row.focus({ preventScroll: true });
  }
}
