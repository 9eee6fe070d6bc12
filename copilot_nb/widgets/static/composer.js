// The box: Enter enqueues, Ctrl or Cmd with Enter steers. Both say what they will do now.
import { CTRL, button, h, icon, nameOf, plural, replace, say } from "./dom.js";

const HISTORY = 50;

export class Composer {
  constructor(ctx) {
    this.ctx = ctx;
    this.sent = []; // newest last, for the arrow keys
    this.place = 0;
    this.draft = "";
    const hint = ctx.id("hint");
    this.area = h("textarea", { rows: 1, "aria-label": say("composer.label"), "aria-describedby": hint, onInput: () => this.typed(), onKeydown: e => this.key(e) });
    // nothing typed here may reach the notebook: Shift-Enter would run the cell again
    for (const type of ["keyup", "keypress", "paste", "copy", "cut"]) this.area.addEventListener(type, e => e.stopPropagation());
    this.enqueue = button({ class: "cnb-btn primary", onClick: () => this.send("enqueue") }, icon("queue"), say("composer.enqueue"), h("kbd", { text: "Enter" }));
    this.steer = button({ class: "cnb-btn steer-btn", onClick: () => this.send("immediate") }, icon("steer"), say("composer.steer"), h("kbd", { text: `${CTRL} Enter` }));
    this.lanes = button({ class: "cnb-lanes", hidden: true, onClick: () => ctx.go("queue") });
    this.words = h("span", { class: "cnb-hint-words" });
    this.third = h("span", { class: "cnb-third", hidden: true }, say("composer.third"), " ", button({ class: "cnb-link", onClick: () => this.anew() }, say("composer.restart")));
    this.hint = h("p", { class: "cnb-hint", id: hint }, this.words, this.third);
    this.note = h("p", { class: "cnb-note", role: "alert", hidden: true });
    this.el = h("footer", { class: "cnb-composer empty", "data-lm-suppress-shortcuts": "true" }, this.note, this.lanes, h("div", { class: "cnb-box" }, this.area, this.enqueue, this.steer), this.hint);
  }

  key(event) {
    event.stopPropagation();
    if (event.key === "Escape" && (this.editing || this.run)) return this.leave();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send(event.ctrlKey || event.metaKey ? "immediate" : "enqueue");
    }
    const up = event.key === "ArrowUp" && this.area.selectionStart === 0, down = event.key === "ArrowDown" && this.area.selectionEnd === this.area.value.length;
    if ((up && this.place > 0) || (down && this.place < this.sent.length)) {
      event.preventDefault();
      if (this.place === this.sent.length) this.draft = this.area.value;
      this.place += up ? -1 : 1;
      this.area.value = this.sent[this.place] ?? this.draft;
      this.typed();
      const end = up ? 0 : this.area.value.length;
      this.area.setSelectionRange(end, end);
    }
  }

  typed() {
    this.el.classList.toggle("empty", !this.area.value.trim());
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(140, Math.max(28, this.area.scrollHeight))}px`;
  }

  async send(mode) {
    const text = this.area.value;
    if (!text.trim()) return this.area.focus();
    this.area.value = "";
    this.typed();
    this.sent = [...this.sent.filter(one => one !== text), text].slice(-HISTORY);
    this.place = this.sent.length;
    const edited = this.editing, run = this.run;
    this.editing = this.run = null;
    const ok = run ? await this.ctx.act("restart", { run, text }) : edited ? await this.ctx.act("steer.withdraw", { message: edited.id, text, mode }) : await this.ctx.act("send", { text, mode });
    if (ok === false && !this.area.value) { this.area.value = text; this.typed(); } // refused: give the words back
    this.area.focus();
  }

  // A steer that waits, back in the box: sending it takes the old one away.
  edit(message) {
    this.editing = message;
    this.write(message.text);
  }

  // Stop and restart: the run's message with its steers, to be made one text. The run goes on until that is sent.
  async anew() {
    const start = await this.ctx.act("restart.text");
    if (!start) return;
    this.run = start.run;
    this.write(start.text);
    this.update(this.ctx.store.head, this.ctx.view);
  }

  leave() {
    this.editing = this.run = null;
    this.write("");
    this.update(this.ctx.store.head, this.ctx.view);
  }

  write(text) {
    this.area.value = text;
    this.typed();
    this.area.focus();
  }

  fail(text) {
    this.note.textContent = text;
    this.note.hidden = !text;
    clearTimeout(this.timer);
    if (text) this.timer = setTimeout(() => { this.note.hidden = true; }, 12_000);
  }

  update(head, view) {
    this.el.hidden = head.readonly || head.closed;
    const live = head.busy;
    this.area.placeholder = live ? say("composer.message", { session: nameOf(head) }) : say("composer.start");
    this.steer.disabled = !live;
    const show = view === "conversation" && (head.steers.length > 0 || head.queued > 0);
    this.lanes.hidden = !show;
    if (show) {
      replace(this.lanes,
        head.steers.length > 0 && h("span", { class: "cnb-lane-s" }, icon("steer"), h("b", { text: plural(head.steers.length, "steers") }), h("span", { class: "cnb-lane-text", text: `“${head.steers.at(-1).text}”` })),
        head.queued > 0 && h("span", { class: "cnb-lane-q" }, icon(head.paused ? "pause" : "queue"), h("b", { text: say(head.paused ? "lanes.queuedPaused" : "lanes.queued", { n: head.queued }) }), h("span", { class: "cnb-lane-text", text: say("lanes.next", { text: head.queue[0]?.text ?? "" }) })));
    }
    const waits = live || head.paused;
    this.third.hidden = !live || head.steered + head.steers.length < 3 || this.run != null;
    if (this.run != null) return replace(this.words, h("span", {}, h("b", { text: "Enter" }), " ", say("composer.restarts", { run: this.run })));
    replace(this.words,
      h("span", {}, h("b", { text: say("composer.enqueue") }), " ", waits ? say(head.paused ? "composer.waitsPaused" : "composer.waits", { n: head.queued + 1 }) : say("composer.now")),
      live && h("span", {}, h("b", { text: say("composer.steer") }), " ", say(head.asks.length ? "composer.joinsAsk" : head.turn ? "composer.joins" : "composer.joinsFirst", { run: head.run, turn: head.phase === "wait" && !head.turn ? 1 : head.turn + 1 })));
  }
}
