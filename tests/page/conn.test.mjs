// The connection: one stream for all tabs, noticed when dead, taken up where it was, state first (U2, U26, U33–U37).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, slower, until } from "./rig.mjs";
import { chatOf, lookWorld } from "./fake/world.mjs";

after(quit);

const plain = () => {
  const world = lookWorld();
  world.asks = [];
  world.chats = [chatOf("talk", { title: "Talk" }), ...world.chats.map((chat) => ({ ...chat, asks: 0 }))];
  return world;
};
const words = (page) => page.locator(".prose").allTextContents();

test("eight tabs, one stream; when its tab closes another reads on and nothing is lost", async () => {
  const it = await open(plain(), "/c/talk");
  const { hub, page } = it;
  const tabs = [];
  for (let i = 0; i < 7; i += 1) tabs.push(await it.another("/c/talk"));
  await until(() => hub.streams.size === 1);
  hub.item("talk", { kind: "text", blocks: ["<p>to all of you</p>"], open: false });
  for (const tab of [page, ...tabs]) await tab.getByText("to all of you").waitFor();
  assert.equal(hub.streams.size, 1);
  await page.close();
  await until(() => hub.streams.size === 1 && hub.calls("GET", /^\/events$/).length === 2);
  hub.item("talk", { kind: "text", blocks: ["<p>and again</p>"], open: false });
  for (const tab of tabs) {
    await tab.getByText("and again").waitFor();
    assert.deepEqual(await words(tab), ["to all of you", "and again"]);
  }
  await it.close();
});

test("a browser without locks reads a stream a tab, and all hear the same", async () => {
  const it = await open(plain(), "/approvals");
  const { hub, page, context } = it;
  await context.addInitScript(() => { delete Navigator.prototype.locks; });
  await page.goto(`${hub.url}/c/talk`);
  const other = await it.another("/c/talk");
  await until(() => hub.streams.size === 2);
  hub.item("talk", { kind: "text", blocks: ["<p>to both</p>"], open: false });
  for (const tab of [page, other]) await tab.getByText("to both").waitFor();
  await it.close();
});

test("a stream that goes silent without closing is noticed in 25 s and taken up again", async () => {
  const world = plain();
  const it = await open(world, "/c/talk", { wait: false, width: 1440 });
  const { page, hub } = it;
  await page.clock.install();
  await page.goto(`${hub.url}/c/talk`);
  await page.locator("#message").waitFor();
  await until(() => hub.streams.size >= 1);
  const before = hub.calls("GET", /^\/events$/).length;
  hub.silent = true;
  hub.item("talk", { kind: "text", blocks: ["<p>said into the silence</p>"], open: false });
  await page.clock.runFor(24_000);
  assert.equal(hub.calls("GET", /^\/events$/).length, before, "25 s were not over");
  hub.silent = false;
  await page.clock.runFor(4_000);
  await until(() => hub.calls("GET", /^\/events$/).length > before);
  await page.clock.runFor(2_000);
  await page.getByText("said into the silence").waitFor();
  await it.close();
});

test("no connection: since when, Try now, everything stays readable; back: caught up, in order, once", async () => {
  const it = await open(plain(), "/c/talk");
  const { page, hub } = it;
  await until(() => hub.streams.size === 1);
  hub.item("talk", { kind: "text", blocks: ["<p>one</p>"], open: false });
  await page.getByText("one", { exact: true }).waitFor();
  hub.cut({ down: true });
  await page.getByText(/This page has no connection since \d\d:\d\d\. What you see is from then\./).waitFor();
  assert.ok(await page.getByText("one", { exact: true }).isVisible());
  await page.locator("#message").fill("kept");
  for (let i = 0; i < 60; i += 1) hub.item("talk", { kind: "text", blocks: [`<p>missed ${i}</p>`], open: false });
  hub.chat("talk", { running: false, progress: null });
  hub.down = false;
  // It may be back by itself before the press.
  await page.getByRole("button", { name: "Try now" }).click({ timeout: 2_000 }).catch(() => {});
  await page.getByText("missed 59").waitFor();
  await page.locator(".banner").waitFor({ state: "detached" });
  const seen = await page.evaluate(() => document.querySelector("l-stream").log.order.map((seq) => document.querySelector("l-stream").log.items.get(seq).blocks[0]));
  assert.deepEqual(seen, ["<p>one</p>", ...Array.from({ length: 60 }, (_, i) => `<p>missed ${i}</p>`)]);
  assert.equal(await page.locator("#message").inputValue(), "kept");
  await it.close();
});

test("catching up is shown with its number until the last event", async () => {
  const it = await open(plain(), "/c/talk");
  const { page, hub } = it;
  await until(() => hub.streams.size === 1);
  await page.evaluate(() => {
    window.banners = [];
    new MutationObserver(() => { const text = document.querySelector(".banner")?.textContent; if (text) window.banners.push(text); }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  hub.cut({ down: true });
  for (let i = 0; i < 214; i += 1) hub.push({ type: "chat", chat: { ...hub.world.chats[0], turn: i } });
  // The events come after the hello, but not all at once.
  const play = hub.events.bind(hub);
  hub.events = (response, url) => {
    const ring = hub.ring;
    hub.ring = ring.slice(-214);
    const write = response.write.bind(response);
    const held = [];
    response.write = (text) => (/^id:/.test(text) ? held.push(text) : write(text));
    play(response, url);
    hub.ring = ring;
    setTimeout(() => { response.write = write; for (const text of held) write(text); }, 400);
  };
  hub.down = false;
  await until(() => page.evaluate(() => window.banners.some((text) => text.includes("Catching up: 214 events."))));
  await page.locator(".banner").waitFor({ state: "detached" });
  await it.close();
});

test("what the ring no longer has is read anew: state first, and the turn that ended is over", async () => {
  const world = plain();
  Object.assign(world.chats[0], { running: true, progress: { phase: "thinking", since: Date.now() } });
  const it = await open(world, "/c/talk");
  const { page, hub } = it;
  await until(() => hub.streams.size === 1);
  await page.getByText("thinking").first().waitFor();
  hub.cut({ down: true });
  world.items.talk = Array.from({ length: 80 }, (_, i) => ({ seq: i + 1, turn: 1, time: Date.now(), kind: "text", blocks: [`<p>line ${i + 1}</p>`], open: false }));
  Object.assign(world.chats[0], { running: false, progress: null });
  hub.head += 20_000;
  world.forget = true;
  hub.ring = [[hub.head, { type: "x" }]];
  hub.down = false;
  await page.getByText("line 80", { exact: true }).waitFor();
  await page.locator(".prog").waitFor({ state: "hidden" });
  assert.ok(await page.evaluate(() => document.querySelector("l-stream").log.more), "older ones are known to be there");
  await it.close();
});

test("the tab is killed at chunk 500 of 2,000, opened at 1,500 and after the end: equal, byte for byte", async () => {
  const it = await open(plain(), "/c/talk");
  const { page, hub } = it;
  const streaming = hub.stream("talk", 2_000, 800);
  await until(() => page.evaluate(() => document.querySelector("l-stream").log.items.get(1)?.blocks.join("").includes("word500 ")));
  await page.close();
  await until(() => hub.world.items.talk[0].blocks.join("").includes("word1500 "));
  const other = await it.another("/c/talk");
  const item = await streaming;
  const want = item.blocks.join("");
  const equal = (tab) => until(() => tab.evaluate((text) => document.querySelector("l-stream").log.items.get(1)?.blocks.join("") === text, want), "equal text");
  await equal(other);
  const last = await it.another("/c/talk");
  await equal(last);
  await last.getByText("word1999").waitFor();
  await it.close();
});

test("frozen for 10 min with a dead socket: thawed, all is there in 2 s, in order and once", async () => {
  const it = await open(plain(), "/settings");
  const { page, hub } = it;
  await page.clock.install();
  await page.goto(`${hub.url}/c/talk`);
  await page.locator("#message").waitFor();
  await until(() => hub.streams.size === 1);
  // No timer runs; the socket is dead and does not know it.
  await page.clock.pauseAt(await page.evaluate(() => Date.now()) + 5_000);
  for (const stream of hub.streams) stream.write = () => true;
  hub.streams.clear();
  const want = Array.from({ length: 200 }, (_, i) => `<p>while you slept ${i}</p>`);
  for (const html of want) hub.item("talk", { kind: "text", blocks: [html], open: false });
  const most = 2_000 * await slower(page);
  await page.clock.fastForward(600_000);
  const start = Date.now();
  await page.clock.resume();
  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  const held = () => page.evaluate(() => { const { order, items } = document.querySelector("l-stream").log; return order.map((seq) => items.get(seq).blocks[0]); });
  await until(async () => (await held()).length >= want.length, "caught up");
  assert.ok(Date.now() - start <= most, `caught up in ${Date.now() - start} ms`);
  await page.getByText("while you slept 199").waitFor();
  assert.deepEqual(await held(), want);
  await it.close();
});

test("the turn ends in the outage: finished within a second of the stream's return, and marked until the last event", async () => {
  const world = plain();
  Object.assign(world.chats[0], { running: true, progress: { phase: "thinking", since: Date.now() } });
  const it = await open(world, "/c/talk");
  const { page, hub } = it;
  await page.locator(".prog").getByText("thinking").waitFor();
  await until(() => hub.streams.size === 1);
  const second = 1_000 * await slower(page);
  hub.cut({ down: true });
  await page.locator(".banner").waitFor();
  for (let i = 0; i < 40; i += 1) hub.item("talk", { kind: "text", blocks: [`<p>missed ${i}</p>`], open: false });
  hub.chat("talk", { running: false, progress: null });
  await page.evaluate(() => {
    window.ended = undefined;
    window.marked = [];
    new MutationObserver(() => {
      if (window.ended === undefined && document.querySelector("l-progress").hidden) window.ended = Date.now();
      const banner = document.querySelector(".banner")?.textContent ?? "";
      const whole = document.querySelector("l-stream").log.order.length === 40;
      window.marked.push([banner, whole]);
    }).observe(document.body, { childList: true, subtree: true, attributes: true });
  });
  hub.down = false;
  const back = await until(() => hub.log.findLast((call) => call.path === "/events" && hub.streams.size === 1), "the stream is back");
  await until(() => page.evaluate(() => window.ended));
  assert.ok((await page.evaluate(() => window.ended)) - back.at <= second);
  // Whatever was drawn before the last event stood under a mark.
  const unmarked = (await page.evaluate(() => window.marked)).filter(([banner, whole]) => banner === "" && !whole);
  assert.deepEqual(unmarked, []);
  await it.close();
});

test("signed out elsewhere: told within a second, with the reason, in every tab", async () => {
  const it = await open(plain(), "/");
  const { page, hub } = it;
  const other = await it.another("/approvals");
  await until(() => hub.streams.size === 1);
  const second = 1_000 * await slower(page);
  hub.world.signedIn = false;
  hub.push({ type: "signed_out", text: "You were signed out here at 14:02, from Firefox on zephyr. Your draft is kept." });
  for (const tab of [page, other]) await tab.getByText("You were signed out here at 14:02, from Firefox on zephyr.").waitFor({ timeout: 2 * second });
  await it.close();
});

test("dropped and back: one banner while it lasts, none afterwards, in every place", async () => {
  await Promise.all(["/", "/c/talk", "/schedules"].map(async (path) => {
    const it = await open(plain(), path);
    const { page, hub } = it;
    await until(() => hub.streams.size === 1);
    for (let round = 0; round < 2; round += 1) {
      hub.cut({ down: true });
      await page.locator(".banner").first().waitFor();
      // Anything that draws the frame again while it is lost.
      await page.waitForTimeout(1_200);
      assert.equal(await page.locator(".banner").count(), 1, path);
      hub.down = false;
      // Pressed where it still stands there: the page also comes back by itself.
      await page.evaluate(() => document.querySelector(".banner button")?.click());
      await until(() => hub.streams.size === 1, "stream again", 8_000);
      await until(async () => await page.locator(".banner").count() === 0, `no banner on ${path}`);
      await page.waitForTimeout(300);
      assert.equal(await page.locator(".banner").count(), 0, path);
    }
    await it.close();
  }));
});
