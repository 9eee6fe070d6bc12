// The fields of a form that the agent asks to fill in: a flat JSON schema, as MCP's elicitation has it.
import { h, say, unique } from "./dom.js";

const INPUTS = { boolean: "checkbox", number: "number", integer: "number" };
const FORMATS = { email: "email", uri: "url", date: "date" };

// The values that a field offers, each with its words; null where anything may be written.
function offered({ enum: values, enumNames, oneOf, anyOf }) {
  if (values) return values.map((value, k) => [value, enumNames?.[k] ?? value]);
  return (oneOf || anyOf)?.map(({ const: value, title }) => [value, title ?? value]) ?? null;
}

function control(field, name) {
  const choices = offered(field), several = field.type === "array" && offered(field.items || {});
  const label = { "aria-label": field.title || name };
  if (several) {
    const chosen = new Set(field.default || []);
    const boxes = several.map(([value, words]) => [value, h("input", { type: "checkbox", checked: chosen.has(value) }), words]);
    return { node: h("span", { class: "cnb-form-several", role: "group", ...label }, boxes.map(([, box, words]) => h("label", {}, box, words))), get: () => boxes.filter(([, box]) => box.checked).map(([value]) => value) };
  }
  if (choices) {
    const node = h("select", label, h("option", { value: "", text: say("form.choose") }), choices.map(([, words], k) => h("option", { value: k, text: words })));
    const first = choices.findIndex(([value]) => value === field.default);
    node.value = first < 0 ? "" : String(first);
    return { node, get: () => (node.value === "" ? undefined : choices[Number(node.value)][0]) };
  }
  const type = INPUTS[field.type] || FORMATS[field.format] || "text";
  const node = h("input", { type, ...label, step: field.type === "number" ? "any" : null });
  if (type === "checkbox") { node.checked = field.default === true; return { node, get: () => node.checked }; }
  node.value = field.default ?? "";
  const text = () => (type === "text" ? node.value : node.value.trim());
  return { node, get: () => (text() === "" ? undefined : type === "number" ? Number(text()) : text()) };
}

// What is wrong with a value, in words; nothing when it may be sent.
function complaint(field, value, required, node) {
  if (node.validity?.badInput) return say("form.number");
  if (value === undefined || (Array.isArray(value) && !value.length)) return required ? say("form.missing") : "";
  if (field.type === "integer" && !Number.isInteger(value)) return say("form.integer");
  if (node.validity?.typeMismatch) return say("form.format", { format: field.format });
  const size = typeof value === "number" ? value : value.length;
  const [least, most] = typeof value === "number" ? [field.minimum, field.maximum] : typeof value === "string" ? [field.minLength, field.maxLength] : [field.minItems, field.maxItems];
  const what = typeof value === "string" ? "Chars" : "";
  if (least != null && size < least) return say(`form.least${what}`, { n: least });
  return most != null && size > most ? say(`form.most${what}`, { n: most }) : "";
}

// `el` to show; `read()` gives the content to send, or null after saying at each field what is missing.
export function form(schema) {
  const must = new Set(schema.required || []);
  const fields = Object.entries(schema.properties || {}).map(([name, field]) => {
    const { node, get } = control(field, name), id = unique();
    const bad = h("small", { class: "cnb-form-bad", id, role: "alert", hidden: true });
    node.setAttribute("aria-describedby", id);
    const check = () => {
      const words = complaint(field, get(), must.has(name), node);
      bad.textContent = words;
      bad.hidden = !words;
      node.setAttribute("aria-invalid", String(Boolean(words)));
      return !words;
    };
    node.addEventListener("input", () => { if (!bad.hidden) check(); });
    const title = h("span", {}, field.title || name, must.has(name) && h("span", { class: "cnb-dim", text: ` ${say("form.required")}` }));
    const row = h(node.getAttribute("role") === "group" ? "div" : "label", { class: "cnb-form-row" }, title, node, field.description && h("small", { class: "cnb-dim", text: field.description }), bad);
    return { name, node, get, check, row };
  });
  return {
    el: h("div", { class: "cnb-form" }, fields.map(({ row }) => row)),
    read() {
      const wrong = fields.filter(({ check }) => !check());
      if (wrong.length) { (wrong[0].node.querySelector("input") || wrong[0].node).focus(); return null; }
      return Object.fromEntries(fields.map(({ name, get }) => [name, get()]).filter(([, value]) => value !== undefined));
    },
  };
}
