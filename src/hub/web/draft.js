// Drafts: one a chat and one a refusal, kept on this device at once and at the hub a moment later. Words in the box
// always win over a copy that arrives (U3). Not here: the box itself (parts/composer.js).

import { api } from "./api.js";

const PREFIX = "lembas.draft.";
// Typing rests this long before the copy at the hub is renewed.
const REST_MS = 800;

const timers = new Map();
// What this tab sent itself, so that its echo is not taken for somebody else's words.
const sent = new Map();

/** The name under which this browser keeps the words for `key`. */
export const storedAs = (key) => PREFIX + key;

/** The words kept for `key` (a chat's id, or `ask:ID`). */
export function draftOf(key) {
  try {
    return localStorage.getItem(PREFIX + key) ?? "";
  } catch {
    return "";
  }
}

/** Keeps `text` here, and for a chat at the hub too. */
export function keep(key, text) {
  try {
    if (text === "") localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, text);
  } catch {
    // No room or no storage in this browser: the copy at the hub is then the only one.
  }
  if (key.startsWith("ask:")) return;
  clearTimeout(timers.get(key));
  timers.set(key, setTimeout(() => push(key, text), REST_MS));
}

/** Sends what is still held back, e.g. before the page is left. */
export function flush() {
  for (const [key, timer] of timers) {
    clearTimeout(timer);
    push(key, draftOf(key));
  }
}

function push(key, text) {
  timers.delete(key);
  const own = sent.get(key) ?? [];
  own.push(text);
  // Enough to know the echoes of the last few pauses again.
  sent.set(key, own.slice(-8));
  api.draft(key, text).catch(() => {
    // Kept here; the next pause in typing tries again.
  });
}

/**
 * What the box should hold when a copy arrives: the copy only when the box is empty or holds an earlier copy, nothing
 * was typed in it since it was opened, and the copy is not our own words coming back.
 */
export function arrive(key, copy, { box, before, touched, focused }) {
  if ((box !== "" && box !== before) || touched || focused) return box;
  if ((sent.get(key) ?? []).includes(copy)) return box;
  return copy;
}
