// Linking a computer: the code, what asks to be let in and what it will be able to do, and the one question that
// matters. Not here: how the computer makes the code.

import { h, render } from "../dom.js";
import { api } from "../api.js";
import { store } from "../store.js";
import { everySecond, hubNow, span } from "../time.js";
import { rich, t } from "../words.js";
import { field, troubleLine } from "./bits.js";
import { paste } from "./copy.js";
import { Guard } from "./guard.js";

/** A code as it is shown: letters in two groups. */
export function tidyCode(raw) {
  const letters = raw.toUpperCase().replace(/[^A-Z0-9]/g, "").slice(0, 8);
  return letters.length > 4 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : letters;
}

/** True for words that look like a code for linking: eight of the letters that such codes are made of. */
export const looksLikeCode = (words) => /^[BCDFGHJ-NP-TV-XZ]{4}[- ]?[BCDFGHJ-NP-TV-XZ]{4}$/.test(words.trim());

export class LinkForm extends HTMLElement {
  connectedCallback() {
    this.state = { code: tidyCode(this.start ?? ""), found: null, trouble: null, busy: false, done: null };
    this.off = everySecond(() => { if (this.state.found) this.draw(); });
    // The look-up puts the answers where "Look it up" was: a press meant for that one is no answer.
    this.guard = new Guard(() => this.querySelector(".answers"));
    this.guard.start();
    this.addEventListener("pointerdown", this.down, true);
    this.draw();
    if (this.state.code.length === 9) this.lookup();
  }

  disconnectedCallback() {
    this.off?.();
    this.guard?.stop();
    this.removeEventListener("pointerdown", this.down, true);
  }

  /** A code that came with the address. */
  set code(code) {
    this.start = code;
  }

  /** True where the place has the title already. */
  set untitled(yes) {
    this.plain = yes;
  }

  async lookup() {
    const { code } = this.state;
    this.put({ busy: true, trouble: null, found: null, done: null });
    try {
      const found = await api.linkLookup(code);
      if (this.state.code === code) this.put({ busy: false, found });
    } catch (trouble) {
      if (this.state.code === code) this.put({ busy: false, trouble });
    }
  }

  down = () => this.guard.down();

  async decide(yes) {
    if (this.state.busy || !this.guard.allows()) return;
    const { code, found } = this.state;
    this.put({ busy: true, trouble: null });
    try {
      await (yes ? api.linkApprove(code) : api.linkDeny(code));
      this.put({ busy: false, found: null, code: "", done: { yes, name: found.device.name } });
      this.querySelector("h2, h3")?.focus();
    } catch (trouble) {
      this.put({ busy: false, trouble });
    }
  }

  put(change) {
    Object.assign(this.state, change);
    this.draw();
  }

  draw() {
    render(this, this.view());
    const asked = Boolean(this.querySelector(".answers"));
    if (asked && !this.asked) this.guard.moved = performance.now();
    this.asked = asked;
    this.guard.check();
  }

  view() {
    const { code, found, trouble, busy, done } = this.state;
    if (done) {
      return h("div", { class: "card pad stack", role: "status" }, h(this.plain ? "h2" : "h3", { class: "h3", tabindex: "-1" }, t(done.yes ? "link.done" : "link.denied", { name: done.name })),
        h("p", { class: "muted" }, t(done.yes ? "link.done.words" : "link.denied.words", { name: done.name })),
        done.yes && paste("lembas roots add ~/projects"),
        h("div", { class: "btns" }, h("a", { class: "btn btn-1", href: "/" }, t("places.home")), h("button", { class: "btn btn-q", type: "button", onclick: () => this.put({ done: null }) }, t("link.another"))));
    }
    const left = found?.expires ? found.expires - hubNow() : null;
    return h("form", { class: "card pad link-form", id: "link", "aria-labelledby": "link-title", onsubmit: (event) => { event.preventDefault(); if (!found && this.state.code.length === 9) this.lookup(); } },
      h(this.plain ? "h2" : "h3", { id: "link-title", class: this.plain ? "sr" : undefined }, t("link.a.computer")),
      h("ol", { class: "do" },
        h("li", null, h("p", null, t("link.run")), paste(`lembas link ${store.me?.instance?.url ?? location.origin}`)),
        h("li", null, field({
          id: "code", label: t("link.code"), hint: left !== null && left > 0 ? t("link.left", { time: span(Math.ceil(left / 1000) * 1000) }) : t("link.hint"),
          input: (attrs) => h("input", {
            ...attrs, class: "code-in", inputmode: "text", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: "false", maxlength: "9", placeholder: "ABCD-EFGH", value: code,
            oninput: (event) => {
              const tidy = tidyCode(event.target.value);
              event.target.value = tidy;
              const changed = tidy !== this.state.code;
              this.put({ code: tidy, ...(changed ? { found: null, trouble: null } : {}) });
              if (changed && tidy.length === 9) this.lookup();
            },
          }),
        })),
        found && h("li", null, foundView(found))),
      busy && !found && h("p", { class: "meta", role: "status" }, t("link.looking")),
      troubleLine(trouble),
      found && (left === null || left > 0) && [
        h("p", { class: "question" }, t("link.question")),
        h("div", { class: "btns answers", key: "answers" },
          h("button", { class: "btn btn-1", type: "button", "aria-disabled": busy ? "true" : undefined, onclick: () => this.decide(true) }, t("link.yes", { name: found.device.name })),
          h("button", { class: "btn", type: "button", onclick: () => this.decide(false) }, t("link.no"))),
      ],
      found && left !== null && left <= 0 && h("p", { role: "alert", class: "bad-t" }, t("link.expired")),
      !found && h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit", "aria-disabled": code.length === 9 && !busy ? undefined : "true" }, t("link.look"))));
  }
}

function foundView({ device, limits }) {
  const system = [device.os, device.arch].filter(Boolean).join(", ");
  return h("div", { class: "found", role: "status" },
    h("p", null, h("b", null, device.name), [system, device.version && `lembas ${device.version}`, device.address && t("link.from", { address: device.address })].filter(Boolean).map((fact) => [h("span", { class: "sep" }, "\u00a0· "), fact])),
    sameName(device) && h("p", null, rich("link.same", { name: device.name })),
    h("p", { class: "muted" }, limits?.words ? t("link.will", { words: limits.words }) : t("link.will.unknown"), " ", rich("link.can")));
}

// Another computer of this person's that is called the same (U31).
const sameName = (device) => [...store.devices.values()].some((one) => one.id !== device.id && one.name === device.name && one.state !== "revoked");

customElements.define("l-link", LinkForm);
