// The progress line: one line in one place, what the agent does and for how long, with Stop beside it (U21–U24, U33,
// U36). Not here: the words of a phase (progress-words.js).

import { h, icon, mark, render } from "../dom.js";
import { api, newKey } from "../api.js";
import { now } from "../beat.js";
import { post } from "../outbox.js";
import { emit, on, store } from "../store.js";
import { everySecond, hubNow, when } from "../time.js";
import { rich, t } from "../words.js";
import { polite, progress } from "../announce.js";
import { toast } from "./toast.js";
import { chatWords, lastHeard, longQuiet } from "./progress-words.js";
import { lastTurn, retryActs, stoppedActs, waits } from "./turn-acts.js";

// Stop presses whose end is not heard yet: chat → { turn, at, trouble }.
const stopping = new Map();

export class ProgressLine extends HTMLElement {
  connectedCallback() {
    const draw = () => this.draw();
    this.offs = [everySecond(draw), on(`items:${this.id_}`, (what) => { if (what?.all || what?.fresh) draw(); }), on("models", draw), on("devices", draw), on("asks", draw), on("conn", draw), on(`chat:${this.id_}`, draw)];
    this.draw();
  }

  disconnectedCallback() {
    for (const off of this.offs ?? []) off();
  }

  /** The chat's id. */
  set chat(id) {
    this.id_ = id;
  }

  draw() {
    const chat = store.chats.get(this.id_);
    if (!chat) return;
    const wait = stopping.get(chat.id);
    if (wait && (!chat.running || (chat.turn !== undefined && wait.turn !== undefined && chat.turn !== wait.turn))) stopping.delete(chat.id);
    const words = this.words(chat);
    progress(words.plain);
    render(this, this.view(chat, words));
    this.hidden = words.idle === true;
  }

  words(chat) {
    const device = store.devices.get(chat.device);
    const wait = stopping.get(chat.id);
    if (wait?.trouble) return { shape: "warn", tone: "bad", words: [wait.trouble.text], plain: wait.trouble.text, time: "" };
    if (wait) {
      const away = device && device.state !== "online";
      const key = away ? "stop.away" : "stopping";
      return { shape: away ? "away" : "work", words: [t(key, { device: device?.name ?? "" })], plain: t(key, { device: device?.name ?? "" }), time: "" };
    }
    if (device && device.state === "away") {
      const last = lastHeard(chat, device);
      const since = when(device.since, "moment");
      const lastWords = last ? t(last.key, last.values) : device.last_words;
      const words = last ? rich("away.heard", { device: device.name, since, last: lastWords }) : rich("away", { device: device.name, since });
      return { shape: "away", words, plain: t("away.plain", { device: device.name }), time: "", away: true };
    }
    const said = chatWords(chat);
    const ended = chat.progress && ["stopped", "failed"].includes(chat.progress.phase);
    if (this.stopped(chat, said)) {
      const { whole, files } = lastTurn(store.logs.get(chat.id));
      const plain = [`${said.plain}.`, whole && files.length > 0 && t("phase.files", { n: files.length })].filter(Boolean).join(" ");
      return { ...said, words: [plain], plain };
    }
    if (chat.running && chat.progress?.phase === "retrying" && chat.progress.quota) {
      const plain = [`${said.plain}.`, waits(chat) && t("quota.waits")].filter(Boolean).join(" ");
      return { ...said, words: [plain], plain };
    }
    return { ...said, idle: !chat.running && !said.ask && !ended };
  }

  view(chat, words) {
    const { shape, tone, time, ask, comma } = words;
    // What has no access any more hears of no Stop.
    const reached = store.devices.get(chat.device)?.state !== "revoked";
    const text = h("span", null, words.words, time && (comma ? ", " : h("span", { class: "sep" }, "\u00a0· ")), time && h("span", { class: "nw" }, time), comma && ".");
    const quiet = !words.away && longQuiet(chat);
    const acts = this.acts(chat, words);
    return [
      quiet && h("p", { class: "quiet-note" }, t("quiet.long")),
      h("div", { class: `prog${tone ? ` is-${tone}` : ""}${words.away || quiet || acts.some(Boolean) ? " is-away" : ""}${acts.length > 0 ? " has-acts" : ""}`, key: "line" },
        mark(shape),
        ask ? h("a", { class: "text", href: `#ask-${ask.ask}`, onclick: (event) => this.look(event, ask) }, text) : h("span", { class: "text" }, text),
        h("span", { class: "btns" },
          ask && h("a", { class: "btn btn-q btn-s only-wide", href: `#ask-${ask.ask}`, onclick: (event) => this.look(event, ask) }, t("look")),
          words.away && h("button", { class: "btn btn-q btn-s", type: "button", onclick: () => this.retry(chat) }, t("try.now")),
          acts,
          quiet && h("button", { class: "btn btn-q btn-s", type: "button", onclick: () => this.dispatchEvent(new CustomEvent("show-last", { bubbles: true })) }, t("quiet.show")),
          chat.running && reached && !stopping.has(chat.id) && h("button", { class: "btn btn-q btn-s", type: "button", onclick: () => this.stop(chat) }, icon("stop"), t("stop")))),
    ];
  }

  stopped(chat, words) {
    return words.shape === "pause" && !words.ask && !chat.running && chat.progress?.phase === "stopped" && !chat.closed && !chat.archived;
  }

  // The ways on when the turn was stopped (moment 4), failed, or waits for a model (moment 11).
  acts(chat, words) {
    const tell = (name, detail) => this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
    const choose = () => tell("choose");
    if (words.away || words.ask || chat.closed || stopping.has(chat.id) || store.devices.get(chat.device)?.state === "revoked") return [];
    if (this.stopped(chat, words)) return stoppedActs(chat, store.logs.get(chat.id), { say: () => tell("write"), back: (text) => tell("take-back", text) });
    if (chat.running && chat.progress?.phase === "retrying") return retryActs(chat, { redraw: () => this.draw(), choose });
    if (chat.running || chat.progress?.phase !== "failed") return [];
    return [
      store.models.length > 1 && h("button", { class: "btn btn-q btn-s", type: "button", onclick: choose }, t("model.other")),
      this.lastSaid(chat, words) && h("button", { class: "btn btn-q btn-s", type: "button", onclick: () => this.again(chat, words) }, t("send.again")),
    ];
  }

  // What the failed turn was asked, to be sent again as it was.
  lastSaid(chat, words) {
    if (words.away || chat.closed || chat.running || chat.progress?.phase !== "failed") return null;
    const log = store.logs.get(chat.id);
    const seq = log?.order.findLast((one) => log.items.get(one).kind === "said");
    return seq === undefined ? null : log.items.get(seq).text || null;
  }

  again(chat, words) {
    const text = this.lastSaid(chat, words);
    if (text) post(chat.id, text, "after");
    this.dispatchEvent(new CustomEvent("sent", { bubbles: true }));
  }

  look(event, ask) {
    event.preventDefault();
    const card = document.getElementById(`ask-${ask.ask}`);
    card?.scrollIntoView({ block: "nearest" });
    card?.focus({ preventScroll: true });
  }

  async stop(chat) {
    stopping.set(chat.id, { turn: chat.turn, at: hubNow() });
    now(() => this.draw());
    polite(t("stopping"));
    try {
      await api.stop(chat.id, newKey());
    } catch (trouble) {
      const wait = stopping.get(chat.id);
      if (!wait) return;
      wait.trouble = trouble;
      this.draw();
      // Told for a while, then the line is the work's again and Stop can be pressed once more.
      setTimeout(() => { stopping.delete(chat.id); emit(`chat:${chat.id}`); }, 6_000);
    }
  }

  async retry(chat) {
    polite(t("trying"));
    try {
      const { text } = await api.retryDevice(chat.device);
      if (text) toast(text);
    } catch (trouble) {
      toast(trouble.text);
    }
  }
}

customElements.define("l-progress", ProgressLine);
