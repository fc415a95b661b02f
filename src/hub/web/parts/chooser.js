// Choosing mode, model and level, each with a sentence that says what it means; what is shown is what the computer
// applies, and a wish it has not taken says so (U30, U48). Not here: where the choice is sent.

import { h } from "../dom.js";
import { paint } from "../beat.js";
import { on, store } from "../store.js";
import { modeName, rich, t } from "../words.js";
import { TEXTS } from "../texts.js";
import { openSheet } from "./sheet.js";

const ORDER = ["plan", "manual", "edit", "auto"];

/** True where a mode is more than `device` allows. */
export const isAbove = (mode, device) => {
  const most = ORDER.indexOf(device?.limits?.max_mode ?? "auto");
  return mode !== "plan" && most >= 0 && ORDER.indexOf(mode) > most;
};

/** Modes a computer allows, as `[{ id, name, about, allowed }]`. */
export function modesFor(device, listed) {
  const ids = (listed ?? ORDER).map((one) => (typeof one === "string" ? one : one.id));
  return ORDER.filter((id) => ids.includes(id) || listed === undefined).map((id) => ({
    id, name: modeName(id), about: TEXTS[`mode.${id}.about`] ?? "", allowed: !isAbove(id, device),
  }));
}

/** One group of choices as radio rows. */
export function choices({ name, legend, options, value, pick }) {
  return h("fieldset", { class: "choices" },
    h("legend", { class: "label" }, legend),
    h("div", { class: "card rows" }, options.map((one) => h("label", { class: `choice${one.allowed === false ? " is-off" : ""}`, key: one.id },
      h("input", { type: "radio", name, value: one.id, checked: one.id === value, disabled: one.allowed === false, onchange: () => pick(one.id) }),
      h("span", { class: "choice-t" }, one.name, one.mark && h("span", { class: "meta" }, ` · ${one.mark}`)),
      one.about && h("span", { class: "meta choice-a" }, one.about)))));
}

/** Models as choices. */
export const modelOptions = (models) => models.map((model) => ({
  id: model.id,
  name: model.name,
  mark: model.default ? t("model.default") : undefined,
  about: model.practice ? t("model.practice.about") : [model.vision === false && t("model.no_images"), model.tools === false && t("model.no_tools")].filter(Boolean).join(" · ") || undefined,
}));

/** The sheet behind the chips of the composer. `wish(name)` is what is asked for now, `set(change)` sends a change. */
export function openChooser(chat, wish, set) {
  // What the computer allows may change while this is open (U48).
  let again = () => {};
  const offs = ["devices", "models", `chat:${chat.id}`].map((topic) => on(topic, () => paint(again)));
  openSheet({
    title: t("chooser.title"),
    closed: () => { again = () => {}; offs.forEach((off) => off()); },
    body: (close, redraw) => {
      again = redraw;
      const device = store.devices.get(chat.device);
      const now = store.chats.get(chat.id) ?? chat;
      const pick = (change) => { set(change); redraw(); };
      return [
        choices({ name: "mode", legend: t("mode"), options: modesFor(device, now.modes?.length ? now.modes : undefined), value: wish("mode"), pick: (mode) => pick({ mode }) }),
        device?.limits?.max_mode && device.limits.max_mode !== "auto" && h("p", { class: "meta" }, rich("mode.limit", { mode: modeName(device.limits.max_mode), device: device.name })),
        isAbove(now.mode_applied ?? now.mode, device) && h("p", { class: "meta" }, t("mode.lowered", { mode: modeName(device.limits.max_mode), device: device.name })),
        choices({ name: "model", legend: t("model"), options: modelOptions(store.models), value: wish("model"), pick: (model) => pick({ model }) }),
        now.levels?.length > 0 && choices({ name: "level", legend: t("level"), options: now.levels.map((one) => ({ id: one, name: one })), value: wish("level"), pick: (level) => pick({ level }) }),
        h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "button", onclick: close }, t("done"))),
      ];
    },
  });
}
