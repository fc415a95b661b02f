// All that waits for the person, from anywhere in the tree, how each ends, and the time it has (U14–U17).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { frames, open, quit, slower, until } from "./rig.mjs";
import { askOf, chatOf, lookWorld } from "./fake/world.mjs";

after(quit);

const MIN = 60_000;
const flat = (text) => text.replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();
const answers = (hub) => hub.calls("POST", /^\/asks\/[^/]+$/);

function quiet() {
  const world = lookWorld();
  world.asks = [];
  world.chats = [chatOf("tree", { title: "A tree", running: true, progress: { phase: "waiting_for_subagents", count: 2, names: ["plan", "review"], since: Date.now() } }), ...world.chats.filter((chat) => chat.id !== "login").map((chat) => ({ ...chat, asks: 0, running: false, progress: null }))];
  return world;
}

/** Has the page note when each of `words` stood in it first, by this machine's clock. */
const watch = (page, words) => page.evaluate((list) => {
  window.stood = {};
  const look = () => {
    const text = document.querySelector("#main").innerText + document.querySelector("#main").textContent;
    for (const one of list) if (!(one in window.stood) && text.includes(one)) window.stood[one] = Date.now();
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}, words);
const stood = (page) => page.evaluate(() => window.stood);

test("five asks in a tree of depth 3 are in Approvals, on Computers and in the chat within a second", async () => {
  const deep = { id: "s1", name: "plan" };
  const deeper = { id: "s2", name: "review", parent: deep };
  const asks = [
    askOf("t1", { command: "make one" }),
    askOf("t2", { command: "make two", subagent: deep }),
    askOf("t3", { command: "make three", subagent: deeper }),
    askOf("t4", { command: "make four", subagent: { id: "s3", name: "callers", parent: deeper } }),
    askOf("t5", { command: "make five", kind: "teleport", job: "3" }),
  ].map((ask) => ({ ...ask, command_html: ask.command, chat: "tree", chat_title: "A tree", call: undefined }));
  const names = asks.map((ask) => ask.command);
  const it = await open(quiet(), "/approvals", { height: 2000 });
  const { page, hub } = it;
  const pages = [page, await it.another("/"), await it.another("/c/tree")];
  await until(() => hub.streams.size === 1);
  for (const one of pages) await watch(one, names);
  const second = 1_000 * await slower(page);
  const start = Date.now();
  for (const ask of asks) hub.ask({ ...ask, made: start });
  for (const [i, one] of pages.entries()) {
    await one.bringToFront();
    await until(async () => Object.keys(await stood(one)).length === 5, `all five on page ${i}`);
    const late = Object.entries(await stood(one)).filter(([, at]) => at - start > second);
    assert.deepEqual(late, [], `page ${i}`);
    assert.match(await one.title(), /^\(5\) /);
  }
  // Who asks, with those it works under.
  await page.locator("#ask-t2").getByText("Asked by the subagent plan in the chat A tree.").waitFor();
  await page.locator("#ask-t4").getByText("Asked by the subagent callers, under review, plan, in the chat A tree.").waitFor();
  await pages[2].locator("#ask-t4").getByText("Asked by the subagent callers, under review, plan,").waitFor();
  await page.locator("#ask-t5").getByText("Asked by job 3 in the chat A tree.").waitFor();
  // A kind that is not known is shown, with Refuse alone.
  for (const one of [page, pages[2]]) {
    assert.deepEqual(await one.locator("#ask-t5 .acts button").allTextContents(), ["Refuse…"]);
    assert.equal(await one.locator("#ask-t4").getByRole("button", { name: "Allow once" }).count(), 1);
  }
  // The chat waits for the person though its subagents go on.
  hub.chat("tree", { asks: 5, progress: { phase: "waiting_for_subagents", count: 1, names: ["review"], since: Date.now() } });
  await pages[1].locator("a.row", { hasText: "A tree" }).first().getByText("waits for you:").waitFor();
  await pages[2].locator("l-progress").getByText("waits for you:").waitFor();
  // From the row of an ask to its card.
  await pages[1].locator("a.row", { hasText: "make four" }).click();
  await pages[1].locator("#ask-t4").waitFor();
  await it.close();
});

test("five endings, five texts: the buttons are gone in every browser within a second", async () => {
  const world = quiet();
  const at = Date.now();
  const endings = {
    e1: [{ outcome: "allowed", by: "ana" }, /^Allowed by you at \d\d:\d\d$/],
    e2: [{ outcome: "refused", by: "ana" }, /^Refused by you at \d\d:\d\d$/],
    e3: [{ outcome: "expired" }, /^Nobody answered within 10 min: not run\. ?\d\d:\d\d$/],
    e4: [{ outcome: "refused", by: "ben in the terminal on zephyr" }, /^Settled elsewhere: refused by ben in the terminal on zephyr at \d\d:\d\d$/],
    e5: [{ outcome: "gone" }, /^Gone: the turn ended before an answer ?\d\d:\d\d$/],
  };
  world.asks = Object.keys(endings).map((id) => askOf(id, { chat: "tree", command: `run ${id}`, command_html: `run ${id}`, made: at - 5 * MIN, expires: at + 5 * MIN }));
  const first = await open(world, "/approvals", { height: 2400 });
  const browsers = [first, await open(null, "/approvals", { hub: first.hub, height: 2400 }), await open(null, "/c/tree", { hub: first.hub, height: 2400 })];
  for (const { page } of browsers) {
    await page.locator("#ask-e5 .acts").waitFor();
    await page.evaluate(() => {
      window.gone = {};
      new MutationObserver(() => {
        for (const card of document.querySelectorAll("section.ask")) if (!card.querySelector(".acts")) window.gone[card.id] ??= Date.now();
      }).observe(document.body, { childList: true, subtree: true });
    });
  }
  const second = 1_000 * await slower(first.page);
  const start = Date.now();
  for (const [id, [how]] of Object.entries(endings)) first.hub.ask({ ask: id, state: "settled", at, ...how });
  for (const { page } of browsers) {
    const seen = new Set();
    for (const [id, [, words]] of Object.entries(endings)) {
      const head = page.locator(`#ask-${id} > header`);
      await until(async () => words.test(flat(await head.textContent())), `${words} but ${flat(await head.textContent())}`);
      seen.add(flat(await head.textContent()));
    }
    assert.equal(seen.size, 5);
    const gone = await page.evaluate(() => window.gone);
    assert.deepEqual(Object.entries(gone).filter(([, when]) => when - start > second), []);
    assert.equal(Object.keys(gone).length, 5);
    assert.equal(await page.locator(".acts").count(), 0);
  }
  for (const one of browsers.slice(1)) await one.close();
  await first.close();
});

test("the deadline passes while an answer is on its way: the card says that it came too late", async () => {
  const world = quiet();
  world.takes = false;
  world.asks = [askOf("k2", { chat: "tree", expires: Date.now() + 10 * MIN })];
  const it = await open(world, "/c/tree");
  const { page, hub } = it;
  const card = page.locator("#ask-k2");
  await card.locator(".acts").waitFor();
  await page.waitForFunction(() => { const one = document.querySelector("l-ask"); one.guard.check(); return performance.now() - one.guard.moved > 550; });
  await card.getByRole("button", { name: "Allow once" }).click();
  hub.device("zephyr", { state: "away", since: Date.now() });
  await card.getByText("zephyr is away. Not delivered yet. The command has not run.").waitFor();
  hub.device("zephyr", { state: "online", since: Date.now() });
  hub.ask({ ask: "k2", state: "settled", outcome: "expired", late: true, at: new Date().setHours(14, 32) });
  await card.getByText("Too late: it ended as refused at 14:32.").waitFor();
  assert.equal(await card.locator(".acts").count(), 0);
  assert.equal(answers(hub).length, 1);
  await it.close();
});

for (const skew of [-5, 5]) {
  test(`the time left is the computer's, on a browser whose clock is ${skew} min off`, async () => {
    const world = quiet();
    world.asks = [askOf("k2", { chat: "tree", expires: Date.now() + 8 * MIN + 30_000 })];
    const it = await open(quiet(), "/settings");
    const { page, hub } = it;
    hub.world.asks = world.asks;
    await page.clock.install({ time: Date.now() + skew * MIN });
    await page.goto(`${hub.url}/approvals`);
    const head = page.locator("#ask-k2 > header");
    await head.waitFor();
    for (let i = 0; i < 2; i += 1) {
      // Read in the page, where the reading and the truth are of one moment.
      const { told, off } = await head.evaluate((el, expires) => new Promise((done) => {
        const read = () => {
          const [, min, s = "0"] = /(\d+)\smin(?:\s(\d+)\ss)? left/.exec(el.textContent);
          return { told: (Number(min) * 60 + Number(s)) * 1000, off: expires - Date.now() };
        };
        new MutationObserver((_, watching) => { watching.disconnect(); done(read()); }).observe(el, { childList: true, subtree: true, characterData: true });
      }), world.asks[0].expires);
      const truth = off + skew * MIN;
      assert.ok(Math.abs(told - truth) <= 1_500, `${told} told, ${truth} left`);
    }
    await it.close();
  });
}

test("at half time one reminder, with a way to the question; nobody answers: not run, and one row", async () => {
  const world = quiet();
  world.asks = [askOf("old", { chat: "tree", command: "make old", command_html: "make old", made: Date.now() - 9 * MIN, expires: Date.now() + MIN })];
  const it = await open(world, "/settings");
  const { page, hub } = it;
  await page.evaluate(() => {
    window.told = [];
    const firm = document.querySelector("#live-firm");
    new MutationObserver(() => window.told.push(firm.textContent)).observe(firm, { childList: true, characterData: true, subtree: true });
  });
  const made = Date.now() - 5 * MIN + 3_000;
  hub.item("tree", { kind: "step", call: "c1", tool: "bash", block: "shell", title: "git push origin main", status: "asking", ask: "n1" });
  hub.ask(askOf("n1", { chat: "tree", call: "c1", made, expires: made + 10 * MIN }));
  const toast = page.locator("#toasts");
  await toast.getByText("Half of the time is over: git push origin main on zephyr has 5 min left, then it counts as no.").waitFor();
  // Extended or told again, it is reminded of once; one that was past its half when this page came is no news.
  hub.ask({ ask: "n1", expires: made + 10 * MIN + 1 });
  await toast.getByRole("button", { name: "Look" }).click();
  await page.locator("#ask-n1 .acts").waitFor();
  await frames(page, 2);
  assert.deepEqual((await page.evaluate(() => window.told)).map((words) => words.split(":")[0].slice(0, 30)), ["zephyr wants to run git push o", "Half of the time is over"]);
  hub.ask({ ask: "n1", state: "settled", outcome: "expired", at: Date.now() });
  hub.item("tree", { seq: 1, status: "refused", unanswered: 10 * MIN + 140 });
  await page.locator("#ask-n1").getByText("Nobody answered within 10 min: not run.").waitFor();
  await page.locator("details.step").getByText("Nobody answered within 10 min: not run.").waitFor();
  // The turn went on.
  hub.item("tree", { kind: "text", blocks: ["<p>Then I leave it.</p>"], text: "Then I leave it.", open: false });
  await page.getByText("Then I leave it.").waitFor();
  await page.reload();
  await page.locator("details.step").getByText("Nobody answered within 10 min: not run.").waitFor();
  await page.goto(`${hub.url}/approvals`);
  const rows = page.locator("a.row", { hasText: "Nobody answered within 10 min: not run." });
  await rows.first().waitFor();
  assert.equal(await rows.count(), 1);
  await it.close();
});
