// Times in words: relative, with the absolute one on hover; elapsed counts from the hub's clock, never from this
// device's alone. One ticker serves the whole page. Not here: the sentences around a time (texts.js).

import { h } from "./dom.js";

// Hub's clock minus ours, in ms; taken anew from each answer that carries `now`.
let offset = 0;

/** Takes the hub's reading of now, ms since the epoch. */
export function setHubNow(ms) {
  if (Number.isFinite(ms)) offset = ms - Date.now();
}

/** Now by the hub's clock, ms since the epoch. */
export const hubNow = () => Date.now() + offset;

const NB = "\u00a0";
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A length of time: `0.9 s`, `48 s`, `1 min 10 s`, `2 h 5 min`, `3 days`. Never breaks inside. */
export function span(ms) {
  const left = Math.max(0, ms);
  if (left < 20 * SECOND && left % SECOND !== 0) return `${(left / SECOND).toFixed(1)}${NB}s`.replace(".0", "");
  const s = Math.floor(left / SECOND);
  if (s < 60) return `${s}${NB}s`;
  const min = Math.floor(s / 60);
  if (min < 60) return s % 60 && min < 30 ? `${min}${NB}min${NB}${s % 60}${NB}s` : `${min}${NB}min`;
  const hours = Math.floor(min / 60);
  if (hours < 24) return min % 60 ? `${hours}${NB}h${NB}${min % 60}${NB}min` : `${hours}${NB}h`;
  const days = Math.floor(hours / 24);
  return days === 1 ? `1${NB}day` : `${days}${NB}days`;
}

/** How long something could wait, to the minute or, below one, to the second. */
export const waitSpan = (ms) => span(ms < MINUTE ? Math.round(ms / SECOND) * SECOND : Math.round(ms / MINUTE) * MINUTE);

/** Elapsed, in whole seconds. */
export const elapsed = (since) => span(Math.max(0, Math.floor((hubNow() - since) / SECOND) * SECOND));

/** How long ago, coarser: `40 s`, `12 min`, `1 h`, `3 days`. */
export function ago(ms) {
  const past = Math.max(0, hubNow() - ms);
  if (past < MINUTE) return `${Math.floor(past / SECOND)}${NB}s`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)}${NB}min`;
  if (past < DAY) return `${Math.floor(past / HOUR)}${NB}h`;
  return span(past);
}

const two = (n) => String(n).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Clock time in this person's zone: `14:02`. */
export function clock(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** A moment: `14:02` today, `yesterday, 23:41`, `28 Nov, 07:00`. */
export function moment(ms) {
  const d = new Date(ms);
  const today = new Date(hubNow());
  const dayOf = (x) => Math.floor(new Date(x.getFullYear(), x.getMonth(), x.getDate()).getTime() / DAY + 0.5);
  const days = dayOf(today) - dayOf(d);
  if (days === 0) return clock(ms);
  if (days === 1) return `yesterday, ${clock(ms)}`;
  if (days === -1) return `tomorrow, ${clock(ms)}`;
  const year = d.getFullYear() === today.getFullYear() ? "" : ` ${d.getFullYear()}`;
  return `${d.getDate()} ${MONTHS[d.getMonth()]}${year}, ${clock(ms)}`;
}

/** A day: `today`, `yesterday`, `12 Nov`. */
export function day(ms) {
  const words = moment(ms);
  if (/^\d\d:/.test(words)) return "today";
  return words.replace(/, \d\d:\d\d$/, "");
}

/** The whole moment, for hover and machines. */
export function absolute(ms) {
  const d = new Date(ms);
  return `${d.getDate()} ${MONTHS[d.getMonth()]} ${d.getFullYear()}, ${clock(ms)}:${two(d.getSeconds())}`;
}

const KINDS = { ago, elapsed, moment, left: (ms) => span(Math.max(0, Math.ceil((ms - hubNow()) / SECOND) * SECOND)) };

/** A `<time>` that keeps itself right. Kinds: ago, elapsed, left, moment. */
export function when(ms, kind = "ago") {
  if (!Number.isFinite(ms)) return null;
  return h("time", { datetime: new Date(ms).toISOString(), title: absolute(ms), "data-at": ms, "data-kind": kind, ".textContent": KINDS[kind](ms) });
}

const ticks = new Set();

/** Calls `fn` once a second while the page is seen. Returns how to stop it. */
export function everySecond(fn) {
  ticks.add(fn);
  return () => ticks.delete(fn);
}

function tick() {
  if (!document.hidden) {
    for (const el of document.querySelectorAll("time[data-kind]")) {
      const words = KINDS[el.dataset.kind]?.(Number(el.dataset.at));
      if (words !== undefined && el.textContent !== words) el.textContent = words;
    }
    for (const fn of ticks) fn();
  }
}

setInterval(tick, SECOND);
