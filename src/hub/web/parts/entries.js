// One entry of a chat's stream, drawn into its element: a message, an answer, a card, a line of news, an ask, a
// message on its way. Not here: which entries are in the document (stream-view.js).

import { block, h, icon, render, sep } from "../dom.js";
import { store } from "../store.js";
import { again, drop } from "../outbox.js";
import { absolute, clock, day } from "../time.js";
import { t } from "../words.js";
import { copyButton } from "./copy.js";
import { failedWords } from "./progress-words.js";
import { planCount, planEntries, planList } from "./plan-list.js";
import { stepView } from "./step-card.js";
import "./ask-card.js";

/** Draws `entry` into `entry.el`. */
export function drawEntry(entry, view) {
  const { el, item } = entry;
  el.className = `entry${entry.joined ? " is-joined" : ""}${entry.back ? " is-back" : ""}`;
  switch (item.kind) {
    case "text": return drawText(entry, view);
    case "said": return render(el, said(item, view));
    case "step": return render(el, stepView(item, entry.state, (change) => view.change(entry, change)));
    case "thought": return render(el, folded(entry, view, "think", t("thought"), "", h("div", { class: "prose pad", html: item.html })));
    case "plan": return render(el, plan(entry, view));
    case "ask": return render(el, h("l-ask", { ".inChat": true, ".ask": item.ask, key: item.ask.ask }));
    case "rewound": return render(el, rewound(item, view));
    case "out": return render(el, outgoing(item, view));
    case "new": return render(el, h("p", { class: "mid is-new" }, h("span", null, t("new.since"))));
    case "day": return render(el, h("p", { class: "mid" }, `${day(item.time)}, ${clock(item.time)}`));
    default: return render(el, h("div", { class: `mid${item.tone ? ` is-${item.tone}` : ""}` }, h("span", { html: item.tone === "bad" ? failedWords(item.html ?? "") : item.html ?? "" })));
  }
}

// Only the blocks that changed are drawn again; the rest of a long answer stays as it is (U57).
function drawText(entry) {
  const { el, item } = entry;
  const blocks = item.blocks ?? [];
  if (!entry.prose) {
    entry.prose = document.createElement("div");
    entry.prose.className = "prose";
    entry.foot = document.createElement("div");
    entry.foot.className = "prose-foot";
    el.replaceChildren(entry.prose, entry.foot);
    entry.drawn = [];
  }
  let same = 0;
  while (same < blocks.length && same < entry.drawn.length && blocks[same] === entry.drawn[same]) same += 1;
  while (entry.prose.children.length > same) entry.prose.lastElementChild.remove();
  for (const html of blocks.slice(same)) entry.prose.append(block(html));
  entry.drawn = blocks.slice();
  const foot = entry.closing && item.text && !item.open;
  render(entry.foot, foot && copyButton(item.text, t("copy.answer")));
}

function said(item, view) {
  const device = view.deviceName();
  const word = item.state === "taken" ? t("said.taken", { device }) : item.state === "failed" ? t("said.failed") : t(item.state === "sent" ? "said.sent" : "said.saved");
  return h("div", { class: "said" },
    h("h2", { class: "sr" }, t("said.by_you")),
    h("div", { html: item.html ?? "" }),
    h("span", { class: "meta" }, word, item.time && [sep(), h("time", { datetime: new Date(item.time).toISOString(), title: absolute(item.time) }, clock(item.time))]));
}

function rewound(item, view) {
  const { log } = view;
  const n = log.order.filter((seq) => seq >= item.to && seq < item.seq && log.items.get(seq).kind === "said").length;
  const open = view.opened.has(item.seq);
  const whole = n > 0 && (!log.more || log.order[0] <= item.to);
  return h("div", { class: "mid" }, h("span", null, whole ? t("rewound", { n }) : t("rewound.some"), " ",
    h("button", { class: "link", type: "button", "aria-expanded": String(open), onclick: () => view.showBack(item.seq, !open) }, t(open ? "rewound.hide" : "rewound.show"))));
}

function outgoing(one, view) {
  const words = one.state === "failed" ? (one.trouble ? t("said.refused", { why: one.trouble }) : t("said.failed")) : one.state === "sent" ? t("said.sent") : t("said.saved");
  return h("div", { class: `said${one.state === "failed" ? " is-failed" : ""}` },
    h("h2", { class: "sr" }, t("said.by_you")),
    h("div", null, h("p", { class: "pre-line" }, one.text)),
    h("span", { class: "meta" }, words,
      one.state === "failed" && h("span", { class: "links" },
        h("button", { class: "link", type: "button", onclick: () => again(view.chat, one.key) }, t("try.again")),
        h("button", { class: "link", type: "button", onclick: () => view.takeBack(drop(view.chat, one.key)) }, t("said.back")))));
}

function folded(entry, view, sign, title, facts, body) {
  const open = entry.state.open ?? false;
  return h("div", { class: "steps" },
    h("details", { class: "step", open },
      h("summary", { "aria-expanded": String(open), onclick: (event) => { event.preventDefault(); view.change(entry, { open: !open }); } },
        icon(sign), h("span", { class: "what" }, h("b", null, title)), h("span", { class: "facts" }, facts), icon("chev", "i chev")),
      open && h("div", { class: "body" }, body)));
}

function plan(entry, view) {
  const { item } = entry;
  const entries = planEntries(item.plan);
  const { done, of } = planCount(entries);
  const waiting = [...store.asks.values()].some((ask) => ask.chat === view.chat && ask.state === "open");
  const body = entries.length > 0 ? planList(entries, { cls: "plan pad", waiting }) : h("div", { class: "pad", html: item.html ?? "" });
  return folded(entry, view, "plan", t("plan"), of > 0 ? t("plan.count", { done, of }) : "", body);
}
