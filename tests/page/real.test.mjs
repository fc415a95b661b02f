// The real program in a real browser: `lembas up`, sign in by the one-time link, a practice chat in
// a folder, an approval on the page, a reload in the middle, Stop. LEMBAS names the binary; without
// it there is nothing to test here.
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chrome, quit, until } from "./rig.mjs";

const binary = process.env.LEMBAS && resolve(process.env.LEMBAS);
const skip = !binary && "LEMBAS does not name the program";
const base = mkdtempSync(join(tmpdir(), "lembas-real-"));
const project = join(base, "project");
const env = { PATH: process.env.PATH, HOME: base, LEMBAS_DATA: join(base, "data"), LANG: "C.UTF-8", SHELL: "/bin/bash" };
let up = null;
let said = null;
let context = null;
let page = null;
const errors = [];

const run = (...words) => execFileSync(binary, words, { env, cwd: project, encoding: "utf8" });

before(async () => {
  if (skip) return;
  mkdirSync(project);
  writeFileSync(join(project, "README.md"), "# A project\n");
  up = spawn(binary, ["up", "--listen", "127.0.0.1:0", "--no-open", "--json"], { env, cwd: project, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: up.stdout })) {
    said = JSON.parse(line);
    break;
  }
  run("roots", "add", project);
  context = await (await chrome()).newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(20_000);
  page = await context.newPage();
  page.on("pageerror", (error) => errors.push(error.stack ?? error.message));
});

after(async () => {
  await context?.close();
  await quit();
  if (up) {
    const ended = new Promise((done) => up.once("exit", done));
    up.kill("SIGTERM");
    await ended;
  }
  rmSync(base, { recursive: true, force: true });
});

test("the first run: one line of JSON, one link, signed in", { skip }, async () => {
  assert.equal(said.ok, true);
  assert.equal(said.state, "started");
  await page.goto(`${said.url}/in/${said.token}`);
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
  assert.equal(existsSync(join(project, "lembas-practice.md")), false, "nothing was written before the yes");
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
  assert.equal(existsSync(join(project, "lembas-practice.md")), true, "the edit was made");
  const text = await page.locator("main").innerText();
  assert.match(text, /Allowed by/);
  assert.deepEqual(errors, []);
});

test("the terminal sees the same chat and the log says who allowed what", { skip }, async () => {
  const status = JSON.parse(run("status", "--json"));
  assert.equal(status.ok, true);
  assert.equal(status.linked.state, "linked");
  const log = run("log");
  assert.match(log, /allowed/);
});

test("an ask answered in the terminal is settled on the page", { skip }, async () => {
  await page.goto(said.url);
  await page.getByRole("heading", { name: "Computers" }).first().waitFor();
  const state = await (await page.request.get(`${said.url}/api/v2/state`)).json();
  const made = await page.request.post(`${said.url}/api/v2/chats`, {
    headers: { "x-lembas": "1", origin: said.url },
    data: { device: state.devices[0].id, cwd: project, model: "practice", mode: "manual", text: "Show me everything.", key: "real-test-2" },
  });
  assert.equal(made.status(), 200, await made.text());
  const { chat } = await made.json();
  await page.goto(`${said.url}/c/${chat.id}`);
  await page.getByRole("button", { name: "Allow once" }).first().waitFor();
  const ask = await until(() => JSON.parse(run("asks", "--json")).asks?.find((open) => open.session === chat.id), "an ask in the terminal");
  run("answer", ask.ask, "refuse", "--note", "not in this folder");
  const main = page.locator("main");
  await until(async () => /refused/i.test(await main.innerText()), "the page says how it was settled", 15_000).catch(async (error) => {
    throw new Error(`${error.message}\n${await main.innerText()}`);
  });
  assert.deepEqual(errors, []);
});
