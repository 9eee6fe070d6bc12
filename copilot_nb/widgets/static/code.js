// Code, output and diffs as text with a few colours from a tokeniser.
import { button, h, icon, say } from "./dom.js";

const TOKEN = /(?<c>#.*|\/\/.*)|(?<s>"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|\b(?<k>for|in|def|return|import|from|if|else|elif|not|and|or|is|print|lambda|None|True|False|class|with|as|while|try|except|finally|raise|async|await|yield|const|let|function|export|new|null|true|false)\b|\b(?<n>\d[\d_.]*(?:e[+-]?\d+)?)\b/g;
const PLAIN = new Set(["", "text", "txt", "sh", "bash", "shell", "console", "output", "diff"]);
const MOST = 20_000; // characters that are coloured

export function colours(text, lang) {
  const body = h("code");
  if (PLAIN.has((lang || "").toLowerCase()) || text.length > MOST) {
    body.textContent = text;
    return body;
  }
  let at = 0;
  for (const m of text.matchAll(TOKEN)) {
    if (m[0].startsWith("//") && /^py/.test(lang)) continue;
    if (m.index > at) body.append(text.slice(at, m.index));
    const kind = Object.keys(m.groups).find(key => m.groups[key] !== undefined);
    body.append(h("span", { class: `tok-${kind}`, text: m[0] }));
    at = m.index + m[0].length;
  }
  body.append(text.slice(at));
  return body;
}

export function codeBlock(text, lang, props = {}) {
  const copy = button({ class: "cnb-icon cnb-copy", label: say("code.copy"), onClick: () => copyText(text, copy) }, icon("copy"));
  const label = lang ? say("code.block", { lang }) : say("code.text");
  return h("div", { class: "cnb-code", ...props }, h("pre", { tabindex: 0, role: "region", "aria-label": label }, colours(text, lang)), copy);
}

export async function copyText(text, near) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or not a secure page: select it for the person instead
    const area = h("textarea", { class: "cnb-offscreen", "aria-hidden": "true" });
    area.value = text;
    near.parentNode.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  near.classList.add("done");
  near.replaceChildren(icon("check", "ok"));
  setTimeout(() => { near.classList.remove("done"); near.replaceChildren(icon("copy")); }, 1200);
}

const HUNK = /^@@ .*@@/m;
export const isDiff = text => HUNK.test(text || "");
export function diff(text) {
  const lines = text.split("\n");
  const file = lines.find(line => line.startsWith("+++ "))?.slice(4).replace(/^b\//, "") || say("code.changes");
  const body = lines.filter(line => !/^(?:diff --git|index |--- |\+\+\+ )/.test(line));
  while (body.length && !body.at(-1)) body.pop();
  return h("div", { class: "cnb-diff" }, h("div", { class: "cnb-diff-file", text: file }),
    h("pre", { tabindex: 0, role: "region", "aria-label": say("code.diff", { file }) }, body.map(line => {
      const kind = line.startsWith("@@") ? "hunk" : { "+": "add", "-": "del" }[line[0]] || "same";
      return h("span", { class: kind }, h("i", { "aria-hidden": "true", text: kind === "hunk" ? " " : line[0] || " " }), kind === "hunk" ? line : line.slice(1), "\n");
    })));
}
