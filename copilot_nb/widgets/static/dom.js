// Nodes, icons and words. Text from models, tools, files and people only ever goes in as text.
import T from "./texts.json" with { type: "json" };

const SVG = "http://www.w3.org/2000/svg";

function build(node, props, kids) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2).toLowerCase(), value);
    else if (key === "text") node.textContent = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const kid of kids.flat(Infinity)) if (kid != null && kid !== false && kid !== "") node.append(kid);
  return node;
}
export const h = (tag, props, ...kids) => build(document.createElement(tag), props, kids);
export const g = (tag, props, ...kids) => build(document.createElementNS(SVG, tag), props, kids);

const PATHS = {
  chevron: "M6 4l4 4-4 4", check: "M3.5 8.5l3 3 6-7", cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  send: "M8 13V3.5M4 7.5l4-4 4 4", steer: "M4 2.5v11M12 2.5v2c0 3.5-8 2.5-8 6", queue: "M3 4h10M3 8h10M3 12h6",
  edit: "M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2L3 13z", trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7", pause: "M5.5 3.5v9M10.5 3.5v9", play: "M5 3.5l7.5 4.5L5 12.5z",
  search: "M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.3 10.3L13.5 13.5",
  lock: "M4 7.5h8v6H4zM5.7 7.5V5.3a2.3 2.3 0 014.6 0v2.2", ask: "M6 6a2 2 0 113 1.7c-.7.4-1 .8-1 1.6M8 12h.01",
  undo: "M5.5 3L3 5.5 5.5 8M3 5.5h6.5a3.5 3.5 0 010 7H6", up: "M4 9.5L8 5.5l4 4", down: "M4 6.5l4 4 4-4",
  columns: "M3 3.5h10v9H3zM6.5 3.5v9M10 3.5v9", table: "M3 3.5h10v9H3zM3 6.5h10M7 6.5v6",
  follow: "M8 3v7M4.5 7L8 10.5 11.5 7M3.5 13h9", fit: "M2.5 8h11M5 5.5L2.5 8 5 10.5M11 5.5L13.5 8 11 10.5",
  plus: "M8 3.5v9M3.5 8h9", minus: "M3.5 8h9", bell: "M4 11.5V7a4 4 0 018 0v4.5M2.5 11.5h11M7 13.5h2",
  warn: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.3h.01", fold: "M3 5h10M3 11h10M6 8h4", mode: "M8 2.5v3M8 10.5v3M2.5 8h3M10.5 8h3",
};
export function icon(name, cls = "") {
  const shape = name === "stop" ? g("rect", { x: 4, y: 4, width: 8, height: 8, rx: 1.5, fill: "currentColor", stroke: "none" })
    : name === "grip" ? [5.5, 10.5].flatMap(x => [4, 8, 12].map(y => g("circle", { cx: x, cy: y, r: 1.1, fill: "currentColor", stroke: "none" })))
      : g("path", { d: PATHS[name] });
  return g("svg", { viewBox: "0 0 16 16", class: `cnb-i ${cls}`.trim(), "aria-hidden": "true" }, shape);
}

// A button whose visible words are its name; `label` names those that show only an icon.
export function button(props, ...kids) {
  const { label, ...rest } = props;
  return h("button", { type: "button", "aria-label": label, title: label, ...rest }, ...kids);
}

export function replace(node, ...kids) {
  node.replaceChildren(...kids.flat(Infinity).filter(kid => kid != null && kid !== false && kid !== ""));
  return node;
}

// --- words ---
export function say(key, values = {}) {
  const text = key.split(".").reduce((at, part) => at?.[part], T);
  return (text ?? key).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}
export const plural = (n, key) => say(`${key}.${n === 1 ? "one" : "many"}`, { n: n.toLocaleString("en") });
export function secs(x) {
  if (x < 0) x = 0;
  if (x < 10) return `${x.toFixed(1)} s`;
  if (x < 120) return `${Math.round(x)} s`;
  const minutes = Math.floor(x / 60);
  return minutes < 120 ? `${minutes} min ${Math.round(x % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
// A duration that is over: short ones in milliseconds.
export const secs1 = x => (x < 0.0005 ? "0 ms" : x < 0.095 ? `${Math.max(1, Math.round(x * 1000))} ms` : x < 100 ? `${x.toFixed(1)} s` : secs(x));
// What a session is called where there is little room: its title, or the begin of a long id.
export const nameOf = head => head.title || (/^[0-9a-f]{8}-[0-9a-f]{4}-/.test(head.session) ? head.session.slice(0, 8) : head.session);
export const kilo = n => (n < 1000 ? String(n) : n < 1e6 ? `${(n / 1000).toFixed(1)}k` : `${(n / 1e6).toFixed(2)}M`);
const two = n => String(n).padStart(2, "0");
export function clock(t) {
  const d = new Date(t * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
export const clockMs = t => `${clock(t)}.${String(Math.floor((t % 1) * 1000)).padStart(3, "0")}`;
export const CTRL = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform || "") ? "⌘" : "Ctrl";

// A span that shows how long something has been going on; `tick` in main.js keeps it right.
export function since(t0, props = {}) {
  return h("span", { class: "cnb-num", "data-since": t0, ...props });
}
let serial = 0;
export const unique = () => `cnb${(serial += 1)}-${Math.random().toString(36).slice(2, 7)}`;

// Nothing may move between a press and its release, or the click is lost: `held()` while one goes on in a node, `then` after it.
export function pressed(node, then) {
  let down = false;
  const up = () => { if (down) { down = false; setTimeout(then); } };
  node.addEventListener("pointerdown", () => {
    down = true;
    for (const type of ["pointerup", "pointercancel", "dragend"]) addEventListener(type, up, { once: true, capture: true });
  });
  return () => down;
}
