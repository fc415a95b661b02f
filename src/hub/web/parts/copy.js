// Copying: lines to paste, output, code and answers, always as plain source. Not here: what is copied where.

import { h } from "../dom.js";
import { t } from "../words.js";
import { polite } from "../announce.js";

/** Copies `text`; over plain http from another computer browsers only allow the old way. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOld(text);
  }
}

function copyOld(text) {
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "sr";
  box.setAttribute("aria-hidden", "true");
  const focused = document.activeElement;
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  box.remove();
  focused?.focus?.({ preventScroll: true });
  return done;
}

/** Copies and says so in the button itself for a moment. */
export async function copyFrom(button, text) {
  const done = await copyText(text);
  const words = t(done ? "copied" : "copy.failed");
  polite(words);
  if (button.dataset.was !== undefined) return;
  button.dataset.was = button.textContent;
  button.textContent = words;
  setTimeout(() => {
    button.textContent = button.dataset.was;
    delete button.dataset.was;
  }, 1_500);
}

/** A quiet Copy button; `text` is read at the press. */
export const copyButton = (text, name) => h("button", {
  class: "link", type: "button", "aria-label": name,
  onclick: (event) => copyFrom(event.currentTarget, typeof text === "function" ? text(event.currentTarget) : text),
}, t("copy"));

/** A line to paste into a terminal. */
export const paste = (line) => h("div", { class: "paste" }, h("code", null, line), copyButton(line, t("copy.line", { line })));

/** Copy buttons in what the server rendered: one press copies the code of its block. */
export function copyInside(root) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest?.(".block > header .link, [data-copy]");
    if (!button || !root.contains(button)) return;
    event.preventDefault();
    const source = button.closest(".block")?.querySelector("pre") ?? button.closest("[data-copy-from]");
    if (source) copyFrom(button, source.textContent);
  });
}
