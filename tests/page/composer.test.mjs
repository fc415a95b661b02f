// Writing: drafts, Enter, how far each message came, and the queue (U3–U6, U30).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, until } from "./rig.mjs";
import { chatOf, lookWorld } from "./fake/world.mjs";

after(quit);

const sends = (hub) => hub.calls("POST", /\/messages$/);

function idle() {
  const world = lookWorld();
  world.asks = [];
  world.chats = [chatOf("idle", { title: "An idle chat" }), chatOf("other", { title: "Another chat" }), ...world.chats.map((chat) => ({ ...chat, asks: 0 }))];
  return world;
}

test("a draft survives reload, Back, another chat and being signed out, and shows up nowhere else", async () => {
  const it = await open(idle(), "/c/idle");
  const { page, hub } = it;
  const box = page.locator("#message");
  await box.fill("half a thought");
  await page.reload();
  await box.waitFor();
  assert.equal(await box.inputValue(), "half a thought");
  await page.getByRole("link", { name: "Another chat" }).click();
  await page.getByRole("heading", { level: 1, name: "Another chat" }).waitFor();
  assert.equal(await box.inputValue(), "");
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "An idle chat" }).waitFor();
  assert.equal(await box.inputValue(), "half a thought");
  await until(() => hub.calls("PUT", /\/draft$/).some((call) => call.body.text === "half a thought"));
  hub.world.signedIn = false;
  hub.push({ type: "signed_out", text: "You were signed out here at 14:02, from Firefox on zephyr. Your draft is kept." });
  await page.getByText("You were signed out here at 14:02").waitFor();
  await page.getByLabel("Name").fill("ana");
  await page.getByLabel("Password").fill("long enough words");
  await page.getByRole("button", { name: "Sign in" }).click();
  await box.waitFor();
  assert.match(page.url(), /\/c\/idle$/);
  assert.equal(await box.inputValue(), "half a thought");
  await it.close();
});

test("text in the box wins over a copy that arrives, an empty box takes it", async () => {
  const it = await open(idle(), "/c/idle");
  const { page, hub } = it;
  const box = page.locator("#message");
  hub.push({ type: "draft", chat: "idle", text: "from the phone", by: "s2" });
  await box.evaluate((el) => el.blur());
  hub.push({ type: "draft", chat: "idle", text: "from the phone, later", by: "s2" });
  await until(async () => (await box.inputValue()) === "from the phone, later");
  await box.fill("mine");
  hub.push({ type: "draft", chat: "idle", text: "theirs", by: "s2" });
  hub.chat("idle", { draft: "theirs" });
  await page.keyboard.type(" and more");
  await page.waitForTimeout(200);
  assert.equal(await box.inputValue(), "mine and more");
  await it.close();
});

test("Enter during a composition never sends, the next one sends once", async () => {
  const it = await open(idle(), "/c/idle");
  const { page, hub, context } = it;
  const cdp = await context.newCDPSession(page);
  await page.locator("#message").focus();
  await cdp.send("Input.imeSetComposition", { text: "にほん", selectionStart: 3, selectionEnd: 3 });
  await cdp.send("Input.dispatchKeyEvent", { type: "keyDown", key: "Enter", code: "Enter", windowsVirtualKeyCode: 229 });
  await cdp.send("Input.insertText", { text: "日本" });
  await cdp.send("Input.dispatchKeyEvent", { type: "keyUp", key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 });
  await page.waitForTimeout(100);
  assert.equal(sends(hub).length, 0);
  assert.equal(await page.locator("#message").inputValue(), "日本");
  await page.waitForTimeout(200);
  await page.keyboard.press("Enter");
  await until(() => sends(hub).length === 1);
  assert.equal(sends(hub)[0].body.text, "日本");
  assert.equal(await page.locator("#message").inputValue(), "");
  await it.close();
});

test("Safari's Enter just after a composition ended does not send, nor does one of key code 229", async () => {
  const it = await open(idle(), "/c/idle");
  const { page, hub } = it;
  const box = page.locator("#message");
  await box.fill("日本");
  const enter = (more) => box.evaluate((el, [events, code]) => {
    for (const type of events) el.dispatchEvent(new CompositionEvent(type, { bubbles: true, data: "日本" }));
    el.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", keyCode: code, bubbles: true, cancelable: true }));
  }, more);
  await enter([["compositionstart", "compositionend"], 13]);
  await enter([[], 229]);
  await enter([["compositionstart"], 13]);
  assert.equal(await box.inputValue(), "日本");
  assert.equal(sends(hub).length, 0);
  await box.evaluate((el) => {
    el.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
    el.dispatchEvent(new KeyboardEvent("keyup", { key: "Enter", bubbles: true }));
  });
  await page.keyboard.press("Enter");
  await until(() => sends(hub).length === 1);
  await it.close();
});

test("on a touch keyboard Enter is a new line", async () => {
  const it = await open(idle(), "/c/idle", { width: 320, height: 640, touch: true });
  const { page, hub } = it;
  await page.locator("#message").fill("one");
  await page.keyboard.press("Enter");
  await page.keyboard.type("two");
  assert.equal(await page.locator("#message").inputValue(), "one\ntwo");
  assert.equal(sends(hub).length, 0);
  await page.getByRole("button", { name: "Send" }).click();
  await until(() => sends(hub).length === 1);
  await it.close();
});

test("a lost request, a lost answer, both: one prompt, and the right word each time", async () => {
  const it = await open(idle(), "/c/idle");
  const { page, hub } = it;
  const prompts = () => hub.world.items.idle?.filter((item) => item.kind === "said").length ?? 0;
  const mend = hub.fault("POST", /\/messages$/, "request");
  await page.locator("#message").fill("Do it once.");
  await page.keyboard.press("Enter");
  await page.getByText("not sent").waitFor();
  assert.equal(prompts(), 0);
  mend();
  const again = hub.fault("POST", /\/messages$/, "answer");
  // Without the stream the page cannot know from elsewhere that it arrived.
  hub.silent = true;
  await page.getByRole("button", { name: "Try again" }).click();
  await until(() => prompts() === 1);
  await page.getByText("not sent").waitFor();
  again();
  hub.silent = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await until(() => sends(hub).length >= 2);
  hub.item("idle", { seq: 1 });
  await page.getByText("taken by zephyr").waitFor();
  assert.equal(prompts(), 1);
  assert.equal(new Set(sends(hub).map((call) => call.body.key)).size, 1);
  assert.equal(await page.locator(".said").count(), 1);
  await it.close();
});

test("queue three, edit the second, remove the first: two, in order, once each; reload keeps them", async () => {
  const world = idle();
  const it = await open(world, "/c/flaky");
  const { page, hub } = it;
  for (const text of ["first", "second", "third"]) {
    await page.locator("#message").fill(text);
    await page.getByRole("button", { name: "After this turn" }).click();
    await page.locator(".queue").filter({ hasText: text }).waitFor();
  }
  assert.ok(sends(hub).every((call) => call.body.when === "after"));
  await page.getByRole("button", { name: "Edit: second" }).click();
  await until(() => hub.calls("POST", /\/hold$/).length === 1);
  assert.equal(hub.world.queues.flaky[1].held, true);
  await page.getByRole("dialog").getByLabel("Message").fill("second, better");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".queue").filter({ hasText: "After this turn: second, better" }).waitFor();
  await page.getByRole("button", { name: "Remove: first" }).click();
  await until(() => hub.world.queues.flaky.length === 2);
  await page.reload();
  await page.locator(".queue").nth(1).waitFor();
  assert.deepEqual(hub.world.queues.flaky.map((one) => [one.text, one.held]), [["second, better", false], ["third", false]]);
  await it.close();
});

test("at the next step is offered only where the chat can", async () => {
  const it = await open(idle(), "/c/flaky");
  assert.equal(await it.page.getByRole("button", { name: "At the next step" }).count(), 0);
  it.hub.chat("flaky", { steer: true });
  await it.page.locator("#message").fill("now");
  await it.page.getByRole("button", { name: "At the next step" }).click();
  await until(() => sends(it.hub).length === 1);
  assert.equal(sends(it.hub)[0].body.when, "next");
  await it.close();
});

test("with the computer away a message waits and says so", async () => {
  const it = await open(idle(), "/c/scans");
  const { page } = it;
  await page.getByText("Waits for attic: Then put the bills into 2026.").waitFor();
  await page.locator("#message").fill("And tell me.");
  await page.getByRole("button", { name: "Send when it is back" }).click();
  await page.getByText("Waits for attic: And tell me.").waitFor();
  await page.getByText("Goes when attic is back.").waitFor();
  await it.close();
});

test("only what was changed is sent, and a wish not taken says so", async () => {
  const world = idle();
  world.appliesMode = false;
  const it = await open(world, "/c/idle");
  const { page, hub } = it;
  await page.getByRole("button", { name: "Mode: Edit" }).click();
  await page.getByRole("dialog").getByLabel("Plan", { exact: false }).first().check();
  await page.getByRole("button", { name: "Done" }).click();
  await until(() => hub.calls("PATCH", /^\/chats\/idle$/).length === 1);
  assert.deepEqual(hub.calls("PATCH", /^\/chats\/idle$/)[0].body, { mode: "plan" });
  await page.getByText("Plan is asked for, not yet taken by zephyr.").waitFor();
  hub.chat("idle", { mode: "plan", mode_applied: "plan" });
  await page.getByRole("button", { name: "Mode: Plan" }).waitFor();
  assert.equal(await page.getByText("not yet taken").count(), 0);
  await it.close();
});

test("four presses from an untouched phone to the first message", async () => {
  const it = await open(idle(), "/", { width: 320, height: 640, touch: true });
  const { page, hub } = it;
  await page.getByRole("link", { name: "New chat on zephyr" }).tap();
  await page.getByLabel("~/notes").tap();
  await page.getByLabel("What should be done").tap();
  await page.keyboard.type("Sort them.");
  await page.getByRole("button", { name: "Start" }).tap();
  await page.getByRole("heading", { level: 1, name: "Sort them." }).waitFor();
  const [made] = hub.calls("POST", /^\/chats$/);
  assert.equal(made.body.cwd, "/home/ana/notes");
  assert.equal(made.body.text, "Sort them.");
  await it.close();
});

test("folders are looked through under the roots only; one outside is refused in words", async () => {
  const it = await open(idle(), "/?new=zephyr");
  const { page, hub } = it;
  await page.getByRole("button", { name: "Another folder on zephyr" }).click();
  await page.getByRole("button", { name: "Allowed folders" }).or(page.getByRole("button", { name: "~/projects", exact: true })).first().click();
  await page.getByRole("button", { name: /sketches/ }).waitFor();
  await page.getByRole("button", { name: /^site/ }).click();
  await page.getByText("zephyr does not allow work in /home/ana/projects/site.").waitFor();
  await page.getByText("lembas roots add /home/ana/projects/site").waitFor();
  assert.ok(hub.calls("GET", /directories$/).length >= 2);
  await it.close();
});
