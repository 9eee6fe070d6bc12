// Permission and question cards. Nothing in them has the focus by itself, and Enter never allows.
import { button, h, icon, plural, replace, say, since } from "./dom.js";
import { codeBlock } from "./code.js";
import { form } from "./form.js";

function lost(head) {
  const parts = [head.steers.length && plural(head.steers.length, "steers"), head.queued && say("lanes.queued", { n: head.queued })].filter(Boolean);
  return parts.length ? say("permission.denyDrops", { lost: parts.join(say("and")) }) : say("permission.denyEnds");
}

export function permission(tool, ctx) {
  const asked = () => ctx.store.head.asks.find(ask => ask.tool === tool.id) || { data: {} };
  const request = asked();
  const answer = (decision, feedback) => ctx.act("respond", { request: asked().id, decision, feedback }).then(ok => { if (!ok) busy(false); });
  const input = h("input", { type: "text", placeholder: say("permission.instead"), "aria-label": say("permission.feedback"),
    onKeydown: e => { e.stopPropagation(); if (e.key === "Enter" && input.value.trim()) act(() => answer("reject", input.value.trim())); } });
  const feedback = h("div", { class: "cnb-feedback", hidden: true }, input,
    button({ class: "cnb-btn", onClick: () => act(() => answer("reject", input.value.trim() || say("permission.noWords"))) }, say("permission.sendDenial")));
  const more = button({ class: "cnb-btn", "aria-expanded": "false", onClick: () => {
    feedback.hidden = !feedback.hidden;
    more.setAttribute("aria-expanded", String(!feedback.hidden));
    if (!feedback.hidden) input.focus();
  } }, say("permission.denyFeedback"));
  const scope = request.what === "shell" ? say("permission.scopeShell", { word: (request.code || "").trim().split(/\s/)[0] }) : say("permission.scopeTool", { name: tool.name });
  const buttons = h("div", { class: "cnb-perm-do" },
    button({ class: "cnb-btn primary", onClick: () => act(() => answer("approve-once")) }, say("permission.once")),
    button({ class: "cnb-btn", onClick: () => act(() => answer("approve-for-session")) }, say("permission.session")),
    h("span", { class: "cnb-gap" }), more,
    button({ class: "cnb-btn danger", onClick: () => act(() => answer("reject")) }, say("permission.deny")));
  const note = h("p", { class: "cnb-perm-note" },
    h("span", {}, h("b", { text: say("permission.session") }), say("permission.covers", { scope })),
    h("span", {}, h("b", { text: say("permission.withFeedback") }), say("permission.goesOn")),
    h("span", {}, h("b", { text: say("permission.deny") }), " ", h("span", { "data-live": "lost", text: lost(ctx.store.head) })));
  const el = h("section", { class: "cnb-perm", role: "group", "aria-label": say("permission.label", tool), "data-ref": tool.key },
    h("header", {}, icon("lock", "ask"), h("b", {}, h("code", { text: tool.name }), say(tool.lang === "sh" ? "permission.asksCommand" : tool.lang === "python" ? "permission.asksCode" : "permission.asksTool")),
      h("span", { class: "cnb-dim cnb-num" }, say("permission.waiting"), " ", since(tool.asked))),
    tool.code ? codeBlock(tool.code, tool.lang) : null,
    request.why && h("p", { class: "cnb-perm-why", text: request.why }),
    ctx.readonly() ? null : [buttons, feedback, note]);
  function busy(on) { for (const b of el.querySelectorAll(".cnb-perm-do button, .cnb-feedback button")) b.disabled = on; }
  function act(what) { busy(true); what(); }
  return el;
}

export function refreshAsks(root, head) {
  for (const span of root.querySelectorAll("[data-live=lost]")) span.textContent = lost(head);
}

// A question of the agent itself: choices as buttons, a form, a line for other answers.
export function question(ask, ctx) {
  const { data, kind } = ask;
  const title = { user_input: data.question, elicitation: data.message, exit_plan_mode: data.summary || say("question.plan"), auto_mode_switch: say("question.switch") }[kind] || say("question.other", { kind });
  const busy = on => { for (const b of el.querySelectorAll("button")) b.disabled = on; };
  const send = answer => { busy(true); ctx.act("respond", { request: ask.id, answer }).then(ok => { if (!ok) busy(false); }); };
  const parts = { user_input: asked, elicitation: formed, exit_plan_mode: planned, auto_mode_switch: switched }[kind];
  const el = h("section", { class: "cnb-perm question", role: "group", "aria-label": title, "data-ref": ask.id },
    h("header", {}, icon("ask", "ask"), h("b", { text: title }), h("span", { class: "cnb-dim cnb-num" }, say("permission.waiting"), " ", since(ask.asked))),
    data.planContent && h("pre", { class: "cnb-out", tabindex: 0, text: data.planContent }),
    data.url && h("p", { class: "cnb-perm-why" }, h("code", { text: data.url })),
    ctx.readonly() ? null : parts?.(data, send));
  return el;
}

const row = buttons => buttons.length > 0 && h("div", { class: "cnb-perm-do" }, buttons.map(([label, run, primary]) => button({ class: `cnb-btn${primary ? " primary" : ""}`, onClick: run }, label)));

// A line to write in; `run` gets what was written, which may be nothing only where `empty` says so.
function line(words, label, run, empty = false) {
  const go = () => { if (empty || input.value.trim()) run(input.value.trim()); else input.focus(); };
  const input = h("input", { type: "text", "aria-label": words, placeholder: words, onKeydown: e => { e.stopPropagation(); if (e.key === "Enter" && input.value.trim()) go(); } });
  return h("div", { class: "cnb-feedback" }, input, button({ class: "cnb-btn", onClick: go }, label));
}

const asked = (data, send) => [
  row((data.choices || []).map((choice, k) => [choice, () => send({ answer: choice, wasFreeform: false }), k === 0])),
  data.allowFreeform !== false && line(say("question.answer"), say("question.send"), answer => send({ answer, wasFreeform: true }))];

function formed(data, send) {
  const fields = form(data.requestedSchema || {});
  const accept = () => { const content = fields.read(); if (content) send({ action: "accept", content }); };
  return [fields.el, row([[say("question.accept"), accept, true], [say("question.decline"), () => send({ action: "decline" })], [say("question.cancel"), () => send({ action: "cancel" })]])];
}

const planned = (data, send) => [
  row((data.actions || []).map((action, k) => [say(`plan.${action}`), () => send({ approved: true, selectedAction: action }), data.recommendedAction ? action === data.recommendedAction : k === 0])),
  line(say("plan.change"), say("plan.reject"), feedback => send(feedback ? { approved: false, feedback } : { approved: false }), true)];

const switched = (data, send) => row(["yes", "yes_always", "no"].map((response, k) => [say(`switch.${response}`), () => send({ response }), k === 0]));

export function askStrip(el, head, go) {
  const ask = head.asks[0];
  el.hidden = !ask;
  if (!ask) return;
  replace(el, icon("lock", "ask"), h("span", {}, ask.kind === "permission" ? [h("code", { text: ask.name || ask.kind }), say("permission.strip")] : say("question.strip"), h("code", { class: "cmd", text: (ask.arg || ask.data.question || ask.data.message || "").slice(0, 200) })),
    button({ class: "cnb-btn small", onClick: go }, say("permission.review")));
}
