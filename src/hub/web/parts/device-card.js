// A computer: whether it is there, what it allows, and its chats with what they do. Not here: revoking and renaming
// (places/settings.js).

import { h, icon, mark, sep } from "../dom.js";
import { api } from "../api.js";
import { openAsks, sortedChats, store } from "../store.js";
import { when } from "../time.js";
import { count, rich, sentence, t } from "../words.js";
import { askWords, chatWords } from "./progress-words.js";
import { deviceStatus, limitsWords, stateBox } from "./bits.js";
import { paste } from "./copy.js";
import { toast } from "./toast.js";

const SHOWN = 6;

/** One row of a list of chats. */
export function chatRow(chat, { device = false } = {}) {
  const words = chatWords(chat);
  const ask = words.tone === "you";
  return h("a", { class: `row${ask ? " has-ask" : words.tone === "on" ? " is-on" : words.tone === "bad" ? " is-bad" : ""}`, key: chat.id, href: `/c/${encodeURIComponent(chat.id)}` },
    mark(words.shape), h("span", { class: "t" }, chat.title || t("untitled"), chat.unread && !chat.running ? h("span", { class: "new-word" }, ` ${t("unread")}`) : null),
    when(words.ask ? words.ask.made : chat.running && chat.progress && words.shape !== "cut" ? chat.progress.since : chat.updated, "ago"),
    h("span", { class: "l2" }, h("span", { class: ask ? "is-you" : undefined }, words.words),
      !ask && !chat.running && words.time ? [sep(), words.time] : null,
      chat.queue > 0 && [sep(), t("row.queued", { n: chat.queue })],
      chat.origin === "schedule" && [sep(), t("row.scheduled")],
      device && [sep(), chat.device_name], sep(), chat.cwd_words ?? chat.cwd));
}

// The other asks of a chat: its own row names the first (U15).
function otherAsks(chat, first) {
  return openAsks(chat.id).filter((ask) => ask.state === "open" && ask !== first).map((ask) => h("a", { class: "row has-ask", key: `ask-${ask.ask}`, href: `/c/${encodeURIComponent(chat.id)}#ask-${ask.ask}` },
    mark("you"), h("span", { class: "t" }, h("span", { class: "is-you" }, rich("phase.waiting_for_person", { what: askWords(ask) }))), when(ask.made, "ago"),
    h("span", { class: "l2" }, chat.title || t("untitled"), sep(), chat.cwd_words ?? chat.cwd)));
}

/** A chat's row with one row more for each further ask. */
const chatRows = (chat) => [chatRow(chat), otherAsks(chat, chatWords(chat).ask)];

/** The card of a computer. */
export function deviceCard(device) {
  const all = sortedChats((chat) => chat.device === device.id);
  // What waits for the person is never among those left out; it comes first.
  const shown = Math.max(SHOWN, all.filter((chat) => chatWords(chat).ask).length);
  const gone = device.state === "revoked";
  const roots = device.limits?.roots ?? [];
  const off = device.limits?.remote === false || device.limits?.paused;
  const id = `pc-${device.id}`;
  return h("article", { class: "card pc", key: device.id, "aria-labelledby": id },
    h("header", null, icon("pc"), h("h2", { id }, device.name), deviceStatus(device),
      h("p", { class: "limits" }, device.state === "away" && [!device.why && [t("device.why"), " "], t("device.limits.then"), " "], limitsWords(device)),
      !gone && device.state !== "never" && roots.length > 0 && !off && h("a", { class: `btn${device.state === "online" ? " btn-1" : ""}`, href: `/?new=${encodeURIComponent(device.id)}`, "aria-label": t("new.chat.on", { device: device.name }) }, t("new.chat"))),
    h("div", { class: "rows" },
      device.state === "away" && h("div", { class: "note", key: "away" }, mark("cut"), h("p", null, device.last_words ? rich("device.away.heard", { last: device.last_words }) : t("device.away.nothing")),
        h("p", { class: "links" }, h("button", { class: "link", type: "button", onclick: () => retry(device) }, t("try.now")))),
      gone && h("div", { class: "note", key: "gone" }, mark("cut"), h("p", null, t("device.revoked.note", { device: device.name, why: device.why ? ` ${device.why}` : "" })), h("div", { class: "links" }, paste(linkLine()))),
      !gone && device.why && h("div", { class: "note", key: "why" }, mark("warn"), h("p", null, sentence(device.why))),
      off && h("div", { class: "note", key: "off" }, mark("pause"), h("p", null, rich(device.limits?.paused ? "device.paused" : "device.off", { device: device.name }))),
      device.state === "never" && never(device),
      device.state !== "never" && roots.length === 0 && !gone && noRoots(device),
      all.slice(0, shown).map(chatRows),
      all.length === 0 && roots.length > 0 && h("p", { class: "more", key: "none" }, h("span", null, t("device.no_chats", { device: device.name }))),
      all.length > 0 && all.length <= shown && h("p", { class: "more", key: "more" }, h("span"), h("a", { class: "link", href: `/?device=${encodeURIComponent(device.id)}` }, t("all.chats", { device: device.name }))),
      all.length > shown && h("p", { class: "more", key: "more" }, h("span", null, t("showing", { n: shown, of: count(all.length) })), h("a", { class: "link", href: `/?device=${encodeURIComponent(device.id)}` }, t("all.chats", { device: device.name })))));
}

const linkLine = () => `lembas link ${store.me?.instance?.url ?? location.origin}`;

function never(device) {
  const line = linkLine();
  return h("div", { key: "never" }, stateBox({ shape: "never", card: false, title: t("never.title"), words: t("never.words", { device: device.name }), line, buttons: h("a", { class: "btn", href: "/link" }, t("enter.code")) }));
}

function noRoots(device) {
  return h("div", { class: "state", key: "roots" }, h("h3", { class: "state-t" }, t("roots.title", { device: device.name })), h("p", null, t("roots.words", { device: device.name })), paste("lembas roots add ~/projects"));
}

async function retry(device) {
  try {
    const { text } = await api.retryDevice(device.id);
    toast(text ?? t("retry.asked", { device: device.name }));
  } catch (trouble) {
    toast(trouble.text);
  }
}
