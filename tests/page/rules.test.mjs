// Each line of the README's list names a test that is there, and each rule of the page that has tests is in the list.
import { test } from "node:test";
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";

const HERE = new URL("./", import.meta.url);
const ROOT = new URL("../../", import.meta.url);
const read = (url) => (existsSync(url) ? readFileSync(url, "utf8") : "");
const lines = read(new URL("README.md", HERE)).split("\n").filter((line) => line.startsWith("- "));

test("each test that the list names is there", () => {
  assert.ok(lines.length > 70);
  const missing = lines.filter((line) => {
    const [, file, name] = /^- U\d+ ([^ :]+): (.+)$/.exec(line) ?? [];
    if (!file) return true;
    const source = read(new URL(file, file.includes("/") ? ROOT : HERE));
    if (file.endsWith(".rs")) return !source.includes(`fn ${name}(`);
    return !source.includes(`test("${name}"`) && !source.includes(`test(\`${name}\``);
  });
  assert.deepEqual(missing, []);
});

test("each rule that a suite says it holds is in the list", () => {
  const listed = new Set(lines.map((line) => Number(/U(\d+)/.exec(line)[1])));
  const said = new Set();
  for (const file of readdirSync(HERE).filter((name) => name.endsWith(".test.mjs"))) {
    // The first comment of a suite names its rules: U3–U6, U30.
    const comment = read(new URL(file, HERE)).split("\nimport")[0];
    for (const [, from, to = from] of comment.matchAll(/U(\d+)(?:–U(\d+))?/g)) for (let n = Number(from); n <= Number(to); n += 1) said.add(n);
  }
  assert.ok(said.size > 20);
  assert.deepEqual([...said].filter((rule) => !listed.has(rule)), []);
});
