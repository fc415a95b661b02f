// The page: who is signed in, which place is shown, and going between places. Not here: the places themselves.

import { api } from "./api.js";
import { h, render } from "./dom.js";
import { setHubNow } from "./time.js";
import { forget, store } from "./store.js";
import { start, go, where } from "./router.js";
import { begin, finish } from "./session.js";
import { bare, frame, setTitle } from "./parts/frame.js";
import { troubleBox } from "./parts/bits.js";
import { t } from "./words.js";
import { watchViewport } from "./viewport.js";
import * as home from "./places/home.js";
import * as chat from "./places/chat.js";
import * as approvals from "./places/approvals.js";
import * as settings from "./places/settings.js";
import * as schedules from "./places/schedules.js";
import * as link from "./places/link.js";
import * as signin from "./places/signin.js";
import * as missing from "./places/missing.js";

const PLACES = { home, chat, approvals, settings, schedules, link, missing };

const app = document.getElementById("app");
let shown = null;
let shownKey = null;
let following = false;
let outWhy = null;

async function boot() {
  watchViewport();
  try {
    const me = await api.me();
    setHubNow(me.now);
    store.me = me;
  } catch (trouble) {
    if (trouble.status === 401) {
      outWhy = trouble;
    } else {
      cannotStart(trouble);
      return;
    }
  }
  start(show);
}

function cannotStart(trouble) {
  render(app, h("main", { class: "gate", id: "main" }, h("div", { class: "gate-h" }, h("p", { class: "word" }, "lembas")),
    troubleBox(trouble, () => { render(app); boot(); }, { title: t("start.failed") })));
}

function show({ back = false, first = false, y } = {}) {
  const at = where();
  if (!store.me && at.name !== "signin") {
    const next = at.path === "/" ? "" : `?next=${encodeURIComponent(at.path)}`;
    go(`/signin${next}`, { replace: true });
    return;
  }
  if (at.name === "signin") {
    // Signed in already, and no setup to do: there is nothing to ask.
    if (store.me && !at.query.get("setup")) {
      go("/", { replace: true });
      return;
    }
    leave();
    bare(app);
    shown = signin.mount(app, at, { why: outWhy, signedIn });
    setTitle(() => t("signin"));
    return;
  }
  follow();
  const key = at.name === "chat" ? `chat:${at.id}` : at.name === "home" ? `home:${at.path}` : at.name;
  if (key !== shownKey) {
    leave();
    const main = frame(app, at, key);
    shown = PLACES[at.name].mount(main, at);
    shownKey = key;
    setTitle(() => shown?.title?.() ?? t(`places.${at.name}`));
    if (!first) arrive(main);
    window.scrollTo(0, back ? y ?? 0 : 0);
  }
  shown.at?.(at);
  if (at.hash) requestAnimationFrame(() => document.getElementById(at.hash)?.scrollIntoView());
}

// A screen reader is taken to the new place; what a person was typing in elsewhere is gone with the old one anyway.
function arrive(main) {
  if (shown.focus) {
    shown.focus();
    return;
  }
  const heading = main.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

function leave() {
  shown?.close?.();
  shown = null;
  shownKey = null;
}

function follow() {
  if (following) return;
  following = true;
  begin((why) => {
    // The drafts stay on this device and at the hub; the page says since when and why (U37, moment 8).
    outWhy = why;
    following = false;
    finish();
    leave();
    forget();
    show();
  });
}

async function signedIn(me, next) {
  store.me = me;
  outWhy = null;
  go(next ?? "/", { replace: true });
}

boot();
