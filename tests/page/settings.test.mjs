// Linking, access, models, the first account, schedules (U46, U47, U49, moments 1, 8).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, slower, until } from "./rig.mjs";
import { freshWorld, lookWorld } from "./fake/world.mjs";

after(quit);

// Answers take presses half a second after they appeared.
const ready = (page) => page.waitForFunction(() => {
  const form = document.querySelector("l-link");
  form.guard.check();
  return performance.now() - form.guard.moved > 550;
});

test("a code is looked up, what asks is shown, and the question decides", async () => {
  const it = await open(lookWorld(), "/link");
  const { page, hub } = it;
  await page.getByLabel("Enter the code it shows").pressSequentially("wdjb mjht");
  assert.equal(await page.getByLabel("Enter the code it shows").inputValue(), "WDJB-MJHT");
  await page.getByText("Did you start this on that computer just now?").waitFor();
  await page.getByText("from 192.168.1.24").waitFor();
  await page.getByText(/9.min.\d+.s left/).waitFor();
  await ready(page);
  await page.getByRole("button", { name: "Yes, link bench" }).click();
  await page.getByText("bench is linked").waitFor();
  assert.equal(hub.calls("POST", /^\/link\/approve$/)[0].body.code, "WDJB-MJHT");
  await it.close();
});

test("a second computer of one name: it is said before it is linked", async () => {
  const world = lookWorld();
  Object.assign(world.link.found.device, { id: "another", name: "zephyr" });
  const it = await open(world, "/link?code=WDJBMJHT");
  await it.page.getByText("You have another computer called zephyr. They are told apart by their names only").waitFor();
  await it.close();
  // The same computer that is linked anew is not another one, and one whose access was taken back is not in the way.
  for (const change of [(device) => { world.link.found.device.id = device.id; }, (device) => { world.link.found.device.id = "another"; device.state = "revoked"; }]) {
    change(world.devices.find((one) => one.name === "zephyr"));
    const other = await open(world, "/link?code=WDJBMJHT");
    await other.page.getByText("Did you start this on that computer just now?").waitFor();
    assert.equal(await other.page.getByText("You have another computer").count(), 0);
    await other.close();
  }
});

test("refused, wrong, expired, too often: four texts", async () => {
  const it = await open(lookWorld(), "/link?code=WDJBMJHT");
  const { page, hub } = it;
  await page.getByRole("button", { name: "No, refuse it" }).waitFor();
  await ready(page);
  await page.getByRole("button", { name: "No, refuse it" }).click();
  await page.getByText("bench was refused").waitFor();
  assert.equal(hub.calls("POST", /^\/link\/deny$/).length, 1);
  const texts = new Set();
  for (const state of ["wrong", "expired", "often"]) {
    hub.world.link.state = state;
    await page.goto(`${hub.url}/link?code=WDJBMJHT`);
    texts.add(await page.getByRole("alert").filter({ hasText: /\S/ }).textContent());
  }
  assert.equal(texts.size, 3);
  await it.close();
});

test("taking access back asks once more and says what it does", async () => {
  const it = await open(lookWorld(), "/settings");
  const { page, hub } = it;
  await page.locator("article").filter({ hasText: "attic" }).getByRole("button", { name: "Take access back…" }).click();
  await page.getByText("attic is ended here at once").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Take access back", exact: true }).click();
  await until(() => hub.calls("DELETE", /^\/devices\/attic$/).length === 1);
  await page.locator("article").filter({ hasText: "attic" }).getByText("access taken back").waitFor();
  await it.close();
});

test("what is allowed always is listed with who, when, where and last use; Remove asks nothing and works at once", async () => {
  const it = await open(lookWorld(), "/settings");
  const { page, hub } = it;
  const zephyr = page.locator("article").filter({ has: page.getByRole("heading", { name: "zephyr" }) });
  await zephyr.getByText("Allowed on zephyr without asking: 2 rules").waitFor();
  const row = zephyr.locator("[data-rule]").filter({ hasText: "cargo test *" });
  await row.getByText(/boxed, in this folder\..*: ~\/projects\/api.*by you, on zephyr, \d+\s\w+.*last used/s).waitFor();
  // A rule that is made while the page is open is there within a second.
  const second = 1_000 * await slower(page);
  hub.rules("zephyr", [{ ...hub.world.rules.zephyr.rules[0], id: "new", words: "exactly npm run build, boxed, in this folder.", used: undefined, at: Date.now() }, ...hub.world.rules.zephyr.rules]);
  await zephyr.getByText("exactly npm run build").waitFor({ timeout: second });
  await zephyr.getByText("not used yet").waitFor();
  await zephyr.getByRole("button", { name: "Remove exactly npm run build" }).click();
  await zephyr.getByText("exactly npm run build").waitFor({ state: "detached", timeout: second });
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.equal(hub.calls("DELETE", /^\/devices\/zephyr\/rules\/new$/).length, 1);
  // What refuses is no permission: it is taken back on the computer alone.
  const deny = zephyr.locator("[data-rule]").filter({ hasText: "git push" });
  assert.equal(await deny.getByRole("button", { name: /^Remove/ }).count(), 0);
  await deny.getByText("lembas rules remove 77c1d2").waitFor();
  await it.close();
});

test("a removal waits for a computer that is away, also after a reload, and is done when it is back", async () => {
  const it = await open(lookWorld(), "/settings");
  const { page, hub } = it;
  const attic = page.locator("article").filter({ has: page.getByRole("heading", { name: "attic" }) });
  await attic.getByRole("button", { name: "Remove exactly pdftotext a.pdf" }).click();
  await attic.getByText("removal waits for attic").waitFor();
  assert.equal(await attic.getByRole("button", { name: /^Remove/ }).count(), 0);
  await page.reload();
  await attic.getByText("removal waits for attic").waitFor();
  hub.back("attic");
  await attic.getByText("Nothing is allowed on attic without asking but what the mode allows.").waitFor();
  // A list that cannot be had says so, and comes at a press.
  const heal = hub.fault("GET", /^\/devices\/zephyr\/rules$/, "request");
  hub.push({ type: "rules", device: "zephyr" });
  await page.getByText("What is allowed always could not be loaded.").waitFor();
  heal();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("Allowed on zephyr without asking: 2 rules").waitFor();
  await it.close();
});

test("a model is tried before it is saved, and its key is never shown again", async () => {
  const it = await open(lookWorld(), "/settings");
  const { page, hub } = it;
  await page.getByRole("button", { name: "Add a model" }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByLabel("Address").fill("http://127.0.0.1:9/v1");
  await sheet.getByLabel("Name of the model there").fill("qwen3-8b");
  await sheet.getByLabel("Key").fill("secret");
  hub.fault("POST", /^\/models\/test$/, [422, { error: { code: "name", text: "There is no model qwen3-8b.", try: "It has: qwen3-32b, qwen3-4b" } }]);
  await sheet.getByRole("button", { name: "Try it" }).click();
  await sheet.getByText("There is no model qwen3-8b. It has: qwen3-32b, qwen3-4b").waitFor();
  assert.equal(await sheet.getByRole("button", { name: "Save it" }).count(), 0);
  await sheet.getByLabel("Name of the model there").fill("qwen3-4b");
  await sheet.getByRole("button", { name: "Try it" }).click();
  await sheet.getByText(/answers in 1\.4.s, sees no images, calls tools/).waitFor();
  await sheet.getByRole("button", { name: "Save it" }).click();
  await page.getByText("qwen3-4b is added.").waitFor();
  const added = hub.calls("POST", /^\/models$/)[0].body;
  assert.equal(added.key, "secret");
  assert.equal(added.name, "qwen3-4b");
  assert.doesNotMatch(await page.content(), /secret/);
  await it.close();
});

test("who is signed in: this one marked, one ended, all others ended", async () => {
  const it = await open(lookWorld(), "/settings");
  const { page, hub } = it;
  const section = page.locator("#signed");
  await section.getByText("this one").waitFor();
  await section.getByRole("button", { name: "End Chromium on attic" }).click();
  await section.getByText("2 signed in").waitFor();
  await section.getByRole("button", { name: "End all others" }).click();
  await section.getByText("1 signed in").waitFor();
  assert.equal(hub.world.sessions[0].this, true);
  await it.close();
});

test("first run: what the practice model is, and one press to a chat", async () => {
  const it = await open(freshWorld(), "/");
  const { page, hub } = it;
  await page.getByText("This is the practice model: a script without intelligence, so that you can try everything without a key. It shows an answer, a read, a command that asks, an edit and a plan.").waitFor();
  await page.getByRole("button", { name: "Start a practice chat" }).click();
  await page.locator("#message").waitFor();
  const [{ body }] = hub.calls("POST", /^\/chats$/);
  assert.deepEqual([body.device, body.cwd, body.model], ["zephyr", "/home/ana/projects", "practice"]);
  await it.close();
});

test("the first account by the one-time link", async () => {
  const world = lookWorld();
  world.signedIn = false;
  const it = await open(world, "/signin?setup=ONE-TIME");
  const { page, hub } = it;
  await page.getByLabel("Name").fill("ana");
  await page.getByLabel("Password").fill("short");
  await page.getByRole("button", { name: "Make the account" }).click();
  await page.getByText("That is shorter than 10 characters.").waitFor();
  await page.getByLabel("Password").fill("long enough words");
  await page.getByRole("button", { name: "Make the account" }).click();
  await page.getByRole("heading", { level: 1, name: "Computers" }).waitFor();
  assert.equal(hub.calls("POST", /^\/setup$/)[0].body.token, "ONE-TIME");
  await it.close();
});

test("a watch: first, unchanged, changed, and could not check, which is no change", async () => {
  const world = lookWorld();
  const base = { exit: 0, bytes: 59, excerpt: "5d1c7e0a", truncated: false, duration_ms: 410 };
  const answers = [{ hash: "sha256:aa", ...base }, { hash: "sha256:aa", ...base }, { hash: "sha256:bb", ...base }, { status: 422, body: { error: { code: "ask", text: "This would need your yes, and a watch command asks nobody: git push.", try: ["lembas allow --pending 3"] } } }];
  world.monitor = () => answers.shift();
  const it = await open(world, "/schedules");
  const { page } = it;
  const form = page.locator("form").filter({ hasText: "Check a command" });
  await form.getByLabel("Command").fill("git ls-remote origin main");
  for (const words of ["first check", "unchanged", "changed", "could not check"]) {
    await form.getByRole("button", { name: "Check now" }).click();
    await form.locator(".result").first().locator(".status").getByText(words, { exact: true }).waitFor();
  }
  await form.getByText("Not counted as a change.").waitFor();
  await form.getByText("lembas allow --pending 3").waitFor();
  await it.close();
});

test("scheduled work that the computer does not take is refused in its words", async () => {
  // It was turned off just now, and this page has not heard of it.
  const it = await open(lookWorld(), "/schedules");
  const { page, hub } = it;
  hub.world.devices[0].limits.scheduled = false;
  const form = page.locator("form").filter({ hasText: "Run once, scheduled" });
  await form.getByLabel("What should be done").fill("Compare.");
  await form.getByRole("button", { name: "Run it once" }).click();
  await form.getByText("This computer does not accept scheduled work.").waitFor();
  await it.close();
});

test("with scheduled work off nothing can be started; what went wrong before goes with the next change", async () => {
  const world = lookWorld();
  const it = await open(world, "/schedules");
  const { page, hub } = it;
  const form = page.getByRole("form", { name: /Run once/ });
  const go = form.getByRole("button", { name: "Run it once" });
  await form.getByLabel("What should be done").fill("Compare the backups.");
  hub.fault("POST", /\/scheduled$/, [422, { error: { code: "refused", reason: "root", text: "zephyr does not allow work in /etc." } }]);
  await go.click();
  await form.getByText("zephyr does not allow work in /etc.").waitFor();
  await form.getByLabel("Folder").fill("/home/ana/notes");
  assert.equal(await form.getByText("zephyr does not allow work in /etc.").count(), 0);
  const [first] = hub.calls("POST", /\/scheduled$/);
  await go.click();
  await until(() => hub.calls("POST", /\/scheduled$/).length === 2);
  assert.notEqual(hub.calls("POST", /\/scheduled$/)[1].body.key, first.body.key, "other work, another key");
  await page.goto(`${hub.url}/schedules`);
  hub.device("zephyr", { limits: { ...world.devices[0].limits, scheduled: false } });
  await form.getByText("zephyr does not accept scheduled work.").waitFor();
  assert.equal(await go.isDisabled(), true);
  assert.equal(await page.getByRole("form", { name: /watch/ }).getByRole("button", { name: "Check now" }).isDisabled(), true);
  await it.close();
});
