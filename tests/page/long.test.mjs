// A chat of 3,000 messages on a processor slowed four times: no task that holds the page up, and memory that stays
// where it is however long one reads and writes (U56).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { frames, open, pacing, quit, until } from "./rig.mjs";
import { longWorld } from "./fake/world.mjs";

after(quit);

/** Puts older pages above, `pages` of them, as a person at the wheel does. */
async function up(page, pages) {
  const held = () => page.evaluate(() => document.querySelector("l-stream").log.order.length);
  for (let n = 0; n < pages; n += 1) {
    const last = await held();
    await page.locator("#stream").evaluate((stream) => { stream.dispatchEvent(new WheelEvent("wheel", { deltaY: -100 })); stream.scrollTop = 0; });
    // Put above: what was at the upper edge is now further down.
    await until(async () => (await held()) > last && (await page.locator("#stream").evaluate((stream) => stream.scrollTop)) > 100, "an older page came");
    await frames(page, 2);
  }
}

test("3,000 messages on a slow processor: opened, read upwards and written on without a task that holds the page up", async () => {
  const it = await open(longWorld(3000), "/");
  const { page, hub, context } = it;
  const cdp = await context.newCDPSession(page);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const pacer = await pacing();
  // The longest task of each, in the best of three times: what is long each time is the page's own.
  const best = {};
  const note = async (what) => {
    const longest = Math.max(0, ...(await page.evaluate(() => window.long.splice(0))));
    best[what] = Math.min(best[what] ?? Infinity, longest);
  };
  for (let time = 0; time < 3; time += 1) {
    await page.goto(hub.url);
    await page.getByRole("link", { name: "A long chat" }).first().waitFor();
    await page.evaluate(() => {
      window.long = [];
      new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.long.push(Math.round(entry.duration)); }).observe({ type: "longtask" });
    });
    await page.getByRole("link", { name: "A long chat" }).first().click();
    await page.locator("l-stream .prose").first().waitFor();
    await frames(page, 4);
    await note("opened");
    await up(page, 4);
    await note("read upwards");
    await page.locator("#stream").evaluate((stream) => { stream.scrollTop = stream.scrollHeight; });
    hub.chat("long", { running: true });
    await hub.stream("long", 1_000, 1_000);
    await note("written on");
  }
  const pace = await pacer();
  for (const [what, ms] of Object.entries(best)) assert.ok(ms <= 50 * pace, `${what}: ${ms} ms, pace ${pace}`);
  await it.close();
});

test("what was scrolled past is let go of: a visit keeps what is near, not all that was seen", async () => {
  const it = await open(longWorld(3000), "/");
  const { page, context } = it;
  const cdp = await context.newCDPSession(page);
  const kept = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    return (await cdp.send("Memory.getDOMCounters")).nodes;
  };
  await page.getByRole("link", { name: "A long chat" }).first().click();
  await page.locator("l-stream .prose").first().waitFor();
  await up(page, 2);
  const early = await kept();
  await up(page, 10);
  const late = await kept();
  assert.ok(late <= early + 300, `${early} nodes after 150 messages, ${late} after 650`);
  await it.close();
});

test("memory stays where it is, however often a long chat is opened, read and written on", async () => {
  const it = await open(longWorld(3000), "/");
  const { page, hub, context } = it;
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable");
  await cdp.send("HeapProfiler.enable");
  const kept = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    const { nodes, jsEventListeners: listeners } = await cdp.send("Memory.getDOMCounters");
    const { metrics } = await cdp.send("Performance.getMetrics");
    return { nodes, listeners, heap: metrics.find((one) => one.name === "JSHeapUsedSize").value };
  };
  const passes = [];
  for (let pass = 0; pass < 12; pass += 1) {
    await page.getByRole("link", { name: "A long chat" }).first().click();
    await page.locator("l-stream .prose").first().waitFor();
    await up(page, 2);
    hub.chat("long", { running: true });
    await hub.stream("long", 300, 3_000);
    await page.locator("#stream").evaluate((stream) => { stream.scrollTop = stream.scrollHeight; });
    hub.chat("long", { running: false });
    await page.goBack();
    await page.getByRole("link", { name: "A long chat" }).first().waitFor();
    passes.push(await kept());
  }
  // The first ones fill what is kept on purpose. What leaks is there in each that comes later.
  const most = (name) => Math.max(...passes.slice(3, 6).map((one) => one[name]));
  const least = (name) => Math.min(...passes.slice(-3).map((one) => one[name]));
  const told = JSON.stringify(passes);
  assert.ok(least("nodes") <= most("nodes") + 200, told);
  assert.ok(least("listeners") <= most("listeners") + 20, told);
  assert.ok(least("heap") <= most("heap") + 512 * 1024, told);
  await it.close();
});
