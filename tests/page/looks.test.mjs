// Every place of the real program in its states, at three widths, light and dark: drawn, kept as a picture outside the
// project when LEMBAS_SHOTS names a folder, and by checks.mjs fit for everybody. Not here: what the parts do.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chrome, frames, quit, until } from "./rig.mjs";
import { axe, fit, landmarks } from "./checks.mjs";
import { Program, skip } from "./program.mjs";
import { ScriptedModel } from "./model.mjs";

const SHOTS = process.env.LEMBAS_SHOTS;
const SMALL = { width: 320, height: 640, touch: true };
const MIDDLE = { width: 768, height: 1024, touch: true };
const WIDE = { width: 1440, height: 900, touch: false };
const LONG = "a-name-that-somebody-once-gave-to-a-folder-and-that-nobody-has-shortened-since-then";
const SCRIPT = `set -e\nfor crate in api session clock; do\n    cargo update -p "$crate" --precise "$(cat vers/$crate)"\ndone\n${Array.from({ length: 30 }, (_, i) => `printf '%s\u00a0\\n' "line ${i} of a long script that goes on and on until it is wider than a phone" >> CHANGELOG.md`).join("\n")}`;

const model = new ScriptedModel({
  work: [
    { thought: "First the file, then the command.", text: "I read the file first.", calls: [["read", { path: "src/session.rs" }], ["grep", { pattern: "started", path: "src" }]] },
    { calls: [["bash", { command: "printf '\\033[32mok\\033[0m 1\\n\\033[31;1mFAILED\\033[0m 2\\n'; exit 3", purpose: "run the tests" }]] },
    { calls: [["edit", { path: "src/session.rs", old: "Utc::now()", new: "clock.now()" }]] },
    { calls: [["bash", { command: "seq 1 400", purpose: "count" }]] },
    { text: "All done.\n\n1. It takes the time from the clock.\n2. The limit is reached **at** one hour.\n\n```rust\nlet age = clock.now() - self.started; // a line that is a good deal wider than a phone\n```\n\n| file | lines |\n|---|---|\n| src/session.rs | 2 |\n\nSee `src/session.rs` and <https://example.com/a/very/long/address/that/does/not/fit/into/a/small/window>." },
  ],
  ask: [{ text: "I would push this now.", calls: [["bash", { command: SCRIPT, purpose: "update the crates" }]] }, { text: "Then not." }],
  two: [{ calls: [["bash", { command: "git push origin main", purpose: "push" }], ["bash", { command: "curl -s https://example.com", purpose: "fetch" }]] }, { text: "Done." }],
  hang: [{ text: "I begin, and then nothing is heard for a while.", gate: "hang" }],
  broken: [{ status: 400, text: "this model cannot do that" }],
});
const it = !skip && new Program();
const chats = {};
let browser = null;
let cookies = null;

before(async () => {
  if (skip) return;
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
  it.write("src/session.rs", "impl Session {\n    fn age(&self) {\n        let age = Utc::now() - self.started;\n    }\n}\n");
  it.write(`${LONG}/${LONG}/README.md`, "# deep\n");
  execFileSync("git", ["init", "-q"], { cwd: it.project });
  await model.start();
  await it.start();
  browser = await chrome();
});

after(async () => {
  model.open("hang");
  await quit();
  await model.stop();
  if (it) await it.stop();
});

/** A window of this size, signed in. */
async function window_({ width, height, touch }, signed = true) {
  const context = await browser.newContext({ viewport: { width, height }, hasTouch: touch, isMobile: touch, deviceScaleFactor: 1, colorScheme: "light" });
  context.setDefaultTimeout(15_000);
  if (signed && cookies) await context.addCookies(cookies);
  return context;
}

const wrong = [];
const check = (found, where) => wrong.push(...found.map((one) => `${where}: ${one}`));

/** Looks at what `page` shows, light and dark. */
async function look(page, name, size) {
  for (const scheme of ["light", "dark"]) {
    // Without transitions: colours are measured, not what they pass through.
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await frames(page, 3);
    if (SHOTS) await page.screenshot({ path: join(SHOTS, `${name}-${size.width}-${scheme}.png`) });
    // Between the small and the wide window only the room differs, and between the schemes only the colours.
    if (size.width !== 768) check(await axe(page, scheme === "dark" ? "colours" : "all"), `${name}, ${size.width} px, ${scheme}`);
  }
  check(await fit(page, size), `${name}, ${size.width} px`);
  check(await landmarks(page), `${name}, ${size.width} px`);
}

const calm = (page) => page.waitForFunction(() => document.querySelector("h1") && !document.querySelector("[aria-busy=true]"));

/** Looks at addresses in one window, and in `turned`, what it becomes when it is turned; `then` does something first. */
async function round(list, size, turned) {
  const context = await window_(size);
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.stack ?? error.message));
  for (const [name, path, then] of list) {
    await page.setViewportSize(size);
    await page.goto(it.url + path);
    await calm(page);
    await then?.(page, size);
    await look(page, name, size);
    if (!turned) continue;
    await page.setViewportSize(turned);
    await look(page, name, turned);
  }
  await context.close();
  assert.deepEqual(errors, []);
}

/** Looks at addresses in each size, the small and the wide window side by side. */
async function places(list) {
  await Promise.all([round(list, SMALL, MIDDLE), round(list, WIDE)]);
  // Told together: one look shows all there is to mend.
  assert.deepEqual(wrong.splice(0), []);
}

test("before anybody is signed in", { skip }, async () => {
  await places([
    ["signin", "/signin"],
    ["signin-used", "/signin?why=link_used"],
    ["signin-code", "/signin", async (page) => {
      await page.getByLabel("Name").fill("ana");
      await page.getByLabel("Password").fill("WDJB-MJHT");
      await page.getByText("That looks like a code for linking a computer.").waitFor();
    }],
    ["signin-wrong", "/signin", async (page) => {
      await page.getByLabel("Name").fill("ana");
      await page.getByLabel("Password").fill("not the password");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").filter({ hasText: /\S/ }).first().waitFor();
    }],
  ]);
});

test("the first run: no folder, then one", { skip }, async () => {
  const context = await window_(WIDE);
  const page = await context.newPage();
  await it.signIn(page);
  cookies = await context.cookies();
  await places([["first-no-folder", "/"], ["approvals-empty", "/approvals"], ["schedules-no-folder", "/schedules"]]);
  it.run("roots", "add", it.project);
  await until(async () => (await it.state()).devices[0].limits.roots.length > 0, "the folder is heard of");
  await places([["first", "/"], ["schedules-off", "/schedules"], ["missing", "/nowhere"], ["chat-gone", "/c/nope"]]);
});

test("a chat with everything in it", { skip }, async () => {
  await it.api("POST", "/models", { name: "scripted", url: model.url, model: "scripted", tools: true, vision: false, context: 32768 });
  const { models } = await it.state();
  const scripted = models.find((one) => one.name === "scripted").id;
  chats.work = await it.chat("!work The login test fails since yesterday. Find out why, fix it, and push when all tests pass.", { model: scripted, mode: "edit" });
  await it.ended(chats.work.id);
  chats.broken = await it.chat("!broken What now?", { model: scripted });
  await it.ended(chats.broken.id);
  chats.deep = await it.chat("!nothing in a deep folder", { model: scripted, cwd: join(it.project, LONG, LONG) });
  await it.ended(chats.deep.id);
  chats.practice = await it.chat("Show me everything.", { mode: "manual" });
  await it.ask(chats.practice.id);
  chats.ask = await it.chat("!ask Update the crates.", { model: scripted, mode: "edit" });
  await it.ask(chats.ask.id);
  chats.two = await it.chat("!two Push and fetch.", { model: scripted, mode: "manual" });
  await it.ask(chats.two.id);
  chats.hang = await it.chat("!hang Say something.", { model: scripted });
  await it.api("POST", `/chats/${chats.hang.id}/messages`, { key: "queued-0001", text: "And afterwards add a line to CHANGELOG.md, please, one that says what changed", when: "after" });
  await places([
    ["home", "/"],
    ["chat-work", `/c/${chats.work.id}`],
    ["chat-work-top", `/c/${chats.work.id}`, async (page) => {
      await page.locator("l-stream").focus();
      await page.keyboard.press("Home");
    }],
    ["chat-cards-open", `/c/${chats.work.id}`, async (page) => {
      const closed = page.locator("details.step:not([open]) > summary");
      for (let left = await closed.count(); left > 0; left = await closed.count()) await closed.first().click();
    }],
    ["chat-side", `/c/${chats.work.id}`, async (page) => {
      const button = page.getByRole("button", { name: /files and the chat itself/ });
      if (await button.isVisible()) await button.click();
    }],
    ["chat-broken", `/c/${chats.broken.id}`],
    ["chat-deep", `/c/${chats.deep.id}`],
    ["chat-practice-ask", `/c/${chats.practice.id}`],
    ["chat-ask-long", `/c/${chats.ask.id}`],
    ["chat-two-asks", `/c/${chats.two.id}`],
    ["chat-running", `/c/${chats.hang.id}`],
    ["chat-chooser", `/c/${chats.hang.id}`, async (page) => {
      await page.getByRole("button", { name: /^Mode:|change how it works/ }).filter({ visible: true }).first().click();
      await page.getByRole("dialog").waitFor();
    }],
    ["approvals", "/approvals"],
    ["all-chats", `/?device=${chats.work.device}`],
    ["new-chat", `/?new=${chats.work.device}`],
    ["new-chat-browse", `/?new=${chats.work.device}`, async (page) => {
      await page.getByRole("button", { name: /Another folder on/ }).click();
      await page.getByRole("button", { name: "Use this folder" }).waitFor();
    }],
    ["settings", "/settings"],
    ["settings-end", "/settings#signed"],
    ["settings-model", "/settings", async (page) => {
      await page.getByRole("button", { name: "Add a model" }).click();
      await page.getByLabel("Address").fill("http://127.0.0.1:9/v1");
      await page.getByLabel("Name of the model there").fill("nothing");
      await page.getByRole("button", { name: "Try it" }).click();
      await page.getByRole("dialog").getByRole("alert").waitFor();
    }],
    ["link", "/link"],
    ["link-unknown", "/link?code=BCDFGHJK", (page) => page.getByRole("alert").filter({ hasText: /\S/ }).first().waitFor()],
  ]);
});

test("refusing, allowing for longer, and how they ended", { skip }, async () => {
  await places([
    ["refuse-sheet", `/c/${chats.ask.id}`, async (page) => {
      await page.locator("l-ask section").first().focus();
      // No key counts in the first half second.
      await until(async () => (await page.getByRole("dialog").count()) > 0 || page.keyboard.press("r"), "the sheet is there");
    }],
  ]);
  await it.answer(await it.ask(chats.ask.id), "refuse", { note: "not today" });
  await it.ended(chats.ask.id);
  await places([["chat-refused", `/c/${chats.ask.id}`], ["approvals-settled", "/approvals"]]);
});

test("scheduled work and a watch", { skip }, async () => {
  it.run("service", "scheduled", "on");
  await until(async () => (await it.state()).devices[0].limits.scheduled, "it is heard of");
  await places([
    ["schedules", "/schedules"],
    ["schedules-watched", "/schedules", async (page) => {
      const form = page.getByRole("form", { name: /watch/ });
      for (const command of ["git status --short", "cat src/session.rs", "touch x"]) {
        await form.getByLabel("Command").fill(command);
        await form.getByRole("button", { name: "Check now" }).click();
        await form.getByRole("button", { name: "Check now" }).waitFor();
      }
      await form.scrollIntoViewIfNeeded();
    }],
  ]);
});

test("nothing is heard: the page alone, the computer away, access taken back", { skip }, async () => {
  const { devices } = await it.state();
  await it.api("DELETE", `/devices/${devices[0].id}`);
  await places([["home-revoked", "/"], ["settings-revoked", "/settings"], ["chat-revoked", `/c/${chats.work.id}`]]);
});
