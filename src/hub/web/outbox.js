// Messages on their way: kept on this device before anything is sent, each with a key, so that trying again cannot
// double it. Each says how far it came: saved, sent, failed (U6). One that the hub has taken comes back as an item of
// the chat or as an entry of its queue, and leaves here. Not here: drawing.

import { api, newKey } from "./api.js";
import { emit, on, store } from "./store.js";

const PREFIX = "lembas.out.";

const boxes = new Map();

function box(chat) {
  if (!boxes.has(chat)) {
    let list = [];
    try {
      list = JSON.parse(localStorage.getItem(PREFIX + chat) ?? "[]");
    } catch {
      list = [];
    }
    // After a reload it is not known whether the answer was on its way: the same key asks again.
    for (const one of list) if (one.state === "saved") one.state = "failed";
    boxes.set(chat, list);
  }
  return boxes.get(chat);
}

function save(chat) {
  try {
    const list = box(chat);
    if (list.length === 0) localStorage.removeItem(PREFIX + chat);
    else localStorage.setItem(PREFIX + chat, JSON.stringify(list));
  } catch {
    // Without storage the message lives as long as this tab.
  }
  emit(`out:${chat}`);
}

/** Messages of a chat that the hub is not known to have. */
export const pending = (chat) => box(chat);

/** Keeps a message and sends it; gives its key at once. */
export function post(chat, text, when, parts) {
  const one = { key: newKey(), text, when, state: "saved", made: Date.now(), ...(parts ? { parts } : {}) };
  box(chat).push(one);
  save(chat);
  send(chat, one);
  return one.key;
}

/** Tries again with the same key. */
export function again(chat, key) {
  const one = box(chat).find((it) => it.key === key);
  if (!one || one.state === "saved") return;
  one.state = "saved";
  save(chat);
  send(chat, one);
}

/** Lets a message that was not sent go; gives its words back. */
export function drop(chat, key) {
  const list = box(chat);
  const at = list.findIndex((it) => it.key === key);
  if (at < 0) return "";
  const [one] = list.splice(at, 1);
  save(chat);
  return one.text;
}

async function send(chat, one) {
  const { key, text, when, parts } = one;
  try {
    const answer = await api.send(chat, { key, text, when, ...(parts ? { parts } : {}) });
    one.state = "sent";
    one.trouble = undefined;
    if (answer.queue) store.logs.get(chat)?.setQueue(answer.queue);
    if (answer.state === "queued") arrived(chat, key);
  } catch (trouble) {
    one.state = "failed";
    // Only what was refused in words needs words here; a lost line is told by the state itself.
    one.trouble = trouble.unknown ? undefined : trouble.text;
    one.retry = trouble.unknown;
  }
  save(chat);
  settle(chat);
}

function arrived(chat, key) {
  const list = box(chat);
  const at = list.findIndex((it) => it.key === key);
  if (at >= 0) {
    list.splice(at, 1);
    save(chat);
  }
}

/** Lets go of what the chat's items or queue hold now. */
export function settle(chat) {
  const log = store.logs.get(chat);
  if (!log) return;
  const known = new Set(log.queue.map((one) => one.key));
  for (const item of log.items.values()) if (item.kind === "said" && item.key) known.add(item.key);
  for (const one of [...box(chat)]) if (known.has(one.key)) arrived(chat, one.key);
}

// Back on line: what got no answer goes again by itself, in order; the key keeps it from being done twice.
on("conn", () => {
  if (store.conn.state !== "live") return;
  for (const [chat, list] of boxes) {
    for (const one of list) if (one.state === "failed" && one.retry) again(chat, one.key);
  }
});
