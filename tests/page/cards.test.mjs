// Tool cards: what let each call run, terminal output as a person reads it, edits as a diff before and after (U8–U10).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { frames, open, quit, until } from "./rig.mjs";
import { askOf, chatOf, lookWorld } from "./fake/world.mjs";

after(quit);

const corpus = JSON.parse(readFileSync(new URL("../data/page/escapes.json", import.meta.url), "utf8"));

function world(items = []) {
  const made = lookWorld();
  made.asks = [];
  made.chats = [chatOf("work", { title: "Work" }), ...made.chats.map((chat) => ({ ...chat, asks: 0 }))];
  made.items.work = items.map((item, i) => ({ seq: i + 1, turn: 1, time: Date.now(), kind: "step", call: `c${i + 1}`, tool: "bash", block: "shell", title: `call ${i + 1}`, status: "ok", ...item }));
  made.outputs = {};
  return made;
}

test("what let a call run is told in the computer's words: six sources, six texts", async () => {
  const ran = [
    { source: "read", text: "plain read" },
    { source: "mode", text: "Auto mode, outside of the box", box: "open" },
    { source: "rule", text: "you allowed cargo test in this folder on 12 Nov", box: "roots" },
    { source: "session", text: "you allowed git push for this session", box: "open" },
    { source: "once", text: "you allowed it once", box: "open" },
    { source: "interact", text: "asks you" },
  ];
  const it = await open(world(ran.map((one) => ({ ran: one }))), "/c/work");
  const lines = it.page.locator("details.step .facts");
  await lines.nth(5).waitFor();
  const told = (await lines.allTextContents()).map((line) => line.split("·").at(-1).trim());
  assert.deepEqual(told, ran.map((one) => `ran: ${one.text}`));
  assert.equal(new Set(told).size, 6);
  await it.close();
});

test("terminal output of the corpus: no escape, no live markup, \\r folded, more and Copy give plain text", async () => {
  const items = corpus.map((one, i) => ({ title: one.name, tail_html: one.html, lines: 999, bytes: one.raw.length, download: `/api/v2/chats/work/output/c${i + 1}` }));
  const made = world(items);
  made.outputs = Object.fromEntries(corpus.map((one, i) => [`c${i + 1}`, one.raw]));
  const it = await open(made, "/c/work", { height: 2400, context: { permissions: ["clipboard-read", "clipboard-write"] } });
  const { page } = it;
  await page.getByText(corpus.at(-1).name, { exact: true }).waitFor();
  const title = await page.title();
  for (const one of corpus) {
    const card = page.locator("details.step").filter({ has: page.getByText(one.name, { exact: true }) });
    await card.locator("summary").click();
    const out = card.locator(".out");
    assert.equal(await out.textContent(), one.plain, one.name);
    await card.getByRole("button", { name: "Copy" }).click();
    await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === one.plain, `copied: ${one.name}`);
    await card.getByRole("button", { name: "Show more" }).click();
    await card.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
    assert.equal(await out.textContent(), one.plain, `the whole of: ${one.name}`);
    await card.locator("summary").click();
  }
  const found = await page.evaluate(() => ({
    escapes: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(document.documentElement.outerHTML),
    live: document.querySelectorAll("#stream script, #stream img, #stream [onclick], #stream [onerror], #stream .out a").length,
  }));
  assert.deepEqual(found, { escapes: false, live: 0 });
  assert.equal(await page.title(), title);
  await it.close();
});

test("what was read is shown as its bytes are: escapes written out, nothing acted on", async () => {
  const read = corpus.filter((one) => one.read !== undefined);
  assert.ok(read.length >= 3);
  const it = await open(world(read.map((one) => ({ tool: "read", block: "read", title: one.name, tail_html: one.read }))), "/c/work");
  const names = { "\u001b": "ESC", "\u0007": "U+0007" };
  for (const one of read) {
    const card = it.page.locator("details.step").filter({ has: it.page.getByText(one.name, { exact: true }) });
    await card.locator("summary").click();
    assert.equal(await card.locator(".out").textContent(), one.raw.replaceAll(/[\u001b\u0007]/g, (char) => names[char]));
    assert.equal(await card.locator(".out [class^=a-], .out script, .out a").count(), 0);
  }
  await it.close();
});

test("the terminal's palette is readable on its ground, light and dark", async () => {
  const colours = ["", "a-black", "a-red", "a-green", "a-yellow", "a-blue", "a-magenta", "a-cyan", "a-white"];
  const styles = ["", "a-b", "a-d", "a-u", "a-inv"];
  const all = colours.flatMap((colour) => styles.map((style) => [colour, style].filter(Boolean).join(" ")));
  for (const scheme of ["light", "dark"]) {
    const it = await open(world([{ status: "failed", exit: 1, tail_html: all.map((name) => `<span class="${name || "none"}">x</span>`).join("\n") }]), "/c/work", { scheme });
    await it.page.locator(".out span").first().waitFor();
    const low = await it.page.evaluate(() => {
      // Whatever way a colour is written, the canvas says its bytes.
      const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const rgb = (colour, under = [255, 255, 255]) => {
        canvas.fillStyle = `rgb(${under.join(" ")})`;
        canvas.fillRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      const light = (parts) => {
        const [r, g, b] = parts.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (el) => (el === null ? [255, 255, 255] : rgb(getComputedStyle(el).backgroundColor, ground(el.parentElement)));
      return [...document.querySelectorAll(".out span")].map((el) => {
        const under = ground(el);
        const [a, b] = [light(rgb(getComputedStyle(el).color, under)), light(under)].sort((x, y) => y - x);
        return [el.className, Number(((a + 0.05) / (b + 0.05)).toFixed(2))];
      });
    });
    assert.equal(low.length, all.length);
    assert.deepEqual(low.filter(([, ratio]) => ratio < 4.5), [], scheme);
    await it.close();
  }
});

// A diff as the hub draws it, from rows like " 38 text", "-39 text", "+39 text".
const diff = (...lines) => `<table class="diff"><tbody><tr class="hunk"><td colspan="3">lines</td></tr>${lines.map((line) => {
  const [, sign, number, text] = /^([ +-])(\d+) (.*)$/.exec(line);
  return `<tr${{ "+": ' class="add"', "-": ' class="del"' }[sign] ?? ""}><td class="no">${number}</td><td class="sg">${sign}</td><td class="tx">${text}</td></tr>`;
}).join("")}</tbody></table>`;
const edit = (path, added, removed, ...lines) => ({ tool: "edit", block: "edit", title: path, path: `/home/ana/projects/api/${path}`, added, removed, diff_html: diff(...lines) });

test("the totals are those of the file's state: edited, taken back, edited again is +1 −0", async () => {
  const put = (path) => edit(path, 1, 0, " 1 first", "+2 new", " 3 second", " 4 third");
  const taken = (path) => edit(path, 0, 1, " 1 first", "-2 new", " 2 second", " 3 third");
  const it = await open(world([
    put("edits.rs"), taken("edits.rs"), put("edits.rs"),
    put("same.rs"), taken("same.rs"),
    // Put back by a command: the next diff shows the file as it was.
    put("checkout.rs"), put("checkout.rs"),
    // Two places; the second edit stands before the first and moves it.
    edit("two.rs", 1, 1, " 20 a", "-21 old", "+21 new", " 22 b"),
    edit("two.rs", 2, 0, " 3 x", "+4 y", "+5 z", " 6 w"),
    edit("two.rs", 1, 1, " 22 a", "-23 new", "+23 old", " 24 b"),
    // A line that was changed twice is one change.
    edit("twice.rs", 1, 1, " 1 a", "-2 one", "+2 two", " 3 c"),
    edit("twice.rs", 1, 1, " 1 a", "-2 two", "+2 three", " 3 c"),
    // Written anew, and written over with what is mostly the same.
    edit("whole.md", 3, 0, "+1 a", "+2 b", "+3 c"),
    edit("whole.md", 3, 3, "-1 a", "-2 b", "-3 c", "+1 a", "+2 B", "+3 c", "+4 d"),
    edit("large.rs", 1, 0, " 1 a", "+2 b", " 3 [812 lines of the diff left out]"),
  ]), "/c/work");
  const { page, hub } = it;
  const rows = page.locator("aside.side .tree li");
  await rows.first().waitFor();
  const totals = async () => Object.fromEntries(await Promise.all((await rows.all()).map(async (row) => [await row.locator("code").textContent(), (await row.locator(".meta").textContent()).split(" · ")[0]])));
  assert.deepEqual(await totals(), {
    "edits.rs": "+1 −0", "same.rs": "as before", "checkout.rs": "+1 −0", "two.rs": "+2 −0", "twice.rs": "+1 −1", "whole.md": "+4 −0", "large.rs": "much was changed",
  });
  await page.locator("details.step").last().getByText("at least").waitFor();
  // One more while it is shown.
  hub.item("work", { kind: "step", call: "c99", status: "ok", ...taken("edits.rs") });
  await until(async () => (await totals())["edits.rs"] === "as before");
  await it.close();
});

test("an edit is readable on both sides at 320 px before Allow", async () => {
  const made = lookWorld();
  const long = "let age = clock.now() - self.started; // and more words than one line of a small phone can hold";
  made.asks = [askOf("k2", { kind: "edit", command: "src/session.rs", command_html: "src/session.rs", reason: "It changes a file.", box: null, diff_html: diff(" 38 fn state() {", `-39 ${long}`, `+39 ${long.replace("clock", "self.clock")}`, " 40 }") })];
  const it = await open(made, "/c/login", { width: 320, height: 568, touch: true });
  const { page } = it;
  const card = page.locator("#ask-k2");
  await card.getByRole("button", { name: "Allow once" }).waitFor();
  for (const side of ["del", "add"]) {
    const row = card.locator(`tr.${side} .tx`);
    await row.scrollIntoViewIfNeeded();
    await frames(page, 2);
    const seen = await row.evaluate((el) => {
      const box = el.getBoundingClientRect();
      const top = document.elementFromPoint(box.left + 8, box.top + 8);
      const range = document.createRange();
      range.selectNodeContents(el);
      const words = [...range.getClientRects()];
      return { size: parseFloat(getComputedStyle(el).fontSize), hit: el.contains(top), left: Math.min(...words.map((one) => one.left)), right: Math.max(...words.map((one) => one.right)) };
    });
    assert.ok(seen.hit, `${side} is not covered`);
    assert.ok(seen.size >= 12 && seen.left >= 0 && seen.right <= 320, `${side} ${JSON.stringify(seen)}`);
  }
  const order = await card.evaluate((el) => Boolean(el.querySelector("tr.add").compareDocumentPosition(el.querySelector(".acts")) & Node.DOCUMENT_POSITION_FOLLOWING));
  assert.ok(order, "the change stands before the buttons");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
  await it.close();
});
