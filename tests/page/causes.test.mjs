// What is wrong, where, and what to do: the failing layer by name, which computer and folder everywhere, and a
// computer's limits as they are (U31, U37, U48).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, slower, until } from "./rig.mjs";
import { askOf, chatOf, lookWorld } from "./fake/world.mjs";

after(quit);

const flat = (text) => text.replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();

function plain() {
  const world = lookWorld();
  world.asks = [];
  world.chats = [chatOf("talk", { title: "Talk" }), ...world.chats.map((chat) => ({ ...chat, asks: 0 }))];
  return world;
}

// Each cause: where it is told, and which step it offers there.
const CAUSES = {
  "signed out": {
    at: "/", world: () => ({ ...plain(), signedIn: false, outText: "You were signed out here.", outWhy: "ended from Firefox on zephyr", outSince: Date.now() - 60_000 }),
    words: ".note", step: (page) => page.getByRole("button", { name: "Sign in" }),
  },
  "access taken back": {
    at: "/", world: () => { const world = plain(); Object.assign(world.devices[0], { state: "revoked", since: Date.now(), why: "by ana, from Firefox on zephyr" }); return world; },
    words: ".note >> text=was taken back", step: (page) => page.locator(".paste code", { hasText: /^lembas link http/ }).first(),
  },
  "access taken back, in its chat": {
    at: "/c/talk", world: () => { const world = plain(); Object.assign(world.devices[0], { state: "revoked", since: Date.now() }); return world; },
    words: ".closed-note", step: (page) => page.getByRole("link", { name: "Link it again" }),
  },
  "wrong version, the instance": {
    at: "/", world: () => { const world = plain(); Object.assign(world.devices[1], { why: "This instance speaks link protocol 2 and this computer 3: update the instance to LLeMbas 2.0 or later." }); world.devices = [world.devices[1]]; return world; },
    words: ".note >> text=link protocol", step: (page) => page.getByText("update the instance to LLeMbas 2.0 or later."),
  },
  "wrong version, the computer": {
    at: "/", world: () => { const world = plain(); Object.assign(world.devices[1], { why: "This instance speaks link protocol 4 and this computer 3: update lembas on this computer." }); world.devices = [world.devices[1]]; return world; },
    words: ".note >> text=link protocol", step: (page) => page.getByText("update lembas on this computer."),
  },
  "instance not reachable": {
    at: "/c/talk", world: plain, then: (it) => it.hub.cut({ down: true }),
    words: ".banner", step: (page) => page.getByRole("button", { name: "Try now" }),
  },
  "instance not reachable at the start": {
    at: "/", world: plain, early: (it) => { it.hub.down = true; },
    words: ".state", step: (page) => page.getByRole("button", { name: "Try again" }),
  },
  "computer not reachable": {
    at: "/c/talk", world: () => { const world = plain(); Object.assign(world.chats[0], { running: true, progress: { phase: "running_tool", purpose: "cargo test", since: Date.now() } }); Object.assign(world.devices[0], { state: "away", since: Date.now() }); return world; },
    words: ".prog .text", step: (page) => page.locator(".prog").getByRole("button", { name: "Try now" }),
  },
  "model not reachable": {
    at: "/c/talk", world: () => {
      const world = plain();
      Object.assign(world.chats[0], { progress: { phase: "failed", reason: "qwen3-32b did not answer 5 times in 2 min (connection refused). Your message is kept.", since: Date.now() } });
      world.items.talk = [{ seq: 1, turn: 1, time: Date.now(), kind: "said", html: "<p>Go on</p>", text: "Go on", state: "taken", key: "k" }];
      return world;
    },
    words: ".prog .text", step: (page) => page.getByRole("button", { name: "Use another model" }),
  },
  "folder gone": {
    at: "/c/talk", world: () => { const world = plain(); world.queues.talk = [{ key: "q", text: "again", when: "after", held: true, state: "failed", why: "There is no folder /home/ana/projects/api on zephyr." }]; return world; },
    words: ".queue-rest", step: (page) => page.getByRole("link", { name: "Choose a folder" }),
  },
  "folder not allowed": {
    at: "/c/talk", world: () => { const world = plain(); world.queues.talk = [{ key: "q", text: "again", when: "after", held: true, state: "failed", why: "zephyr does not allow work in /etc. It allows ~/projects. Only zephyr can change that: lembas roots add /etc." }]; return world; },
    words: ".queue-rest", step: (page) => page.getByRole("link", { name: "Choose a folder" }),
  },
};

test("each cause has its own words, names its layer and offers a step; none is a number alone", async () => {
  const told = {};
  for (const [name, { at, world, words, step, then, early }] of Object.entries(CAUSES)) {
    const it = await open(world(), early ? "/settings" : at);
    if (early) {
      // The page's files are there, what is behind them is not.
      early(it);
      await it.page.goto(it.hub.url + at);
    }
    if (then) {
      await until(() => it.hub.streams.size === 1);
      then(it);
    }
    const box = it.page.locator(words).first();
    await box.waitFor();
    await step(it.page).first().waitFor();
    told[name] = flat(await box.textContent());
    await it.close();
  }
  assert.equal(new Set(Object.values(told)).size, Object.keys(CAUSES).length, JSON.stringify(told, null, 1));
  for (const [name, words] of Object.entries(told)) assert.match(words, /[a-z]{3,} [a-z]{2,}/i, name);
  const names = { "access taken back": /zephyr/, "access taken back, in its chat": /zephyr/, "wrong version, the instance": /instance/, "wrong version, the computer": /computer/, "computer not reachable": /zephyr/, "instance not reachable": /page/, "instance not reachable at the start": /instance/, "model not reachable": /qwen3-32b/, "folder gone": /\/home\/ana\/projects\/api/, "folder not allowed": /\/etc/, "signed out": /signed out/ };
  for (const [name, layer] of Object.entries(names)) assert.match(told[name], layer, name);
});

test("a linking code pasted as a password is known again and led to where it belongs", async () => {
  const it = await open({ ...plain(), signedIn: false }, "/signin", { context: { permissions: ["clipboard-read", "clipboard-write"] } });
  const { page, hub } = it;
  await page.getByLabel("Name").fill("ana");
  await page.evaluate(() => navigator.clipboard.writeText("WDJB-MJHT"));
  await page.getByLabel("Password").focus();
  await page.keyboard.press("ControlOrMeta+V");
  await page.getByText("That looks like a code for linking a computer.").waitFor();
  await page.getByRole("button", { name: "Keep it for there" }).click();
  assert.equal(await page.getByLabel("Password").inputValue(), "");
  await page.getByText("The code WDJB-MJHT is looked up under Link a computer once you are signed in.").waitFor();
  await page.keyboard.type("long enough words");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Link a computer" }).waitFor();
  await page.getByText("Did you start this on that computer just now?").waitFor();
  assert.equal(hub.calls("POST", /^\/link\/lookup$/)[0].body.code, "WDJB-MJHT");
  assert.equal(hub.calls("POST", /^\/signin$/).length, 1, "the code was not tried as a password");
  // Words in capitals are no code: they hold letters that codes have not.
  hub.world.signedIn = false;
  await page.goto(`${hub.url}/signin`);
  await page.getByLabel("Password").fill("PASSWORD");
  assert.equal(await page.getByText("That looks like a code").count(), 0);
  await it.close();
});

// Two computers that have the same folder, each with a chat and an ask in it.
function twins() {
  const world = lookWorld();
  const [zephyr] = world.devices;
  const limits = { ...zephyr.limits };
  world.devices = [zephyr, { ...zephyr, id: "breeze", name: "breeze", limits }];
  world.chats = world.devices.map(({ id }) => chatOf(`c-${id}`, { title: "The same words", device: id, device_name: id, asks: 1, running: true, progress: { phase: "waiting_for_person", since: Date.now() } }));
  world.asks = world.devices.flatMap(({ id }) => [
    askOf(`o-${id}`, { chat: `c-${id}`, chat_title: "The same words", device: id, device_name: id }),
    askOf(`s-${id}`, { chat: `c-${id}`, chat_title: "The same words", device: id, device_name: id, state: "settled", outcome: "allowed", by: "ana", at: Date.now() }),
  ]);
  world.items = {};
  world.queues = {};
  return world;
}

test("two computers with the same path: every place names both, and they never merge", async () => {
  const it = await open(twins(), "/");
  const { page, hub } = it;
  const folder = /~\/projects\/api/;
  for (const [id, other] of [["zephyr", "breeze"], ["breeze", "zephyr"]]) {
    await page.goto(`${hub.url}/`);
    const card = page.locator("article.pc", { has: page.getByRole("heading", { name: id }) });
    await card.waitFor();
    assert.match(await card.locator("a.row").first().textContent(), folder);
    assert.equal(await card.locator("a.row").count(), 1);
    assert.equal(await card.locator("a.row").first().getAttribute("href"), `/c/c-${id}`);
    // In the rail both stand in one list, each by its computer.
    const rail = page.locator(".rail .chats a", { hasText: id });
    assert.equal(await rail.count(), 1);
    assert.match(await rail.getAttribute("title"), new RegExp(`on ${id}, in ${folder.source}`));
    await page.goto(`${hub.url}/c/c-${id}`);
    await page.locator(`#ask-o-${id}`).waitFor();
    assert.match(flat(await page.locator(".talk > .bar").textContent()), new RegExp(`${id} · ${folder.source}`));
    assert.match(await page.title(), new RegExp(id));
    assert.match(await page.locator("aside.side").textContent(), new RegExp(`on ${id}, in ${folder.source}`));
    assert.equal(await page.locator(`#ask-o-${other}`).count(), 0);
    await page.goto(`${hub.url}/approvals`);
    const ask = page.locator(`#ask-o-${id}`);
    await ask.waitFor();
    assert.match(await ask.getByRole("heading").textContent(), new RegExp(`${id} wants to run this in ${folder.source}`));
    const settled = page.locator(`a.row[href="/c/c-${id}"]`);
    assert.match(flat(await settled.textContent()), new RegExp(`${id} · ${folder.source}`));
    await page.goto(`${hub.url}/?new=${id}`);
    await page.getByRole("heading", { level: 1, name: `New chat on ${id}` }).waitFor();
    await page.goto(`${hub.url}/settings`);
    assert.match(await page.locator("article", { has: page.getByRole("heading", { name: id }) }).textContent(), /~\/projects/);
    await page.goto(`${hub.url}/?device=${id}`);
    await page.getByRole("heading", { level: 1, name: `All chats on ${id}` }).waitFor();
    await page.locator("main a.row").first().waitFor();
    assert.deepEqual(await page.locator("main a.row").evaluateAll((rows) => rows.map((row) => row.getAttribute("href"))), [`/c/c-${id}`]);
  }
  await it.close();
});

/** Has the page note when `words` stood in it first, by this machine's clock. */
const watch = (page, words) => page.evaluate((want) => {
  window.stood = undefined;
  new MutationObserver(() => {
    if (window.stood === undefined && document.body.textContent.replaceAll("\u00a0", " ").includes(want)) window.stood = Date.now();
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}, words);
const stood = (page) => until(() => page.evaluate(() => window.stood), "the words stand there");

test("a root that is changed on the computer shows within a second, where it is shown", async () => {
  const it = await open(plain(), "/");
  const { page, hub } = it;
  const pages = [page, await it.another("/settings"), await it.another("/?new=zephyr")];
  await until(() => hub.streams.size === 1);
  for (const one of pages) await watch(one, "~/garden");
  const second = 1_000 * await slower(page);
  const { limits } = hub.world.devices[0];
  const start = Date.now();
  hub.device("zephyr", { limits: { ...limits, roots: ["/home/ana/garden"], words: "works in ~/garden · up to Edit · scheduled work on" } });
  for (const one of pages) assert.ok((await stood(one)) - start <= second);
  assert.equal(await pages[1].locator("article", { hasText: "zephyr" }).first().getByText("~/notes").count(), 0);
  await it.close();
});

test("a lower max_mode shows in the open page and in the open choice of a running chat within a second", async () => {
  const it = await open(plain(), "/c/flaky");
  const { page, hub } = it;
  const other = await it.another("/settings");
  await until(() => hub.streams.size === 1);
  await page.getByRole("button", { name: "Mode: Edit" }).click();
  const sheet = page.getByRole("dialog");
  assert.equal(await sheet.getByRole("radio", { name: /^Edit/ }).isEnabled(), true);
  await watch(page, "Up to Manual is set on zephyr.");
  await watch(other, "a wish above Manual is lowered by zephyr");
  const second = 1_000 * await slower(page);
  const { limits } = hub.world.devices[0];
  const start = Date.now();
  hub.device("zephyr", { limits: { ...limits, max_mode: "manual", words: "works in ~/projects · up to Manual · scheduled work on" } });
  for (const one of [page, other]) assert.ok((await stood(one)) - start <= second);
  assert.equal(await sheet.getByRole("radio", { name: /^Edit/ }).isDisabled(), true);
  await sheet.getByText("Lowered to Manual by zephyr.").waitFor();
  await sheet.getByRole("button", { name: "Done" }).click();
  await page.locator("l-composer").getByText("Lowered to Manual by zephyr.").waitFor();
  // The computer took it: what is applied is shown, and by whom it was lowered.
  hub.chat("flaky", { mode: "manual", mode_applied: "manual", lowered: "lowered to Manual by zephyr" });
  await page.getByRole("button", { name: "Mode: Manual" }).waitFor();
  await page.locator("l-composer").getByText("Lowered to Manual by zephyr.").waitFor();
  await it.close();
});
