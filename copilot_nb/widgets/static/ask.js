// Permission and question cards. Nothing in them has the focus by itself, and Enter never allows.
import { button, h, icon, plural, replace, say, since } from "./dom.js";
import { codeBlock } from "./code.js";

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

// A question of the agent itself: choices as buttons, a line for other answers.
export function question(ask, ctx) {
  const { data, kind } = ask;
  const title = { user_input: data.question, elicitation: data.message, exit_plan_mode: data.summary || say("question.plan") }[kind] || say("question.other", { kind });
  const send = answer => { for (const b of el.querySelectorAll("button")) b.disabled = true; ctx.act("respond", { request: ask.id, answer }); };
  const choices = kind === "user_input" ? (data.choices || []).map(c => [c, { answer: c, wasFreeform: false }])
    : kind === "exit_plan_mode" ? (data.actions || []).map(a => [say(`plan.${a}`), { approved: a !== "reject", selectedAction: a }])
      : [];
  const fields = kind === "elicitation" ? form(data.requestedSchema || {}) : null;
  const free = h("input", { type: "text", "aria-label": say("question.answer"), placeholder: say("question.answer"),
    onKeydown: e => { e.stopPropagation(); if (e.key === "Enter" && free.value.trim()) send({ answer: free.value.trim(), wasFreeform: true }); } });
  const el = h("section", { class: "cnb-perm question", role: "group", "aria-label": title, "data-ref": ask.id },
    h("header", {}, icon("ask", "ask"), h("b", { text: title }), h("span", { class: "cnb-dim cnb-num" }, say("permission.waiting"), " ", since(ask.asked))),
    data.planContent && h("pre", { class: "cnb-out", tabindex: 0, text: data.planContent }),
    data.url && h("p", { class: "cnb-perm-why" }, h("code", { text: data.url })),
    ctx.readonly() ? null : [
      choices.length > 0 && h("div", { class: "cnb-perm-do" }, choices.map(([label, answer], k) => button({ class: `cnb-btn${k ? "" : " primary"}`, onClick: () => send(answer) }, label))),
      kind === "user_input" && data.allowFreeform !== false && h("div", { class: "cnb-feedback" }, free, button({ class: "cnb-btn", onClick: () => free.value.trim() && send({ answer: free.value.trim(), wasFreeform: true }) }, say("question.send"))),
      kind === "elicitation" && [fields.el, h("div", { class: "cnb-perm-do" },
        button({ class: "cnb-btn primary", onClick: () => send({ action: "accept", content: fields.read() }) }, say("question.accept")),
        button({ class: "cnb-btn", onClick: () => send({ action: "decline" }) }, say("question.decline")))]]);
  return el;
}

function form(schema) {
  const inputs = Object.entries(schema.properties || {}).map(([name, field]) => {
    const node = field.enum ? h("select", {}, field.enum.map(v => h("option", { value: v, text: v })))
      : h("input", { type: field.type === "boolean" ? "checkbox" : /number|integer/.test(field.type) ? "number" : "text", onKeydown: e => e.stopPropagation() });
    if (field.default != null) { if (field.type === "boolean") node.checked = field.default; else node.value = field.default; }
    return { name, field, node };
  });
  return {
    el: h("div", { class: "cnb-form" }, inputs.map(({ name, field, node }) => h("label", {}, h("span", { text: field.title || name }), node, field.description && h("small", { class: "cnb-dim", text: field.description })))),
    read: () => Object.fromEntries(inputs.map(({ name, field, node }) => [name, field.type === "boolean" ? node.checked : /number|integer/.test(field.type) ? Number(node.value) : node.value])),
  };
}

export function askStrip(el, head, go) {
  const ask = head.asks[0];
  el.hidden = !ask;
  if (!ask) return;
  replace(el, icon("lock", "ask"), h("span", {}, h("code", { text: ask.name || ask.kind }), say("permission.strip"), h("code", { class: "cmd", text: (ask.arg || ask.data.question || ask.data.message || "").slice(0, 200) })),
    button({ class: "cnb-btn small", onClick: go }, say("permission.review")));
}
