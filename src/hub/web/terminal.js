// Raw terminal output as plain text: a redrawn line is its last frame, cursor moves inside a line are followed, every
// other escape is dropped, whole or cut off. Reads as the hub's own drawing does (render/ansi.rs); one corpus,
// tests/data/page/escapes.json, holds both. Not here: colours; the hub draws those.

// A line is at most this wide for a cursor that is moved; text beyond is kept, movement is not.
const MAX_COLUMN = 4_096;
// A control sequence that is longer than this is none.
const MAX_SEQUENCE = 64;

const STRINGS = new Set(["]", "P", "^", "_", "X", "\u009d", "\u0090", "\u009e", "\u009f", "\u0098"]);
const SETS = new Set(["(", ")", "*", "+", "#", "%", " "]);
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;

/** The text as it would stand on a screen. */
export function plain(text) {
  const chars = [...text];
  const done = [];
  let cells = [];
  let column = 0;
  let at = 0;

  const put = (char) => {
    while (cells.length < column) cells.push(" ");
    cells[column] = char;
    column += 1;
  };
  // Titles, links, the clipboard: to BEL, ST or the end of the line; one that was cut must not eat what follows.
  const string = () => {
    while (at < chars.length) {
      const char = chars[at];
      at += 1;
      if (char === "\x07" || char === "\u009c" || char === "\n") return;
      if (char === "\x1b") {
        if (chars[at] === "\\") at += 1;
        return;
      }
    }
  };
  const control = () => {
    let words = "";
    while (at < chars.length) {
      const char = chars[at];
      if (char >= " " && char <= "?" && words.length < MAX_SEQUENCE) {
        words += char;
        at += 1;
      } else {
        if (char >= "@" && char <= "~") {
          at += 1;
          act(char, words);
        }
        return;
      }
    }
  };
  const act = (what, words) => {
    if (/^[?<=>]/.test(words)) return;
    const first = Number.parseInt(words, 10) || 0;
    const steps = Math.max(1, first);
    const most = Math.max(MAX_COLUMN, cells.length);
    if (what === "K") erase(first);
    else if (what === "C") column = Math.min(column + steps, most);
    else if (what === "D") column = Math.max(0, column - steps);
    else if (what === "G") column = Math.min(steps - 1, most);
  };
  const erase = (how) => {
    if (how === 0) cells.length = Math.min(cells.length, column);
    else if (how === 1) cells.fill(" ", 0, column);
    else cells = [];
  };

  while (at < chars.length) {
    const char = chars[at];
    at += 1;
    if (char === "\n") {
      done.push(cells.join(""));
      cells = [];
      column = 0;
    } else if (char === "\r") column = 0;
    else if (char === "\b") column = Math.max(0, column - 1);
    else if (char === "\t") put(char);
    else if (char === "\u009b") control();
    else if (char === "\x1b") {
      const next = chars[at];
      at += 1;
      if (next === "[") control();
      else if (STRINGS.has(next)) string();
      else if (SETS.has(next)) at += 1;
    } else if (STRINGS.has(char) && CONTROL.test(char)) string();
    else if (!CONTROL.test(char)) put(char);
  }
  if (cells.length > 0) done.push(cells.join(""));
  return done.join("\n");
}
