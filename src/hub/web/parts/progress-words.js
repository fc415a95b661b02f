// The progress of a chat in words, from the computer's phases, with three facts kept apart: this page and the hub, the
// hub and the computer, and what the agent does (U33). Not here: the line itself (progress-line.js).

import { store } from "../store.js";
import { rich, t, count } from "../words.js";
import { clock, elapsed, hubNow, moment, span } from "../time.js";

// Silence is told from here on, and from there on two ways out are offered (U22).
const QUIET_FROM = 30_000;
const QUIET_LONG = 600_000;
const HOUR = 3_600_000;

/** Now, or when this page last heard: a page without connection does not count on as if it knew. */
export const knownNow = () => (store.conn.state === "lost" ? store.conn.since : hubNow());

/**
 * The words of a phase: `{ shape, tone, key, values, time }`. `key` and `values` name the text; `time` follows it.
 */
export function phaseWords(progress, now = knownNow()) {
  const p = progress;
  const ran = () => span(Math.max(0, Math.floor((now - p.since) / 1000) * 1000));
  const work = (key, values, time = ran()) => ({ shape: "work", tone: "on", key, values: values ?? {}, time });
  switch (p.phase) {
    case "queued": return { shape: "q", key: p.position ? "phase.queued.at" : "phase.queued", values: { nth: nth(p.position) }, time: ran() };
    case "waiting_for_model": return work("phase.waiting_for_model", { model: modelName(p.model) });
    case "loading_model": return p.percent === undefined || p.percent === null ? work("phase.loading_model", { model: modelName(p.model) }) : work("phase.loading_model.percent", { model: modelName(p.model), percent: Math.round(p.percent) });
    case "reading_prompt": return p.total ? work("phase.reading_prompt.of", { tokens: count(p.tokens ?? 0), total: count(p.total) }) : work("phase.reading_prompt");
    case "thinking": return work("phase.thinking");
    case "writing": return p.tokens ? work("phase.writing", {}, t("tokens", { n: p.tokens, count: count(p.tokens) })) : work("phase.writing");
    case "running_tool": return work("phase.running_tool", { what: p.purpose || p.tool });
    case "waiting_for_person": return { shape: "you", tone: "you", key: p.purpose || p.command ? "phase.waiting_for_person" : "phase.waiting_for_person.bare", values: { what: p.purpose || p.command }, time: ran() };
    case "waiting_for_subagents": return work(p.names?.length ? "phase.waiting_for_subagents.named" : "phase.waiting_for_subagents", { n: p.count, names: (p.names ?? []).join(", ") });
    case "compacting": return work("phase.compacting");
    case "retrying":
      if (p.quota && p.at) return { shape: "q", key: "phase.quota", values: { model: modelName(p.model), time: moment(p.at) }, time: "" };
      return { shape: "q", ...retrying(p), time: nextTry(p.at, now), comma: true };
    case "stopped": return { shape: "pause", key: "phase.other", values: { text: stoppedWords(p) }, time: "" };
    case "failed": return failed(p);
    default: return work("phase.other", { text: p.text ?? String(p.phase).replaceAll("_", " ") });
  }
}

// What the other side said, without who carried it here: "the model's server answered 502: m1 does not answer (…)." is
// told as "m1 does not answer (…)".
const CARRIED = /the model(?:'|&#39;)s server (?:answered \d{3}|cannot be reached): /;

// The computer's sentence before the instance's own: both name the model and say that it refused.
const TWICE = /(?<=^|: )(.+?) did not take the request: (?=\1 )/;

const told = (reason) => reason?.replace(CARRIED, "").replace(/\.(?=\)|$)/, "");

// A model as its person calls it; the computer knows it by the id it is served under.
const modelName = (id) => store.models.find((one) => one.id === id)?.name ?? id ?? t("the.model");

function retrying(p) {
  const reason = told(p.reason);
  const model = modelName(p.model);
  const values = { model, attempt: p.attempt, of: p.of, reason };
  if (!reason) return { key: "phase.retrying", values };
  // The instance names the model itself.
  if ([model, p.model].some((name) => name && reason.startsWith(`${name} `))) return { key: "phase.retrying.said", values };
  // A server that refused did answer: only one that was not heard "does not answer".
  const status = /answered (\d{3})/.exec(p.reason)?.[1];
  return { key: status === "429" ? "phase.retrying.full" : status ? "phase.retrying.fault" : "phase.retrying.why", values };
}

/** Why a turn could not go on, told once; the same of words and of the markup that the server made of them. */
export const failedWords = (words) => words.replace(CARRIED, "").replace(".)", ")").replace(TWICE, "");

function failed(p) {
  const reason = p.reason && failedWords(p.reason);
  // A sentence of the computer's says itself what failed.
  if (/[.!?]$/.test(reason ?? "")) return { shape: "fail", tone: "bad", key: "phase.other", values: { text: reason }, time: "" };
  return { shape: "fail", tone: "bad", key: "phase.failed", values: { reason: reason ?? t("unknown.reason") }, time: clock(p.since) };
}

// Said the same wherever it is read: how long it took where that is known, else when it was.
function stoppedWords(p) {
  const by = p.by && !["you", "stop"].includes(p.by) ? p.by : t("you");
  const how = p.ms === undefined ? t("phase.stopped.at", { by, time: clock(p.since) }) : p.ms < 50 ? t("phase.stopped.now") : t("phase.stopped.after", { time: span(p.ms) });
  return [how, p.commands && t("phase.commands", { n: p.commands })].filter(Boolean).join(". ");
}

function nextTry(at, now) {
  if (!at) return "";
  const left = at - now;
  if (left <= 0) return t("trying.now");
  return left > HOUR ? t("phase.next.at", { time: moment(at) }) : t("phase.next.in", { time: span(Math.max(0, Math.ceil(left / 1000) * 1000)) });
}

function nth(n) {
  const last = n % 100 > 10 && n % 100 < 14 ? 0 : n % 10;
  return `${n}${["th", "st", "nd", "rd"][last] ?? "th"}`;
}

/** For how long nothing was heard of a running chat; 0 below the limit, and for phases that wait for something known. */
export function quietFor(chat, now = knownNow()) {
  const p = chat.progress;
  if (!p || !chat.running || ["waiting_for_person", "retrying", "stopped", "failed", "queued"].includes(p.phase)) return 0;
  const heard = Math.max(p.since ?? 0, store.heard.get(chat.id) ?? 0, chat.heard ?? chat.updated ?? 0);
  const quiet = now - heard;
  return quiet >= QUIET_FROM ? quiet : 0;
}

/** True when the silence is long enough to offer ways out. */
export const longQuiet = (chat) => quietFor(chat) >= QUIET_LONG;

/**
 * What a chat's line or row says: `{ shape, tone, words, plain, time }`.
 */
export function chatWords(chat) {
  const device = store.devices.get(chat.device);
  const ask = [...store.asks.values()].filter((one) => one.chat === chat.id && one.state === "open").sort((a, b) => a.made - b.made)[0];
  if (ask) {
    const what = askWords(ask);
    return { shape: "you", tone: "you", words: rich("phase.waiting_for_person", { what }), plain: t("phase.waiting_for_person", { what }), time: elapsed(ask.made), ask };
  }
  // Nothing is heard of it any more, and nothing will be: what it did last is not what it does.
  if (device?.state === "revoked") {
    const last = lastHeard(chat, device);
    const [key, values] = last ? ["chat.revoked.heard", { last: t(last.key, last.values) }] : ["chat.revoked", {}];
    return { shape: "cut", words: rich(key, values), plain: t(key, values), time: "" };
  }
  if (device && device.state === "away" && chat.running) {
    const last = lastHeard(chat, device);
    if (last) {
      const inner = t(last.key, last.values);
      return { shape: "away", words: rich("chat.last_heard", { last: inner }), plain: t("chat.last_heard", { last: inner }), time: "", away: true };
    }
  }
  if (chat.progress && (chat.running || ["stopped", "failed"].includes(chat.progress.phase))) {
    const p = phaseWords(progressOf(chat));
    const quiet = quietFor(chat);
    const time = [p.time, quiet ? t("phase.quiet", { time: quietSpan(quiet) }) : ""].filter(Boolean).join(" · ");
    return { ...p, words: rich(p.key, p.values), plain: t(p.key, p.values), time };
  }
  return { shape: chat.updated ? "done" : "open", words: [t(chat.turn ? "chat.done" : "chat.ready")], plain: t(chat.turn ? "chat.done" : "chat.ready"), time: "" };
}

// The model is named even where the computer does not say it with the phase (U23).
const progressOf = (chat) => ({ ...chat.progress, model: chat.progress.model ?? store.models.find((one) => one.id === chat.model)?.name });

/** What the agent did when its computer was last heard: a lost link does not change that (U33). Null when it did nothing. */
export function lastHeard(chat, device) {
  if (!chat.progress || !(chat.running || ["stopped", "failed"].includes(chat.progress.phase))) return null;
  return phaseWords(progressOf(chat), device.since);
}

/** An ask in a few words: the command, of a long one the part that made it ask. */
export function askWords(ask) {
  const command = (ask.command ?? "").trim();
  const short = command.includes("\n") && ask.segment ? ask.segment : command;
  return firstLine(short) || ask.kind;
}

const quietSpan = (ms) => span(ms < 60_000 ? Math.floor(ms / 1000) * 1000 : Math.floor(ms / 60_000) * 60_000);

/** The first line of a command, cut for a row; that there is more of it is told. */
export function firstLine(command) {
  const [line, ...more] = (command ?? "").trim().split("\n");
  if (line.length > 80) return `${line.slice(0, 79)}…`;
  return more.length > 0 ? `${line} …` : line;
}
