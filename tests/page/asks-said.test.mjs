// An ask as it is said, where its words stand, and that its buttons stay (U12, U13, U54).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { frames, open, quit, until } from "./rig.mjs";
import { askOf, lookWorld } from "./fake/world.mjs";

after(quit);

const answers = (hub) => hub.calls("POST", /^\/asks\/[^/]+$/);

// Buttons take presses half a second after they appeared or moved, and the next frames may still move them.
const settle = async (page) => {
  await frames(page, 3);
  await page.waitForFunction(() => [...document.querySelectorAll("l-ask")].every((card) => {
    card.guard.check();
    return performance.now() - card.guard.moved > 550;
  }));
};

function one(more = {}) {
  const world = lookWorld();
  world.asks = [askOf("k2", more)];
  for (const chat of world.chats) if (chat.id !== "login") chat.asks = 0;
  return world;
}

test("a screen reader hears what each kind of ask wants, and no finished answer while one is open", async () => {
  const world = one();
  world.asks = [];
  const it = await open(world, "/c/login");
  const { page, hub } = it;
  const firm = () => page.locator("#live-firm").textContent();
  const kinds = [["read", "/etc/hosts", /^zephyr wants to read \/etc\/hosts from /], ["fetch", "https://a.example", /^zephyr wants to fetch https:\/\/a\.example in /], ["edit", "a.rs", /^zephyr wants to change a\.rs in /], ["question", "Which port?", /^zephyr asks you: Which port\? It waits/], ["dance", "x", /^zephyr asks for x in /], ["execute", "ls", /^zephyr wants to run ls in /]];
  for (const [kind, command, words] of kinds) {
    hub.ask(askOf(`s-${kind}`, { kind, command, command_html: command, made: Date.now(), ...(kind === "question" ? { text: command, options: [{ id: "1", label: "8080" }] } : {}) }));
    await until(async () => words.test(await firm()), `${kind} is said as such: ${await firm()}`);
  }
  // The turn rests while it waits: that is not its end.
  hub.chat("login", { running: false });
  await frames(page, 4);
  await page.waitForFunction(() => document.querySelector("l-stream").wasRunning === false);
  assert.doesNotMatch(await page.locator("#live-polite").textContent(), /finished/);
  await it.close();
});

test("the box stands with the command, above what the buttons may cover", async () => {
  const it = await open(lookWorld(), "/approvals", { width: 320, height: 640, touch: true });
  const { page } = it;
  const card = page.locator("#ask-k1");
  const words = await card.getByText("Without a box: it would run with your rights and the network.").boundingBox();
  const acts = await card.locator(".acts").boundingBox();
  assert.ok(words.y + words.height <= acts.y, `${words.y + words.height} is above ${acts.y}`);
  await it.close();
});

test("a sheet that is put away leaves the buttons where they were, and the next press counts", async () => {
  for (const path of ["/c/login", "/approvals"]) {
    const it = await open(one(), path, { width: 390, height: 700, touch: true });
    const { page, hub } = it;
    const card = page.locator("#ask-k2");
    await card.getByRole("button", { name: "Allow, and…" }).scrollIntoViewIfNeeded();
    await settle(page);
    const place = async () => JSON.stringify(await card.locator(".acts").boundingBox());
    const before = await place();
    await card.getByRole("button", { name: "Allow, and…" }).click();
    await page.getByRole("dialog").getByRole("textbox").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await frames(page, 4);
    assert.equal(await place(), before, path);
    await card.getByRole("button", { name: "Allow once" }).click();
    await until(() => answers(hub).length === 1);
    await it.close();
  }
});
