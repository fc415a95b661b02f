// What a screen reader is told, and how often: a finished answer and each new ask once, the progress line at most
// every ten seconds, never token by token (U54). Not here: what is seen.

import { store, on, isOpen } from "./store.js";
import { t } from "./words.js";

const PROGRESS_EVERY_MS = 10_000;

const said = new Set();
let lastProgress = 0;
let lastWords = "";

function put(id, words) {
  const region = document.getElementById(id);
  if (region && region.textContent !== words) region.textContent = words;
}

/** Says something politely, e.g. that a thing was copied. */
export const polite = (words) => put("live-polite", words);

/** Says something that cannot wait, e.g. that the time for an answer runs out. */
export const firm = (words) => put("live-firm", words);

/** Says the progress of the chat in view, when it changed and the last time is long enough ago. */
export function progress(words) {
  const now = performance.now();
  if (words === lastWords || now - lastProgress < PROGRESS_EVERY_MS) return;
  lastProgress = now;
  lastWords = words;
  polite(words);
}

/** Says once that an answer is finished, with its first words. */
export function finished(key, words) {
  if (said.has(key)) return;
  said.add(key);
  lastProgress = performance.now();
  polite(t("say.finished", { words: words.slice(0, 200) }));
}

/** Starts telling new asks, each once and firmly. Those that are there already are not news. */
export function startAsks() {
  for (const ask of store.asks.values()) said.add(ask.ask);
  on("asks", (news) => {
    const ask = news?.ask;
    if (!ask || !isOpen(ask) || said.has(ask.ask)) return;
    said.add(ask.ask);
    const changes = ["edit", "delete", "move"].includes(ask.kind);
    put("live-firm", t(changes ? "say.ask.edit" : "say.ask", { device: ask.device_name, command: (ask.command ?? "").slice(0, 120), cwd: ask.cwd_words ?? ask.cwd ?? "" }));
  });
}
