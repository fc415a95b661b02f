// The stream of a chat: entries in order, only those near the window in the document (U56), followed at the end and
// still otherwise (U1), painted in beats (U57). Not here: how one entry is drawn (entries.js).

import { h, icon, render } from "../dom.js";
import { api } from "../api.js";
import { now, paint } from "../beat.js";
import { Follow } from "../follow.js";
import { on, openLog, store } from "../store.js";
import { pending, settle } from "../outbox.js";
import { finished } from "../announce.js";
import { t } from "../words.js";
import { copyInside } from "./copy.js";
import { drawEntry } from "./entries.js";
import { stateBox, troubleBox } from "./bits.js";

// The most elements of entries in the document; beyond it the far ones make room even inside the margin.
const NODES = 1_000;
// How much of a window's height is kept ready above and below.
const MARGIN = 1;
// A guess for what was never drawn; it is measured once it was.
const GUESS = { said: 90, text: 150, step: 46, thought: 46, plan: 46, mid: 40, day: 40, new: 40, ask: 320, out: 90 };
// What is in view this long counts as looked at.
const SEEN_AFTER_MS = 2_000;
const DAY_GAP_MS = 6 * 3_600_000;

export class StreamView extends HTMLElement {
  /** The chat's id; set before the element is put into the document. */
  set chat(id) {
    this.chat_ = id;
  }

  get chat() {
    return this.chat_;
  }

  connectedCallback() {
    const id = this.chat_;
    this.log = openLog(id);
    this.entries = [];
    this.byKey = new Map();
    this.mounted = new Set();
    this.fresh = 0;
    this.seen = 0;
    // What was taken back and is shown all the same, by the item that took it back.
    this.opened = new Set();
    this.top = document.createElement("div");
    this.top.setAttribute("data-edge", "");
    this.spaceTop = space();
    this.spaceEnd = space();
    this.jump = document.createElement("div");
    this.jump.className = "jump";
    this.replaceChildren(this.top, this.spaceTop, this.spaceEnd, this.jump);
    this.follow = new Follow(this, () => this.jumpDraw());
    this.draw = () => this.paintAll();
    this.move = () => this.arrange();
    const changed = () => paint(this.draw);
    this.offs = [
      on(`items:${id}`, (what) => { if (what?.fresh && !this.follow.on) this.fresh += 1; if (what?.all || what?.fresh || what?.edge) this.stale = true; changed(); }),
      on(`out:${id}`, () => { this.stale = true; now(this.draw); }),
      on("asks", () => { this.stale = true; changed(); }),
      on(`chat:${id}`, changed),
    ];
    this.onscroll_ = () => this.scrolled();
    this.addEventListener("scroll", this.onscroll_, { passive: true });
    this.addEventListener("keydown", (event) => this.keys(event));
    this.sizes = new ResizeObserver(() => { if (this.width !== this.clientWidth) this.forget(); now(this.draw); });
    this.sizes.observe(this);
    this.cards = new ResizeObserver(() => { if (this.follow.on && !this.follow.atEnd) now(this.move); });
    copyInside(this);
    this.stale = true;
    now(this.draw);
  }

  disconnectedCallback() {
    for (const off of this.offs ?? []) off();
    this.follow?.close();
    this.sizes?.disconnect();
    this.cards?.disconnect();
  }

  /** True when nothing can be written here any more. */
  over() {
    const chat = store.chats.get(this.chat_);
    return Boolean(chat?.closed || chat?.archived) || store.devices.get(chat?.device)?.state === "revoked";
  }

  deviceName() {
    const chat = store.chats.get(this.chat_);
    return store.devices.get(chat?.device)?.name ?? chat?.device_name ?? "";
  }

  takeBack(text) {
    this.dispatchEvent(new CustomEvent("take-back", { bubbles: true, detail: text }));
  }

  /** The person opened, closed or fetched more of an entry. */
  change(entry, change) {
    entry.state = { ...entry.state, ...change };
    entry.dirty = true;
    if (change.open !== undefined && !this.follow.atEnd) this.follow.end();
    now(this.draw);
  }

  /** Shows or hides what the item `seq` took back. */
  showBack(seq, on_) {
    if (on_) this.opened.add(seq); else this.opened.delete(seq);
    const entry = this.byKey.get(`i${seq}`);
    if (entry) entry.dirty = true;
    if (!this.follow.atEnd) this.follow.end();
    this.stale = true;
    now(this.draw);
  }

  /** Opens the card of the newest command and goes there. */
  showLast() {
    const entry = this.entries.findLast((one) => one.item.kind === "step");
    if (!entry) return;
    entry.state = { ...entry.state, open: true };
    entry.dirty = true;
    now(this.draw);
    entry.el?.scrollIntoView({ block: "nearest" });
  }

  keys(event) {
    if (event.target !== this) return;
    if (event.key === "End") {
      event.preventDefault();
      this.toEnd();
    } else if (event.key === "Home") {
      event.preventDefault();
      this.follow.end();
      this.follow.step(0);
      this.scrolled();
    }
  }

  /** To the newest, and following again. */
  toEnd() {
    this.follow.toEnd();
    now(this.draw);
  }

  scrolled() {
    if (this.inScroll) return;
    this.inScroll = requestAnimationFrame(() => {
      this.inScroll = 0;
      // Which entries are near changes with a scroll; what they say waits for its beat.
      if (!this.follow.on) now(this.move);
      if (this.scrollTop < this.clientHeight && this.log.more && !this.log.olderTrouble) this.log.older();
    });
  }

  // --- which entries there are ---

  rebuild() {
    this.stale = false;
    const { log } = this;
    settle(this.chat_);
    if (this.follow.on && log.trim()) this.log.loadedFrom = log.order[0];
    const list = [];
    const stepOf = new Map();
    const back = takenBack(log);
    const hidden = new Set();
    let lastTime = 0;
    let previous;
    for (const seq of log.order) {
      const item = log.items.get(seq);
      const by = back.find(([from, to]) => seq >= from && seq < to)?.[1];
      if (by !== undefined && !this.opened.has(by)) {
        if (item.call) hidden.add(item.call);
        continue;
      }
      if (item.kind === "step" && item.call) stepOf.set(item.call, seq);
      if (item.kind === "said" && item.time && item.time - lastTime > DAY_GAP_MS) list.push({ key: `d${seq}`, at: seq - 0.5, item: this.keepItem(`d${seq}`, { kind: "day", time: item.time }) });
      if (log.seen !== undefined && seq > log.seen && previous !== undefined && previous <= log.seen) list.push({ key: "new", at: seq - 0.4, item: this.keepItem("new", { kind: "new" }) });
      previous = seq;
      if (item.time) lastTime = item.time;
      list.push({ key: `i${seq}`, at: seq, item, back: by !== undefined });
    }
    // A message on its way stands after what was said; an open ask last of all, so that its buttons stay where they
    // are while others go on; a settled one takes its place below its call.
    for (const [i, one] of pending(this.chat_).entries()) list.push({ key: `o${one.key}`, at: 1e14 + i, item: this.keepItem(`o${one.key}`, { kind: "out", ...one }) });
    for (const ask of store.asks.values()) {
      if (ask.chat !== this.chat_) continue;
      const settled = ask.state === "settled";
      if (settled && (!this.byKey.has(`a${ask.ask}`) || hidden.has(ask.call))) continue;
      const seq = stepOf.get(ask.call);
      const at = settled ? (seq ?? (log.order.at(-1) ?? 0)) + 0.6 : 1e15 + (ask.made % 1e12);
      list.push({ key: `a${ask.ask}`, at, item: this.keepItem(`a${ask.ask}`, { kind: "ask", ask }, ask) });
    }
    list.sort((a, b) => a.at - b.at);
    const kept = new Map();
    let before = null;
    for (const [i, next] of list.entries()) {
      const old = this.byKey.get(next.key);
      const entry = old ?? { key: next.key, state: {}, height: 0, nodes: 8, dirty: true };
      const joined = isCard(next.item) && isCard(before?.item);
      const closing = next.item.kind === "text" && (i === list.length - 1 || !["text", "step", "thought", "plan", "new", "ask"].includes(list[i + 1].item.kind));
      if (entry.item !== next.item || entry.joined !== joined || entry.closing !== closing || entry.back !== next.back) entry.dirty = true;
      Object.assign(entry, { at: next.at, item: next.item, joined, closing, back: next.back });
      kept.set(next.key, entry);
      before = entry;
    }
    for (const [key, entry] of this.byKey) if (!kept.has(key)) this.unmount(entry);
    this.byKey = kept;
    this.entries = [...kept.values()];
  }

  // Made-up items are the same object while they say the same, so that nothing is drawn anew for nothing.
  keepItem(key, item, of) {
    const old = this.byKey.get(key)?.item;
    if (old && (of ? old.ask === of : JSON.stringify(old) === JSON.stringify(item))) return old;
    return item;
  }

  // --- what is in the document ---

  paintAll() {
    if (!this.isConnected) return;
    if (this.stale) this.rebuild();
    else this.refresh();
    this.arrange();
    this.tellFinished();
    this.tellSeen();
  }

  // What is in view at the end was looked at: the hub tells the other devices, not more often than they need.
  tellSeen() {
    const chat = store.chats.get(this.chat_);
    if (!chat || !(chat.head > chat.seen) || !this.follow.on || document.hidden || this.telling) return;
    this.telling = setTimeout(() => {
      this.telling = 0;
      const now_ = store.chats.get(this.chat_);
      if (!this.isConnected || document.hidden || !now_ || !(now_.head > now_.seen)) return;
      api.changeChat(this.chat_, { seen: now_.head }).catch(() => {
        // The next change in view tells it again.
      });
    }, SEEN_AFTER_MS);
  }

  arrange() {
    if (!this.isConnected) return;
    this.follow.hold(() => this.place());
    // What was drawn may be taller or smaller than guessed: once more with what is now known.
    if (this.measure()) this.follow.hold(() => this.place());
    this.jumpDraw();
  }

  refresh() {
    for (const entry of this.entries) {
      if (entry.key[0] !== "i") continue;
      const item = this.log.items.get(Number(entry.key.slice(1)));
      if (item && item !== entry.item) {
        entry.item = item;
        entry.dirty = true;
      }
    }
  }

  height(entry) {
    return entry.height || GUESS[entry.item.kind] || 60;
  }

  range() {
    const { entries } = this;
    const window_ = this.clientHeight || 600;
    let from;
    let to;
    if (this.follow.on) {
      to = entries.length;
      from = to;
      for (let sum = 0; from > 0 && sum < window_ * (1 + MARGIN); ) sum += this.height(entries[--from]);
    } else {
      const seen = this.firstSeen();
      // Around what is being read; when the person jumped to where nothing is drawn, by the heights as guessed.
      let y = seen ? seen.y : this.top.offsetHeight - this.scrollTop;
      from = seen ? entries.indexOf(seen.entry) : 0;
      if (seen) while (from > 0 && y > -window_ * MARGIN) y -= this.height(entries[--from]);
      else while (from < entries.length && y + this.height(entries[from]) < -window_ * MARGIN) y += this.height(entries[from++]);
      to = from;
      while (to < entries.length && y < window_ * (1 + MARGIN)) y += this.height(entries[to++]);
    }
    // Long entries: the margin gives way before the document grows heavy.
    let nodes = 0;
    for (let i = from; i < to; i += 1) nodes += entries[i].nodes;
    while (nodes > NODES && to - from > 2) {
      const drop = this.follow.on ? from++ : this.far(from, to) === "top" ? from++ : --to;
      nodes -= entries[drop].nodes;
    }
    return [from, to];
  }

  // The entry being read, and where its top is from the top of the window.
  firstSeen() {
    const { top, bottom } = this.getBoundingClientRect();
    for (const entry of this.entries) {
      if (!entry.el) continue;
      const box = entry.el.getBoundingClientRect();
      if (box.bottom > top + 1) return box.top < bottom ? { entry, y: box.top - top } : null;
    }
    return null;
  }

  far(from, to) {
    const middle = this.scrollTop + this.clientHeight / 2;
    let y = this.top.offsetHeight;
    for (let i = 0; i < from; i += 1) y += this.height(this.entries[i]);
    const first = y;
    for (let i = from; i < to; i += 1) y += this.height(this.entries[i]);
    return middle - first > y - middle ? "top" : "end";
  }

  place() {
    const [from, to] = this.range();
    const wanted = new Set(this.entries.slice(from, to));
    for (const entry of [...this.mounted]) if (!wanted.has(entry)) this.unmount(entry);
    let next = this.spaceEnd;
    for (let i = to - 1; i >= from; i -= 1) {
      const entry = this.entries[i];
      if (!entry.el) {
        entry.el = document.createElement("div");
        entry.el.dataset.key = entry.key;
        entry.dirty = true;
        entry.prose = null;
        // A card changes by itself (an answer on its way, a trouble): the end stays in view then too.
        if (entry.item.kind === "ask") this.cards.observe(entry.el);
      }
      if (entry.dirty) {
        drawEntry(entry, this);
        entry.dirty = false;
        entry.nodes = entry.el.querySelectorAll("*").length + 1;
      }
      if (entry.el.nextSibling !== next) this.insertBefore(entry.el, next);
      this.mounted.add(entry);
      next = entry.el;
    }
    const sum = (a, b) => this.entries.slice(a, b).reduce((all, entry) => all + this.height(entry), 0);
    this.spaceTop.style.height = `${sum(0, from)}px`;
    this.spaceEnd.style.height = `${sum(to, this.entries.length)}px`;
    this.edge();
  }

  measure() {
    this.width = this.clientWidth;
    let changed = false;
    for (const entry of this.mounted) {
      const height = entry.el.offsetHeight;
      if (Math.abs(height - entry.height) > 0.5) {
        changed ||= entry.height === 0;
        entry.height = height;
      }
    }
    return changed;
  }

  unmount(entry) {
    if (entry.el) this.cards.unobserve(entry.el);
    entry.el?.remove();
    entry.el = null;
    // Each of its parts would keep the whole of what was drawn.
    entry.prose = null;
    entry.foot = null;
    this.mounted.delete(entry);
  }

  forget() {
    for (const entry of this.entries) entry.height = 0;
  }

  edge() {
    const { log } = this;
    let what = null;
    if (!log.loaded && log.trouble) what = troubleBox(log.trouble, () => log.load());
    else if (!log.loaded) what = stateBox({ shape: "work", title: t("chat.loading"), busy: true });
    else if (log.olderTrouble) what = h("p", { class: "edge-line" }, log.olderTrouble.text, " ", h("button", { class: "link", type: "button", onclick: () => log.older() }, t("try.again")));
    else if (log.loadingOlder) what = h("p", { class: "edge-line", role: "status" }, t("chat.older.loading"));
    else if (log.more) what = h("p", { class: "edge-line" }, h("button", { class: "link", type: "button", onclick: () => log.older() }, t("chat.older")));
    else if (this.entries.length === 0) what = stateBox({ shape: "open", title: t("chat.empty"), words: !this.over() && t("chat.empty.words", { device: this.deviceName() }) });
    else what = h("p", { class: "edge-line" }, t("chat.begin"));
    render(this.top, what);
  }

  jumpDraw() {
    if (this.follow.on) this.fresh = 0;
    const shown = !this.follow.on && this.scrollHeight - this.clientHeight - this.scrollTop > 40;
    render(this.jump, shown && h("button", { class: "btn btn-s", type: "button", onclick: () => this.toEnd() }, this.fresh > 0 ? t("jump.new", { n: this.fresh }) : t("jump.end"), " ", icon("arrow", "i i-s")));
  }

  // The answer that a turn ended with is told once.
  tellFinished() {
    const chat = store.chats.get(this.chat_);
    if (!chat || this.wasRunning === chat.running) return;
    // What waits for a person, was stopped or failed is no finished answer.
    const open = [...store.asks.values()].some((ask) => ask.chat === this.chat_ && ask.state !== "settled");
    if (this.wasRunning && !chat.running && !open && !["stopped", "failed"].includes(chat.progress?.phase)) {
      const last = this.entries.findLast((entry) => entry.item.kind === "text");
      const words = last?.item.text ?? last?.prose?.textContent ?? "";
      if (last) finished(`${this.chat_}:${last.key}:${chat.turn ?? ""}`, words);
    }
    this.wasRunning = chat.running;
  }
}

// The widest spans of numbers that were taken back: from a message up to the item that took it back.
function takenBack(log) {
  const all = log.order.map((seq) => log.items.get(seq)).filter((item) => item.kind === "rewound").map((item) => [item.to, item.seq]);
  return all.filter(([from, to]) => !all.some(([a, b]) => b > to && a <= from));
}

const isCard = (item) => item !== undefined && ["step", "thought", "plan"].includes(item?.kind);

function space() {
  const el = document.createElement("div");
  el.setAttribute("data-space", "");
  el.setAttribute("aria-hidden", "true");
  return el;
}

customElements.define("l-stream", StreamView);
