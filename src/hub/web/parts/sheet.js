// A sheet: at the bottom edge on a phone, in the middle on a wide window. Escape, Close and a press beside it end it,
// and the focus goes back to where it was. Not here: what is in a sheet.

import { h, icon, render } from "../dom.js";
import { t } from "../words.js";

let count = 0;

/** Opens a sheet. `body(close, redraw)` gives what is in it; `closed` hears when it is gone. Returns how to close it. */
export function openSheet({ title, body, closed = () => {} }) {
  count += 1;
  const id = `sheet-${count}`;
  const dialog = document.createElement("dialog");
  dialog.className = "sheet";
  dialog.setAttribute("aria-labelledby", id);
  const close = () => { if (dialog.open) dialog.close(); };
  const redraw = () => render(dialog,
    h("header", null,
      h("h2", { id }, title),
      h("button", { class: "icon-btn", type: "button", "aria-label": t("close"), onclick: close }, icon("close"))),
    h("div", { class: "stack" }, body(close, redraw)));
  redraw();
  dialog.addEventListener("click", (event) => {
    if (event.target !== dialog) return;
    const box = dialog.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    closed();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus();
  return close;
}

/**
 * Asks once more before something that cannot be taken back. `act` runs on yes and may throw a Trouble, which is shown;
 * `done` runs when it was done and the sheet is gone.
 */
export function confirmSheet({ title, words, yes, no = t("back"), bad = true, act, done = () => {} }) {
  let trouble = null;
  let busy = false;
  let acted = false;
  return openSheet({
    title,
    closed: () => { if (acted) done(); },
    body: (close, redraw) => [
      h("p", null, words),
      trouble && h("p", { class: "bad-t", role: "alert" }, trouble.text),
      h("div", { class: "btns" },
        h("button", {
          class: bad ? "btn btn-bad" : "btn btn-1", type: "button", "aria-disabled": busy ? "true" : undefined,
          onclick: async () => {
            if (busy) return;
            busy = true;
            redraw();
            try {
              await act();
              acted = true;
              close();
            } catch (caught) {
              trouble = caught;
              busy = false;
              redraw();
            }
          },
        }, yes),
        h("button", { class: "btn btn-q", type: "button", autofocus: true, onclick: close }, no)),
    ],
  });
}
