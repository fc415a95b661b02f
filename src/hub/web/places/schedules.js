// What can be run without anybody there, for now by hand: a scheduled run once, and one check of a watch command. It
// says plainly that nothing repeats yet. Not here: when things repeat.

import { h, mark, render, sep } from "../dom.js";
import { api, newKey } from "../api.js";
import { paint } from "../beat.js";
import { defaultModel, load, on, sortedDevices, store } from "../store.js";
import { clock, hubNow, span } from "../time.js";
import { and, bytes, modeName, rich, sentence, t } from "../words.js";
import { go } from "../router.js";
import { field, homely, stateBox, troubleBox } from "../parts/bits.js";
import { paste } from "../parts/copy.js";
import { modesFor } from "../parts/chooser.js";

export function mount(main) {
  const state = {
    run: { device: null, cwd: "", text: "", mode: "edit", busy: false, trouble: null, key: newKey() },
    watch: { device: null, cwd: "", command: "", mode: "edit", timeout: "60", nonzero: false, busy: false, trouble: null, results: [] },
  };
  const draw = () => render(main, view(state, draw));
  const later = () => paint(draw);
  const offs = ["devices", "models", "conn"].map((topic) => on(topic, later));
  draw();
  return { title: () => t("places.schedules"), close: () => offs.forEach((off) => off()) };
}

function view(state, draw) {
  const head = h("div", { class: "head" }, h("h1", null, t("places.schedules")), h("p", null, t("schedules.words")));
  if (!store.loaded) return [head, store.trouble ? troubleBox(store.trouble, load, { title: t("home.failed") }) : stateBox({ shape: "work", title: t("home.loading"), busy: true })];
  const devices = sortedDevices().filter((device) => device.state === "online" || device.state === "away");
  if (devices.length === 0) return [head, stateBox({ shape: "open", title: t("schedules.none"), words: t("schedules.none.words"), buttons: h("a", { class: "btn", href: "/link" }, t("link.a.computer")) })];
  for (const form of [state.run, state.watch]) {
    // Turned on meanwhile: what was refused before is no news any more.
    if (form.trouble?.data?.error?.reason === "off" && store.devices.get(form.device)?.limits?.scheduled) form.trouble = null;
    if (!devices.some((one) => one.id === form.device)) form.device = (devices.find((one) => one.limits?.scheduled) ?? devices[0]).id;
    form.cwd ||= store.devices.get(form.device)?.limits?.roots?.[0] ?? "";
  }
  return [head, h("div", { class: "stack" }, runForm(state.run, devices, draw), watchForm(state.watch, devices, draw))];
}

function where(form, devices, id, draw) {
  const device = store.devices.get(form.device);
  const roots = device?.limits?.roots ?? [];
  return h("div", { class: "pair" },
    field({ id: `${id}-device`, label: t("computer"), input: (attrs) => h("select", { ...attrs, onchange: (event) => { form.device = event.target.value; form.cwd = store.devices.get(form.device)?.limits?.roots?.[0] ?? ""; draw(); } },
      devices.map((one) => h("option", { key: one.id, value: one.id, selected: one.id === form.device }, one.state === "online" ? one.name : t("option.away", { device: one.name })))) }),
    field({ id: `${id}-cwd`, label: t("folder"), hint: roots.length ? t("folder.hint", { roots: and(roots.map((root) => homely(root, device))) }) : undefined, input: (attrs) => h("input", { ...attrs, value: form.cwd, required: true, spellcheck: "false", autocapitalize: "none", list: `${id}-roots`, oninput: (event) => { form.cwd = event.target.value; } }) }),
    h("datalist", { id: `${id}-roots` }, roots.map((root) => h("option", { value: root }))));
}

// Without a folder nothing can run there: how one is allowed, before the press.
function rootsNote(form) {
  const device = store.devices.get(form.device);
  if (device?.limits?.roots?.length !== 0) return null;
  return h("div", { class: "off-note" }, h("p", { class: "note" }, mark("miss"), h("span", null, t("roots.title", { device: device.name }), ". ", t("roots.words", { device: device.name }))), paste("lembas roots add ~/projects"));
}

const isOff = (form) => store.devices.get(form.device)?.limits?.scheduled === false;

// The computer itself decides; that it will say no is told before the press.
function offNote(form) {
  const device = store.devices.get(form.device);
  if (!isOff(form)) return null;
  return h("div", { class: "off-note" }, h("p", { class: "note" }, mark("miss"), h("span", null, rich("scheduled.off", { device: device.name }))), paste("lembas service scheduled on"));
}

const modesOf = (form) => modesFor(store.devices.get(form.device)).filter((one) => one.id !== "plan");

/** The mode that counts: the chosen one, or the most that the computer allows where that is less. */
function modeOf(form) {
  const allowed = modesOf(form).filter((one) => one.allowed).map((one) => one.id);
  return allowed.includes(form.mode) ? form.mode : allowed.at(-1) ?? form.mode;
}

function modePick(form, id, draw) {
  const mode = modeOf(form);
  return field({ id: `${id}-mode`, label: t("mode"), input: (attrs) => h("select", { ...attrs, onchange: (event) => { form.mode = event.target.value; draw(); } },
    modesOf(form).map((one) => h("option", { key: one.id, value: one.id, selected: one.id === mode, disabled: !one.allowed }, one.name))) });
}

// What went wrong with what was asked before says nothing of what is asked now, and that is other work with another key.
function changed(form, draw) {
  if (!form.trouble) return;
  form.trouble = null;
  form.key = newKey();
  draw();
}

function runForm(form, devices, draw) {
  const model = defaultModel();
  const submit = async () => {
    if (form.busy || isOff(form)) return;
    Object.assign(form, { busy: true, trouble: null });
    draw();
    try {
      const { chat } = await api.scheduled(form.device, { cwd: form.cwd.trim(), text: form.text, mode: modeOf(form), model: model?.id, key: form.key });
      form.key = newKey();
      const id = chat?.id ?? chat;
      if (id) return go(`/c/${encodeURIComponent(id)}`);
    } catch (trouble) {
      form.trouble = trouble;
    }
    form.busy = false;
    draw();
  };
  return h("form", { class: "card pad say", key: "run", "aria-labelledby": "run-title", oninput: () => changed(form, draw), onsubmit: (event) => { event.preventDefault(); submit(); } },
    h("div", null, h("h2", { id: "run-title" }, t("run.title")), h("p", { class: "muted" }, t("run.words"))),
    where(form, devices, "run", draw),
    rootsNote(form),
    field({ id: "run-text", label: t("run.text"), input: (attrs) => h("textarea", { ...attrs, rows: "3", required: true, placeholder: t("run.example"), value: form.text, oninput: (event) => { form.text = event.target.value; } }) }),
    modePick(form, "run", draw),
    offNote(form),
    form.trouble && troubleBox(form.trouble, null, { card: false }),
    h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit", disabled: isOff(form), "aria-disabled": form.busy ? "true" : undefined }, t(form.busy ? "starting" : "run.do"))));
}

function watchForm(form, devices, draw) {
  const submit = async () => {
    if (form.busy || isOff(form)) return;
    Object.assign(form, { busy: true, trouble: null });
    draw();
    const asked = { device: form.device, cwd: form.cwd.trim(), command: form.command };
    try {
      const result = await api.monitor(form.device, { cwd: asked.cwd, command: form.command, mode: modeOf(form), timeout: Number(form.timeout) || 60, ...(form.nonzero ? { fail_on: "nonzero" } : {}) });
      const before = form.results.find((one) => one.device === asked.device && one.cwd === asked.cwd && one.command === asked.command && one.hash && !one.failed);
      form.results.unshift({ ...asked, ...result, at: hubNow(), verdict: result.failed ? "failed" : !before ? "first" : before.hash === result.hash ? "same" : "changed" });
    } catch (trouble) {
      form.results.unshift({ ...asked, at: hubNow(), verdict: "failed", trouble });
    }
    form.results.length = Math.min(form.results.length, 10);
    form.busy = false;
    draw();
  };
  return h("form", { class: "card pad say", key: "watch", "aria-labelledby": "watch-title", onsubmit: (event) => { event.preventDefault(); submit(); } },
    h("div", null, h("h2", { id: "watch-title" }, t("watch.title")), h("p", { class: "muted" }, t("watch.words"))),
    where(form, devices, "watch", draw),
    rootsNote(form),
    field({ id: "watch-command", label: t("watch.command"), input: (attrs) => h("input", { ...attrs, class: "mono", required: true, spellcheck: "false", autocapitalize: "none", placeholder: "git ls-remote origin main", value: form.command, oninput: (event) => { form.command = event.target.value; } }) }),
    h("div", { class: "pair" }, modePick(form, "watch", draw),
      field({ id: "watch-timeout", label: t("watch.timeout"), hint: t("watch.timeout.hint"), input: (attrs) => h("input", { ...attrs, type: "number", min: "1", max: "600", inputmode: "numeric", value: form.timeout, oninput: (event) => { form.timeout = event.target.value; } }) })),
    h("label", { class: "switch" }, h("span", null, t("watch.nonzero")), h("input", { type: "checkbox", role: "switch", checked: form.nonzero, onchange: (event) => { form.nonzero = event.target.checked; } })),
    offNote(form),
    h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit", disabled: isOff(form), "aria-disabled": form.busy ? "true" : undefined }, t(form.busy ? "watch.busy" : "watch.do"))),
    form.results.length > 0 && h("div", { class: "results", role: "status" }, form.results.map(result)));
}

const SHAPES = { first: ["on", "watch.first"], same: ["same", "watch.same"], changed: ["chg", "watch.changed"], failed: ["warn", "watch.failed"] };

function result(one, i) {
  const [shape, word] = SHAPES[one.verdict];
  const bad = one.verdict === "failed";
  return h("div", { class: "result", key: `${one.at}-${i}` },
    h("p", null, h("span", { class: `status${bad ? " is-bad" : ""}` }, mark(shape), t(word)), " ", h("span", { class: "meta" }, `${store.devices.get(one.device)?.name ?? ""} · ${clock(one.at)}`)),
    h("p", null, h("code", null, one.command)),
    one.trouble ? [h("p", null, sentence(one.trouble.text), one.trouble.why && ` ${one.trouble.why}`, " ", t("watch.not_a_change")), (one.trouble.tries ?? []).map((line) => (line.startsWith("lembas ") ? paste(line) : h("p", { class: "meta" }, line)))]
      : [h("code", { class: "hash" }, one.hash),
        h("p", { class: "meta" }, t("exit", { exit: one.exit }), sep(), bytes(one.bytes ?? 0), sep(), span(one.duration_ms ?? 0), one.mode && [sep(), modeName(one.mode)], one.unstable && [sep(), t("watch.unstable")]),
        one.excerpt && h("pre", { class: "out", tabindex: "0", "aria-label": t("watch.excerpt") }, one.excerpt)]);
}
