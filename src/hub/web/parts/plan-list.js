// A plan as a list: what is done, what is at work, what is open. Not here: changing a plan.

import { h, mark } from "../dom.js";
import { span } from "../time.js";
import { t } from "../words.js";

/** The entries of a plan, whatever shape it came in: `[{ text, status, ms? }]`. */
export function planEntries(plan) {
  const list = Array.isArray(plan) ? plan : plan?.entries ?? plan?.steps ?? [];
  return list.map((one) => (typeof one === "string" ? { text: one, status: "pending" } : { text: one.content ?? one.text ?? one.title ?? "", status: one.status ?? "pending", ms: one.ms }));
}

const isDone = (status) => status === "completed" || status === "done";
const isNow = (status) => status === "in_progress" || status === "now" || status === "running";

/** How many are done, of how many. */
export function planCount(entries) {
  return { done: entries.filter((one) => isDone(one.status)).length, of: entries.length };
}

/** The list. `waiting` marks the step at work as one that waits for the person. */
export function planList(entries, { cls = "plan", waiting = false } = {}) {
  return h("ol", { class: cls }, entries.map((one) => {
    const now = isNow(one.status);
    const shape = isDone(one.status) ? "done" : now ? (waiting ? "you" : "work") : one.status === "failed" ? "fail" : "open";
    const word = isDone(one.status) ? "plan.done" : now ? (waiting ? "waits.for.you.small" : "plan.now") : one.status === "failed" ? "plan.failed" : "plan.open";
    return h("li", { class: [isDone(one.status) && "is-done", now && "is-now", now && waiting && "is-you"].filter(Boolean).join(" ") || undefined },
      mark(shape), h("span", null, one.text, h("span", { class: "sr" }, ` (${t(word)})`)), one.ms !== undefined && h("span", { class: "meta" }, span(Math.round(one.ms / 1000) * 1000)));
  }));
}
