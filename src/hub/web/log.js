// The items of one open chat, loaded from the end, in the order of their numbers, with what waits in its queue. A view
// hears on `items:ID` which ones changed. Not here: drawing and windowing (parts/stream-view.js).

import { api } from "./api.js";

const PAGE = 50;
// Read at the end, a long chat keeps this many items in memory; older ones are loaded again when asked for.
const KEEP = 600;

export class Log {
  constructor(id, { emit, takeChat, putAsk }) {
    this.id = id;
    this.emit = emit;
    this.takeChat = takeChat;
    this.putAsk = putAsk;
    this.items = new Map();
    this.order = [];
    this.queue = [];
    this.more = false;
    this.loaded = false;
    this.gone = false;
    this.trouble = null;
    this.olderTrouble = null;
    this.loadingOlder = false;
    this.waiting = null;
    this.opened = false;
    /** The last item that was looked at before this chat was opened. */
    this.seen = undefined;
  }

  /** Loads the end of the chat; called again after a gap in the stream. */
  async load() {
    this.waiting ??= [];
    try {
      const got = await api.chat(this.id);
      this.take(got);
      this.trouble = null;
    } catch (trouble) {
      this.trouble = trouble;
      if (trouble.status === 404) this.gone = true;
    }
    const late = this.waiting ?? [];
    this.waiting = null;
    for (const run of late) run();
    this.emit(`items:${this.id}`, { all: true });
    this.emit(`chat:${this.id}`);
  }

  take(got) {
    const fresh = got.items ?? [];
    const first = fresh[0]?.seq;
    const last = this.order.at(-1);
    // What is held and what came do not touch: what lies between is not known, so the older part goes.
    if (first === undefined || last === undefined || first > last) {
      this.items.clear();
      this.more = Boolean(got.more);
    } else {
      for (const seq of this.order) if (seq >= first) this.items.delete(seq);
      if (!this.order.some((seq) => seq < first)) this.more = Boolean(got.more);
    }
    for (const item of fresh) this.items.set(item.seq, item);
    this.sort();
    this.loaded = true;
    this.setQueue(got.queue ?? []);
    for (const ask of got.asks ?? []) this.putAsk(ask);
    // What was seen elsewhere or before, read once: the line stays where it was while this is open.
    if (!this.opened && got.chat?.seen !== undefined && got.chat.seen > 0) this.seen = got.chat.seen;
    this.opened = true;
    if (got.chat) this.takeChat(got.chat);
  }

  sort() {
    this.order = [...this.items.keys()].sort((a, b) => a - b);
  }

  /** Loads the page above what is held. */
  async older() {
    if (this.loadingOlder || !this.more || this.order.length === 0) return;
    this.loadingOlder = true;
    this.olderTrouble = null;
    this.emit(`items:${this.id}`, { edge: true });
    try {
      const got = await api.itemsBefore(this.id, this.order[0], PAGE);
      for (const item of got.items ?? []) if (!this.items.has(item.seq)) this.items.set(item.seq, item);
      this.more = Boolean(got.more) && (got.items ?? []).length > 0;
      this.sort();
    } catch (trouble) {
      this.olderTrouble = trouble;
    }
    this.loadingOlder = false;
    this.emit(`items:${this.id}`, { all: true });
  }

  /** Lets the far past go while the end is read. */
  trim() {
    if (this.order.length <= KEEP) return false;
    for (const seq of this.order.splice(0, this.order.length - KEEP / 2)) this.items.delete(seq);
    this.more = true;
    return true;
  }

  later(run) {
    if (this.waiting) this.waiting.push(run);
    else run();
  }

  /** An item as it is now. */
  item(item) {
    this.later(() => {
      const known = this.items.has(item.seq);
      // One from before what is held comes with its page.
      if (!known && this.more && this.order.length > 0 && item.seq < this.order[0]) return;
      this.items.set(item.seq, item);
      if (!known) {
        if (this.order.length === 0 || item.seq > this.order.at(-1)) this.order.push(item.seq);
        else this.sort();
      }
      this.emit(`items:${this.id}`, { seq: item.seq, fresh: !known });
    });
  }

  /** The streamed tail of a message: the first `keep` blocks stay, these follow. */
  markdown({ seq, keep, html, at }) {
    this.later(() => {
      const old = this.items.get(seq);
      if (old?.at !== undefined && at !== undefined && at < old.at) return;
      if (!old) {
        if (keep > 0) return;
        this.item({ seq, kind: "text", blocks: html, open: true, at });
        return;
      }
      // A new object: the view sees by identity that it changed.
      this.items.set(seq, { ...old, blocks: [...(old.blocks ?? []).slice(0, keep), ...html], at });
      this.emit(`items:${this.id}`, { seq, fresh: false });
    });
  }

  /** The last lines of a command that runs. */
  output({ seq, html, at }) {
    this.later(() => {
      const old = this.items.get(seq);
      if (!old || (old.outAt !== undefined && at !== undefined && at < old.outAt)) return;
      this.items.set(seq, { ...old, tail_html: html, outAt: at });
      this.emit(`items:${this.id}`, { seq, fresh: false });
    });
  }

  setQueue(queue) {
    this.queue = queue ?? [];
    this.emit(`queue:${this.id}`);
  }

  goneNow() {
    this.gone = true;
    this.emit(`items:${this.id}`, { edge: true });
  }
}
