// Computers: which are there, what runs on them, and the first run. With `?new=ID` it is the start of a chat, with
// `?device=ID` all chats of one computer. Not here: a computer's card (parts/device-card.js).

import { h, icon, mark, render } from "../dom.js";
import { api, newKey } from "../api.js";
import { now, paint } from "../beat.js";
import { load, on, sortedDevices, store } from "../store.js";
import { everySecond } from "../time.js";
import { count, t } from "../words.js";
import { go } from "../router.js";
import { stateBox, troubleBox, troubleLine } from "../parts/bits.js";
import { chatRow, deviceCard } from "../parts/device-card.js";
import * as newChat from "./new-chat.js";

const PAGE = 50;

export function mount(main, at) {
  const device = at.query.get("device");
  if (at.query.has("new")) return newChat.mount(main, at);
  return device ? mountAll(main, device, at.query.get("archived") === "1") : mountHome(main);
}

function mountHome(main) {
  const state = { trouble: null, busy: false };
  const draw = () => render(main, view(state, draw));
  const later = () => paint(draw);
  const offs = [...["devices", "chats", "asks", "models", "conn"].map((topic) => on(topic, later)), everySecond(later)];
  draw();
  return { title: () => t("places.home"), close: () => offs.forEach((off) => off()) };
}

function head(title, ...more) {
  return h("div", { class: "head" }, h("h1", null, title), more);
}

function view(state, draw) {
  const link = h("a", { class: "btn", href: "/link", "aria-label": t("link.a.computer") }, icon("plus"), h("span", null, t("link"), h("span", { class: "wide-text" }, ` ${t("link.rest")}`)));
  if (!store.loaded) {
    return [head(t("places.home")), store.trouble ? troubleBox(store.trouble, load, { title: t("home.failed") }) : stateBox({ shape: "work", title: t("home.loading"), busy: true })];
  }
  const devices = sortedDevices();
  if (devices.length === 0) {
    return [head(t("places.home")), stateBox({
      shape: "open", title: t("home.empty"), words: t("home.empty.words"), line: `lembas link ${store.me?.instance?.url ?? location.origin}`,
      buttons: h("a", { class: "btn btn-1", href: "/link" }, t("enter.code")),
    })];
  }
  return [head(t("places.home"), link), h("div", { class: "stack" }, noPassword(), firstRun(devices, state, draw), devices.map(deviceCard))];
}

// Who came by the one-time link has no way in from a phone yet.
function noPassword() {
  if (store.me?.account?.password !== false) return null;
  return h("div", { class: "card note", key: "password" }, mark("info"), h("p", null, t("no.password")), h("p", { class: "links" }, h("a", { class: "link", href: "/settings#account" }, t("no.password.do"))));
}

// Nothing was said yet and only the practice model is there: what it is, and the two ways on (moment 1).
function firstRun(devices, state, draw) {
  if (store.total > 0 || store.chats.size > 0) return null;
  const practice = store.models.find((model) => model.practice);
  if (!practice) return null;
  const device = devices.find((one) => one.state === "online" && (one.limits?.roots ?? []).length > 0);
  const start = async () => {
    if (state.busy) return;
    state.busy = true;
    state.trouble = null;
    now(draw);
    try {
      const { chat } = await api.newChat({ device: device.id, cwd: device.limits.roots[0], model: practice.id, text: t("practice.first"), key: newKey() });
      store.chats.set(chat.id, chat);
      go(`/c/${encodeURIComponent(chat.id)}`);
    } catch (trouble) {
      state.trouble = trouble;
    }
    state.busy = false;
    draw();
  };
  return h("section", { class: "card pad first", key: "first", "aria-labelledby": "first" },
    h("h2", { id: "first" }, t("practice.title")),
    h("p", null, t("practice.words")),
    !device && h("p", { class: "muted" }, t("practice.no_folder")),
    troubleLine(state.trouble),
    h("div", { class: "btns" },
      device && h("button", { class: "btn btn-1", type: "button", "aria-disabled": state.busy ? "true" : undefined, onclick: start }, t(state.busy ? "starting" : "practice.start")),
      h("a", { class: "btn", href: "/settings#models" }, t("model.add"))));
}

function mountAll(main, id, archived) {
  const state = { rows: null, total: 0, trouble: null, busy: false };
  const draw = () => {
    const device = store.devices.get(id);
    const rows = (state.rows ?? []).map((row) => store.chats.get(row.id) ?? row);
    render(main,
      h("div", { class: "head" }, h("h1", null, t(archived ? "chats.archived" : "all.chats", { device: device?.name ?? "" })),
        archived ? h("a", { class: "btn btn-q", href: `/?device=${encodeURIComponent(id)}` }, t("back")) : h("a", { class: "btn btn-q", href: `/?device=${encodeURIComponent(id)}&archived=1` }, t("chats.archived.link"))),
      state.trouble ? troubleBox(state.trouble, more) : state.rows === null ? stateBox({ shape: "work", title: t("chats.loading"), busy: true })
        : rows.length === 0 ? stateBox({ shape: "open", title: archived ? t("chats.archived.empty") : t("device.no_chats", { device: device?.name ?? "" }) })
          : h("div", { class: "card rows" }, rows.map((chat) => chatRow(chat)),
            h("p", { class: "more", key: "more" }, h("span", null, t("showing", { n: rows.length, of: count(Math.max(state.total, rows.length)) })),
              state.more && h("button", { class: "link", type: "button", onclick: more }, t(state.busy ? "loading" : "show.more")))));
  };
  const more = async () => {
    if (state.busy) return;
    state.busy = true;
    state.trouble = null;
    draw();
    try {
      const last = state.rows?.at(-1);
      const got = await api.chats({ device: id, limit: String(PAGE), ...(archived ? { archived: "true" } : {}), ...(last ? { before: String(last.updated) } : {}) });
      const chats = got.chats ?? [];
      state.rows = [...(state.rows ?? []), ...chats.filter((chat) => !state.rows?.some((row) => row.id === chat.id))];
      state.total = got.total ?? state.rows.length;
      state.more = got.more ?? chats.length === PAGE;
    } catch (trouble) {
      state.trouble = trouble;
    }
    state.busy = false;
    draw();
  };
  const offs = ["chats", "devices", "asks"].map((topic) => on(topic, () => paint(draw)));
  draw();
  more();
  return { title: () => t("all.chats", { device: store.devices.get(id)?.name ?? "" }), close: () => offs.forEach((off) => off()) };
}
