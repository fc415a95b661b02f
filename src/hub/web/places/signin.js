// Signing in, and the first account by the one-time link. It says why one is signed out, and knows a code for linking
// a computer when it is put into the wrong field (moment 8, U37). Not here: changing a password (places/settings.js).

import { h, mark, render } from "../dom.js";
import { api } from "../api.js";
import { moment, setHubNow } from "../time.js";
import { rich, sentence, t } from "../words.js";
import { field, troubleLine } from "../parts/bits.js";
import { paste } from "../parts/copy.js";
import { looksLikeCode, tidyCode } from "../parts/link-form.js";

const SHORTEST = 10;

export function mount(app, at, { why, signedIn }) {
  const setup = at.query.get("setup");
  const wanted = at.query.get("next");
  // Only an address of this page: a link must not send the person elsewhere after signing in.
  let next = wanted && /^\/(?![/\\])/.test(wanted) ? wanted : null;
  const state = { name: "", password: "", again: "", trouble: null, busy: false, code: false };
  const draw = () => render(app, view({ state, setup, why, reason: at.query.get("why"), set, submit, lead }));
  // A code is no password: it is kept for where it belongs, and looked up there once somebody is signed in.
  const lead = () => {
    const code = tidyCode(state.password);
    next = `/link?code=${encodeURIComponent(code)}`;
    Object.assign(state, { password: "", code: false, kept: code });
    app.querySelector("#password").value = "";
    draw();
    app.querySelector(state.name ? "#password" : "#name")?.focus();
  };
  const set = (change) => {
    Object.assign(state, change);
    const code = looksLikeCode(state.password);
    if (code !== state.code) {
      state.code = code;
      draw();
    }
  };
  const submit = async () => {
    if (state.busy) return;
    const form = app.querySelector("form");
    // A password manager may have filled in without telling.
    state.name = form.querySelector("#name").value.trim();
    state.password = form.querySelector("#password").value;
    const fault = check(state, setup);
    if (fault) {
      state.fault = fault;
      draw();
      app.querySelector("[aria-invalid]")?.focus();
      return;
    }
    Object.assign(state, { busy: true, trouble: null, fault: null });
    draw();
    try {
      await (setup ? api.setUp(setup, state.name, state.password) : api.signIn(state.name, state.password));
      const me = await api.me();
      setHubNow(me.now);
      await signedIn(me, next);
    } catch (trouble) {
      Object.assign(state, { busy: false, trouble });
      draw();
      app.querySelector("#password")?.focus();
    }
  };
  draw();
  app.querySelector("#name")?.focus();
  return { close() {} };
}

function check(state, setup) {
  if (!state.name) return { name: t("signin.need.name") };
  if (!state.password) return { password: t("signin.need.password") };
  if (setup && state.password.length < SHORTEST) return { password: t("setup.short", { n: SHORTEST }) };
  return null;
}

function view({ state, setup, why, reason, set, submit, lead }) {
  const { fault } = state;
  // A browser that never was signed in is not told that it was signed out.
  const since = why?.data?.error?.since ?? why?.since;
  const told = why?.text && (since || why.type === "signed_out");
  const hint = { link_used: "signin.used", too_many: "signin.many" }[reason];
  return h("main", { class: "gate", id: "main", key: "signin" },
    h("div", { class: "gate-h" }, h("p", { class: "word" }, "lembas"), h("h1", null, t(setup ? "setup.title" : "signin.title")), h("p", { class: "muted" }, t("signin.at", { host: location.host }))),
    told && h("div", { class: "card note", role: "status" }, mark("info"), h("p", null, h("b", null, why.text), why.why && ` ${sentence(why.why)}`, since && ` ${t("signin.since", { time: moment(since) })}`, !/draft/.test(why.text) && ` ${t("signin.drafts")}`)),
    hint && h("div", { class: "card note", role: "status" }, mark("warn"), h("p", null, t(hint))),
    setup && h("p", { class: "muted" }, t("setup.words")),
    h("form", { class: "card pad", "aria-label": t(setup ? "setup.title" : "signin"), onsubmit: (event) => { event.preventDefault(); submit(); } },
      field({ id: "name", label: t("name"), error: fault?.name, input: (attrs) => h("input", { ...attrs, autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true, oninput: (event) => set({ name: event.target.value }) }) }),
      field({
        id: "password", label: t("password"), hint: setup ? t("setup.hint", { n: SHORTEST }) : undefined, error: fault?.password ?? (state.code ? t("signin.code") : undefined),
        input: (attrs) => h("input", { ...attrs, type: "password", autocomplete: setup ? "new-password" : "current-password", required: true, oninput: (event) => set({ password: event.target.value }) }),
      }),
      state.code && h("p", { class: "meta" }, rich("signin.code.where"), " ", h("button", { class: "link", type: "button", onclick: lead }, t("signin.code.keep"))),
      state.kept && h("p", { class: "meta", role: "status" }, rich("signin.code.kept", { code: state.kept })),
      troubleLine(state.trouble),
      h("button", { class: "btn btn-1", type: "submit", "aria-disabled": state.busy ? "true" : undefined }, t(state.busy ? "signin.busy" : setup ? "setup.do" : "signin"))),
    !setup && h("div", { class: "gate-f" }, h("p", { class: "muted" }, t("signin.help")), paste("lembas up")));
}
