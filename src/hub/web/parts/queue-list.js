// Messages that wait for the end of the turn or for the computer: seen above the composer, each with Edit, Remove and
// Send now; opening Edit holds the queue (U4). Not here: how they get there.

import { h, mark } from "../dom.js";
import { api } from "../api.js";
import { store } from "../store.js";
import { t } from "../words.js";
import { openSheet } from "./sheet.js";
import { toast } from "./toast.js";

// More than this many are folded into a line that says how many.
const SHOWN = 3;

/** The waiting messages of a chat. */
export function queueView(log, chat, device) {
  const { queue } = log;
  if (queue.length === 0) return null;
  const away = device && device.state !== "online";
  const rest = queue.length - SHOWN;
  return h("div", { class: "queues", role: "list", "aria-label": t("queue") },
    queue.slice(0, SHOWN).map((one) => [h("div", { class: "queue", role: "listitem", key: one.key },
      mark(one.state === "failed" ? "fail" : one.state === "sent" ? "sent" : one.held ? "pause" : "q"),
      h("span", { class: "cut", title: one.text }, prefix(one, away, device), one.text),
      h("span", { class: "links" },
        waits(one) && h("button", { class: "link", type: "button", "aria-label": t("queue.edit.name", { text: one.text.slice(0, 60) }), onclick: () => edit(chat.id, one) }, t("edit")),
        h("button", { class: waits(one) ? "link only-wide" : "link", type: "button", "aria-label": t("queue.remove.name", { text: one.text.slice(0, 60) }), onclick: () => remove(chat.id, one) }, t("remove")),
        (one.state === "failed" || (!away && waits(one))) && h("button", { class: one.state === "failed" ? "link" : "link only-wide", type: "button", "aria-label": t("queue.send.name", { text: one.text.slice(0, 60) }), onclick: () => sendNow(chat.id, one) }, t(one.state === "failed" ? "try.again" : "send.now")))),
      refused(one, device)]),
    rest > 0 && h("p", { class: "meta queue-rest", role: "listitem" }, t("queue.more", { n: rest })),
    away && h("p", { class: "meta queue-rest", role: "listitem" }, t("queue.away", { device: device.name })));
}

// Handed to the computer's link already, or refused by it: what can be done then is another matter.
const waits = (one) => one.state !== "sent" && one.state !== "failed";

function prefix(one, away, device) {
  if (one.state === "failed") return t("queue.failed");
  if (one.held) return t("queue.held");
  if (away) return t("queue.waits", { device: device.name });
  return t(one.when === "next" ? "queue.next" : "queue.after");
}

// Why a message was not taken, whole and with what can be done; of a folder that is not there, another one (moment 12).
function refused(one, device) {
  if (one.state !== "failed" || !one.why) return null;
  const folder = /^There is no folder |does not allow work in /.test(one.why);
  return h("p", { class: "meta queue-rest", role: "listitem", key: `why-${one.key}` }, one.why,
    folder && device && [" ", h("a", { class: "link", href: `/?new=${encodeURIComponent(device.id)}` }, t("queue.folder"))]);
}

async function act(chat, run) {
  try {
    const answer = await run();
    if (answer.queue) store.logs.get(chat)?.setQueue(answer.queue);
    return true;
  } catch (trouble) {
    toast(trouble.text);
    return false;
  }
}

const remove = (chat, one) => act(chat, () => api.removeQueued(chat, one.key));
const sendNow = (chat, one) => act(chat, () => api.sendQueued(chat, one.key));

async function edit(chat, one) {
  // Held first: what is being changed must not be sent meanwhile.
  const was = Boolean(one.held);
  if (!was && !(await act(chat, () => api.holdQueued(chat, one.key, true)))) return;
  let text = one.text;
  let done = false;
  // Saving lets it wait again by itself; only what is still on hold is let go here.
  const release = () => {
    const still = store.logs.get(chat)?.queue.find((it) => it.key === one.key)?.held;
    if (!was && !done && still) act(chat, () => api.holdQueued(chat, one.key, false));
  };
  openSheet({
    title: t("queue.edit"),
    closed: release,
    body: (close) => h("form", {
      class: "stack",
      onsubmit: async (event) => {
        event.preventDefault();
        if (text.trim() && (await act(chat, () => api.editQueued(chat, one.key, text)))) close();
      },
    },
    h("div", { class: "field" },
      h("label", { for: "queue-text" }, t("queue.text")),
      h("textarea", { id: "queue-text", rows: "4", autofocus: true, value: one.text, oninput: (event) => { text = event.target.value; } }),
      h("span", { class: "hint" }, t("queue.hint"))),
    h("div", { class: "btns" },
      h("button", { class: "btn btn-1", type: "submit" }, t("save")),
      h("button", { class: "btn", type: "button", onclick: async () => { if (await remove(chat, one)) { done = true; close(); } } }, t("remove")),
      h("button", { class: "btn btn-q", type: "button", onclick: async () => {
        if (text !== one.text && !(await act(chat, () => api.editQueued(chat, one.key, text)))) return;
        if (await sendNow(chat, one)) { done = true; close(); }
      } }, t("send.now")))),
  });
}
