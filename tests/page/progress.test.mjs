// The progress line: thirteen phases, stop, and a computer that is away (U21, U24, U36).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, until } from "./rig.mjs";
import { askOf, lookWorld } from "./fake/world.mjs";

after(quit);

const flat = (text) => text.replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();
const line = async (page) => flat(await page.locator(".prog .text").textContent());

function quiet() {
  const world = lookWorld();
  world.asks = [];
  for (const chat of world.chats) chat.asks = 0;
  return world;
}

test("thirteen phases, each with its own words", async () => {
  const it = await open(quiet(), "/c/flaky");
  const { page, hub } = it;
  const at = (ms) => Date.now() - ms;
  const table = [
    [{ phase: "queued", position: 2, since: at(4_000) }, /^queued · 2nd in line · \d+ s$/],
    [{ phase: "waiting_for_model", model: "qwen3-32b", since: at(4_000) }, /^waiting for qwen3-32b · \d+ s$/],
    [{ phase: "loading_model", model: "qwen3-32b", percent: 40, since: at(12_000) }, /^loading qwen3-32b 40 % · \d+ s$/],
    [{ phase: "reading_prompt", tokens: 3100, total: 8192, since: at(2_000) }, /^reading the prompt 3,100 of 8,192 tokens · \d+ s$/],
    [{ phase: "thinking", since: at(18_000) }, /^thinking · \d+ s$/],
    [{ phase: "writing", tokens: 212, since: at(3_000) }, /^writing · 212 tokens$/],
    [{ phase: "running_tool", tool: "bash", purpose: "cargo test", since: at(28_000) }, /^running cargo test · \d+ s$/],
    [{ phase: "waiting_for_person", purpose: "git push origin main", since: at(120_000) }, /^waits for you: git push origin main · 2 min/],
    [{ phase: "waiting_for_subagents", count: 2, names: ["review", "callers"], since: at(20_000) }, /^waiting for 2 subagents: review, callers · \d+ s$/],
    [{ phase: "compacting", since: at(6_000) }, /^making room in the context · \d+ s$/],
    [{ phase: "retrying", model: "qwen3-32b", attempt: 3, of: 5, reason: "connection refused", at: Date.now() + 34_000, since: at(1_000) }, /^qwen3-32b does not answer \(connection refused\)\. Attempt 3 of 5, next in \d+ s\.$/],
    [{ phase: "retrying", model: "qwen3-32b", attempt: 1, of: 5, at: Date.now() + 5 * 3_600_000, since: at(1_000) }, /^qwen3-32b does not answer\. Attempt 1 of 5, next at .*\d\d:\d\d\.$/],
    [{ phase: "retrying", model: "m1", attempt: 2, of: 5, quota: true, reason: "429", at: Date.now() + 1_800_000, since: at(1_000) }, /^qwen3-32b has no quota left until .*\d\d:\d\d\.$/],
    [{ phase: "retrying", model: "m1", attempt: 2, of: 5, quota: true, reason: "429", at: Date.now() + 14 * 3_600_000, since: at(1_000) }, /^qwen3-32b has no quota left until tomorrow, 0[23]:\d\d\.$/],
    [{ phase: "stopped", by: "you", ms: 900, commands: 1, since: at(1_000) }, /^Stopped after 0\.9 s\. 1 command ended\.$/],
    [{ phase: "stopped", by: "you", since: at(1_000) }, /^Stopped by you at \d\d:\d\d\.$/],
    [{ phase: "stopped", by: "you", ms: 3, commands: 0, since: at(1_000) }, /^Stopped at once\.$/],
    [{ phase: "failed", reason: "qwen3-32b did not answer 5 times in 2 min (connection refused). Your message is kept.", since: at(1_000) }, /^qwen3-32b did not answer 5 times in 2 min \(connection refused\)\. Your message is kept\.$/],
  ];
  for (const [progress, words] of table) {
    const ended = ["stopped", "failed"].includes(progress.phase);
    hub.chat("flaky", { running: !ended, progress });
    await until(async () => words.test(await line(page)), `${progress.phase}: ${words} but ${await line(page)}`, 2_500);
  }
  hub.chat("flaky", { running: true, progress: { phase: "dreaming", since: Date.now(), text: "doing something new" } });
  await until(async () => /^doing something new/.test(await line(page)));
  await it.close();
});

test("Stop says Stopping until the computer says it is over", async () => {
  const it = await open(quiet(), "/c/flaky");
  const { page, hub } = it;
  await page.getByRole("button", { name: "Stop" }).click();
  await until(async () => (await line(page)) === "Stopping.");
  assert.match(hub.calls("POST", /stop$/)[0].body.key, /^[0-9a-f]{32}$/);
  hub.device("zephyr", { state: "away", since: Date.now() });
  await until(async () => (await line(page)) === "It will stop when zephyr is back; it may still be working.");
  hub.device("zephyr", { state: "online", since: Date.now() });
  hub.chat("flaky", { running: false, progress: { phase: "stopped", by: "you", ms: 900, commands: 2, since: Date.now() } });
  await until(async () => (await line(page)) === "Stopped after 0.9 s. 2 commands ended.");
  await it.close();
});

test("an approval that is answered after Stop starts nothing: it is told as gone", async () => {
  const world = quiet();
  world.asks = [askOf("late", { chat: "flaky" })];
  const it = await open(world, "/c/flaky");
  const { page, hub } = it;
  const card = page.locator("#ask-late");
  await card.locator(".acts").waitFor();
  await page.getByRole("button", { name: "Stop" }).first().click();
  await until(() => hub.calls("POST", /stop$/).length === 1);
  // The computer ended it; this page has not heard of that yet.
  Object.assign(hub.world.asks[0], { state: "settled", outcome: "gone", at: new Date().setHours(14, 32) });
  await page.waitForFunction(() => { const one = document.querySelector("l-ask"); one.guard.check(); return performance.now() - one.guard.moved > 550; });
  await card.getByRole("button", { name: "Allow once" }).click();
  await card.getByText("Too late: it ended as gone at 14:32.").waitFor();
  assert.equal(await card.locator(".acts").count(), 0);
  await it.close();
});

test("a computer that is away: since when, what was last heard, and Try now", async () => {
  const it = await open(quiet(), "/c/flaky");
  const { page, hub } = it;
  hub.device("zephyr", { state: "away", since: Date.now() - 60_000 });
  await until(async () => /^No connection to zephyr since 1[123]:\d\d · last heard: running cargo test$/.test(await line(page)));
  // The page's own connection is another fact, and is not blamed.
  assert.equal(await page.locator(".banner").count(), 0);
  await page.getByRole("button", { name: "Try now" }).click();
  await until(() => hub.calls("POST", /\/devices\/zephyr\/retry$/).length === 1);
  await page.locator("#message").fill("a draft while away");
  hub.device("zephyr", { state: "online", since: Date.now() });
  await until(async () => /^running cargo test/.test(await line(page)));
  assert.equal(await page.locator("#message").inputValue(), "a draft while away");
  await it.close();
});

test("the same line on Computers and in the chat", async () => {
  const it = await open(quiet(), "/");
  const row = it.page.locator("a.row").filter({ hasText: "Steady the flaky test" });
  assert.match(flat(await row.textContent()), /running cargo test/);
  it.hub.chat("flaky", { progress: { phase: "thinking", since: Date.now() } });
  await row.getByText("thinking").waitFor();
  await it.close();
});
