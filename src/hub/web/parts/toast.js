// A toast confirms what was just done here, may offer to undo it, and goes after ten seconds or when closed. Not here:
// news about the work or the connection; those have their places.

import { h, render } from "../dom.js";
import { t } from "../words.js";

const STAYS_MS = 10_000;

let shown = null;
let timer = 0;

function draw() {
  const root = document.getElementById("toasts");
  if (!root) return;
  render(root, shown && h("div", { class: "toast", role: "status" },
    h("span", null, shown.words),
    shown.action && h("button", { class: "link", type: "button", onclick: () => { const { act } = shown; hide(); act(); } }, shown.action),
    h("button", { class: "link", type: "button", onclick: hide }, t("close"))));
}

function hide() {
  clearTimeout(timer);
  shown = null;
  draw();
}

/** Shows a toast; a new one takes the place of the old. */
export function toast(words, action, act) {
  shown = { words, action, act };
  clearTimeout(timer);
  timer = setTimeout(hide, STAYS_MS);
  draw();
}
