// What the browser tests share: one browser, a page on a fake hub, and waiting for facts instead of times.
import { chromium } from "playwright-core";
import { FakeHub } from "./fake/play.mjs";

const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

// The tests, the browser and the programs are in a zone where it is about noon just now: that a moment is of today
// never depends on when they run. The names of these zones count the other way round.
const east = 12 - new Date().getUTCHours();
process.env.TZ = east === 0 ? "Etc/GMT" : `Etc/GMT${east > 0 ? "-" : "+"}${Math.abs(east)}`;

let browser = null;
const hubs = new Set();

export async function chrome() {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGS });
  return browser;
}

export async function quit() {
  for (const hub of hubs) await hub.stop();
  await browser?.close();
  browser = null;
}

/** A page at `path` on a fake hub with `world`; errors of the page fail the test at close(). */
export async function open(world, path = "/", { hub: given, width = 1440, height = 900, scheme = "light", touch = false, beat, wait = true, context: more = {} } = {}) {
  const hub = given ?? await new FakeHub(world, { beat }).start();
  if (!given) hubs.add(hub);
  const context = await (await chrome()).newContext({ viewport: { width, height }, colorScheme: scheme, hasTouch: touch, isMobile: touch, deviceScaleFactor: 1, ...more });
  const errors = [];
  // How long a machine that is busy with other work may take; a limit that a rule sets is measured, not waited for.
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  watch(page, errors);
  await page.goto(hub.url + path);
  if (wait) await page.locator("h1").first().waitFor();
  return {
    hub, page, context, errors,
    async another(to = path) {
      const other = await context.newPage();
      watch(other, errors);
      await other.goto(hub.url + to);
      await other.locator("h1").first().waitFor();
      return other;
    },
    async close() {
      await context.close();
      if (!given) {
        hubs.delete(hub);
        await hub.stop();
      }
      if (errors.length > 0) throw new Error(`the page had errors:\n${errors.join("\n")}`);
    },
  };
}

function watch(page, errors) {
  page.on("pageerror", (error) => errors.push(`${error.message} ${error.stack ?? ""}`));
  page.on("console", (message) => {
    // A failed request is told by the browser too; which ones may fail is the tests' business.
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text())) errors.push(message.text());
  });
}

/** Waits until `fact()` is true, at most `most` ms. */
export async function until(fact, what = String(fact), most = 20_000, pause = 20) {
  const end = Date.now() + most;
  for (;;) {
    const got = await fact();
    if (got) return got;
    if (Date.now() > end) throw new Error(`not so within ${most} ms: ${what}`);
    await new Promise((done) => setTimeout(done, pause));
  }
}

/** The frames that pass until `n` are drawn. */
export const frames = (page, n = 2) => page.evaluate((count) => new Promise((done) => {
  const next = (left) => (left === 0 ? done() : requestAnimationFrame(() => next(left - 1)));
  next(count);
}), n);

// A fixed piece of work takes so long in a browser that has a core to itself.
const ALONE_MS = 30;

/** How much slower than usual this machine is just now, at least 1: what a limit of time is multiplied with. */
export const slower = (page) => page.evaluate((alone) => {
  const took = [0, 1, 2].map(() => {
    const start = performance.now();
    let n = 0;
    for (let i = 0; i < 1e7; i += 1) n = (n * 31 + i) | 0;
    return performance.now() - start + (n & 0);
  });
  return Math.max(1, Math.max(...took) / alone);
}, ALONE_MS);

/** Measures beside what runs; what it gives ends that, and tells how slow the machine was at the slowest. */
export async function pacing() {
  // A process of its own: what is slowed in the page is not slowed here.
  const context = await (await chrome()).newContext();
  const page = await context.newPage();
  let most = await slower(page);
  let on = true;
  const look = (async () => {
    while (on) {
      await new Promise((done) => setTimeout(done, 300));
      most = Math.max(most, await slower(page));
    }
  })();
  return async () => {
    on = false;
    await look;
    await context.close();
    return most;
  };
}
