// Every text the page asks for is in the table, and the table holds none that nothing asks for.
import { test } from "node:test";
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { TEXTS } from "../../src/hub/web/texts.js";

const ROOT = new URL("../../src/hub/web/", import.meta.url);
const files = readdirSync(ROOT, { recursive: true }).map(String).filter((name) => name.endsWith(".js") && name !== "texts.js");
const source = Object.fromEntries(files.map((name) => [name, readFileSync(new URL(name, ROOT), "utf8")]));
const all = Object.values(source).join("\n");

test("every text that is asked for is there", () => {
  const asked = [...all.matchAll(/\b(?:t|rich)\("([^"]+)"/g)].map((match) => match[1]);
  assert.ok(asked.length > 200);
  assert.deepEqual([...new Set(asked)].filter((key) => !(key in TEXTS)), []);
});

test("no text is left over", () => {
  const families = [...all.matchAll(/\b(?:t|rich)?\(?`([a-z_.]+)\.\$\{/g)].map((match) => `${match[1]}.`);
  const unused = Object.keys(TEXTS).filter((key) => !all.includes(`"${key}"`) && !families.some((family) => key.startsWith(family)));
  assert.deepEqual(unused, []);
});

test("no place or part says words of its own", () => {
  for (const [name, text] of Object.entries(source)) {
    // A sentence in a string (a capital, words, an end) that is no comment and no key.
    const code = text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, "");
    const said = [...code.matchAll(/"([A-Z][a-z]+ [a-z][^"]{8,}[.!?])"/g)].map((match) => match[1]);
    assert.deepEqual(said, [], name);
  }
});

test("markup comes from the server or from h() only", () => {
  for (const [name, text] of Object.entries(source)) {
    if (name === "dom.js") continue;
    assert.doesNotMatch(text, /innerHTML|insertAdjacentHTML|outerHTML|document\.write|eval\(/, name);
  }
});
