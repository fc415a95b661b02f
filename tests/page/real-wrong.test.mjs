// The real program when a turn goes wrong or asks: questions of the agent answered on the page, in the terminal, by a
// second browser and after a restart; Stop with what waits; back to before a message; a model that is down. LEMBAS names
// the binary; without it there is nothing to test here.
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chrome, quit, until } from "./rig.mjs";
import { Program, skip } from "./program.mjs";
import { ScriptedModel } from "./model.mjs";

const PORTS = { question: "Which port shall the server use?", header: "Port", options: [{ label: "8080", description: "the usual one" }, { label: "3000" }] };
const model = new ScriptedModel({
  port: [{ calls: [["ask_user", PORTS]] }, { text: "As you wish." }],
  parts: [{ calls: [["ask_user", { question: "Which parts shall be tested?", options: [{ label: "the login" }, { label: "the search" }, { label: "the export" }], multiple: true }]] }, { text: "Those." }],
  both: [{ calls: [["ask_user", PORTS], ["ask_user", { question: "In which folder?", options: [{ label: "src" }, { label: "lib" }] }]] }, { text: "Both heard." }],
  edit: [{ calls: [["write", { path: "wrong.md", content: "wrong\n" }]] }, { calls: [["bash", { command: "sleep 300", purpose: "wait" }]] }, { text: "Never said." }],
  down: [{ status: 503, text: "no GPU is free" }, { text: "Never said." }],
  fine: [{ text: "All is fine." }],
});
const it = !skip && new Program();
let context = null;
let page = null;
let scripted = null;
const errors = [];

before(async () => {
  if (skip) return;
  await model.start();
  await it.start();
  it.run("roots", "add", it.project);
  context = await (await chrome()).newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(20_000);
  page = await context.newPage();
  page.on("pageerror", (error) => errors.push(error.stack ?? error.message));
  await it.signIn(page);
  await it.api("POST", "/models", { name: "scripted", url: model.url, model: "scripted", tools: true, vision: false, context: 32768 });
  await until(async () => (await it.state()).devices[0].limits.roots.length > 0, "the folder is heard of");
  scripted = (await it.state()).models.find((one) => one.name === "scripted").id;
});

after(async () => {
  await context?.close();
  await quit();
  await model.stop();
  if (it) await it.stop();
});

/** What the model was sent last, as one text. */
const sent = () => JSON.stringify(model.requests.at(-1).messages);
const open = async (text) => {
  const chat = await it.chat(text, { model: scripted, mode: "edit" });
  await page.goto(`${it.url}/c/${chat.id}`);
  return chat;
};

test("a question answered on the page: a choice and words, and the model reads both", { skip }, async () => {
  await open("!port Start the server.");
  const card = page.locator("l-ask");
  await card.getByText("Which port shall the server use?").waitFor();
  await card.getByLabel("3000").check();
  await card.getByLabel("Or in your own words").fill("as it was before");
  await until(async () => {
    await card.getByRole("button", { name: "Answer", exact: true }).click({ timeout: 2_000 }).catch(() => {});
    return !(await card.getByRole("button", { name: "Answer", exact: true }).count());
  }, "the answer is taken", 15_000);
  await page.getByText("As you wish.", { exact: true }).waitFor();
  await card.getByText(/Answered at/).waitFor();
  await card.getByText("3000").first().waitFor();
  assert.match(sent(), /3000/);
  assert.match(sent(), /as it was before/);
});

test("several can be chosen, and a question answered in the terminal is settled on the page", { skip }, async () => {
  const chat = await open("!parts Test it.");
  await page.locator("l-ask").getByText("Which parts shall be tested?").waitFor();
  const ask = await until(() => JSON.parse(it.run("asks", "--json")).asks?.find((one) => one.session === chat.id), "a question in the terminal");
  it.run("answer", ask.ask, "allow", "--choose", "the login", "--choose", "3", "--note", "the rest tomorrow");
  await page.getByText("Those.", { exact: true }).waitFor();
  assert.equal(await page.locator("l-ask").getByRole("button", { name: "Answer", exact: true }).count(), 0);
  for (const words of [/the login/, /the export/, /the rest tomorrow/]) assert.match(sent(), words);
});

test("two questions at once, one of them answered by a second browser", { skip }, async () => {
  const chat = await open("!both Set it up.");
  const token = JSON.parse(it.run("up", "--no-open", "--json")).token;
  const other = await (await chrome()).newContext({ viewport: { width: 390, height: 800 } });
  const second = await other.newPage();
  await second.goto(`${it.url}/in/${token}`);
  await second.getByRole("heading", { level: 1 }).first().waitFor();
  await second.goto(`${it.url}/c/${chat.id}`);
  for (const [at, words, choice] of [[page, "In which folder?", "lib"], [second, "Which port", "8080"]]) {
    const card = at.locator("l-ask").filter({ hasText: words });
    await card.waitFor({ timeout: 20_000 });
    await card.getByLabel(choice).check();
    await until(async () => {
      await card.getByRole("button", { name: "Answer", exact: true }).click({ timeout: 2_000 }).catch(() => {});
      return !(await card.getByRole("button", { name: "Answer", exact: true }).count());
    }, `${words} is answered`, 15_000);
  }
  for (const at of [page, second]) await at.getByText("Both heard.", { exact: true }).waitFor({ timeout: 20_000 });
  assert.match(sent(), /8080/);
  assert.match(sent(), /lib/);
  await other.close();
});

test("Stop with a message that waits: it is held, the changes are shown, and the messages are taken back", { skip }, async () => {
  const chat = await open("!edit Write it.");
  await page.locator("details.step[data-status=running]").waitFor();
  await page.locator("#message").fill("!fine And then this.");
  await page.getByRole("button", { name: "After this turn" }).click();
  await page.locator(".queue").filter({ hasText: "And then this." }).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.locator("l-progress").getByText(/^Stopped (after .*s|at once)\. 1 command ended\. 1 file was changed and stays changed\.$/).waitFor();
  await page.locator(".queue").filter({ hasText: "Held since you stopped: !fine And then this." }).waitFor();
  await page.getByRole("button", { name: "Show the changes" }).click();
  await page.getByRole("dialog").locator("tr.add").filter({ hasText: "wrong" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Back to before this message" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Take them back" }).click();
  await page.getByText("1 message was taken back. Changes to files stay.").waitFor();
  await until(async () => (await page.locator("#message").inputValue()) === "!edit Write it.", "its words are a draft again");
  assert.equal(readFileSync(join(it.project, "wrong.md"), "utf8"), "wrong\n", "files are not touched");
  assert.ok(existsSync(join(it.project, "wrong.md")));
  // What is written next goes before what is held, and the model hears nothing of what was taken back.
  await page.locator("#message").fill("!fine Something else.");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("All is fine.", { exact: true }).waitFor();
  assert.match(sent(), /Something else/);
  assert.doesNotMatch(sent(), /Write it|wrong\.md/);
  await page.getByRole("button", { name: /^Send now: / }).click();
  await until(async () => (await it.api("GET", `/chats/${chat.id}`)).queue.length === 0 && /And then this/.test(sent()), "it goes at a press", 20_000);
});

test("a model that is down: which, why, and another one goes on with the same turn", { skip }, async () => {
  const chat = await open("!down What now?");
  await page.locator("l-progress").getByText(/^scripted failed \(503\)\. Attempt \d of 5, /).waitFor();
  await page.getByRole("button", { name: "Try now" }).waitFor();
  await page.getByRole("button", { name: "Use another model" }).click();
  await page.getByRole("dialog").getByLabel(/practice model/).check();
  await page.getByRole("dialog").getByRole("button", { name: "Done" }).click();
  // The same turn goes on: nothing was said again, and the other model answers.
  const got = await until(async () => {
    const now = await it.api("GET", `/chats/${chat.id}`);
    return now.items.some((one) => one.kind === "text") && now;
  }, "the other model answers", 30_000);
  assert.equal(got.items.filter((one) => one.kind === "said").length, 1, "the same turn");
  assert.equal(got.chat.model, "practice");
});

test("a question outlives a restart of the program", { skip }, async () => {
  const chat = await open("!port Start it again.");
  await page.locator("l-ask").getByText("Which port shall the server use?").waitFor();
  await it.end();
  await it.start();
  await page.goto(`${it.url}/c/${chat.id}`);
  const card = page.locator("l-ask");
  await card.getByLabel("8080").check();
  await until(async () => {
    await card.getByRole("button", { name: "Answer", exact: true }).click({ timeout: 2_000 }).catch(() => {});
    return !(await card.getByRole("button", { name: "Answer", exact: true }).count());
  }, "the answer is taken", 15_000);
  await page.getByText("As you wish.", { exact: true }).waitFor();
  assert.match(sent(), /8080/);
  assert.deepEqual(errors, []);
});
