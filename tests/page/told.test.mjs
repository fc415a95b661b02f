// What the progress line says of silence, of trying again and of a lost hop: only what is known (U22, U23, U33).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, until } from "./rig.mjs";
import { lookWorld } from "./fake/world.mjs";

after(quit);

const flat = (text) => text.replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();
const line = async (page) => flat(await page.locator(".prog .text").textContent());

/** Holds the page's clock, a little ahead: less than makes it think its stream dead. */
const hold = async (page) => page.clock.pauseAt(await page.evaluate(() => Date.now()) + 5_000);

function quiet(progress) {
  const world = lookWorld();
  world.asks = [];
  for (const chat of world.chats) chat.asks = 0;
  if (progress) Object.assign(world.chats.find((one) => one.id === "flaky"), { progress, updated: progress.since });
  return world;
}

for (const [what, progress, words] of [
  ["a tool that sleeps", { phase: "running_tool", tool: "bash", purpose: "cargo test" }, "running cargo test"],
  ["a model that hangs", { phase: "waiting_for_model", model: "qwen3-32b" }, "waiting for qwen3-32b"],
]) {
  test(`${what}: nothing is said of silence at 29 s, it is told at 31 s, at 10 min there are two ways out`, async () => {
    const T = Date.now();
    const it = await open(quiet({ ...progress, since: T - 29_000 }), "/settings");
    const { page, hub } = it;
    hub.now = () => T;
    await page.clock.install({ time: T });
    await page.goto(`${hub.url}/c/flaky`);
    await page.locator(".prog .text").waitFor();
    await until(() => hub.streams.size === 1);
    await hold(page);
    // Both clocks are held: this is the hub's reading, and one tick of the page's.
    const at = async (ms) => {
      hub.now = () => T + ms;
      hub.raw({ type: "beat", now: T + ms, head: hub.head });
      await until(() => page.evaluate(async (want) => Math.abs((await import("/assets/time.js")).hubNow() - want) < 1, T + ms));
      await page.clock.runFor(1_000);
      return line(page);
    };
    assert.equal(await at(-1_000), `${words} · 29 s`);
    assert.equal(await page.locator(".quiet-note").count(), 0);
    assert.equal(await at(1_000), `${words} · 31 s · quiet for 31 s`);
    assert.equal(await page.getByRole("button", { name: "Show the last output" }).count(), 0);
    assert.equal(await at(569_000), `${words} · 9 min 59 s · quiet for 9 min`);
    assert.equal(await page.locator(".quiet-note").count(), 0);
    assert.equal(await at(570_000), `${words} · 10 min · quiet for 10 min`);
    await page.getByText("Nothing was heard for 10 min. It may still be working.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Show the last output" }).count(), 1);
    assert.equal(await page.getByRole("button", { name: /^Stop/ }).count() > 0, true);
    assert.equal(await at(871_000), `${words} · 15 min 1 s · quiet for 15 min`);
    assert.equal(hub.calls("POST", /.*/).length, 0, "nothing was ended");
    await it.close();
  });
}

test("trying again is shown whole: 429 with 34 s and with 5 h, 503 five times, a connection refused", async () => {
  const T = new Date().setHours(15, 30, 0, 0);
  const world = quiet();
  Object.assign(world.chats.find((one) => one.id === "flaky"), { model: "m1" });
  const it = await open(world, "/settings");
  const { page, hub } = it;
  hub.now = () => T;
  await page.clock.install({ time: T });
  await page.goto(`${hub.url}/c/flaky`);
  await page.locator(".prog .text").waitFor();
  await until(() => hub.streams.size === 1);
  await hold(page);
  hub.raw({ type: "beat", now: T, head: hub.head });
  await until(() => page.evaluate(async (want) => (await import("/assets/time.js")).hubNow() === want, T));
  const said = async (progress) => {
    const ended = progress.phase === "failed";
    hub.chat("flaky", { running: !ended, progress: { since: T, ...progress } });
    await until(() => page.evaluate(async (want) => JSON.stringify((await import("/assets/store.js")).store.chats.get("flaky").progress) === want, JSON.stringify({ since: T, ...progress })));
    return line(page);
  };
  const retrying = (attempt, reason, wait) => said({ phase: "retrying", attempt, of: 5, reason, at: T + wait });
  // The reasons as the computer says them: the instance's words, and what carried them.
  const full = "the model's server answered 429: qwen3-32b takes no more requests now.";
  const busy = "the model's server answered 502: qwen3-32b failed (503).";
  const shot = {
    "429, 34 s": [await retrying(2, full, 34_000)],
    "429, 5 h": [await retrying(2, full, 5 * 3_600_000), await said({ phase: "failed", reason: `qwen3-32b has no quota left until 20:30 (${full}). Your message is kept.` })],
    "503, five times": [
      ...await [1, 2, 4, 8].reduce(async (all, s, i) => [...await all, await retrying(i + 2, busy, s * 1_000)], []),
      await said({ phase: "failed", reason: `qwen3-32b did not answer 5 times in 15 s (${busy}). Your message is kept.` }),
    ],
    "refused": [await said({ phase: "failed", reason: "qwen3-32b did not take the request: the model's server answered 400: qwen3-32b refused the request: no tools here. Your message is kept." })],
    "connection refused": [
      await retrying(3, "the model's server answered 502: qwen3-32b does not answer (connection refused).", 34_000),
      await retrying(3, "the model's server cannot be reached: connection refused", 34_000),
      await retrying(3, "the model's server answered 500: out of memory", 34_000),
    ],
  };
  assert.deepEqual(shot, {
    "429, 34 s": ["qwen3-32b takes no more requests now. Attempt 2 of 5, next in 34 s."],
    "429, 5 h": ["qwen3-32b takes no more requests now. Attempt 2 of 5, next at 20:30.", "qwen3-32b has no quota left until 20:30 (qwen3-32b takes no more requests now). Your message is kept."],
    "503, five times": [
      "qwen3-32b failed (503). Attempt 2 of 5, next in 1 s.",
      "qwen3-32b failed (503). Attempt 3 of 5, next in 2 s.",
      "qwen3-32b failed (503). Attempt 4 of 5, next in 4 s.",
      "qwen3-32b failed (503). Attempt 5 of 5, next in 8 s.",
      "qwen3-32b did not answer 5 times in 15 s (qwen3-32b failed (503)). Your message is kept.",
    ],
    "refused": ["qwen3-32b refused the request: no tools here. Your message is kept."],
    "connection refused": [
      "qwen3-32b does not answer (connection refused). Attempt 3 of 5, next in 34 s.",
      "qwen3-32b does not answer (connection refused). Attempt 3 of 5, next in 34 s.",
      "qwen3-32b had a fault (out of memory). Attempt 3 of 5, next in 34 s.",
    ],
  });
  // Meanwhile Stop is there and is told at once.
  await page.getByRole("button", { name: /^Stop/ }).first().click();
  await until(() => hub.calls("POST", /stop$/).length === 1);
  assert.equal(await line(page), "Stopping.");
  await it.close();
});

// The three facts, each with its own words.
const PAGE_HUB = {
  live: { banner: /^$/, foot: /^Up to date, \d\d:\d\d$/ },
  lost: { banner: /^This page has no connection since \d\d:\d\d\. What you see is from then\.Try now$/, foot: /^No connection since \d\d:\d\d$/ },
  catching: { banner: /^Catching up: 214 events\.$/, foot: /^Catching up$/ },
};
const HUB_COMPUTER = {
  online: ({ words, time, line: whole }) => whole ?? [words, time].filter(Boolean).join(" · "),
  away: ({ words }) => (words ? `No connection to zephyr since HH:MM · last heard: ${words}` : "No connection to zephyr since HH:MM"),
  revoked: ({ words }) => (words ? `access taken back; it stays readable · last heard: ${words}` : ""),
};
const AGENT = {
  idle: { progress: null, words: "" },
  queued: { progress: { position: 2 }, words: "queued · 2nd in line", time: "N s" },
  waiting_for_model: { progress: { model: "qwen3-32b" }, words: "waiting for qwen3-32b", time: "N s" },
  loading_model: { progress: { model: "qwen3-32b", percent: 40 }, words: "loading qwen3-32b 40 %", time: "N s" },
  reading_prompt: { progress: { tokens: 3100, total: 8192 }, words: "reading the prompt 3,100 of 8,192 tokens", time: "N s" },
  thinking: { progress: {}, words: "thinking", time: "N s" },
  writing: { progress: { tokens: 212 }, words: "writing", time: "212 tokens" },
  running_tool: { progress: { tool: "bash", purpose: "cargo test" }, words: "running cargo test", time: "N s" },
  waiting_for_person: { progress: { purpose: "git push" }, words: "waits for you: git push", time: "N s" },
  waiting_for_subagents: { progress: { count: 2, names: ["review", "callers"] }, words: "waiting for 2 subagents: review, callers", time: "N s" },
  compacting: { progress: {}, words: "making room in the context", time: "N s" },
  retrying: { progress: { attempt: 3, of: 5, reason: "connection refused", at: 34_000 }, words: "qwen3-32b does not answer (connection refused). Attempt 3 of 5", line: "qwen3-32b does not answer (connection refused). Attempt 3 of 5, next in N s." },
  stopped: { progress: { by: "you", ms: 900, commands: 1 }, words: "Stopped after N s. 1 command ended", line: "Stopped after N s. 1 command ended." },
  failed: { progress: { reason: "the model is gone" }, words: "failed: the model is gone", time: "HH:MM" },
};

test("three facts, three words: losing one hop never changes what is said of another", async () => {
  const it = await open(quiet(), "/c/flaky");
  const { page, hub } = it;
  await until(() => hub.streams.size === 1);
  // What is told, with the times taken out, once it is drawn.
  const told = (conn, want) => page.evaluate(async ([state, expected]) => {
    const { setConn, store } = await import("/assets/store.js");
    if (store.conn.state !== state) setConn({ state, since: Date.now(), left: 214, total: 214 });
    const flat = (el) => (el?.checkVisibility() ? el.textContent : "").replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();
    const plain = (text) => text.replace(/(yesterday, )?\d\d:\d\d/g, "HH:MM").replace(/\d+(\.\d)? s\b/g, "N s");
    const look = () => ({ line: plain(flat(document.querySelector(".prog .text"))), banner: flat(document.querySelector(".banner")), foot: flat(document.querySelector("footer.heard")) });
    const right = (got) => got.line === expected.line && new RegExp(expected.banner).test(got.banner) && new RegExp(expected.foot).test(got.foot);
    const end = Date.now() + 4_000;
    let got = look();
    while (!right(got) && Date.now() < end) {
      await new Promise((done) => requestAnimationFrame(done));
      got = look();
    }
    return got;
  }, [conn, { line: want, banner: PAGE_HUB[conn].banner.source, foot: PAGE_HUB[conn].foot.source }]);
  const wrong = [];
  let cells = 0;
  for (const [link, lineOf] of Object.entries(HUB_COMPUTER)) {
    hub.device("zephyr", { state: link, since: Date.now() });
    for (const [phase, { progress, ...words }] of Object.entries(AGENT)) {
      const data = progress && { ...progress, ...(progress.at ? { at: Date.now() + progress.at } : {}), phase, since: Date.now() - 3_000 };
      hub.chat("flaky", { running: progress !== null && !["stopped", "failed"].includes(phase), progress: data, model: "m1" });
      const want = lineOf(words);
      for (const [conn, { banner, foot }] of Object.entries(PAGE_HUB)) {
        const got = await told(conn, want);
        if (got.line !== want || !banner.test(got.banner) || !foot.test(got.foot)) wrong.push(`${conn} × ${link} × ${phase}: ${JSON.stringify(got)}, not ${want}`);
        cells += 1;
      }
      await told("live", want);
    }
  }
  assert.deepEqual(wrong, []);
  assert.equal(cells, 3 * 3 * 14);
  await it.close();
});
