// The stream of events, one for all tabs: the tab that holds the lock reads it and shares it, the others listen. It is
// told dead by the page itself (25 s of nothing; the hub beats every 10 s) and taken up again from the last number.
// Without locks or channels every tab reads its own. Not here: what an event means (store.js) and how it is drawn.

import { troubleOf } from "./api.js";
import { hubNow, setHubNow } from "./time.js";
import { sseMessages } from "./sse.js";

/** The hub's beat, and how long nothing may be heard: from one constant, so that they cannot drift apart (U34). */
export const BEAT_MS = 10_000;
export const DEAD_MS = 2.5 * BEAT_MS;
// A listening tab gives the reading one a little longer before it takes over.
const TAKE_OVER_MS = DEAD_MS + 3_000;
// A stream back within this time was never told as lost: no banner that only flickers.
const TELL_LOST_MS = 1_500;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MOST_MS = 30_000;
// What a tab that just opened may still need; past it, that tab loads the state anew.
const RING = 2_000;

const LOCK = "lembas-stream";

export class Stream {
  /**
   * `head()` gives the last number this tab applied; `event(data, id)` takes one event; `conn(state)` hears of the
   * connection; `reload()` takes the state anew and resolves when it came; `signedOut(trouble)` ends it all.
   */
  constructor({ head, event, conn, reload, signedOut }) {
    Object.assign(this, { head, event, tell: conn, reload, signedOut });
    this.tab = Math.random().toString(36).slice(2);
    this.reading = false;
    this.stopped = false;
    this.lastHeard = Date.now();
    this.lostSince = null;
    this.tries = 0;
    this.ring = [];
    this.state = { state: "starting", since: Date.now() };
    this.wake = () => {};
    this.abort = null;
  }

  start() {
    const shared = "locks" in navigator && typeof BroadcastChannel === "function";
    if (shared) {
      this.channel = new BroadcastChannel(LOCK);
      this.channel.onmessage = ({ data }) => this.fromTab(data);
      this.hold(false);
      this.post({ k: "since", tab: this.tab, from: this.head() });
    } else {
      this.read();
    }
    this.watch = setInterval(() => this.look(), 1_000);
    const back = () => this.back();
    document.addEventListener("visibilitychange", () => { if (!document.hidden) back(); });
    for (const type of ["pageshow", "online", "focus"]) window.addEventListener(type, back);
  }

  stop() {
    this.stopped = true;
    clearInterval(this.watch);
    this.abort?.abort();
    this.release?.();
    this.channel?.close();
    this.channel = null;
  }

  post(message) {
    this.channel?.postMessage(message);
  }

  // --- who reads ---

  hold(steal) {
    navigator.locks.request(LOCK, steal ? { steal: true } : {}, () => new Promise((release) => {
      if (this.stopped) return release();
      this.release = release;
      this.read();
    })).catch(() => {
      // Another tab took over: this one listens and waits for its turn again.
      this.reading = false;
      this.abort?.abort();
      if (!this.stopped) this.hold(false);
    });
  }

  fromTab(message) {
    const mine = message.tab === this.tab;
    if (this.reading) {
      if (message.k === "since") this.replay(message);
      else if (message.k === "ping") this.post({ k: "pong", tab: message.tab, conn: this.state });
      else if (message.k === "poke") this.retry();
      return;
    }
    if (message.k === "ev") {
      this.heard();
      this.take(message.data, message.id);
    } else if (message.k === "conn" || (message.k === "pong" && mine)) {
      this.heard();
      this.setState(message.conn);
    } else if (message.k === "reload") {
      this.heard();
      this.reload();
    } else if (message.k === "replay" && mine) {
      this.heard();
      if (message.events === null) this.reload();
      else for (const [id, data] of message.events) this.take(data, id);
      this.setState(message.conn);
    }
  }

  // What a tab that just opened missed between its snapshot and the events it hears.
  replay({ tab, from }) {
    const complete = this.ring.length === 0 ? this.head() <= from : this.ring[0][0] <= from + 1;
    const events = complete ? this.ring.filter(([id]) => id > from) : null;
    this.post({ k: "replay", tab, events, conn: this.state });
  }

  // --- reading ---

  async read() {
    if (this.reading) return;
    this.reading = true;
    this.ring = [];
    while (this.reading && !this.stopped) {
      try {
        await this.once();
      } catch (trouble) {
        if (trouble?.code === "signed_out") {
          this.stop();
          this.signedOut(trouble);
          return;
        }
      }
      if (!this.reading || this.stopped) return;
      this.lost();
      await this.pause();
    }
  }

  async once() {
    this.abort = new AbortController();
    this.lastTry = Date.now();
    const response = await fetch(`/api/v2/events?after=${this.head()}`, {
      headers: { Accept: "text/event-stream" }, cache: "no-store", credentials: "same-origin", signal: this.abort.signal,
    });
    if (response.status === 401) {
      const trouble = troubleOf(401, await response.json().catch(() => null));
      trouble.code = "signed_out";
      throw trouble;
    }
    if (!response.ok || !response.body) throw troubleOf(response.status, null);
    this.heard();
    for await (const message of sseMessages(response.body)) {
      this.heard();
      if (message.data === "") continue;
      let data;
      try {
        data = JSON.parse(message.data);
      } catch {
        // One event that cannot be read must not end the stream; the next snapshot has what it said.
        continue;
      }
      if (data.type === "hello") await this.hello(data);
      else this.take(data, message.id === "" ? undefined : Number(message.id), true);
    }
  }

  async hello({ now, head, resumed, missed }) {
    setHubNow(now);
    this.tries = 0;
    const wasLost = this.lostSince !== null;
    this.lostSince = null;
    clearTimeout(this.tellLost);
    if (resumed === false) {
      this.post({ k: "reload" });
      this.setState({ state: "catching", since: hubNow(), left: missed ?? 0, total: missed ?? 0 }, true);
      if (!(await this.reload())) {
        this.abort?.abort();
        return;
      }
      this.setState({ state: "live", since: hubNow(), back: wasLost }, true);
    } else if (missed > 0 && head > this.head()) {
      this.until = head;
      this.setState({ state: "catching", since: hubNow(), left: missed, total: missed }, true);
    } else {
      this.setState({ state: "live", since: hubNow(), back: wasLost }, true);
    }
  }

  take(data, id, share = false) {
    if (data.type === "signed_out") {
      if (share) this.post({ k: "ev", data });
      this.stop();
      this.signedOut(data);
      return;
    }
    if (data.now) setHubNow(data.now);
    if (share) {
      if (id !== undefined && data.type !== "beat") {
        this.ring.push([id, data]);
        if (this.ring.length > RING) this.ring.shift();
      }
      this.post({ k: "ev", id, data });
    }
    // A beat says how far the hub is; it is no event of its own.
    if (data.type !== "beat") this.event(data, id);
    if (share && this.until !== undefined) {
      const left = Math.max(0, this.until - (id ?? this.head()));
      if (left === 0) {
        this.until = undefined;
        this.setState({ state: "live", since: hubNow(), back: true }, true);
      } else if (left % 25 === 0) {
        this.setState({ ...this.state, left }, true);
      }
    }
  }

  // --- alive or not ---

  heard() {
    this.lastHeard = Date.now();
  }

  look() {
    const silent = Date.now() - this.lastHeard;
    if (this.reading) {
      if (silent > DEAD_MS && this.abort && !this.abort.signal.aborted && this.lostSince === null) this.abort.abort();
    } else if (this.channel && silent > TAKE_OVER_MS && !document.hidden) {
      this.heard();
      this.hold(true);
    }
  }

  // Seen again, or online again: nothing is believed that was not heard just now (U26).
  back() {
    if (this.stopped) return;
    const silent = Date.now() - this.lastHeard;
    if (this.reading) {
      if (this.lostSince !== null || silent > BEAT_MS + 1_000) this.retry();
    } else if (this.channel && silent > BEAT_MS + 1_000) {
      this.post({ k: "ping", tab: this.tab });
      const asked = Date.now();
      setTimeout(() => {
        if (!this.reading && !this.stopped && this.lastHeard < asked) this.hold(true);
      }, 800);
    }
  }

  lost() {
    if (this.lostSince === null) {
      this.lostSince = hubNow() - (Date.now() - this.lastHeard);
      this.until = undefined;
      this.tellLost = setTimeout(() => {
        if (this.lostSince !== null) this.setState({ state: "lost", since: this.lostSince, next: this.nextAt }, true);
      }, this.state.state === "live" ? TELL_LOST_MS : 0);
    }
  }

  /** Dials now, whichever tab reads. */
  retry() {
    if (!this.reading) {
      this.post({ k: "poke" });
      return;
    }
    if (Date.now() - (this.lastTry ?? 0) < 300) return;
    if (this.lostSince === null) this.abort?.abort();
    this.tries = 0;
    this.wake();
  }

  async pause() {
    // Full jitter, so that many pages do not come back in one wave; the first try after a break is at once.
    const most = Math.min(BACKOFF_MOST_MS, BACKOFF_FIRST_MS * 2 ** this.tries);
    const wait = this.tries === 0 ? 50 : Math.random() * most;
    this.tries += 1;
    this.nextAt = hubNow() + wait;
    if (this.state.state === "lost") this.setState({ ...this.state, next: this.nextAt }, true);
    await new Promise((done) => {
      const timer = setTimeout(done, wait);
      this.wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  setState(state, share = false) {
    this.state = state;
    this.tell(state);
    if (share) this.post({ k: "conn", conn: state });
  }
}
