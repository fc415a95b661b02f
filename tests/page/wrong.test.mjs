// A turn that goes wrong: Stop and the ways on (moment 4), a model that is down (moment 11), and what was taken back.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, until } from "./rig.mjs";
import { lookWorld } from "./fake/world.mjs";

after(quit);

const flat = (text) => text.replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();
const line = async (page) => flat(await page.locator(".prog .text").textContent());

const DIFF = (name) => `<table class="diff"><tbody><tr class="add"><td class="no">1</td><td class="sg">+</td><td class="tx">in ${name}</td></tr></tbody></table>`;

/** A chat whose second turn changed two files, one of them twice, and runs. */
function turn() {
  const world = lookWorld();
  world.asks = [];
  for (const chat of world.chats) chat.asks = 0;
  const chat = world.chats.find((one) => one.id === "flaky");
  Object.assign(chat, { rewind: true, retry: true, turn: 2 });
  const step = (seq, path) => ({ seq, turn: 2, time: Date.now(), kind: "step", call: `c${seq}`, tool: "edit", block: "edit", title: path, path: `/home/ana/projects/api/${path}`, status: "ok", added: 1, removed: 0, diff_html: DIFF(`${path} ${seq}`) });
  world.items.flaky = [
    { seq: 1, turn: 1, time: Date.now(), kind: "said", html: "<p>First.</p>", text: "First.", state: "taken", key: "k-1" },
    { ...step(2, "old.rs"), turn: 1 },
    { seq: 3, turn: 1, time: Date.now(), kind: "text", blocks: ["<p>Done so far.</p>"], text: "Done so far.", open: false },
    { seq: 4, turn: 2, time: Date.now(), kind: "said", html: "<p>Now the rest.</p>", text: "Now the rest.", state: "taken", key: "k-2" },
    step(5, "src/a.rs"), step(6, "src/b.rs"), step(7, "src/a.rs"),
    { seq: 8, turn: 2, time: Date.now(), kind: "text", blocks: ["<p>A wrong answer.</p>"], text: "A wrong answer.", open: false },
  ];
  return world;
}

test("after Stop: what it took, what it ended, what stays changed, and three ways on", async () => {
  const it = await open(turn(), "/c/flaky");
  const { page, hub } = it;
  hub.onStop = () => hub.chat("flaky", { running: false, progress: { phase: "stopped", by: "you", since: Date.now(), ms: 900, commands: 1 } });
  await page.locator("#message").fill("half a thought");
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await until(async () => (await line(page)) === "Stopped after 0.9 s. 1 command ended. 2 files were changed and stay changed.", `the line says it all: ${await line(page)}`);
  await page.getByRole("button", { name: "Show the changes" }).click();
  const sheet = page.getByRole("dialog");
  assert.deepEqual(await sheet.getByRole("heading", { level: 3 }).allTextContents(), ["src/a.rs", "src/b.rs"], "those of this turn, each once");
  assert.deepEqual(await sheet.locator("td.tx").allTextContents(), ["in src/a.rs 5", "in src/a.rs 7", "in src/b.rs 6"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Say what was wrong" }).click();
  assert.equal(await page.evaluate(() => document.activeElement?.id), "message");
  assert.equal(await page.locator("#message").inputValue(), "half a thought", "the words are kept");
  await page.keyboard.press("End");
  await page.keyboard.type(", whole now");
  await page.keyboard.press("Enter");
  await until(() => hub.calls("POST", /\/messages$/).length === 1);
  assert.equal(hub.calls("POST", /\/messages$/)[0].body.text, "half a thought, whole now");
  await it.close();
});

test("why a turn could not go on is told once, in the stream as in the line", async () => {
  const world = turn();
  const reason = "qwen3:32b did not take the request: the model's server answered 400: qwen3:32b refused the request: no tools here. Your message is kept.";
  Object.assign(world.chats.find((one) => one.id === "flaky"), { running: false, progress: { phase: "failed", since: Date.now(), reason } });
  world.items.flaky.push({ seq: 9, turn: 2, time: Date.now(), kind: "mid", tone: "bad", html: `The turn could not go on: ${reason.replaceAll("'", "&#39;")}` });
  const it = await open(world, "/c/flaky");
  const once = "qwen3:32b refused the request: no tools here. Your message is kept.";
  assert.equal(flat(await it.page.locator(".mid.is-bad").textContent()), `The turn could not go on: ${once}`);
  assert.equal(await line(it.page), once);
  await it.close();
});

test("back to before a message: its words are a draft again, what was said stays readable, files are not touched", async () => {
  const world = turn();
  Object.assign(world.chats.find((one) => one.id === "flaky"), { running: false, progress: { phase: "stopped", by: "you", since: Date.now(), ms: 900, commands: 0 } });
  const it = await open(world, "/c/flaky", { width: 320, height: 640 });
  const { page, hub } = it;
  await page.getByRole("button", { name: "Back to before this message" }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByText("This takes back the messages, not the changes to files. 2 files were changed and stay changed.").waitFor();
  // The answer is lost: the sheet stays, and the same press again is the same work.
  const mend = hub.fault("POST", /\/rewind$/, "answer");
  await sheet.getByRole("button", { name: "Take them back" }).click();
  await sheet.getByRole("alert").waitFor();
  mend();
  await sheet.getByRole("button", { name: "Take them back" }).click();
  await sheet.waitFor({ state: "detached" });
  const calls = hub.calls("POST", /\/rewind$/);
  assert.equal(new Set(calls.map((call) => call.body.key)).size, 1);
  assert.equal(calls[0].body.seq, 4);
  assert.equal(hub.world.items.flaky.filter((item) => item.kind === "rewound").length, 1, "done once");
  await until(async () => (await page.locator("#message").inputValue()) === "Now the rest.", "its words are in the box");
  await until(async () => (await page.evaluate(() => document.activeElement?.id)) === "message", "the box has the focus");
  await page.getByText("1 message was taken back. Changes to files stay.").waitFor();
  assert.equal(await page.getByText("A wrong answer.").count(), 0);
  await page.getByText("Done so far.").waitFor();
  await page.getByRole("button", { name: "Show them" }).click();
  await page.getByText("A wrong answer.").waitFor();
  assert.equal(await page.locator(".entry.is-back").count(), 5);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
  await page.getByRole("button", { name: "Hide them" }).click();
  assert.equal(await page.getByText("A wrong answer.").count(), 0);
  // Kept like any draft, and the same after a reload.
  await page.reload();
  await page.getByText("1 message was taken back.").waitFor();
  assert.equal(await page.locator("#message").inputValue(), "Now the rest.");
  assert.equal(await page.getByText("A wrong answer.").count(), 0);
  await it.close();
});

test("a computer that cannot go back is not asked to", async () => {
  const world = turn();
  Object.assign(world.chats.find((one) => one.id === "flaky"), { running: false, rewind: undefined, progress: { phase: "stopped", by: "you", since: Date.now(), ms: 900 } });
  const it = await open(world, "/c/flaky");
  await it.page.getByRole("button", { name: "Say what was wrong" }).waitFor();
  assert.equal(await it.page.getByRole("button", { name: "Back to before this message" }).count(), 0);
  await it.close();
});

test("Stop holds what waits, says so, and what is written next goes before it", async () => {
  const it = await open(turn(), "/c/flaky", { width: 320, height: 640 });
  const { page, hub } = it;
  await page.locator("#message").fill("And a changelog.");
  await page.getByRole("button", { name: "After this turn" }).click();
  await page.locator(".queue").filter({ hasText: "And a changelog." }).waitFor();
  hub.onStop = () => hub.chat("flaky", { running: false, progress: { phase: "stopped", by: "you", since: Date.now(), ms: 20 } });
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.locator(".queue").filter({ hasText: "Held since you stopped: And a changelog." }).waitFor();
  assert.equal(hub.world.items.flaky.filter((item) => item.kind === "said").length, 2, "nothing was sent");
  await page.getByRole("button", { name: "Send now: And a changelog." }).click();
  await until(() => hub.world.items.flaky.some((item) => item.text === "And a changelog."));
  await it.close();
});

test("a model that is down: tried now, another one, stopped", async () => {
  const world = turn();
  Object.assign(world.chats.find((one) => one.id === "flaky"), { progress: { phase: "retrying", model: "m1", attempt: 3, of: 5, reason: "connection refused", at: Date.now() + 34_000, since: Date.now() } });
  const it = await open(world, "/c/flaky", { width: 320, height: 640 });
  const { page, hub } = it;
  await until(async () => /^qwen3-32b does not answer \(connection refused\)\. Attempt 3 of 5, next in 3\d s\.$/.test(await line(page)), "which model, why, the attempt, when");
  hub.onRetry = (chat) => hub.chat(chat.id, { progress: { phase: "waiting_for_model", model: "m1", since: Date.now() } });
  await page.getByRole("button", { name: "Try now" }).click();
  await until(async () => (await line(page)).startsWith("waiting for qwen3-32b"), "the wait ended");
  hub.chat("flaky", { progress: { phase: "retrying", model: "m1", attempt: 4, of: 5, reason: "connection refused", at: Date.now() + 34_000, since: Date.now() } });
  await page.getByRole("button", { name: "Use another model" }).click();
  await page.getByRole("dialog").getByLabel(/qwen3-coder/).check();
  await page.getByRole("dialog").getByRole("button", { name: "Done" }).click();
  await until(() => hub.calls("PATCH", /^\/chats\/flaky$/).some((call) => call.body.model === "m2"));
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await until(() => hub.calls("POST", /\/stop$/).length === 1);
  await it.close();
});

test("no quota: until when, and a person can say that they wait", async () => {
  const world = turn();
  Object.assign(world.chats.find((one) => one.id === "flaky"), { progress: { phase: "retrying", model: "m1", attempt: 2, of: 5, quota: true, reason: "429", at: Date.now() + 1_500_000, since: Date.now() } });
  const it = await open(world, "/c/flaky");
  const { page } = it;
  await until(async () => /^qwen3-32b has no quota left until 1[23]:\d\d\.$/.test(await line(page)), "a clock time");
  await page.getByRole("button", { name: "Wait until then" }).click();
  await until(async () => (await line(page)).endsWith("It goes on by itself then."), "the wait is said");
  assert.equal(await page.getByRole("button", { name: "Use another model" }).count(), 0);
  await page.getByRole("button", { name: "Try now" }).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
  await it.close();
});

test("given up: the message is kept, and goes again at a press", async () => {
  const world = turn();
  Object.assign(world.chats.find((one) => one.id === "flaky"), { running: false, progress: { phase: "failed", since: Date.now(), reason: "qwen3-32b did not answer 5 times in 2 min (connection refused). Your message is kept." } });
  const it = await open(world, "/c/flaky");
  const { page, hub } = it;
  await until(async () => (await line(page)) === "qwen3-32b did not answer 5 times in 2 min (connection refused). Your message is kept.");
  await page.getByRole("button", { name: "Send again" }).click();
  await until(() => hub.calls("POST", /\/messages$/).length === 1);
  assert.equal(hub.calls("POST", /\/messages$/)[0].body.text, "Now the rest.");
  await it.close();
});
