// When the page is hidden: a mark in its title, and a notification of the browser if the person allowed that.
import { button, icon, say } from "./dom.js";

const MARK = "● ";

export class Notices {
  constructor(ctx) {
    this.ctx = ctx;
    this.last = null;
    this.onShow = () => { if (!document.hidden) this.unmark(); };
    document.addEventListener("visibilitychange", this.onShow);
    // Browsers want a click before they ask; where notifications do not exist there is no button.
    if (globalThis.Notification && Notification.permission === "default") {
      this.bell = button({ class: "cnb-icon cnb-bell", label: say("notify.allow"), onClick: async () => { await Notification.requestPermission(); this.bell.remove(); } }, icon("bell"));
      ctx.tabs.el.append(this.bell);
    }
  }

  update(head, now) {
    const was = this.last;
    this.last = now.tone;
    if (!was || was === now.tone || !document.hidden) return;
    if (now.tone === "ask") this.tell(say("notify.ask", { session: head.session }), now.verb);
    else if (now.tone === "idle") this.tell(say("notify.idle", { session: head.session }), now.verb);
  }

  tell(title, body) {
    if (!document.title.startsWith(MARK)) document.title = MARK + document.title;
    if (globalThis.Notification?.permission !== "granted") return;
    const note = new Notification(title, { body, tag: `cnb-${this.ctx.store.head.session}` });
    note.onclick = () => { window.focus(); note.close(); };
  }

  unmark() { if (document.title.startsWith(MARK)) document.title = document.title.slice(MARK.length); }

  close() {
    document.removeEventListener("visibilitychange", this.onShow);
    this.unmark();
  }
}
