// One signed-in page's life: the snapshot, the stream after it, and what to do when either ends. Not here: what is drawn.

import { onSignedOut } from "./api.js";
import { apply, load, setConn, store } from "./store.js";
import { Stream } from "./stream.js";
import { hubNow } from "./time.js";
import { startAsks } from "./announce.js";
import { startReminders } from "./remind.js";

const RETRY_FIRST_MS = 1_000;
const RETRY_MOST_MS = 15_000;

let stream = null;
let stopReminders = () => {};

/** Dials the hub now. */
export function retryStream() {
  stream?.retry();
}

/** Takes the state and follows the hub; `out` hears when this browser is signed out. */
export async function begin(out) {
  let ended = false;
  const end = (why) => {
    if (ended) return;
    ended = true;
    stream?.stop();
    stream = null;
    out(why);
  };
  onSignedOut(end);
  for (let wait = RETRY_FIRST_MS; !(await load()); wait = Math.min(wait * 2, RETRY_MOST_MS)) {
    if (ended) return;
    // Only a hub that did not answer is no connection; one that answers with a fault has its own words.
    if (store.trouble?.unknown) setConn({ state: "lost", since: store.conn.state === "lost" ? store.conn.since : Date.now() });
    await new Promise((done) => setTimeout(done, wait));
  }
  if (ended) return;
  startAsks();
  stopReminders();
  stopReminders = startReminders();
  stream = new Stream({ head: () => store.head, event: apply, conn: setConn, reload: load, signedOut: end });
  stream.start();
}

/** When this page last heard the hub, by the hub's clock. */
export const lastHeard = () => (stream ? hubNow() - (Date.now() - stream.lastHeard) : store.conn.since);

/** Ends following, e.g. before signing out. */
export function finish() {
  stopReminders();
  stream?.stop();
  stream = null;
}
