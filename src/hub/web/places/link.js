// The address that a computer prints: entering its code. Not here: the form (parts/link-form.js).

import { h, render } from "../dom.js";
import { t } from "../words.js";
import "../parts/link-form.js";

export function mount(main, at) {
  const code = at.query.get("code") ?? at.query.get("user_code") ?? "";
  render(main, h("div", { class: "head" }, h("h1", null, t("link.a.computer")), h("p", null, t("link.about"))), h("l-link", { ".code": code, ".untitled": true }));
  return { title: () => t("link.a.computer"), close() {} };
}
