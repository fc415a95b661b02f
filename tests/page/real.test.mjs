// The real program in a real browser: `lembas up`, sign in by the one-time link, practice and scripted chats in a folder,
// approvals, Stop, models, limits, watches; and that what the hub says has the shapes of shapes.mjs. LEMBAS names the
// binary; without it there is nothing to test here. Not here: how places look (looks.test.mjs).
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { chrome, quit, slower, until } from "./rig.mjs";
import { Program, skip } from "./program.mjs";
import { ScriptedModel } from "./model.mjs";
import { misfits, misfitsIn } from "./shapes.mjs";
import { TEXTS } from "../../src/hub/web/texts.js";

// Far more than memory and the journal hold of an output.
const HUGE = 30_000_000;

const model = new ScriptedModel({
  allow: [{ calls: [["bash", { command: "git push origin main", purpose: "push" }]] }, { text: "As you say." }],
  edit: [{ calls: [["write", { path: "notes.md", content: "one\ntwo\n" }]] }, { text: "Written." }],
  sleep: [{ calls: [["bash", { command: "sleep 300", purpose: "wait" }]] }, { text: "Never said." }],
  big: [{ calls: [["bash", { command: "seq 1 60000", purpose: "count" }]] }, { text: "Counted." }],
  broken: [{ status: 400, text: "this model cannot do that" }],
  huge: [{ calls: [["bash", { command: `head -c ${HUGE} /dev/zero | tr '\\0' 'x' | tee all.txt`, purpose: "write much" }]] }, { text: "Much." }],
  always: [{ calls: [["bash", { command: "git push origin always", purpose: "push" }]] }, { text: "Pushed or not." }],
  sources: [
    { calls: [["read", { path: "README.md" }]] }, { calls: [["bash", { command: "echo hi > here", purpose: "write" }]] }, { calls: [["bash", { command: "git push origin all", purpose: "push" }]] },
    ...["a", "a", "b", "b"].map((name) => ({ calls: [["bash", { command: `curl -s http://127.0.0.1:9/${name}`, purpose: "fetch" }]] })), { text: "All of it." },
  ],
  two: [{ calls: [["bash", { command: "git push origin one", purpose: "push" }], ["bash", { command: "git push origin two", purpose: "push" }]] }, { text: "Done." }],
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
});

after(async () => {
  await context?.close();
  await quit();
  await model.stop();
  if (it) await it.stop();
});

/** Presses a button of an ask's card until the press counts: what a layout moved just then is pressed again. */
async function press(card, name) {
  const button = card.getByRole("button", { name, exact: true });
  await until(async () => {
    if (!(await button.count())) return true;
    await button.click({ timeout: 2_000 }).catch(() => {});
    return (await page.getByRole("dialog").count()) > 0 || !(await button.count());
  }, `${name} is taken`, 15_000);
}

test("the first run: one line of JSON, one link, signed in", { skip }, async () => {
  const { said } = it;
  assert.equal(said.ok, true);
  assert.equal(said.state, "started");
  await it.signIn(page);
  await page.getByText("Try it without a key").waitFor();
  await page.getByText("up to Edit").first().waitFor();
  const stranger = await fetch(`${said.url}/in/${said.token}`, { redirect: "manual" });
  assert.match(stranger.headers.get("location") ?? "", /signin/, "the link works once");
  assert.equal(stranger.headers.get("set-cookie"), null);
});

test("a practice chat streams, asks, and goes on after a yes on the page", { skip }, async () => {
  await page.getByRole("button", { name: "Start a practice chat" }).click();
  await page.waitForURL(/\/c\//);
  const allow = page.getByRole("button", { name: "Allow once" });
  await allow.first().waitFor();
  assert.equal(existsSync(join(it.project, "lembas-practice.md")), false, "nothing was written before the yes");
  // A reload in the middle of the turn loses nothing.
  await page.locator("main").getByText("Show me everything.").first().waitFor();
  const before = (await page.locator("main").innerText()).match(/Show me everything\.|You wrote/g)?.length ?? 0;
  await page.reload();
  await allow.first().waitFor();
  assert.ok(before > 0);
  await until(async () => (await page.locator("main").innerText()).includes("Show me everything."), "the words are there again", 15_000);
  // Yes to whatever it asks until the turn has ended.
  await until(async () => {
    const buttons = await allow.all();
    for (const button of buttons) if (await button.isEnabled().catch(() => false)) await button.click({ timeout: 2_000 }).catch(() => {});
    const stop = await page.getByRole("button", { name: "Stop", exact: true }).count();
    return stop === 0;
  }, "the turn ends", 60_000);
  assert.equal(existsSync(join(it.project, "lembas-practice.md")), true, "the edit was made");
  const text = await page.locator("main").innerText();
  assert.match(text, /Allowed by/);
  assert.deepEqual(errors, []);
});

test("the terminal sees the same chat and the log says who allowed what", { skip }, async () => {
  const status = JSON.parse(it.run("status", "--json"));
  assert.equal(status.ok, true);
  assert.equal(status.linked.state, "linked");
  const log = it.run("log");
  assert.match(log, /allowed/);
});

test("an ask answered in the terminal is settled on the page", { skip }, async () => {
  const chat = await it.chat("Show me everything.", { mode: "manual" });
  await page.goto(`${it.url}/c/${chat.id}`);
  await page.getByRole("button", { name: "Allow once" }).first().waitFor();
  const ask = await until(() => JSON.parse(it.run("asks", "--json")).asks?.find((open) => open.session === chat.id), "an ask in the terminal");
  it.run("answer", ask.ask, "refuse", "--note", "not in this folder");
  const main = page.locator("main");
  await until(async () => /refused/i.test(await main.innerText()), "the page says how it was settled", 15_000).catch(async (error) => {
    throw new Error(`${error.message}\n${await main.innerText()}`);
  });
  // After a reload the list of answers still has it, with who and where.
  await page.goto(`${it.url}/approvals`);
  await page.getByText(/Settled elsewhere: refused by you, on /).first().waitFor();
  assert.deepEqual(errors, []);
});

test("a model is tried, then added; a wrong one says why", { skip }, async () => {
  await page.goto(`${it.url}/settings`);
  await page.getByRole("button", { name: "Add a model" }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByLabel("Address").fill(model.url);
  await sheet.getByLabel("Name of the model there").fill("scripted");
  await sheet.getByRole("button", { name: "Try it" }).click();
  await sheet.getByRole("status").filter({ hasText: /answers in/ }).waitFor();
  await sheet.getByRole("button", { name: "Save it" }).click();
  await page.getByText("scripted is added.").waitFor();
  scripted = (await it.state()).models.find((one) => one.name === "scripted").id;
  const row = page.locator("#models .row").filter({ hasText: "scripted" });
  assert.doesNotMatch(await row.getAttribute("class"), /is-bad/, "a model that answers is not shown as failed");
  assert.doesNotMatch(await page.locator("#models .row").filter({ hasText: "practice" }).getAttribute("class"), /is-bad/);
});

test("yes with a word: the next model request holds it", { skip }, async () => {
  const chat = await it.chat("!allow Push it.", { model: scripted, mode: "edit" });
  await page.goto(`${it.url}/c/${chat.id}`);
  const card = page.locator("l-ask").first();
  await card.getByRole("button", { name: "Allow, and…" }).waitFor();
  await press(card, "Allow, and…");
  await page.getByRole("dialog").getByRole("textbox").fill("and tell me which commit it was");
  await page.getByRole("dialog").getByRole("button", { name: "Allow once" }).click();
  await page.getByText("As you say.", { exact: true }).waitFor();
  assert.match(JSON.stringify(model.requests.at(-1).messages), /and tell me which commit it was/);
  await page.getByText(/Allowed by you at/).waitFor();
});

test("what let each call run: the page's line is the computer's own, from five sources", { skip }, async () => {
  const chat = await it.chat("!sources Do all of it.", { model: scripted, mode: "edit" });
  for (const [part, scope] of [["origin all", "once"], ["/a", "session"], ["/b", "always"]]) {
    await it.answer(await it.ask(chat.id, (ask) => ask.command.includes(part)), "allow", { scope });
  }
  const { items } = await it.ended(chat.id);
  const steps = items.filter((one) => one.kind === "step");
  assert.deepEqual(steps.map((one) => [one.ran.source, one.ran.text]), [
    ["read", "plain read"],
    ["mode", "Edit mode, in the box"],
    ["once", "you allowed it once"],
    ["session", "you allowed curl -s http://127.0.0.1:9/a for this session"],
    ["session", "you allowed curl -s http://127.0.0.1:9/a for this session"],
    ["rule", steps[5].ran.text],
    ["rule", steps[6].ran.text],
  ]);
  for (const { ran } of steps.slice(5)) assert.match(ran.text, /^you allowed curl -s http:\/\/127\.0\.0\.1:9\/b in this folder on \d+ [A-Z][a-z]{2}$/);
  await page.goto(`${it.url}/c/${chat.id}`);
  const lines = page.locator("details.step .facts");
  await lines.nth(6).waitFor();
  const told = (await lines.allTextContents()).map((line) => line.split("·").at(-1).trim());
  assert.deepEqual(told, steps.map((one) => `ran: ${one.ran.text}`));
  // The log of the computer has the same decisions.
  const log = it.run("log", "-n", "200", "--json").trim().split("\n").map((line) => JSON.parse(line)).filter((one) => one.session === chat.id);
  assert.deepEqual(log.filter((one) => one.verdict.startsWith("allowed")).map((one) => one.verdict), ["allowed once", "allowed for the session", "allowed always"]);
  assert.equal(log.filter((one) => one.verdict === "ran").length, 6, "each that was not a plain read");
});

test("the stream of events comes at once, whole and as it is", { skip }, async () => {
  const cookie = (await context.cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  const pace = await slower(page);
  const start = performance.now();
  const { response, took } = await new Promise((done, failed) => {
    const request = get(`${it.url}/api/v2/events?after=0`, { headers: { cookie, "accept-encoding": "gzip, br" } }, (answer) => answer.once("data", () => done({ response: answer, took: performance.now() - start })));
    request.on("error", failed);
  });
  assert.equal(response.statusCode, 200);
  assert.match(response.headers["cache-control"], /no-transform/);
  assert.equal(response.headers["content-encoding"], undefined);
  assert.ok(took <= 100 * pace, `first byte after ${took} ms, pace ${pace}`);
  response.destroy();
});

test("two asks at once: each card answers for itself, and each ends", { skip }, async () => {
  const chat = await it.chat("!two Push both.", { model: scripted, mode: "edit" });
  await page.goto(`${it.url}/c/${chat.id}`);
  await page.locator("l-ask").first().waitFor();
  for (const name of ["two", "one"]) {
    const card = page.locator("l-ask").filter({ has: page.locator(".cmd", { hasText: `origin ${name}` }) });
    await card.waitFor();
    await press(card, "Refuse…");
    await page.getByRole("dialog").getByRole("textbox").fill(`not ${name}`);
    await page.getByRole("dialog").getByRole("button", { name: "Refuse", exact: true }).click();
    await card.getByText(/Refused by you at/).waitFor();
  }
  await page.getByText("Done.", { exact: true }).waitFor();
  const last = JSON.stringify(model.requests.at(-1).messages);
  assert.match(last, /not one/);
  assert.match(last, /not two/);
});

test("an edit is readable before the yes on a phone, and its totals stand after it", { skip }, async () => {
  await page.setViewportSize({ width: 320, height: 640 });
  const chat = await it.chat("!edit Write the notes.", { model: scripted, mode: "manual" });
  await page.goto(`${it.url}/c/${chat.id}`);
  const card = page.locator("l-ask").first();
  await card.locator("table.diff tr.add").first().waitFor();
  assert.equal(existsSync(join(it.project, "notes.md")), false);
  await press(card, "Allow once");
  await page.getByText("Written.", { exact: true }).waitFor();
  await page.locator(".step .plus", { hasText: "+2" }).first().waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("Stop says how long it took and what it ended", { skip }, async () => {
  const chat = await it.chat("!sleep Wait.", { model: scripted, mode: "edit" });
  await page.goto(`${it.url}/c/${chat.id}`);
  await page.locator("details.step[data-status=running]").waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.locator("l-progress").getByText(/Stopped (after .*s|at once)\. 1 command ended\./).waitFor();
  const { items } = await it.ended(chat.id);
  assert.equal(items.find((one) => one.kind === "step").status, "cancelled");
});

test("a long output: three lines on the card, more at a press, and the download is the whole", { skip }, async () => {
  const chat = await it.chat("!big Count.", { model: scripted, mode: "edit" });
  const got = await it.ended(chat.id);
  const step = got.items.find((one) => one.kind === "step");
  assert.ok(JSON.stringify(got).length < 64 * 1024, "little goes to the page before a press");
  await page.goto(`${it.url}/c/${chat.id}`);
  await page.locator("details.step > summary").first().click();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText(/first .* of/).waitFor();
  const whole = Array.from({ length: 60_000 }, (_, i) => `${i + 1}\n`).join("");
  const body = await (await it.request.get(`${it.url}${step.download}`)).text();
  const hash = (text) => createHash("sha256").update(text).digest("hex");
  assert.equal(hash(body), hash(whole), `${body.length} of ${whole.length}`);
  assert.deepEqual(misfits("stretch", await it.api("GET", `/chats/${chat.id}/output/${step.call}?from=0`)), []);
});

test("a very long output: little before a press, and Download all gives every byte", { skip }, async () => {
  const chat = await it.chat("!huge Write much.", { model: scripted, mode: "edit" });
  const got = await it.ended(chat.id, 90_000);
  const step = got.items.find((one) => one.kind === "step");
  assert.equal(step.bytes, HUGE);
  assert.ok(step.kept < 8_000_000, `of it ${step.kept} went to the hub unasked`);
  assert.ok(JSON.stringify(got).length < 64 * 1024, "little goes to the page before a press");
  await page.goto(`${it.url}/c/${chat.id}`);
  await page.locator("details.step > summary").first().click();
  await page.getByText(/30\.0.MB in all, of which .* are stored here/).waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download all" }).click()]);
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of await file.createReadStream()) {
    size += chunk.length;
    hash.update(chunk);
  }
  const whole = createHash("sha256").update(readFileSync(join(it.project, "all.txt")));
  assert.equal(size, HUGE);
  assert.equal(hash.digest("hex"), whole.digest("hex"));
});

test("always, on the page: the row is there within a second; Remove, and the same command asks again", { skip }, async () => {
  it.run("approvals", "full");
  await until(async () => (await it.state()).devices[0].limits.approvals === "full" && (await it.state()).devices[0].state === "online", "it is heard of");
  const settings = await page.context().newPage();
  await settings.goto(`${it.url}/settings`);
  await settings.getByText(/^(Nothing is allowed|Allowed) on .* without asking/).waitFor();
  const row = settings.locator("[data-rule]").filter({ hasText: "git push origin always" });
  assert.equal(await row.count(), 0);
  const second = 1_000 * await slower(page);
  const ask = async () => {
    const chat = await it.chat("!always Push it.", { model: scripted, mode: "edit" });
    await page.goto(`${it.url}/c/${chat.id}`);
    return chat;
  };
  await ask();
  const card = page.locator("l-ask").first();
  await card.getByRole("button", { name: "Allow always…" }).waitFor();
  await press(card, "Allow always…");
  await page.getByRole("dialog").getByRole("button", { name: "Always", exact: true }).click();
  await page.getByText(/Allowed by you at/).first().waitFor();
  await row.waitFor({ timeout: second });
  await row.getByText(/last used/).waitFor();
  await page.getByText("Pushed or not.", { exact: true }).waitFor();
  // The next time nobody is asked, and the card says on whose word it ran.
  const next = await ask();
  const ended = await it.ended(next.id);
  assert.equal(ended.items.find((one) => one.kind === "step").ran.source, "rule");
  assert.match(it.run("rules", "list"), /exactly git push origin always/);
  await row.getByRole("button", { name: /^Remove/ }).click();
  await row.waitFor({ state: "detached", timeout: second });
  assert.equal(await settings.getByRole("dialog").count(), 0);
  const third = await ask();
  const again = await it.ask(third.id);
  assert.equal(again.command, "git push origin always");
  await it.answer(again, "refuse");
  await it.ended(third.id);
  it.run("approvals", "once");
  await until(async () => (await it.state()).devices[0].limits.approvals === "once", "it is heard of");
  await settings.close();
});

test("a model that fails: why, another model, and the same words again", { skip }, async () => {
  const chat = await it.chat("!broken What now?", { model: scripted });
  await it.ended(chat.id);
  await page.goto(`${it.url}/c/${chat.id}`);
  await page.locator("l-progress").getByText(/cannot do that.*Your message is kept/).waitFor();
  await page.getByRole("button", { name: "Use another model" }).click();
  await page.getByRole("dialog").getByLabel(/practice model/).check();
  await page.getByRole("dialog").getByRole("button", { name: "Done" }).click();
  await until(async () => (await it.api("GET", `/chats/${chat.id}`)).chat.model === "practice", "the computer took the model");
  await page.getByRole("button", { name: "Send again" }).click();
  await until(async () => (await it.api("GET", `/chats/${chat.id}`)).items.filter((one) => one.kind === "said").length === 2, "it was said again");
});

test("a watch on the page: the hash is the one of the bytes; a scheduled run opens its chat", { skip }, async () => {
  it.run("service", "scheduled", "on");
  await until(async () => (await it.state()).devices[0].limits.scheduled, "it is heard of");
  await page.goto(`${it.url}/schedules`);
  const watch = page.getByRole("form", { name: /watch/ });
  await watch.getByLabel("Command").fill("cat README.md");
  await watch.getByRole("button", { name: "Check now" }).click();
  await watch.getByText("first check").waitFor();
  await watch.getByText(/exit 0.· 12.bytes/).waitFor();
  await watch.locator(".out", { hasText: "# A project" }).waitFor();
  const first = await watch.locator(".hash").innerText();
  await watch.getByRole("button", { name: "Check now" }).click();
  await watch.getByText("unchanged").waitFor();
  it.write("README.md", "# Another project\n");
  await watch.getByRole("button", { name: "Check now" }).click();
  await watch.locator(".result").first().getByText("changed", { exact: true }).waitFor();
  assert.notEqual(await watch.locator(".hash").first().innerText(), first);
  const run = page.getByRole("form", { name: /Run once/ });
  await run.getByLabel("What should be done").fill("Say hello.");
  await run.getByRole("button", { name: "Run it once" }).click();
  await page.waitForURL(/\/c\//);
  assert.equal((await it.ended(page.url().split("/c/")[1])).chat.origin, "schedule");
});

test("two browsers see one truth, and one that is ended says why and keeps its draft", { skip }, async () => {
  const chat = await it.chat("!hi Hello.", { model: scripted, mode: "edit" });
  await it.ended(chat.id);
  await page.goto(`${it.url}/c/${chat.id}`);
  const token = JSON.parse(it.run("up", "--no-open", "--json")).token;
  const other = await (await chrome()).newContext({ viewport: { width: 1280, height: 900 } });
  const second = await other.newPage();
  await second.goto(`${it.url}/in/${token}`);
  await second.getByRole("heading", { level: 1 }).first().waitFor();
  await second.goto(`${it.url}/c/${chat.id}`);
  await second.locator("#message").fill("half a sentence");
  await it.api("PATCH", `/chats/${chat.id}`, { mode: "plan" });
  for (const one of [page, second]) await one.getByRole("button", { name: "Mode: Plan" }).waitFor();
  const { sessions } = await it.api("GET", "/sessions");
  assert.equal(sessions.length, 2);
  await it.api("DELETE", `/sessions/${sessions.find((one) => !one.this).id}`);
  await second.getByText(/signed out/i).first().waitFor();
  assert.equal(await second.evaluate((id) => localStorage.getItem(`lembas.draft.${id}`), chat.id), "half a sentence");
  await other.close();
});

test("each line to paste that the page shows is a command of the program", { skip }, () => {
  const shown = Object.values(TEXTS).flatMap((text) => [...text.matchAll(/`lembas ([a-z -]+)`/g)].map((match) => match[1].trim()));
  assert.ok(shown.length > 3);
  for (const words of [...shown, "roots add", "service scheduled", "link", "up", "help remote"]) {
    const [first, second] = words.split(" ");
    if (first === "help") it.run("help", second);
    else it.run(first, ...(["roots", "service"].includes(first) && second ? [second] : []), "--help");
  }
});

test("what the real hub says has the shapes that the fake one plays", { skip }, async () => {
  const state = await it.state();
  assert.deepEqual(misfits("state", state), []);
  assert.deepEqual(misfits("me", await it.api("GET", "/me")), []);
  assert.deepEqual(misfitsIn({ ...state, sessions: (await it.api("GET", "/sessions")).sessions }), []);
  assert.ok(state.asks.some((ask) => ask.state === "settled"), "those that ended are in the state");
  for (const chat of state.chats) assert.deepEqual(misfitsIn(await it.api("GET", `/chats/${chat.id}`)), [], chat.title);
  const device = state.devices[0].id;
  assert.deepEqual(misfits("folders", await it.api("GET", `/devices/${device}/directories`)), []);
  const rules = await it.api("GET", `/devices/${device}/rules`);
  assert.deepEqual([...misfits("rules", rules), ...misfitsIn({ rules: rules.rules })], []);
  assert.deepEqual(misfits("monitor", await it.api("POST", `/devices/${device}/monitor`, { cwd: it.project, command: "pwd", mode: "manual" })), []);
  const few = await it.api("GET", "/chats?limit=2");
  assert.deepEqual([few.chats.length, few.more], [2, true]);
  assert.equal((await it.api("GET", "/chats?limit=200")).more, false);
  assert.deepEqual(errors, []);
});
