// What the kernel told about one session; one per model, shared by its views, so that a second view draws at once.
const stores = new Map(); // by the panel's own id: anywidget hands each view another wrapper of the one model
const ASK_AGAIN = 500; // ms between two requests for the whole
const NO_ANSWER = 4000; // ms until a view says that the kernel does not answer

export function storeOf(model) {
  const uid = model.get("uid");
  if (!stores.has(uid)) stores.set(uid, new Store(model));
  return stores.get(uid);
}

export class Store {
  constructor(model) {
    this.model = model;
    this.seq = -1;
    this.head = null;
    this.events = 0;
    this.items = new Map(); // key -> item
    this.order = []; // keys of messages, turns and marks, run headers included, in reading order
    this.more = false; // earlier items exist in the kernel
    this.tail = true; // the last item is the session's last
    this.offset = 0; // kernel clock minus ours, seconds
    this.listeners = new Set();
    this.waiting = new Map(); // request id -> {resolve, reject, timer}
    this.asked = 0;
    this.silent = false;
    this.gaps = 0;
    this.onSnap = () => this.full(model.get("snap"), true);
    this.onMessage = message => this.receive(message);
    this.onComm = () => this.ping();
    model.on("change:snap", this.onSnap);
    model.on("msg:custom", this.onMessage);
    model.on("comm_live_update", this.onComm); // Lab says so when a kernel restarts; elsewhere silence tells
    this.onSnap();
    this.ask();
  }

  close() {
    this.model.off("change:snap", this.onSnap);
    this.model.off("msg:custom", this.onMessage);
    this.model.off("comm_live_update", this.onComm);
    stores.delete(this.model.get("uid"));
  }

  now() { return Date.now() / 1000 + this.offset; }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (!this.listeners.size) this.post({ kind: "bye" });
    };
  }

  tell(change) {
    for (const listener of this.listeners) listener(change);
  }

  // --- from the kernel ---
  receive(message) {
    this.heard();
    if (message.kind === "reply") return this.reply(message);
    if (message.kind === "full") return this.full(message, false);
    if (message.kind !== "d" || message.seq <= this.seq) return;
    if (message.seq !== this.seq + 1) {
      this.gaps += 1;
      return this.ask();
    }
    this.seq = message.seq;
    this.events = message.events;
    if (message.head) this.setHead(message.head, true); // first: what is drawn next may look into it
    for (const op of message.ops) this.apply(op);
    if (message.head) this.tell({ type: "head" });
    this.tell({ type: "events" });
  }

  full(message, fromTrait) {
    if (!message?.items || (fromTrait ? message.seq <= this.seq : message.seq < this.seq)) return;
    if (fromTrait && !this.tail) return;
    this.seq = message.seq;
    this.events = message.events;
    this.window(message);
    this.setHead(message.head, true);
    this.tell({ type: "full" });
  }

  window(part) {
    this.items = new Map(part.items.map(item => [item.key, item]));
    this.order = part.items.map(item => item.key);
    this.more = part.more;
    this.tail = part.tail;
  }

  setHead(head, quiet) {
    this.head = head;
    this.offset = head.now - Date.now() / 1000;
    if (!quiet) this.tell({ type: "head" });
  }

  apply([op, a, b, c]) {
    if (op === "item") return this.put(a, b);
    const item = this.items.get(a);
    if (!item) return;
    if (op === "text" || op === "think") {
      item[op] = c ? b : (item[op] || "") + b;
      this.tell({ type: op, key: a, piece: b, replace: c });
    } else if (op === "tool") {
      const at = item.tools.findIndex(tool => tool.key === b.key);
      if (at < 0) item.tools.push(b);
      else item.tools[at] = { ...item.tools[at], ...b };
      this.tell({ type: "tool", key: a, tool: b.key });
    } else if (op === "out") {
      const tool = item.tools.find(one => one.key === b);
      if (tool) tool.output = (tool.output || "") + c;
      this.tell({ type: "out", key: a, tool: b, piece: c });
    }
  }

  put(item, before) {
    const known = this.items.get(item.key);
    if (known) {
      Object.assign(known, item);
      return this.tell({ type: "item", key: item.key });
    }
    if (item.kind === "message" && item.state !== "landed") return; // those in the lanes come with the head
    if (!this.tail) return;
    if (item.kind === "turn") { item.tools ||= []; item.text ||= ""; item.think ||= ""; }
    this.items.set(item.key, item);
    const at = before ? this.order.indexOf(before) : -1;
    if (at < 0) this.order.push(item.key);
    else this.order.splice(at, 0, item.key);
    this.tell({ type: "item", key: item.key, added: true, before: at < 0 ? null : before });
    this.trim();
  }

  // A session may run for days: what is far above stays in the kernel.
  trim(limit = 240) {
    if (this.order.length <= limit + 40) return;
    const gone = this.order.splice(0, this.order.length - limit);
    for (const key of gone) this.items.delete(key);
    this.more = true;
    this.tell({ type: "trim", keys: gone });
  }

  // --- to the kernel ---
  ask() {
    const now = performance.now();
    if (now - this.asked < ASK_AGAIN && this.asked) return;
    this.asked = now;
    this.post({ kind: "resync" });
    clearTimeout(this.again);
    this.again = setTimeout(() => { if (this.silentSince) this.hush(); }, NO_ANSWER);
  }

  ping() { this.asked = 0; this.ask(); }

  post(message) {
    if (message.kind !== "bye") this.silentSince ||= performance.now();
    try { this.model.send(message); } catch { this.hush(); }
  }

  heard() {
    this.silentSince = 0;
    if (!this.silent) return;
    this.silent = false;
    this.tell({ type: "silent" });
  }

  hush() {
    if (this.silent) return;
    this.silent = true;
    this.tell({ type: "silent" });
  }

  // Ask the session to do something; resolves with its answer, rejects with its words.
  do(name, args = {}) {
    const id = Math.random().toString(36).slice(2);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.hush(), NO_ANSWER);
      this.waiting.set(id, { resolve, reject, timer });
      this.post({ kind: "do", id, name, args });
    });
  }

  reply(message) {
    const waiting = this.waiting.get(message.id);
    if (!waiting) return; // another view of this model asked
    this.waiting.delete(message.id);
    clearTimeout(waiting.timer);
    if (message.error != null) waiting.reject(new Error(message.error));
    else waiting.resolve(message.value);
  }

  async earlier(count = 40) {
    const first = this.order[0];
    if (!this.more || !first || this.loading) return false;
    this.loading = true;
    try {
      const part = await this.do("earlier", { key: first, count });
      const fresh = part.items.filter(item => !this.items.has(item.key));
      for (const item of fresh) this.items.set(item.key, item);
      this.order.unshift(...fresh.map(item => item.key));
      this.more = part.more && fresh.length > 0;
      this.tell({ type: "earlier", keys: fresh.map(item => item.key) });
      return true;
    } finally { this.loading = false; }
  }

  async around(key) {
    if (this.items.has(key)) return;
    this.window(await this.do("around", { key }));
    this.tell({ type: "full" });
  }
}
