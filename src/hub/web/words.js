// Turns a text's key and values into words, or into words with code and emphasis. The texts are in texts.js.

import { h } from "./dom.js";
import { TEXTS } from "./texts.js";

/**
 * The text of `key` with `{name}` filled in. `{n:one|many}` picks by number. A missing key is a fault of the page, so it throws.
 */
export function t(key, values = {}) {
  return fill(textOf(key), values).replace(/`|\*\*/g, "");
}

/** The same as descriptions for h(): `code` and **strong** are marked in the text, values are never read as marks. */
export function rich(key, values = {}) {
  const out = [];
  for (const piece of textOf(key).split(/(`[^`]*`|\*\*[^*]*\*\*)/)) {
    if (piece.startsWith("`")) out.push(h("code", null, fill(piece.slice(1, -1), values)));
    else if (piece.startsWith("**")) out.push(h("b", null, fill(piece.slice(2, -2), values)));
    else if (piece) out.push(...pieces(piece, values));
  }
  return out;
}

// Like fill, but a value may be a description (a link, a time).
function pieces(text, values) {
  return text.split(/(\{\w+(?::[^}]*)?\})/).filter(Boolean).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1];
    const value = name === undefined ? undefined : values[name];
    return value !== null && typeof value === "object" ? value : fill(piece, values);
  });
}

function textOf(key) {
  const text = TEXTS[key];
  if (text === undefined) throw new Error(`no text "${key}"`);
  return text;
}

function fill(text, values) {
  return text.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (whole, name, one, many) => {
    if (one !== undefined) return Number(values[name]) === 1 ? one : many;
    return values[name] ?? whole;
  });
}

/** A number in digits a person reads: `1,204`. */
export const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** Bytes: `241 bytes`, `9.4 kB`, `1.2 MB`. */
export function bytes(n) {
  if (n < 1000) return `${n}\u00a0bytes`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = n;
  let unit = -1;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 100 ? value.toFixed(1) : Math.round(value)}\u00a0${units[unit]}`;
}

/** Words of the other side as a sentence: a capital and an end. */
export const sentence = (words) => `${words.slice(0, 1).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;

/** A mode's name as a person reads it. */
export const modeName = (mode) => TEXTS[`mode.${mode}`] ?? String(mode ?? "");

/** `a`, `a and b`, `a, b and c`. */
export const and = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`);
