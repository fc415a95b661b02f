// The composer: the words, how they are sent, and with which mode, model and level. It keeps its height and its place
// while everything above it moves (U3–U5, U13, U25). Not here: messages on their way (outbox.js), the queue above it.

import { h, icon, render } from "../dom.js";
import { api } from "../api.js";
import { now } from "../beat.js";
import { arrive, draftOf, keep } from "../draft.js";
import { post } from "../outbox.js";
import { on, store } from "../store.js";
import { modeName, sentence, t } from "../words.js";
import { isAbove, openChooser } from "./chooser.js";
import { toast } from "./toast.js";

// Safari sends the Enter that ended a composition after it; keys within this time of the end are that one.
const JUST_COMPOSED_MS = 150;

const touch = () => matchMedia("(pointer: coarse)").matches;

export class Composer extends HTMLElement {
  set chat(id) {
    this.chat_ = id;
  }

  connectedCallback() {
    const id = this.chat_;
    this.text = draftOf(id) || store.chats.get(id)?.draft || "";
    this.touched = false;
    this.copied = draftOf(id) ? undefined : this.text;
    // Changes on their way to the hub.
    this.asked = {};
    const draw = () => this.draw();
    this.offs = [
      on(`chat:${id}`, draw), on("devices", draw), on("models", draw),
      on(`draft:${id}`, (event) => {
        const box = this.box?.value ?? "";
        const next = arrive(id, event.text ?? "", { box, before: this.copied, touched: this.touched, focused: document.activeElement === this.box });
        if (next === box) return;
        this.copied = next;
        this.box.value = next;
      }),
    ];
    this.draw();
  }

  disconnectedCallback() {
    for (const off of this.offs ?? []) off();
  }

  /** Opens the choice of mode, model and level. */
  choose() {
    const chat = store.chats.get(this.chat_);
    if (chat) openChooser(chat, (one) => this.wish(one), (change) => this.set(change));
  }

  /** Puts words into the box; what is there already stays in front. */
  put(text) {
    const box = this.querySelector("textarea");
    box.value = box.value && text ? `${box.value}\n${text}` : text;
    keep(this.chat_, box.value);
  }

  focusBox() {
    this.querySelector("textarea")?.focus({ preventScroll: true });
  }

  /** What the person asked for here, over what the chat says: only until the hub told it back. */
  wish(name) {
    const chat = store.chats.get(this.chat_);
    return this.asked[name] ?? chat?.wanted?.[name] ?? chat?.[name];
  }

  send(when) {
    const text = this.box.value;
    if (!text.trim()) {
      this.box.focus();
      return;
    }
    post(this.chat_, text, when);
    // The message is kept in the outbox now; the draft has done its part.
    this.box.value = "";
    this.touched = true;
    keep(this.chat_, "");
    this.dispatchEvent(new CustomEvent("sent", { bubbles: true }));
    now(() => this.draw());
  }

  keys = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    const composing = event.isComposing || event.keyCode === 229 || this.composing;
    if (composing || (this.composedAt !== undefined && event.timeStamp - this.composedAt < JUST_COMPOSED_MS)) return;
    const forced = event.ctrlKey || event.metaKey;
    if (touch() && !forced) return;
    event.preventDefault();
    if (!event.repeat) this.send("after");
  };

  // Only what the person changed is sent; what is shown as applied stays what the computer says (U30).
  async set(change) {
    Object.assign(this.asked, change);
    this.draw();
    try {
      const { chat } = await api.changeChat(this.chat_, change);
      if (chat) store.chats.set(chat.id, chat);
    } catch (trouble) {
      toast(trouble.text);
    }
    for (const [name, value] of Object.entries(change)) if (this.asked[name] === value) delete this.asked[name];
    this.draw();
  }

  draw() {
    const chat = store.chats.get(this.chat_);
    if (!chat) return;
    const device = store.devices.get(chat.device);
    render(this, this.view(chat, device));
    this.box = this.querySelector("textarea");
  }

  view(chat, device) {
    const name = device?.name ?? chat.device_name;
    const state = device?.state ?? "away";
    const running = Boolean(chat.running);
    if (state === "revoked" || chat.archived || chat.closed) {
      const why = state === "revoked" ? t("composer.revoked", { device: name }) : chat.archived ? t("composer.archived") : typeof chat.closed === "string" ? chat.closed : t("composer.closed");
      return h("p", { class: "closed-note" }, why, state === "revoked" && [" ", h("a", { class: "link", href: "/link" }, t("composer.relink"))]);
    }
    const level = this.wish("level");
    const model = store.models.find((one) => one.id === this.wish("model"))?.name ?? this.wish("model") ?? t("no.model");
    const applied = chat.mode_applied ?? chat.mode;
    const asked = this.wish("mode");
    const mode = modeName(applied);
    const open = () => this.choose();
    const all = t("chooser.name", { mode, model, level: level ? t("chooser.level", { level }) : "" });
    const chip = (label, text, strong) => h("button", { class: "chip only-wide", type: "button", "aria-label": label, "aria-haspopup": "dialog", onclick: open },
      strong ? h("b", null, text) : h("span", { class: "cut" }, text), icon("down"));
    return h("form", { class: "compose", "aria-label": t("composer"), onsubmit: (event) => { event.preventDefault(); this.send("after"); } },
      h("label", { class: "sr", for: "message" }, t("composer.label", { device: name })),
      h("textarea", {
        id: "message", rows: "1", placeholder: t(state === "online" ? "composer.write" : "composer.write.away", { device: name }), enterkeyhint: touch() ? "enter" : "send", value: this.text,
        onkeydown: this.keys,
        oncompositionstart: () => { this.composing = true; },
        oncompositionend: (event) => { this.composing = false; this.composedAt = event.timeStamp; },
        onkeyup: () => { if (!this.composing) this.composedAt = undefined; },
        oninput: (event) => { this.touched = true; keep(this.chat_, event.target.value); },
      }),
      isAbove(applied, device) ? h("p", { class: "meta asked" }, t("mode.lowered", { mode: modeName(device.limits.max_mode), device: name }))
        : asked !== applied ? h("p", { class: "meta asked" }, t("mode.asked", { mode: modeName(asked), device: name }))
        : chat.lowered && h("p", { class: "meta asked" }, sentence(chat.lowered)),
      h("div", { class: "foot" },
        h("button", { class: "icon-btn set only-narrow", type: "button", "aria-label": all, "aria-haspopup": "dialog", onclick: open }, icon("sliders")),
        h("button", { class: "chip chip-all only-narrow", type: "button", "aria-label": all, "aria-haspopup": "dialog", onclick: open },
          h("span", { class: "cut" }, h("b", null, mode), h("span", { class: "sep" }, "\u00a0· "), model, level && [h("span", { class: "sep" }, "\u00a0· "), level]), icon("down")),
        chip(t("mode.name", { mode }), mode, true),
        chip(t("model.name", { model }), model),
        chat.levels?.length > 0 && chip(t("level.name", { level: level ?? "" }), level ?? t("level")),
        h("span", { class: "send" },
          running && state === "online" && chat.steer && h("button", { class: "btn", type: "button", onclick: () => this.send("next") }, t("send.next")),
          h("button", { class: "btn btn-1", type: "submit" }, t(state !== "online" ? "send.away" : running ? "send.after" : "send")))));
  }
}

customElements.define("l-composer", Composer);
