// A tool call as one folded card: what ran, what came of it, what allowed it; a failed one opens itself, and nothing
// is cut away for good (U7–U10). Not here: which cards are in the document (stream-view.js).

import { h, facts, icon, mark } from "../dom.js";
import { span, waitSpan } from "../time.js";
import { bytes, count, t } from "../words.js";
import { troubleOf } from "../api.js";
import { plain } from "../terminal.js";
import { isCut } from "../totals.js";
import { copyButton } from "./copy.js";

const ICONS = { shell: "shell", edit: "edit", read: "read", search: "search", plan: "plan", task: "sub", fetch: "globe", web: "globe", thought: "think" };
// One press of Show more brings so much, and so many presses are shown; the download has the whole.
const MORE_BYTES = 64 * 1024;
const PIECES = 4;

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
  const cut = lines > 0 && (item.kept !== undefined || (item.lines !== undefined && item.lines > lines));
  const size = item.bytes !== undefined ? bytes(item.bytes) : "";
  const { more } = view;
  const ended = !["running", "asking", "pending"].includes(item.status);
  return [
    more ? h("span", null, t(more.from > 0 ? "step.part" : "step.first", { bytes: bytes(more.next - more.from), of: bytes(more.total), from: bytes(more.from) }))
      : cut && item.lines !== undefined ? h("span", null, t("step.last", { n: lines, count: count(item.lines) }))
        : item.lines !== undefined && item.block !== "read" && h("span", null, facts([t("lines", { n: item.lines, count: count(item.lines) }), size].filter(Boolean))),
    (more ? more.next < more.total : cut) && item.download && h("button", { class: "link", type: "button", disabled: Boolean(view.busy), onclick: () => fetchMore(item, view, act) }, t(view.busy ? "step.loading" : "step.more")),
    more?.note && h("span", null, more.note),
    view.trouble && h("span", { role: "alert" }, view.trouble),
    (item.tail_html || item.diff_html || item.text_html) && copyButton((button) => source(button, item), t("copy.of", { name: item.title ?? item.tool ?? "" })),
    item.download && ended && h("a", { class: "link", href: item.download, download: "output.txt", onclick: (event) => download(event, item, act) }, t("step.download")),
    view.part && h("a", { class: "link", href: `${item.download}?part=here`, download: "output.txt" }, t("step.download.part")),
    item.kept !== undefined && ended && h("span", null, t("step.kept", { kept: bytes(item.kept), of: size })),
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

// The next stretch below what is shown; the oldest one goes when there are too many of them.
async function fetchMore(item, view, act) {
  const before = view.more ?? { pieces: [], from: 0, next: 0 };
  act({ open: true, busy: true });
  try {
    const got = await call(`${item.download}?from=${before.next}&max=${MORE_BYTES}`);
    const pieces = [...before.pieces, { text: got.text, size: got.next - got.from }];
    let { from } = before;
    while (pieces.length > PIECES) from += pieces.shift().size;
    const text = plain(pieces.map((piece) => piece.text).join(""));
    act({ open: true, busy: false, trouble: undefined, more: { pieces, from, next: got.next, total: got.total, note: got.note, text } });
  } catch (trouble) {
    act({ open: true, busy: false, trouble: trouble.text ?? t("step.more.failed") });
  }
}

// A download that cannot be whole is not begun: why is said here, and what there is can be had.
async function download(event, item, act) {
  if (event.defaultPrevented || (item.kept === undefined && !item.spill)) return;
  event.preventDefault();
  const link = event.currentTarget;
  try {
    const got = await call(`${item.download}?from=0&max=4`);
    if (!got.whole) return act({ open: true, trouble: got.note, part: true });
    act({ open: true, trouble: undefined, part: false });
    const real = Object.assign(document.createElement("a"), { href: link.href, download: link.download });
    real.click();
  } catch (trouble) {
    act({ open: true, trouble: trouble.text ?? t("step.more.failed"), part: true });
  }
}

async function call(url) {
  const response = await fetch(url, { credentials: "same-origin", cache: "no-store" });
  const data = await response.json().catch(() => null);
  if (!response.ok) throw troubleOf(response.status, data);
  return data;
}
