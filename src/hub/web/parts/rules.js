// What a computer allows always: in its own words, who, where, when, last used; Remove works at once, or waits for a
// computer that is away (U19). Not here: allowing (ask-card.js); what a rule covers is the computer's to say.

import { h, mark, render, sep } from "../dom.js";
import { api } from "../api.js";
import { on } from "../store.js";
import { day, when } from "../time.js";
import { count, rich, t } from "../words.js";
import { paste } from "./copy.js";
import { toast } from "./toast.js";

export class RulesList extends HTMLElement {
  /** The computer, as the hub tells it; set again when it changes. */
  set device(device) {
    const fresh = this.device_?.id !== device.id;
    this.device_ = device;
    if (this.isConnected && fresh) this.connectedCallback();
    else if (this.isConnected) this.draw();
  }

  connectedCallback() {
    if (!this.device_) return;
    this.disconnectedCallback();
    this.off = on(`rules:${this.device_.id}`, () => this.renew());
    this.draw();
    this.renew();
  }

  disconnectedCallback() {
    this.off?.();
    this.off = null;
  }

  // One look at a time: what changes while one is on its way is looked at after it.
  async renew() {
    if (this.looking) {
      this.again = true;
      return;
    }
    this.looking = true;
    do {
      this.again = false;
      try {
        this.list = await api.rules(this.device_.id);
        this.trouble = null;
      } catch (trouble) {
        this.trouble = trouble;
      }
      this.draw();
    } while (this.again && this.isConnected);
    this.looking = false;
  }

  draw() {
    const { list, trouble } = this;
    const device = this.device_;
    this.className = list?.heard || trouble ? "rows allowed" : "";
    if (trouble) return render(this, h("p", { class: "more", role: "alert" }, h("span", null, t("rules.failed")), h("button", { class: "link", type: "button", onclick: () => this.renew() }, t("try.again"))));
    // A computer that never told its list: nothing is known, and nothing is claimed.
    if (!list?.heard) return render(this);
    render(this,
      h("p", { class: "more" }, h("span", null, list.rules.length === 0 ? t("rules.none", { device: device.name }) : t("rules.count", { n: list.total, count: count(list.total), device: device.name }))),
      list.rules.map((rule) => this.row(rule)),
      list.cut > 0 && h("p", { class: "more" }, h("span", null, t("rules.cut", { count: count(list.cut), n: list.cut, device: device.name }))));
  }

  row(rule) {
    const device = this.device_;
    const name = rule.words ?? rule.command ?? "";
    const [first, ...more] = name.split(/(?=, |\. )/);
    return h("div", { class: "row", key: rule.id, "data-rule": rule.id },
      mark(rule.waits ? "q" : rule.verdict === "deny" ? "miss" : "done"),
      h("span", { class: "t" }, h("code", null, first)),
      rule.waits ? h("span", { class: "when" }, t(device.state === "online" ? "rules.going" : "rules.waits", { device: device.name }))
        : rule.verdict !== "deny" && h("button", { class: "link", type: "button", "aria-label": t("rules.remove.name", { name: first }), onclick: (event) => this.takeBack(rule, event.currentTarget) }, t("remove")),
      h("span", { class: "l2" },
        [more.join("").replace(/^, /, "").replace(/\.$/, ""), rule.folder_words].filter(Boolean).join(": "),
        sep(), rule.by ? t("rules.by", { by: rule.by, day: day(rule.at).replaceAll(" ", "\u00a0") }) : day(rule.at),
        rule.verdict !== "deny" && [sep(), rule.used ? rich("rules.used", { time: when(rule.used, "moment") }) : t("rules.unused")],
        rule.why && [sep(), h("span", { role: "alert" }, t("rules.not_taken", { device: device.name, why: rule.why }))]),
      rule.verdict === "deny" && h("div", { class: "l2" }, h("p", { class: "meta" }, t("rules.deny", { device: device.name })), paste(`lembas rules remove ${rule.id.slice(0, 6)}`)));
  }

  async takeBack(rule, button) {
    button.disabled = true;
    try {
      await api.removeRule(this.device_.id, rule.id);
    } catch (trouble) {
      button.disabled = false;
      toast(trouble.text);
    }
    this.renew();
  }
}

customElements.define("l-rules", RulesList);
