// The frame around every place: places, the chats of the rail, this page's connection. Not here: the places.

import { h, icon, mark, render } from "../dom.js";
import { paint } from "../beat.js";
import { on, sortedChats, store, waitingCount } from "../store.js";
import { everySecond, when } from "../time.js";
import { t } from "../words.js";
import { banners, connFoot } from "./banner.js";
import { chatWords } from "./progress-words.js";

const PLACES = [["home", "/", "pc"], ["approvals", "/approvals", "ask"], ["schedules", "/schedules", "clock"], ["settings", "/settings", "sliders"]];
// The rail's list is for the eye; the whole is on Computers.
const RAIL_CHATS = 20;

let at = { name: "home" };
let titleOf = () => "";
let root = null;
let started = false;

/** Shows the frame with an empty `main` for a place; gives that `main`. */
export function frame(app, where, key) {
  at = where;
  root = app;
  document.body.classList.toggle("in-chat", where.name === "chat");
  let main = null;
  draw(key, (el) => { main = el; });
  if (!started) {
    started = true;
    const again = () => paint(redraw);
    for (const topic of ["chats", "asks", "devices", "conn", "me", "warnings"]) on(topic, again);
    everySecond(foot);
  }
  return main ?? app.querySelector("#main");
}

/** Takes the frame away, for places without one. */
export function bare(app) {
  root = null;
  document.body.classList.remove("in-chat");
  render(app);
}

/** The title of the place in view; the count of asks is put before it. */
export function setTitle(fn) {
  titleOf = fn;
  showTitle();
}

function showTitle() {
  const n = waitingCount();
  const title = `${n > 0 ? `(${n}) ` : ""}${[titleOf(), "lembas"].filter(Boolean).join(" · ")}`;
  if (document.title !== title) document.title = title;
}

let lastKey = "";
function redraw() {
  if (root) draw(lastKey, () => {});
  showTitle();
}

function foot() {
  const el = root?.querySelector(".rail > .heard");
  if (el && store.conn.state === "live") redraw();
}

function draw(key, made) {
  lastKey = key;
  // A place with its own bar shows the banners itself; elsewhere they stand on top of the place.
  const told = at.name === "chat" ? [] : banners();
  const n = waitingCount();
  render(root, h("div", { class: "frame" },
    h("header", { class: "bar" }, h("a", { class: "word", href: "/" }, "lembas"), " ", h("span", { class: "inst" }, store.me?.instance?.name ?? "")),
    h("div", { class: "rail" },
      h("nav", { class: "places", "aria-label": t("places") }, PLACES.map(([name, href, sign]) => h("a", { href, key: name, "aria-current": at.name === name ? "page" : undefined },
        icon(sign), h("span", null, t(`places.${name}`)),
        name === "approvals" && n > 0 && h("i", { class: "n" }, h("span", null, n), h("span", { class: "sr" }, ` ${t("wait.for.you", { n })}`))))),
      chatsList(),
      h("footer", { class: "heard", title: t("foot.title", { host: location.host }) }, connFoot())),
    told.length > 0 && h("div", { class: "top-banner", key: "banners" }, told),
    h("main", { id: "main", key: `main:${key}`, class: "main", ref: made }, null)));
}

function chatsList() {
  const chats = sortedChats().slice(0, RAIL_CHATS);
  if (chats.length === 0) return null;
  // Of one computer alone it would only take room.
  const several = new Set(chats.map((chat) => chat.device)).size > 1;
  return h("section", { class: "chats", "aria-labelledby": "rail-chats" }, h("h2", { id: "rail-chats" }, t("chats")),
    h("ul", null, chats.map((chat) => {
      const words = chatWords(chat);
      return h("li", { key: chat.id }, h("a", { href: `/c/${encodeURIComponent(chat.id)}`, title: t("side.where", { device: chat.device_name, folder: chat.cwd_words ?? chat.cwd }), class: words.tone ? `is-${words.tone}` : undefined, "aria-current": at.name === "chat" && at.id === chat.id ? "page" : undefined },
        mark(words.shape), h("span", { class: "cut" }, chat.title || t("untitled")),
        h("span", { class: "meta cut" }, several && [chat.device_name, h("span", { class: "sep" }, "\u00a0· ")], words.ask ? t("waits.for.you.small") : words.plain, (words.ask || words.time) && [h("span", { class: "sep" }, "\u00a0· "), words.ask ? when(words.ask.made) : words.time])));
    })));
}
