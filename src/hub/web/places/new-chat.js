// Starting a chat: which folder, how freely, which model, and the first words. Nothing has to be prepared at the desk
// (U27). Folders outside the roots are not offered, and a typed one is refused in words (moment 12). Not here: the chat.

import { h, icon, mark, render } from "../dom.js";
import { api, newKey } from "../api.js";
import { now } from "../beat.js";
import { draftOf, keep } from "../draft.js";
import { defaultModel, on, sortedChats, store } from "../store.js";
import { modeName, rich, t } from "../words.js";
import { go } from "../router.js";
import { deviceStatus, homely as home, limitsWords, stateBox, troubleBox, troubleLine } from "../parts/bits.js";
import { choices, modelOptions, modesFor } from "../parts/chooser.js";

const RECENT = 4;

export function mount(main, at) {
  const id = at.query.get("new");
  const key = `ask:new:${id}`;
  const state = { cwd: null, browsing: false, list: null, listTrouble: null, mode: null, model: null, more: false, trouble: null, busy: false, key: newKey(), text: draftOf(key) };
  const draw = () => {
    const device = store.devices.get(id);
    if (device) settle(state, device);
    render(main, !store.loaded ? stateBox({ shape: "work", title: t("home.loading"), busy: true }) : !device ? stateBox({ shape: "cut", title: t("device.missing"), buttons: h("a", { class: "btn", href: "/" }, t("places.home")) }) : view(device, state, { browse, pick, send, set }));
  };
  const set = (change) => {
    Object.assign(state, change);
    if (change.text !== undefined) keep(key, change.text);
    else now(draw);
  };
  const browse = async (path) => {
    Object.assign(state, { browsing: true, list: null, listTrouble: null });
    now(draw);
    try {
      state.list = await api.directories(id, path);
    } catch (trouble) {
      state.listTrouble = trouble;
    }
    now(draw);
  };
  const pick = (cwd) => set({ cwd, browsing: false, trouble: null });
  const send = async () => {
    if (state.busy) return;
    if (!state.text.trim()) {
      main.querySelector("textarea")?.focus();
      return;
    }
    set({ busy: true, trouble: null });
    try {
      const { chat } = await api.newChat({ device: id, cwd: state.cwd, model: state.model, mode: state.mode, text: state.text, key: state.key });
      keep(key, "");
      store.chats.set(chat.id, chat);
      go(`/c/${encodeURIComponent(chat.id)}`, { replace: true });
    } catch (trouble) {
      set({ busy: false, trouble });
    }
  };
  const offs = [on("devices", draw), on("models", draw), on("chats", draw)];
  draw();
  return { title: () => t("new.chat"), close: () => offs.forEach((off) => off()) };
}

function settle(state, device) {
  const roots = device.limits?.roots ?? [];
  state.cwd ??= recent(device)[0]?.cwd ?? roots[0] ?? null;
  const most = device.limits?.max_mode ?? "edit";
  state.mode ??= most === "auto" ? "edit" : most;
  state.model ??= defaultModel()?.id ?? null;
}

// Folders of the last chats first, then the roots; each once.
function recent(device) {
  const seen = new Map();
  for (const chat of sortedChats((one) => one.device === device.id).sort((a, b) => (b.updated ?? 0) - (a.updated ?? 0))) {
    if (chat.cwd && !seen.has(chat.cwd)) seen.set(chat.cwd, { cwd: chat.cwd, words: chat.cwd_words ?? chat.cwd, recent: true });
  }
  const list = [...seen.values()].slice(0, RECENT);
  for (const root of device.limits?.roots ?? []) if (!seen.has(root)) list.push({ cwd: root, words: home(root, device), recent: false });
  return list;
}

function view(device, state, act) {
  const options = recent(device);
  if (state.cwd && !options.some((one) => one.cwd === state.cwd)) options.push({ cwd: state.cwd, words: home(state.cwd, device) });
  const away = device.state !== "online";
  return [
    h("div", { class: "head" }, h("h1", null, t("new.chat.on", { device: device.name })), h("a", { class: "btn btn-q btn-s", href: "/" }, t("back"))),
    h("p", { class: "new-device" }, deviceStatus(device), " ", h("span", { class: "meta" }, limitsWords(device))),
    h("form", { class: "stack new", onsubmit: (event) => { event.preventDefault(); act.send(); } },
      h("fieldset", { class: "choices" }, h("legend", { class: "label" }, t("new.folder")),
        h("div", { class: "card rows" },
          options.map((one) => h("label", { class: "choice", key: one.cwd }, h("input", { type: "radio", name: "folder", value: one.cwd, checked: one.cwd === state.cwd, onchange: () => act.pick(one.cwd) }),
            h("span", { class: "choice-t" }, h("code", null, one.words), one.recent && h("span", { class: "meta" }, ` · ${t("new.recent")}`)))),
          h("div", { class: "choice-more", key: "browse" }, state.browsing ? browser(device, state, act) : h("button", { class: "link", type: "button", "aria-disabled": away ? "true" : undefined, onclick: () => { if (!away) act.browse(state.cwd ?? undefined); } }, icon("folder"), t(away ? "new.browse.away" : "new.browse", { device: device.name }))))),
      h("div", { class: "field" }, h("label", { for: "first-words" }, t("new.words")),
        h("textarea", { id: "first-words", rows: "3", placeholder: t("new.example"), value: state.text, oninput: (event) => act.set({ text: event.target.value }), onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) { event.preventDefault(); act.send(); } } })),
      state.more
        ? [choices({ name: "mode", legend: t("mode"), options: modesFor(device), value: state.mode, pick: (mode) => act.set({ mode }) }),
          choices({ name: "model", legend: t("model"), options: modelOptions(store.models), value: state.model, pick: (model) => act.set({ model }) })]
        : h("p", { class: "new-how" }, h("span", null, rich("new.how", { mode: modeName(state.mode), model: store.models.find((one) => one.id === state.model)?.name ?? t("no.model") }), " ", h("span", { class: "meta" }, t(`mode.${state.mode}.about`))),
          h("button", { class: "link", type: "button", onclick: () => act.set({ more: true }) }, t("change"))),
      refusal(state.trouble, device),
      h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit", "aria-disabled": state.busy || !state.cwd || !state.model ? "true" : undefined }, t(state.busy ? "starting" : away ? "send.away" : "new.start"))),
      away && h("p", { class: "meta" }, t("away.idle.plain", { device: device.name }))),
  ];
}

function refusal(trouble, device) {
  if (!trouble) return null;
  const line = trouble.tries.find((one) => one.startsWith("lembas "));
  return line ? troubleBox(trouble, null, { card: true }) : troubleLine(trouble, device);
}

function browser(device, state, act) {
  if (state.listTrouble) return troubleBox(state.listTrouble, () => act.browse(), { card: false, level: 2 });
  const { list } = state;
  if (!list) return h("p", { class: "meta pad-s", role: "status" }, t("new.browse.loading", { device: device.name }));
  return h("div", { class: "browse" },
    h("p", { class: "browse-at" }, h("code", null, home(list.path ?? "", device) || t("new.roots")),
      list.path && h("button", { class: "btn btn-s", type: "button", onclick: () => act.pick(list.path) }, t("new.use"))),
    h("ul", { class: "rows", "aria-label": t("new.folders") },
      (list.parent || list.path) && h("li", { key: ".." }, h("button", { class: "browse-row", type: "button", onclick: () => act.browse(list.parent ?? undefined) }, icon("back"), h("span", null, list.parent ? home(list.parent, device) : t("new.roots")))),
      (list.path ? list.folders ?? [] : [...(list.folders ?? []), ...(list.folders?.length ? [] : (list.roots ?? []).map((root) => ({ name: home(root, device), path: root })))]).map((one) => h("li", { key: one.path }, h("button", { class: "browse-row", type: "button", onclick: () => act.browse(one.path) }, icon("folder"), h("span", { class: "cut" }, one.name), one.git && h("span", { class: "meta" }, "git")))),
      (list.folders ?? []).length === 0 && list.path && h("li", { class: "meta pad-s" }, t("new.no_folders"))),
    list.truncated && h("p", { class: "meta pad-s" }, mark("info"), t("new.truncated")));
}
