// Models: which there are, adding one only after it was tried, and letting one go (U49). Not here: choosing one in a chat.

import { h, mark, sep } from "../dom.js";
import { api } from "../api.js";
import { store } from "../store.js";
import { span, when } from "../time.js";
import { count, rich, t } from "../words.js";
import { field, troubleLine } from "./bits.js";
import { confirmSheet, openSheet } from "./sheet.js";
import { toast } from "./toast.js";

/** The models as rows. */
export function modelsView() {
  return h("div", { class: "card rows" },
    store.models.map((model) => h("div", { class: "row", key: model.id },
      mark(model.practice ? "open" : "on"), h("span", { class: "t" }, model.name, model.default && h("span", { class: "meta" }, ` · ${t("model.default")}`)),
      h("span", { class: "row-acts" },
        !model.default && h("button", { class: "link", type: "button", "aria-label": t("model.make_default.name", { name: model.name }), onclick: () => act(() => api.defaultModel(model.id)) }, t("model.make_default")),
        !model.practice && h("button", { class: "link", type: "button", "aria-label": t("model.remove.name", { name: model.name }), onclick: () => remove(model) }, t("remove"))),
      h("span", { class: "l2" }, modelFacts(model), model.tried && !model.practice && model.tested && [sep(), rich("model.tried", { time: when(model.tested, "moment") })]))),
    store.models.length === 0 && h("p", { class: "more" }, h("span", null, t("models.empty"))),
    h("p", { class: "more", key: "add" }, h("span", null, t("models.words")), h("button", { class: "link", type: "button", onclick: addModel }, t("model.add"))));
}

function modelFacts(model) {
  if (model.practice) return t("model.practice.about");
  return [model.url, model.context && t("model.context", { count: count(model.context) }), can(model.tools, "model.tools", "model.no_tools"), can(model.vision, "model.images", "model.no_images")]
    .filter(Boolean).flatMap((fact, i) => (i === 0 ? [fact] : [sep(), fact]));
}

const can = (value, yes, no) => (value === true ? t(yes) : value === false ? t(no) : null);

async function act(run) {
  try {
    await run();
  } catch (trouble) {
    toast(trouble.text);
  }
}

function remove(model) {
  confirmSheet({ title: t("model.remove.title", { name: model.name }), words: t("model.remove.words"), yes: t("remove"), act: () => api.deleteModel(model.id) });
}

/** The sheet for a new model: address, name, key; tried first, saved after. */
export function addModel() {
  const state = { url: "", model: "", key: "", name: "", busy: false, trouble: null, tried: null };
  openSheet({
    title: t("model.add"),
    body: (close, redraw) => {
      const set = (change) => { Object.assign(state, change, { tried: null, trouble: null }); redraw(); };
      const run = async (work) => {
        Object.assign(state, { busy: true, trouble: null });
        redraw();
        try {
          await work();
        } catch (trouble) {
          state.trouble = trouble;
        }
        state.busy = false;
        redraw();
      };
      const body = () => ({ url: state.url.trim(), model: state.model.trim(), ...(state.key ? { key: state.key } : {}) });
      const test = () => run(async () => { state.tried = await api.testModel(body()); });
      const save = () => run(async () => {
        const { tried } = state;
        const facts = Object.fromEntries(["context", "vision", "tools", "efforts"].filter((name) => tried?.[name] !== undefined).map((name) => [name, tried[name]]));
        await api.addModel({ ...body(), name: state.name.trim() || state.model.trim(), ...facts });
        close();
        toast(t("model.added", { name: state.name.trim() || state.model.trim() }));
      });
      const ok = state.tried && state.tried.ok !== false;
      const input = (name, more) => (attrs) => h("input", { ...attrs, value: state[name], autocapitalize: "none", spellcheck: "false", autocomplete: "off", oninput: (event) => set({ [name]: event.target.value }), ...more });
      const names = state.trouble?.data?.error?.names ?? state.tried?.names;
      return h("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); if (!state.busy) (ok ? save : test)(); } },
        field({ id: "m-url", label: t("model.url"), hint: t("model.url.hint"), input: input("url", { type: "url", inputmode: "url", required: true, placeholder: "http://127.0.0.1:11434/v1", autofocus: true }) }),
        field({ id: "m-model", label: t("model.id"), hint: names?.length ? t("model.names", { names: names.slice(0, 12).join(", ") }) : t("model.id.hint"), input: input("model", { required: true }) }),
        field({ id: "m-key", label: t("model.key"), hint: t("model.key.hint"), input: input("key", { type: "password", autocomplete: "new-password" }) }),
        field({ id: "m-name", label: t("model.name.label"), hint: t("model.name.hint"), input: input("name", { maxlength: "60" }) }),
        state.tried && h("p", { class: "tried", role: "status" }, mark(ok ? "done" : "fail"), h("span", null, triedWords(state.tried))),
        troubleLine(state.trouble),
        h("div", { class: "btns" },
          h("button", { class: "btn btn-1", type: "submit", "aria-disabled": state.busy ? "true" : undefined }, t(state.busy ? (ok ? "model.saving" : "model.trying") : ok ? "model.save" : "model.try")),
          h("button", { class: "btn btn-q", type: "button", onclick: close }, t("back"))));
    },
  });
}

function triedWords(tried) {
  if (tried.text) return tried.text;
  return [tried.ms !== undefined ? t("model.answers", { time: span(Math.round(tried.ms / 100) * 100) }) : t("model.answers.plain"), can(tried.vision, "model.images", "model.no_images"), can(tried.tools, "model.tools", "model.no_tools")].filter(Boolean).join(", ");
}
