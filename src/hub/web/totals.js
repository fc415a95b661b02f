// What became of each file over several edits: lines that are there now and were not before, and the other way round.
// Counted from the file's state and not by adding edits up: what was put in and taken out again is no change (U10).
// The state is known from the diffs alone, as far as they show the file. Not here: drawing.

import { block } from "./dom.js";

// States of one file that are kept, to know one again that was put back by something else than an edit.
const STATES = 50;
// Lines of one place that are compared line by line; of more each counts as changed.
const COMPARE = 1_000_000;

const CUT = /^\[\d+ lines of the diff left out\]$|^\d+ more lines$/;

const rowsOf = new WeakMap();

/** The rows of an item's drawn diff as `[{ sign, number, text }]`; null where the diff is not whole. */
function rows(item) {
  if (!rowsOf.has(item)) rowsOf.set(item, read(item.diff_html));
  return rowsOf.get(item);
}

function read(html) {
  const list = [];
  for (const row of block(html).querySelectorAll("tr")) {
    if (CUT.test((row.querySelector(".tx") ?? row).textContent)) return null;
    if (row.classList.contains("hunk")) {
      list.push({ sign: "@" });
      continue;
    }
    const sign = row.classList.contains("add") ? "+" : row.classList.contains("del") ? "-" : " ";
    list.push({ sign, number: Number(row.querySelector(".no").textContent), text: row.querySelector(".tx").textContent });
  }
  return list;
}

/** True when more was changed than the diff of `item` shows. */
export const isCut = (item) => Boolean(item.diff_html) && /lines of the diff left out\]/.test(item.diff_html);

/**
 * A file as far as it is known: `now` is its lines in order, each a run of lines that were there before
 * `{ from, to }` or one that was put in `{ text }`; `was` what is known of the lines before.
 */
const unknown = () => ({ now: [{ from: 0, to: Infinity }], was: new Map() });

const size = (piece) => (piece.text === undefined ? piece.to - piece.from : 1);

/** The state after `diff`; null where the diff does not fit to this state. */
function after(state, diff) {
  const was = new Map(state.was);
  const next = [];
  let rest = [...state.now];
  let line = 0;
  let shift = 0;
  let hunk = true;

  const take = () => {
    const piece = rest[0];
    if (piece === undefined) return null;
    line += 1;
    if (piece.text !== undefined) {
      rest.shift();
      return piece;
    }
    if (piece.to - piece.from > 1) rest[0] = { from: piece.from + 1, to: piece.to };
    else rest.shift();
    return { from: piece.from, to: piece.from + 1 };
  };
  const skipTo = (wanted) => {
    while (line < wanted && rest.length > 0) {
      const piece = rest[0];
      const all = size(piece);
      if (line + all <= wanted) {
        next.push(rest.shift());
        line += all;
      } else {
        next.push({ from: piece.from, to: piece.from + wanted - line });
        rest[0] = { from: piece.from + wanted - line, to: piece.to };
        line = wanted;
      }
    }
  };

  for (const { sign, number, text } of diff) {
    if (sign === "@") {
      hunk = true;
      continue;
    }
    if (hunk) {
      skipTo(Math.max(0, number - 1 - (sign === "-" ? 0 : shift)));
      hunk = false;
    }
    if (sign === "+") {
      next.push({ text });
      shift += 1;
      continue;
    }
    const piece = take();
    if (piece === null) return null;
    const known = piece.text ?? was.get(piece.from);
    if (known !== undefined && known !== text) return null;
    if (piece.text === undefined) was.set(piece.from, text);
    if (sign === "-") shift -= 1;
    else next.push(piece);
  }
  rest = joined([...next, ...rest]);
  return { now: rest, was };
}

function joined(pieces) {
  const out = [];
  for (const piece of pieces) {
    const last = out.at(-1);
    if (last && last.text === undefined && piece.text === undefined && last.to === piece.from) out[out.length - 1] = { from: last.from, to: piece.to };
    else out.push(piece);
  }
  return out;
}

/** Lines put in and taken out between the file before and `state`. */
function count({ now, was }) {
  let added = 0;
  let removed = 0;
  let before = 0;
  let put = [];
  const close = (upTo) => {
    const gone = [];
    for (; before < upTo; before += 1) gone.push(was.get(before));
    const same = common(gone, put);
    added += put.length - same;
    removed += gone.length - same;
    put = [];
  };
  for (const piece of now) {
    if (piece.text !== undefined) {
      put.push(piece.text);
      continue;
    }
    close(piece.from);
    before = piece.to;
  }
  // Of a file that was looked at to its end only what is known of it can be gone.
  if (before !== Infinity) close(Math.max(before, ...[...was.keys()].map((line) => line + 1)));
  return { added, removed };
}

/** How many lines two lists have in common, in order. */
function common(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const left = a.slice(head, a.length - tail);
  const right = b.slice(head, b.length - tail);
  if (left.length * right.length > COMPARE) return head + tail;
  let line = new Array(right.length + 1).fill(0);
  for (const one of left) {
    const next = [0];
    for (let i = 0; i < right.length; i += 1) next.push(one === right[i] ? line[i] + 1 : Math.max(line[i + 1], next[i]));
    line = next;
  }
  return head + tail + line.at(-1);
}

/**
 * What a file's edits came to, oldest first: `{ added, removed }`, or null where a diff was not whole. A change that was
 * put back by something else is known again by what the next diff shows of the file; after any other change from
 * elsewhere it counts from there.
 */
export function totalOf(items) {
  let states = [unknown()];
  for (const item of items) {
    const diff = rows(item);
    if (diff === null) return null;
    let next = null;
    while (states.length > 0 && next === null) {
      next = after(states.at(-1), diff);
      if (next === null) states.pop();
    }
    if (next === null) {
      states = [unknown()];
      next = after(states[0], diff);
    }
    states.push(next);
    // The first is the file as it was: it stays.
    if (states.length > STATES) states.splice(1, 1);
  }
  return count(states.at(-1));
}
