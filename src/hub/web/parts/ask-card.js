// One ask: the whole command, why it asks, what a yes would cover, and the answer from press to end. The card holds the
// ask it was drawn for, and stays until the computer took the answer (U10–U17, U20). Not here: which asks there are.

import { h, mark, render, sep } from "../dom.js";
import { api } from "../api.js";
import { now } from "../beat.js";
import { draftOf, keep } from "../draft.js";
import { on, putAsk, store } from "../store.js";
import { absolute, clock, everySecond, hubNow, moment, span, waitSpan, when } from "../time.js";
import { bytes, count, rich, t } from "../words.js";
import { polite } from "../announce.js";
import { copyText } from "./copy.js";
import { firstLine } from "./progress-words.js";
import { Guard } from "./guard.js";
import { isQuestion, questionActs, questionText } from "./question.js";
import { openSheet } from "./sheet.js";
import { status } from "./bits.js";

const KINDS = new Set(["execute", "edit", "read", "delete", "move", "fetch", "search", "other"]);
const EXTEND_S = 1800;
// How far up a tree of subagents a card tells who asks; what is above is the chat's.
const MOST_PARENTS = 8;
// For how long the card says why a press did not count.
const HINT_MS = 2_500;

// "exactly X" covers X and no more: saying X again tells nothing.
const saysSame = (covers, widest) => (covers ?? "").replace(/^exactly\s+/i, "").replace(/[`.]/g, "").trim() === widest.replace(/[`.]/g, "").trim();

const nameOf = (one) => String(one?.name ?? one?.schedule ?? one?.id ?? one ?? "");

// Who asks: the chat itself, a run, a job, or a subagent with those that it works under.
function asker(ask) {
  if (ask.subagent) {
    const parents = [];
    for (let up = ask.subagent.parent; up && parents.length < MOST_PARENTS; up = up.parent) parents.push(nameOf(up));
    return { key: parents.length > 0 ? "from.subagent.under" : "from.subagent", name: nameOf(ask.subagent), parents: parents.join(", ") };
  }
  if (ask.scheduled) return { key: "from.schedule", name: nameOf(ask.scheduled) };
  return ask.job ? { key: "from.job", name: nameOf(ask.job) } : { key: "from.chat" };
}

// For how long it could be answered, in whole minutes where it was minutes.
function waited(ask) {
  const ms = Math.max(0, (ask.expires ?? ask.at ?? ask.made) - ask.made);
  return waitSpan(ms);
}

export class AskCard extends HTMLElement {
  connectedCallback() {
    this.classList.add("l-ask");
    this.guard = new Guard(() => this.querySelector(".acts"));
    this.guard.start();
    this.offs = [everySecond(() => this.countdown()), on("devices", () => this.draw())];
    this.addEventListener("keydown", this.keys);
    this.addEventListener("pointerdown", this.down, true);
    this.draw();
  }

  disconnectedCallback() {
    this.guard.stop();
    for (const off of this.offs ?? []) off();
    this.removeEventListener("keydown", this.keys);
    this.removeEventListener("pointerdown", this.down, true);
  }

  /** The ask as last heard. */
  set ask(ask) {
    const settledNow = this.data && this.data.state !== "settled" && ask.state === "settled";
    this.data = ask;
    if (settledNow) this.pressed = undefined;
    if (this.isConnected) this.draw();
  }

  get ask() {
    return this.data;
  }

  /** True where the chat is around it anyway. */
  set inChat(yes) {
    this.near = yes;
  }

  down = () => this.guard.down();

  keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, textarea, select")) return;
    if (this.data.state !== "open" || this.pressed) return;
    const key = event.key.toLowerCase();
    if (key === "a" && this.canAllow()) {
      event.preventDefault();
      this.answer("allow", "once");
    } else if (key === "r") {
      event.preventDefault();
      this.refuse();
    }
  };

  // A blank command is not something a person can judge (U12), and of a kind this page does not know only no is safe.
  canAllow() {
    return !this.unknown() && !this.blank() && !isQuestion(this.data);
  }

  unknown() {
    return !KINDS.has(this.data.kind ?? "execute") && !isQuestion(this.data);
  }

  blank() {
    return (this.data.kind ?? "execute") === "execute" && !/\S/.test(this.data.command ?? "");
  }

  allowed() {
    if (this.guard.allows()) return true;
    // Told in the card's head, which has its room already: the buttons must not move again.
    this.hint = t("ask.moved");
    polite(this.hint);
    clearTimeout(this.hinted);
    this.hinted = setTimeout(() => { this.hint = undefined; this.draw(); }, HINT_MS);
    now(() => this.draw());
    return false;
  }

  async answer(outcome, scope, note) {
    if (!this.allowed()) return;
    await this.send(outcome, scope, note);
  }

  async send(outcome, scope, note, selected) {
    const { ask, digest } = this.data;
    this.pressed = { outcome, scope, at: hubNow(), state: "sending" };
    this.trouble = undefined;
    this.hint = undefined;
    const hadFocus = this.contains(document.activeElement);
    now(() => this.draw());
    if (hadFocus) this.querySelector("section")?.focus({ preventScroll: true });
    try {
      await api.answer(ask, { digest, outcome, ...(scope && outcome === "allow" ? { scope } : {}), ...(note ? { note } : {}), ...(selected ? { selected } : {}) });
      if (this.pressed) this.pressed.state = "sent";
      keep(`ask:${ask}`, "");
    } catch (trouble) {
      if (trouble.status === 409) {
        const { how, by, at } = trouble.data?.error ?? trouble.data ?? {};
        this.pressed = undefined;
        putAsk({ ...this.data, state: "settled", outcome: how ?? this.data.outcome ?? "gone", by, at: at ?? this.data.at ?? hubNow(), late: true });
        return;
      }
      // Not known whether it arrived: the card says so, and the same press again is safe, an ask ends once.
      this.trouble = trouble;
      this.pressed = undefined;
    }
    now(() => this.draw());
  }

  refuse() {
    this.withWords("refuse");
  }

  // Yes or no with a sentence that the agent reads (U20).
  withWords(outcome) {
    if (!this.allowed()) return;
    const { ask } = this.data;
    const key = `ask:${ask}`;
    const no = outcome === "refuse";
    openSheet({
      title: t(no ? "refuse" : "allow.once"),
      body: (close) => h("form", {
        class: "stack",
        onsubmit: (event) => {
          event.preventDefault();
          const note = draftOf(key).trim();
          close();
          this.send(outcome, no ? undefined : "once", note);
        },
      },
      h("p", { class: "cut" }, h("code", null, firstLine(this.data.command))),
      h("div", { class: "field" },
        h("label", { for: `why-${ask}` }, t(no ? "refuse.why" : "allow.and.why")),
        h("textarea", { id: `why-${ask}`, rows: "3", autofocus: true, value: draftOf(key), oninput: (event) => keep(key, event.target.value) }),
        h("span", { class: "hint" }, t("refuse.hint"))),
      h("div", { class: "btns" },
        h("button", { class: "btn btn-1", type: "submit" }, t(no ? "refuse" : "allow.once")),
        h("button", { class: "btn btn-q", type: "button", onclick: close }, t("back")))),
    });
  }

  always() {
    if (!this.allowed()) return;
    const { covers, widest, device_name: device } = this.data;
    openSheet({
      title: t("always.title"),
      body: (close) => [
        h("p", null, rich("always.covers", { device }), " ", covers),
        widest && !saysSame(covers, widest) && h("p", null, rich("always.widest", { widest })),
        h("p", { class: "meta" }, rich("always.back", { device })),
        h("div", { class: "btns" },
          h("button", { class: "btn btn-1", type: "button", onclick: () => { close(); this.send("allow", "always"); } }, t("always")),
          h("button", { class: "btn", type: "button", autofocus: true, onclick: () => { close(); this.send("allow", "once"); } }, t("always.once"))),
      ],
    });
  }

  async extend() {
    if (!this.allowed()) return;
    try {
      await api.extend(this.data.ask, EXTEND_S);
      polite(t("ask.extended"));
    } catch (trouble) {
      this.trouble = trouble;
      this.draw();
    }
  }

  countdown() {
    if (this.data.state === "open" && this.data.expires) this.draw();
  }

  draw() {
    if (!this.data) return;
    render(this, this.view());
    this.guard.check();
  }

  view() {
    const ask = this.data;
    const id = `a-${ask.ask}`;
    const pressed = this.pressed;
    const phase = ask.state === "open" && pressed ? pressed.state : ask.state;
    const over = phase === "settled";
    const sent = phase === "sending" || phase === "sent";
    return h("section", { class: `ask${sent ? " is-sent" : over ? " is-over" : ""}`, id: `ask-${ask.ask}`, tabindex: "-1", "aria-labelledby": `${id} ${id}-c` },
      h("header", null, this.headStatus(phase), h("span", { title: absolute(ask.made) }, this.headFacts(phase))),
      h("div", { class: "in" },
        h("h2", { class: "h3", id }, this.title()),
        isQuestion(ask) ? questionText(ask, id) : this.command(id),
        ask.diff_html && h("div", { class: "scroll ask-diff", tabindex: "0", role: "region", "aria-label": t("ask.diff"), html: ask.diff_html }),
        ask.reason && !isQuestion(ask) && h("p", { class: "because" }, this.because(over)),
        this.from(phase),
        !over && !sent && this.actions()));
  }

  title() {
    const { kind, device_name: device, cwd_words: folder, cwd } = this.data;
    if (isQuestion(this.data)) return this.data.header || t("question.title", { device });
    const key = this.unknown() ? "ask.title.other" : { edit: "ask.title.edit", delete: "ask.title.edit", move: "ask.title.edit", read: "ask.title.read", search: "ask.title.read", fetch: "ask.title.fetch" }[kind] ?? "ask.title";
    const facts = { device, folder: folder ?? cwd ?? "" };
    return this.data.state === "settled" ? rich(`ask.past.${key}`, facts) : rich(key, facts);
  }

  command(id) {
    const { command, command_html: html, kind } = this.data;
    if (this.blank()) return h("p", { class: "bad-t", id: `${id}-c` }, t("ask.blank"));
    const text = command ?? "";
    const lines = text.split("\n").length;
    const size = new TextEncoder().encode(text).length;
    const hidden = (html?.match(/class="esc"/g) ?? []).length;
    const big = lines > 8 || size > 400 || hidden > 0;
    return h("div", { class: "cmd" },
      h("pre", { tabindex: "0", "aria-label": t("ask.command") },
        html ? h("span", { id: `${id}-c`, html }) : h("span", { id: `${id}-c` }, text || kind)),
      big && h("div", { class: "size" },
        h("span", null, [t("ask.size", { n: lines, count: count(lines), bytes: bytes(size) }), hidden > 0 && t("ask.hidden", { n: hidden })].filter(Boolean).join(", ")),
        h("button", { class: "link", type: "button", onclick: async (event) => { const b = event.currentTarget; if (await copyText(text)) { b.textContent = t("copied"); polite(t("copied")); } } }, t("copy"))));
  }

  // The words that say why carry the same underline as the part of the command.
  because(over) {
    const { reason } = this.data;
    return [t(over ? "ask.asked_because" : "ask.because"), " ", h("span", { class: "dash" }, reason.replace(/[.]$/, "")), "."];
  }

  headStatus(phase) {
    const ask = this.data;
    if (phase === "sending") return status("sent", t("ask.sending"));
    if (phase === "sent") return status("sent", t("ask.sent", { device: ask.device_name }));
    if (phase === "settled") return this.ending();
    return status("you", t("waits.for.you"), "you");
  }

  headFacts(phase) {
    const ask = this.data;
    // Where the words of the ending hold no time, it stands here.
    if (phase === "settled") return ask.late || !["expired", "unanswered", "cancelled", "gone"].includes(ask.outcome) ? "" : moment(ask.at ?? hubNow());
    if (phase !== "open") {
      const p = this.pressed ?? {};
      const what = t(p.outcome === "refuse" || ask.outcome === "refuse" ? "refuse" : p.scope === "session" ? "allow.session" : p.scope === "always" ? "allow.always" : "allow.once");
      return t("ask.you", { what, time: clock(p.at ?? ask.at ?? hubNow()) });
    }
    if (this.hint) return this.hint;
    if (ask.expires) {
      const left = ask.expires - hubNow();
      return left > 0 ? [h("b", { class: "nw" }, t("ask.left", { time: span(Math.ceil(left / 1000) * 1000) })), sep(), t("ask.asked_at", { time: clock(ask.made) })] : t("ask.ending");
    }
    return [rich("ask.asked_ago", { time: when(ask.made, "ago") }), sep(), t("ask.no_limit")];
  }

  // Six endings, six texts; none of them is an error (U16).
  ending() {
    const ask = this.data;
    const time = moment(ask.at ?? hubNow());
    const running = this.stepWords();
    if (ask.late) return status("fail", t("end.late", { how: t(`how.${ask.outcome}`, {}) , time }));
    const by = ask.by;
    const here = by === undefined || by === "you" || by === store.me?.account?.name;
    switch (ask.outcome) {
      case "allow": case "allowed": if (isQuestion(ask)) return status("done", t("end.answered", { time })); return status(running ? "work" : "done", t(here ? "end.allowed" : "end.allowed.elsewhere", { by, time }) + (running ? ` · ${running}` : ""), running ? "on" : undefined);
      case "refuse": case "refused": return status("fail", t(here ? "end.refused" : "end.refused.elsewhere", { by, time }));
      case "expired": case "unanswered": return status("q", t(isQuestion(ask) ? "end.expired.question" : "end.expired", { time: waited(ask) }));
      case "cancelled": case "gone": return status("cut", t("end.gone"));
      default: return status("done", ask.words || t("end.other", { time }));
    }
  }

  stepWords() {
    const log = store.logs.get(this.data.chat);
    if (!log) return "";
    for (const item of log.items.values()) {
      if (item.kind === "step" && item.call === this.data.call) return item.status === "running" ? t("running") : "";
    }
    return "";
  }

  from(phase) {
    const ask = this.data;
    const lines = [];
    const { key, name, parents } = asker(ask);
    if (ask.chat && (!this.near || key !== "from.chat")) {
      const link = h("a", { href: `/c/${encodeURIComponent(ask.chat)}` }, (ask.chat_title || t("untitled")).replace(/[.]$/, ""));
      lines.push(rich(key, { chat: link, name, parents }));
    }
    if (phase === "sending" || phase === "sent") {
      const device = store.devices.get(ask.device);
      const away = device && device.state !== "online";
      if (isQuestion(ask)) lines.push(t(away ? "question.not_delivered.away" : "question.not_delivered", { device: ask.device_name }));
      else lines.push(t(away ? "ask.not_delivered.away" : "ask.not_delivered", { device: ask.device_name }));
    } else if (phase !== "settled") {
      // Only a command has a box; a change of a file has none to speak of.
      if (["read", "roots", "open"].includes(ask.box)) lines.push(t(`box.${ask.box}`));
      if (ask.expires) lines.push(rich("ask.counts_as_no", { time: h("time", { datetime: new Date(ask.expires).toISOString() }, clock(ask.expires)) }));
      for (const change of ask.variables ?? []) lines.push(rich("ask.sets", { name: typeof change === "string" ? change : `${change.name}=${change.value ?? ""}` }));
    }
    if (ask.words && !isQuestion(ask) && phase !== "settled" && phase !== "open") lines.push(ask.words);
    return lines.length > 0 && h("p", { class: "from" }, lines.map((line) => h("span", null, line)));
  }

  troubleLine() {
    const { trouble } = this;
    return trouble && h("p", { class: "field", role: "alert" }, h("span", { class: "err" }, mark("warn"), h("span", null, t(trouble.unknown ? "ask.unsure" : "ask.failed", { why: trouble.text }))));
  }

  questionActs() {
    this.picked ??= { ids: new Set(), words: "" };
    return [this.troubleLine(), questionActs(this.data, this.picked, {
      redraw: () => this.draw(),
      send: (ids, words) => this.allowed() && this.send("allow", undefined, words, ids),
      skip: () => this.refuse(),
    })];
  }

  actions() {
    const ask = this.data;
    if (isQuestion(ask)) return this.questionActs();
    const scopes = ask.scopes ?? ["once"];
    const can = this.canAllow();
    const press = (fn) => () => fn();
    return [
      this.unknown() && h("p", { class: "meta" }, t("ask.unknown_kind")),
      can && scopes.includes("session") && ask.covers && h("p", { class: "meta covers" }, t("ask.session_covers"), " ", ask.covers),
      this.troubleLine(),
      h("div", { class: "acts" },
        can && h("button", { class: "btn btn-1", type: "button", "aria-keyshortcuts": "A", onclick: press(() => this.answer("allow", "once")) }, t("allow.once")),
        h("button", { class: `btn${can ? "" : " wide"}`, type: "button", "aria-keyshortcuts": "R", onclick: press(() => this.refuse()) }, t("refuse.dots")),
        can && h("button", { class: "btn btn-q wide last", type: "button", onclick: press(() => this.withWords("allow")) }, t("allow.and")),
        can && scopes.includes("session") && h("button", { class: "btn btn-q wide last", type: "button", onclick: press(() => this.answer("allow", "session")) }, t("allow.session")),
        can && scopes.includes("always") && h("button", { class: "btn btn-q wide last", type: "button", onclick: press(() => this.always()) }, t("allow.always.dots")),
        ask.expires && h("button", { class: "btn btn-q wide last", type: "button", onclick: press(() => this.extend()) }, t("ask.extend"))),
      h("p", { class: "meta keys-hint", "aria-hidden": "true" }, can ? t("ask.keys") : t("ask.keys.refuse")),
    ];
  }
}

customElements.define("l-ask", AskCard);

/** A settled ask as one row of the list of answers. */
export function settledRow(ask) {
  const card = new AskCard();
  card.data = ask;
  const ending = card.ending();
  // One thing to press: a link inside the line would be too small for a thumb.
  return h(ask.chat ? "a" : "div", { class: "row", key: ask.ask, href: ask.chat && `/c/${encodeURIComponent(ask.chat)}` },
    ending.kids[0],
    h("span", { class: "t cut" }, h("code", null, ask.command || ask.kind)),
    when(ask.at ?? ask.made, "moment"),
    h("span", { class: "l2" }, ending.kids[1].kids, sep(), ask.device_name, sep(), ask.cwd_words ?? ask.cwd, ask.chat && [sep(), ask.chat_title || t("untitled")]));
}
