// Settings: account, computers and what they allow, models, who is signed in. What a computer allows is shown and
// cannot be raised here. Not here: linking (parts/link-form.js) and adding a model (parts/model-form.js).

import { h, icon, render, sep } from "../dom.js";
import { api } from "../api.js";
import { paint } from "../beat.js";
import { emit, load, on, sortedDevices, store } from "../store.js";
import { day, when } from "../time.js";
import { modeName, rich, t } from "../words.js";
import { finish } from "../session.js";
import { deviceStatus, field, homely, stateBox, troubleBox, troubleLine } from "../parts/bits.js";
import { paste } from "../parts/copy.js";
import { confirmSheet, openSheet } from "../parts/sheet.js";
import { toast } from "../parts/toast.js";
import { modelsView } from "../parts/models.js";
import "../parts/link-form.js";
import "../parts/rules.js";

export function mount(main) {
  const state = { sessions: null, trouble: null };
  const draw = () => render(main, view(state, renew));
  const renew = async () => {
    try {
      const got = await api.sessions();
      state.sessions = got.sessions ?? got;
      state.trouble = null;
    } catch (trouble) {
      state.trouble = trouble;
    }
    draw();
  };
  const later = () => paint(draw);
  const offs = ["devices", "models", "me", "conn"].map((topic) => on(topic, later));
  draw();
  renew();
  return { title: () => t("places.settings"), close: () => offs.forEach((off) => off()) };
}

function view(state, renew) {
  const head = h("div", { class: "head" }, h("h1", null, t("places.settings")));
  if (!store.loaded) return [head, store.trouble ? troubleBox(store.trouble, load, { title: t("home.failed") }) : stateBox({ shape: "work", title: t("settings.loading"), busy: true })];
  return [
    head,
    h("nav", { class: "tocs", "aria-label": t("sections") }, ["account", "computers", "models", "signed"].map((id) => h("a", { href: `#${id}` }, t(`settings.${id}`)))),
    h("section", { class: "sect", id: "account", key: "account" }, h("h2", null, t("settings.account")), account()),
    h("section", { class: "sect", id: "computers", key: "computers" }, h("h2", null, t("settings.computers")), h("p", null, t("settings.computers.words")),
      h("div", { class: "stack" }, sortedDevices().map(computer), h("l-link", { key: "link" }))),
    h("section", { class: "sect", id: "models", key: "models" }, h("h2", null, t("settings.models")), modelsView()),
    h("section", { class: "sect", id: "signed", key: "signed" }, h("h2", null, t("settings.signed")), sessions(state, renew)),
  ];
}

function account() {
  const me = store.me?.account ?? {};
  const instance = store.me?.instance ?? {};
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return h("div", { class: "card rows" },
    h("div", { class: "row" }, icon("user"), h("span", { class: "t" }, me.name), h("button", { class: "link", type: "button", onclick: changePassword }, t(me.password === false ? "password.set" : "password.change")),
      h("span", { class: "l2" }, t("account.on", { host: location.host, name: instance.name ?? "" }), sep(), t("account.zone", { zone }), instance.version && [sep(), `lembas ${instance.version}`])),
    h("p", { class: "more" }, h("span", null, t("signout.words")), h("button", { class: "link", type: "button", onclick: signOut }, t("signout"))));
}

async function signOut() {
  try {
    await api.signOut();
    finish();
    location.assign("/signin");
  } catch (trouble) {
    toast(trouble.text);
  }
}

function changePassword() {
  const first = store.me?.account?.password === false;
  let trouble = null;
  openSheet({
    title: t(first ? "password.set" : "password.change"),
    body: (close, redraw) => h("form", { class: "stack", onsubmit: async (event) => {
      event.preventDefault();
      const value = (id) => event.target.querySelector(`#${id}`)?.value;
      try {
        const name = value("account-name")?.trim();
        await api.password({ ...(first ? {} : { old: value("old") }), ...(name ? { name } : {}), new: value("new") });
        store.me = await api.me();
        emit("me");
        close();
        toast(t(first ? "password.first" : "password.changed"));
      } catch (caught) {
        trouble = caught;
        redraw();
      }
    } },
    first && field({ id: "account-name", label: t("name"), input: (attrs) => h("input", { ...attrs, autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true, value: store.me?.account?.name ?? "" }) }),
    !first && field({ id: "old", label: t("password.old"), input: (attrs) => h("input", { ...attrs, type: "password", autocomplete: "current-password", required: true, autofocus: true }) }),
    field({ id: "new", label: t("password.new"), hint: t("setup.hint", { n: 10 }), input: (attrs) => h("input", { ...attrs, type: "password", autocomplete: "new-password", minlength: "10", required: true }) }),
    troubleLine(trouble),
    h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit" }, t("save")), h("button", { class: "btn btn-q", type: "button", onclick: close }, t("back")))),
  });
}

const APPROVALS = new Set(["once", "full", "local"]);

function computer(device) {
  const limits = device.limits ?? {};
  const id = `dev-${device.id}`;
  const gone = device.state === "revoked";
  const roots = limits.roots ?? [];
  const row = (key, value) => value && h("div", null, h("dt", null, t(key)), h("dd", null, value));
  return h("article", { class: "card", key: device.id, "aria-labelledby": id }, h("div", { class: "pad" },
    h("div", { class: "sub" }, h("h3", { id }, device.name), deviceStatus(device)),
    device.limits && h("dl", { class: "kv" },
      row("limits.roots", roots.length === 0 ? t("limits.no_roots") : roots.flatMap((root, i) => [i > 0 && ", ", h("code", null, homely(root, device))])),
      row("limits.mode", limits.max_mode && [modeName(limits.max_mode), limits.max_mode !== "auto" && [sep(), h("span", { class: "muted" }, t("limits.lowered", { mode: modeName(limits.max_mode), device: device.name }))]]),
      row("limits.approvals", APPROVALS.has(limits.approvals) && t(`limits.approvals.${limits.approvals}`)),
      row("limits.scheduled", limits.scheduled !== undefined && t(limits.scheduled ? "on" : "off")),
      row("limits.box", limits.box && t(`limits.box.${limits.box}`.replace("writes only", "writes"))),
      row("limits.system", [[device.os, device.arch].filter(Boolean).join(", "), device.version && [sep(), `lembas ${device.version}`], device.address && [sep(), device.address]]),
      device.state !== "online" && row("limits.heard", rich("limits.heard.words", { time: when(device.last_heard ?? device.since, "moment") ?? "" }))),
    !gone && [h("p", { class: "meta" }, t("limits.change", { device: device.name })), paste("lembas help remote")],
    h("div", { class: "btns end" },
      !gone && h("button", { class: "btn", type: "button", onclick: () => rename(device) }, t("rename")),
      gone ? h("button", { class: "btn btn-bad", type: "button", onclick: () => forget(device) }, t("forget.dots"))
        : h("button", { class: "btn btn-bad", type: "button", onclick: () => revoke(device) }, t("revoke.dots")))),
    !gone && h("l-rules", { key: `rules-${device.id}`, ".device": device }));
}

function rename(device) {
  let trouble = null;
  openSheet({
    title: t("rename.device", { device: device.name }),
    body: (close, redraw) => h("form", { class: "stack", onsubmit: async (event) => {
      event.preventDefault();
      try {
        await api.renameDevice(device.id, event.target.querySelector("#device-name").value.trim());
        close();
      } catch (caught) {
        trouble = caught;
        redraw();
      }
    } },
    field({ id: "device-name", label: t("name"), input: (attrs) => h("input", { ...attrs, required: true, maxlength: "60", autofocus: true, value: device.name }) }),
    troubleLine(trouble),
    h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit" }, t("save")), h("button", { class: "btn btn-q", type: "button", onclick: close }, t("back")))),
  });
}

function revoke(device) {
  confirmSheet({ title: t("revoke.title", { device: device.name }), words: t("revoke.words", { device: device.name }), yes: t("revoke"), act: () => api.revokeDevice(device.id) });
}

function forget(device) {
  confirmSheet({ title: t("forget.title", { device: device.name }), words: t("forget.words", { device: device.name }), yes: t("forget"), act: () => api.revokeDevice(device.id) });
}

function sessions(state, renew) {
  if (state.trouble) return troubleBox(state.trouble, renew, { level: 3 });
  if (!state.sessions) return stateBox({ shape: "work", title: t("signed.loading"), busy: true, level: 3 });
  const here = (one) => Boolean(one.this ?? one.current);
  const list = [...state.sessions].sort((a, b) => Number(here(b)) - Number(here(a)) || (b.seen ?? 0) - (a.seen ?? 0));
  const end = async (run) => {
    try {
      await run();
      renew();
    } catch (trouble) {
      toast(trouble.text);
    }
  };
  return h("div", { class: "card rows" },
    list.map((one) => {
      const name = one.agent ?? one.name ?? t("signed.browser");
      return h("div", { class: "row", key: one.id }, icon(/phone|android|iphone/i.test(name) ? "phone" : "web"), h("span", { class: "t" }, name),
        here(one) ? h("span", { class: "when" }, t("signed.this")) : h("button", { class: "link", type: "button", "aria-label": t("signed.end.name", { name }), onclick: () => end(() => api.endSession(one.id)) }, t("signed.end")),
        h("span", { class: "l2" }, one.seen && !here(one) ? [rich("signed.seen", { time: when(one.seen, "moment") }), sep()] : null, one.made ? t("signed.since", { day: day(one.made) }) : null, one.address && [sep(), one.address]));
    }),
    h("p", { class: "more" }, h("span", null, t("signed.count", { n: list.length })), list.length > 1 && h("button", { class: "link", type: "button", onclick: () => end(api.endOthers) }, t("signed.end_others"))));
}

