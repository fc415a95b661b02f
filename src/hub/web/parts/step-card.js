// A tool call as one folded card: what ran, what came of it, what allowed it; a failed one opens itself, and nothing
// is cut away for good (U7–U10). Not here: which cards are in the document (stream-view.js).

import { h, facts, icon, mark } from "../dom.js";
import { span, waitSpan } from "../time.js";
import { bytes, count, rich, t } from "../words.js";
import { plain } from "../terminal.js";
import { isCut } from "../totals.js";
import { copyButton } from "./copy.js";

const ICONS = { shell: "shell", edit: "edit", read: "read", search: "search", plan: "plan", task: "sub", fetch: "globe", web: "globe", thought: "think" };
// More of an output is fetched up to here; past it the download has the whole.
const MORE_BYTES = 256 * 1024;

const CODE = new Set(["shell", "edit", "read", "search"]);

/** The card of a step. `state` holds what the person did: `open` and the fetched `more`; `act` is called with changes of it. */
export function stepView(item, state, act) {
  const bad = item.status === "failed" || item.status === "unknown";
  const auto = bad || (item.status === "running" && Boolean(item.tail_html));
  const open = state.open ?? auto;
  return h("div", { class: "steps" },
    h("details", { class: "step", open, "data-status": item.status },
      h("summary", { onclick: (event) => { event.preventDefault(); act({ open: !open }); }, "aria-expanded": String(open) },
        icon(ICONS[item.block] ?? "tool"),
        h("span", { class: "what" }, h("b", null, verb(item)), " ", subject(item)),
        h("span", { class: "facts" }, stepFacts(item)),
        icon("chev", "i chev")),
      open && body(item, state, act)));
}

function verb(item) {
  const block = item.block ?? "other";
  const known = ["shell", "edit", "read", "search", "plan", "task", "fetch", "web"].includes(block) ? block : "other";
  const tense = item.status === "running" ? "now" : ["pending", "asking", "refused", "cancelled"].includes(item.status) ? "want" : "done";
  return t(`verb.${known}.${tense}`);
}

function subject(item) {
  if (item.title_html) return h("span", { html: item.title_html });
  const title = item.title ?? item.path ?? item.tool ?? "";
  return CODE.has(item.block) ? h("code", null, title) : title;
}

function stepFacts(item) {
  // In the computer's own words, the ones of its journal (U8).
  const ran = item.ran?.text;
  const changed = item.added !== undefined || item.removed !== undefined;
  return facts(
    state(item),
    changed && [h("span", null, isCut(item) && `${t("step.at_least")} `, h("span", { class: "plus" }, `+${item.added ?? 0}`), " ", h("span", { class: "minus" }, `−${item.removed ?? 0}`))],
    item.status === "running" ? null : item.ms !== undefined && item.ms >= 1000 && span(item.ms < 20_000 ? Math.round(item.ms / 100) * 100 : Math.round(item.ms / 1000) * 1000),
    item.block === "read" && item.lines !== undefined && t("lines", { n: item.lines, count: count(item.lines) }),
    ran && t("ran", { ran }),
  );
}

function state(item) {
  switch (item.status) {
    case "running": return h("span", { class: "status is-on" }, mark("work"), t("running"));
    case "asking": return h("span", { class: "status is-you" }, mark("you"), t("waits.for.you.small"));
    case "pending": return t("step.pending");
    case "refused": return h("span", { class: "bad" }, item.unanswered === undefined ? t("step.refused") : t("end.expired", { time: waitSpan(item.unanswered) }));
    case "cancelled": return t("step.cancelled");
    case "unknown": return h("span", { class: "bad" }, t("step.unknown"));
    case "failed": return h("span", { class: "bad" }, item.exit !== undefined && item.exit !== null ? t("exit", { exit: item.exit }) : t("step.failed"));
    default: return item.exit !== undefined && item.exit !== null ? t("exit", { exit: item.exit }) : null;
  }
}

function body(item, view, act) {
  const name = item.title ?? item.path ?? item.tool ?? "";
  const shown = view.more?.text;
  const tail = shown ?? null;
  const has = item.diff_html || item.tail_html || item.text_html || tail !== null;
  return h("div", { class: "body" },
    item.command && h("pre", { class: "out cmd-all", key: "command", tabindex: "0", "aria-label": t("ask.command") }, item.command),
    item.diff_html && h("div", { class: "scroll", key: "diff", tabindex: "0", role: "region", "aria-label": t("step.changes", { name }), html: item.diff_html }),
    item.text_html && h("div", { class: "pad step-text", key: "text", html: item.text_html }),
    tail !== null
      ? h("pre", { class: "out", key: "all", tabindex: "0", "aria-label": t("step.output", { name }) }, tail)
      : item.tail_html && h("pre", { class: "out", key: "tail", tabindex: "0", "aria-label": t("step.output", { name }), html: item.tail_html }),
    !has && h("p", { class: "pad meta", key: "none" }, t(item.status === "running" ? "step.no_output.yet" : "step.no_output")),
    h("div", { class: "tail", key: "foot" }, foot(item, view, act)));
}

function foot(item, view, act) {
  const lines = item.tail_html ? item.tail_html.replace(/\n$/, "").split("\n").length : 0;
  const cut = item.lines !== undefined && lines > 0 && item.lines > lines;
  const size = item.bytes !== undefined ? bytes(item.bytes) : "";
  return [
    view.more?.part ? h("span", null, t("step.first", { bytes: bytes(MORE_BYTES), of: size || "?" }))
      : cut && !view.more ? h("span", null, t("step.last", { n: lines, count: count(item.lines) }))
        : item.lines !== undefined && item.block !== "read" && h("span", null, facts([t("lines", { n: item.lines, count: count(item.lines) }), size].filter(Boolean))),
    cut && !view.more && item.download && h("button", { class: "link", type: "button", onclick: () => fetchMore(item, act) }, t("step.more")),
    view.trouble && h("span", { role: "alert" }, view.trouble),
    (item.tail_html || item.diff_html || item.text_html) && copyButton((button) => source(button, item), t("copy.of", { name: item.title ?? item.tool ?? "" })),
    item.download && h("a", { class: "link", href: item.download, download: "" }, t(item.kept === undefined ? "step.download" : "step.download.part")),
    item.kept !== undefined && h("span", null, item.spill ? rich("step.kept.spill", { kept: bytes(item.kept), of: size, path: item.spill }) : t("step.kept", { kept: bytes(item.kept), of: size })),
  ];
}

// What Copy gives: the output as text; of a diff the lines as they are now.
function source(button, item) {
  const body = button.closest(".body");
  if (item.diff_html) {
    return [...body.querySelectorAll(".diff tr")].filter((row) => !row.classList.contains("hunk"))
      .map((row) => `${{ add: "+", del: "-" }[row.className] ?? " "}${row.querySelector(".tx")?.textContent ?? ""}`).join("\n");
  }
  return body.querySelector(".out:not(.cmd-all), .step-text")?.textContent ?? "";
}

async function fetchMore(item, act) {
  try {
    const response = await fetch(item.download, { credentials: "same-origin" });
    if (!response.ok || !response.body) throw new Error(String(response.status));
    const reader = response.body.getReader();
    const chunks = [];
    let size = 0;
    let part = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      chunks.push(value);
      size += value.length;
      if (size >= MORE_BYTES) {
        part = true;
        await reader.cancel();
        break;
      }
    }
    const text = new TextDecoder().decode(await new Blob(chunks).arrayBuffer());
    act({ open: true, more: { text: plain(text), part }, trouble: undefined });
  } catch {
    act({ open: true, trouble: t("step.more.failed") });
  }
}
