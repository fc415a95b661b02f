// A question of the agent with its choices, inside of an ask card: what is asked, what can be chosen, the person's own
// words, and the answer. What is picked is kept with the card until it is sent. Not here: sending and the endings.

import { h } from "../dom.js";
import { t } from "../words.js";

export const isQuestion = (ask) => ask.kind === "question" && Array.isArray(ask.options);

/** What is asked; once answered, what was chosen. */
export function questionText(ask, id) {
  const chosen = (ask.selected ?? []).map((one) => ask.options.find((option) => option.id === one)?.label).filter(Boolean);
  return h("div", { class: "stack" },
    h("p", { id: `${id}-c` }, ask.text ?? ask.command ?? ""),
    chosen.length > 0 && h("p", { class: "meta" }, t("question.chosen"), " ", chosen.join(", ")),
    ask.state === "settled" && ask.note && h("p", { class: "meta" }, ask.note));
}

/** The choices and the answer. `picked` is the card's: `{ ids: Set, words }`; `send(ids, words)` answers, `skip()` refuses. */
export function questionActs(ask, picked, { redraw, send, skip }) {
  const pick = (one, on) => {
    if (!ask.multiple) picked.ids.clear();
    if (on) picked.ids.add(one); else picked.ids.delete(one);
    redraw();
  };
  const ready = picked.ids.size > 0 || (ask.custom && picked.words.trim() !== "");
  const name = `q-${ask.ask}`;
  return h("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); if (ready) send([...picked.ids], picked.words.trim()); } },
    h("fieldset", { class: "choices" },
      h("legend", { class: "label" }, t(ask.multiple ? "question.several" : "question.one")),
      h("div", { class: "card rows" }, ask.options.map((one) => h("label", { class: "choice", key: one.id },
        h("input", { type: ask.multiple ? "checkbox" : "radio", name, value: one.id, checked: picked.ids.has(one.id), onchange: (event) => pick(one.id, event.target.checked) }),
        h("span", null, h("b", null, one.label), one.description && h("span", { class: "meta" }, ` ${one.description}`)))))),
    ask.custom && h("div", { class: "field" },
      h("label", { for: `own-${ask.ask}` }, t("question.own")),
      h("textarea", { id: `own-${ask.ask}`, rows: "2", maxlength: "4000", value: picked.words, oninput: (event) => { picked.words = event.target.value; redraw(); } })),
    h("div", { class: "acts" },
      h("button", { class: "btn btn-1", type: "submit", disabled: !ready }, t("question.answer")),
      h("button", { class: "btn", type: "button", onclick: skip }, t("question.skip"))));
}
