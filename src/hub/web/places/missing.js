// An address that is no place of this page.

import { h, render } from "../dom.js";
import { t } from "../words.js";
import { stateBox } from "../parts/bits.js";

export function mount(main) {
  render(main, h("div", { class: "head" }, h("h1", null, t("missing"))),
    stateBox({ shape: "cut", title: t("missing.title"), words: t("missing.words"), buttons: h("a", { class: "btn", href: "/" }, t("places.home")) }));
  return { title: () => t("missing"), close() {} };
}
