// Small shared drawings: a status word with its mark, the state of a place, troubles, fields. Not here: parts with a
// life of their own.

import { h, mark, sep } from "../dom.js";
import { rich, t } from "../words.js";
import { moment, when } from "../time.js";
import { paste } from "./copy.js";

/** A mark and its word. Tones: on, you, bad. */
export const status = (shape, words, tone) => h("span", { class: `status${tone ? ` is-${tone}` : ""}` }, mark(shape), h("span", null, words));

/** The state of a place: empty, loading, partial, offline, forbidden, error. */
export function stateBox({ shape, title, words, line, buttons, tone, busy, card = true, level = card ? 2 : 3 }) {
  return h("div", { class: `${card ? "card " : ""}state${busy ? " wait" : ""}`, "aria-busy": busy ? "true" : undefined, role: tone === "bad" ? "alert" : undefined },
    h(`h${level}`, { class: `h3 state-t${tone === "bad" ? " is-bad" : ""}` }, mark(shape), h("span", null, title)),
    words && h("p", null, words),
    line && paste(line),
    busy && [h("div", { class: "bone w1" }), h("div", { class: "bone w3" }), h("div", { class: "bone w2" })],
    buttons && h("div", { class: "btns" }, buttons));
}

/** A trouble in a place, with the way on. */
export function troubleBox(trouble, again, { title, card, level } = {}) {
  const command = trouble.tries.find((one) => one.startsWith("lembas "));
  const hints = trouble.tries.filter((one) => one !== command);
  return stateBox({
    shape: trouble.code === "forbidden" ? "miss" : trouble.unknown ? "cut" : "warn", tone: trouble.unknown || trouble.code === "forbidden" ? undefined : "bad", card, level,
    title: title ?? trouble.text,
    words: [title && `${trouble.text} `, trouble.why && `${trouble.why} `, hints.join(" ")].filter(Boolean),
    line: command,
    buttons: again && h("button", { class: "btn", type: "button", onclick: again }, t("try.again")),
  });
}

/** What went wrong with a form, beside its button. */
export const troubleLine = (trouble) => trouble && h("p", { class: "field err-line", role: "alert" },
  h("span", { class: "err" }, mark("warn"), h("span", null, trouble.text, trouble.why && ` ${trouble.why}`, trouble.tries.map((one) => ` ${one}`))));

/** A labelled field. `input` gives the control from its attributes. */
export function field({ id, label, hint, error, input }) {
  const described = [hint && `${id}-h`, error && `${id}-e`].filter(Boolean).join(" ") || undefined;
  return h("div", { class: `field${error ? " is-bad" : ""}` },
    h("label", { for: id }, label),
    input({ id, "aria-describedby": described, "aria-invalid": error ? "true" : undefined }),
    hint && h("span", { class: "hint", id: `${id}-h` }, hint),
    error && h("span", { class: "err", id: `${id}-e` }, mark("warn"), h("span", null, error)));
}

/** How a computer is: since when, and never a guess about why. */
export function deviceStatus(device) {
  if (device.state === "online") return status("on", rich("device.online", { since: when(device.since, "moment") ?? "" }), "on");
  if (device.state === "never") return status("never", t("device.never"));
  if (device.state === "revoked" && device.ended_by === "computer") return status("cut", rich("device.ended", { name: device.name, since: when(device.since, "moment") ?? "" }));
  if (device.state === "revoked") return status("cut", rich("device.revoked", { since: when(device.since, "moment") ?? "" }));
  return status("away", rich("device.away", { since: when(device.since, "moment") ?? "" }));
}

/** The limits of a computer in its own words, folders as code. */
export function limitsWords(device) {
  const { limits } = device;
  if (!limits) return t("device.limits.unknown");
  if (limits.words) {
    return limits.words.split(" · ").flatMap((piece, i) => {
      const folder = piece.startsWith("works in ") && (limits.roots ?? []).length > 0;
      const words = folder ? ["works in ", ...piece.slice(9).split(/(,? and |, )/).map((part) => (/^(,? and |, )$/.test(part) ? part : h("code", null, part)))] : [piece];
      return i === 0 ? words : [sep(), ...words];
    });
  }
  return (limits.roots ?? []).length === 0 ? t("device.no_roots") : t("device.roots", { roots: limits.roots.join(", ") });
}

/** `14:02` for a sentence, with the date when it is another day. */
export const at = (ms) => (Number.isFinite(ms) ? moment(ms) : t("unknown.time"));

/** A folder as its person would say it: `~/projects`. */
export const homely = (path, device) => (device?.home && (path === device.home || path?.startsWith(`${device.home}/`)) ? `~${path.slice(device.home.length)}` : path);
