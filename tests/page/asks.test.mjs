// Approvals: no accidental answer, the whole command, from press to end, each ending its own words (U11–U17, U20, U32).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { frames, open, quit, until } from "./rig.mjs";
import { askOf, lookWorld } from "./fake/world.mjs";

after(quit);

// Buttons take presses half a second after they appeared or moved.
// What was just done may still move them in the next frames, so those pass first.
const settle = async (page) => {
  await frames(page, 3);
  await ready(page);
};
const ready = (page) => page.waitForFunction(() => {
  const cards = [...document.querySelectorAll("l-ask")];
  return cards.every((card) => {
    card.guard.check();
    return performance.now() - card.guard.moved > 550;
  });
});
/** A press that counts: what a layout moved in that very moment is pressed again, as the card says. */
const press = async (page, button, done) => {
  await button.scrollIntoViewIfNeeded();
  for (let i = 0; ; i += 1) {
    await settle(page);
    await button.click();
    const moved = page.getByText("It moved just now. Press once more.").first();
    const what = await Promise.race([done.first().waitFor().then(() => "done"), moved.waitFor().then(() => "moved")]).catch(() => "neither");
    if (what === "done") return;
    assert.ok(what === "moved" && i < 5, `the press did what? ${what}`);
  }
};
const answers = (hub) => hub.calls("POST", /^\/asks\/[^/]+$/);

function one(more = {}) {
  const world = lookWorld();
  world.asks = [askOf("k2", more)];
  for (const chat of world.chats) if (chat.id !== "login") chat.asks = 0;
  return world;
}

test("presses every 50 ms from 0 to 450 ms count for nothing, a later one counts once", async () => {
  const world = one();
  world.asks = [];
  const it = await open(world, "/settings");
  const { page, hub } = it;
  await page.clock.install();
  await page.goto(`${hub.url}/c/login`);
  await page.locator("#message").click();
  // The page's clock is held: the half second is the test's to spend.
  await page.clock.pauseAt(await page.evaluate(() => Date.now()) + 5_000);
  const before = await page.locator("l-composer").boundingBox();
  hub.ask(askOf("n1", { made: Date.now() }));
  const button = page.getByRole("button", { name: "Allow once" });
  await until(async () => {
    await page.clock.runFor(10);
    return (await button.count()) === 1;
  }, "the card stands there");
  await page.evaluate(() => document.querySelector("l-ask").guard.check());
  const box = await button.boundingBox();
  for (let ms = 0; ms <= 450; ms += 50) {
    if (ms > 0) await page.clock.runFor(50);
    await page.mouse.click(box.x + 20, box.y + 10);
  }
  assert.equal(answers(hub).length, 0, "no answer from presses in the first half second");
  assert.deepEqual(await page.locator("l-composer").boundingBox(), before, "the composer did not move");
  await page.locator("#message").focus();
  await page.keyboard.type("and on");
  assert.equal(await page.locator("#message").inputValue(), "and on");
  await page.clock.runFor(600);
  await button.click();
  await until(() => answers(hub).length === 1);
  await it.close();
});

test("a new ask neither takes the focus nor moves the composer, and typing goes on", async () => {
  const it = await open(one(), "/c/flaky");
  const { page, hub } = it;
  const box = page.locator("#message");
  await box.click();
  const before = await box.boundingBox();
  const words = "abcdefghij ".repeat(18).trim();
  const typing = page.keyboard.type(words, { delay: 4 });
  const streaming = hub.stream("flaky", 60, 100);
  const written = (n) => until(async () => (await box.inputValue()).length >= n, `${n} letters are written`);
  await written(30);
  hub.ask(askOf("n1", { chat: "flaky", made: Date.now() }));
  await written(90);
  hub.ask(askOf("n2", { chat: "flaky", made: Date.now(), command: "cargo publish", command_html: "cargo publish" }));
  await typing;
  await streaming;
  assert.equal(await box.inputValue(), words, "every letter arrived, A and R too");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "message");
  await page.locator("#ask-n2").waitFor();
  const now = await box.boundingBox();
  assert.ok(Math.abs(now.y + now.height - (before.y + before.height)) <= 1, "the composer stays");
  assert.equal(answers(hub).length, 0);
  assert.match(await page.title(), /^\(3\) /);
  await it.close();
});

test("each card answers for the ask it was drawn for", async () => {
  const world = one();
  for (const id of ["p1", "p2", "p3"]) world.asks.push(askOf(id, { command: `run ${id}`, command_html: `run ${id}`, made: Date.now() }));
  const it = await open(world, "/approvals");
  const { page, hub } = it;
  await page.locator("#ask-p3").waitFor();
  await settle(page);
  // The queue changes between drawing and press: one ends, one with a nearer deadline comes.
  hub.ask({ ask: "k2", state: "settled", outcome: "allowed", by: "ana in the terminal on zephyr", at: Date.now() });
  hub.ask(askOf("p0", { command: "run p0", command_html: "run p0", expires: Date.now() + 60_000, made: Date.now() }));
  await page.locator("#ask-p0").waitFor();
  await settle(page);
  await page.locator("#ask-p2").getByRole("button", { name: "Allow once" }).click();
  await until(() => answers(hub).length === 1);
  const [{ path, body }] = answers(hub);
  assert.equal(path, "/asks/p2");
  assert.deepEqual(body, { digest: "digest-p2", outcome: "allow", scope: "once" });
  await it.close();
});

test("the card stays until the computer took the answer", async () => {
  const world = one();
  world.takes = false;
  const it = await open(world, "/c/login");
  const { page, hub } = it;
  await page.locator("#ask-k2").waitFor();
  await settle(page);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Sent. Waiting for zephyr.").waitFor();
  await page.getByText("Not delivered yet. The command has not run.").waitFor();
  assert.equal(await page.locator("#ask-k2").getByRole("button", { name: "Allow once" }).count(), 0);
  // The computer goes away and comes back: the state holds, and there is exactly one answer.
  hub.device("zephyr", { state: "away", since: Date.now() });
  await page.getByText("zephyr is away. Not delivered yet. The command has not run.").waitFor();
  hub.device("zephyr", { state: "online", since: Date.now() });
  hub.settle("k2", "allow");
  await page.getByText(/Allowed by you at \d\d:\d\d · running/).waitFor();
  assert.equal(answers(hub).length, 1);
  await it.close();
});

test("an answer that may be lost says so, and again is safe", async () => {
  const it = await open(one(), "/c/login");
  const { page, hub } = it;
  await page.locator("#ask-k2").waitFor();
  await settle(page);
  const mend = hub.fault("POST", /^\/asks\/k2$/, "request");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("It is not known whether your answer arrived.").waitFor();
  mend();
  await settle(page);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText(/Allowed by you at/).waitFor();
  assert.equal(answers(hub).length, 1);
  await it.close();
});

test("five endings, five texts, and a late press gets one of them", async () => {
  const it = await open(one(), "/approvals");
  const { page, hub } = it;
  const at = Date.now();
  const endings = {
    e1: [{ outcome: "allowed", by: "ana" }, /Allowed by you at/],
    e2: [{ outcome: "refused", by: "ana" }, /Refused by you at/],
    e3: [{ outcome: "expired" }, /Nobody answered within 10.min: not run\./],
    e4: [{ outcome: "allowed", by: "ben in the terminal on zephyr" }, /Settled elsewhere: allowed by ben in the terminal on zephyr/],
    e5: [{ outcome: "gone" }, /Gone: the turn ended before an answer/],
  };
  for (const id of Object.keys(endings)) hub.ask(askOf(id, { made: at - 1_000, expires: at + 599_000 }));
  await page.locator("#ask-e5").waitFor();
  for (const [id, [how]] of Object.entries(endings)) hub.ask({ ask: id, state: "settled", at, ...how });
  for (const [id, [, words]] of Object.entries(endings)) {
    await page.locator(`#ask-${id}`).getByText(words).waitFor();
    assert.equal(await page.locator(`#ask-${id} .acts`).count(), 0, `${id} has no buttons`);
  }
  // Settled at the hub, not yet heard here: the press is told how it ended.
  hub.world.asks.find((ask) => ask.ask === "k2").state = "settled";
  Object.assign(hub.world.asks.find((ask) => ask.ask === "k2"), { outcome: "refused", by: "ben", at });
  await settle(page);
  await page.locator("#ask-k2").getByRole("button", { name: "Allow once" }).click();
  await page.locator("#ask-k2").getByText(/Too late: it ended as refused at/).waitFor();
  await it.close();
});

test("a long command is whole and its buttons in reach, with the keyboard up", async () => {
  const lines = Array.from({ length: 212 }, (_, i) => `echo "line ${i} of a long script that goes on"`);
  const command = `cat > run.sh <<'EOF'\n${lines.join("\n")}\nEOF\nsh run.sh # the last byte`;
  const it = await open(one({ command, command_html: command.replaceAll("&", "&amp;").replaceAll("<", "&lt;"), scopes: ["once", "session"] }), "/c/login", { width: 320, height: 568, touch: true });
  const { page } = it;
  await page.locator("#ask-k2").waitFor();
  await page.setViewportSize({ width: 320, height: 312 });
  await page.evaluate(() => document.querySelector("l-stream").toEnd());
  await frames(page, 4);
  for (const name of ["Allow once", "Refuse…", "Allow for this session"]) {
    const box = await page.locator("#ask-k2").getByRole("button", { name }).boundingBox();
    const bar = await page.locator(".talk > .bar").boundingBox();
    const dock = await page.locator(".dock").boundingBox();
    assert.ok(box.y >= bar.y + bar.height - 1 && box.y + box.height <= dock.y + 1, `${name} ${JSON.stringify(box)} between ${bar.y + bar.height} and ${dock.y}`);
  }
  assert.equal(await page.locator("#a-k2-c").textContent(), command);
  await page.locator("#ask-k2 .cmd pre").evaluate((pre) => { pre.scrollTop = pre.scrollHeight; });
  await page.getByText(/21\d lines, \d+(\.\d)?.kB/).waitFor();
  const stop = await page.getByRole("button", { name: "Stop" }).boundingBox();
  assert.ok(stop.y + stop.height <= 312);
  await it.close();
});

test("a blank command and an unknown kind can only be refused", async () => {
  const world = one({ command: " \n", command_html: " \n" });
  world.asks.push(askOf("u1", { kind: "teleport", command: "to the moon", command_html: "to the moon", made: Date.now() }));
  const it = await open(world, "/approvals");
  const { page } = it;
  await page.getByText("The command is empty or cannot be read.").waitFor();
  for (const id of ["k2", "u1"]) {
    assert.equal(await page.locator(`#ask-${id}`).getByRole("button", { name: /Allow/ }).count(), 0);
    assert.equal(await page.locator(`#ask-${id}`).getByRole("button", { name: "Refuse…" }).count(), 1);
  }
  await it.close();
});

test("refusing takes a word, kept as a draft until it is sent", async () => {
  const it = await open(one({ command: "git push origin main\ngit push --tags" }), "/c/login");
  const { page, hub } = it;
  await page.locator("#ask-k2").waitFor();
  await press(page, page.getByRole("button", { name: "Refuse…" }), page.getByLabel("A word why"));
  assert.equal(await page.getByRole("dialog").locator("code").textContent(), "git push origin main …", "that there is more is told");
  await page.getByLabel("A word why").fill("Not yet. Open a branch.");
  await page.keyboard.press("Escape");
  await page.reload();
  await page.locator("#ask-k2").waitFor();
  await press(page, page.getByRole("button", { name: "Refuse…" }), page.getByLabel("A word why"));
  assert.equal(await page.getByLabel("A word why").inputValue(), "Not yet. Open a branch.");
  await page.getByRole("button", { name: "Refuse", exact: true }).click();
  await until(() => answers(hub).length === 1);
  assert.deepEqual(answers(hub)[0].body, { digest: "digest-k2", outcome: "refuse", note: "Not yet. Open a branch." });
  await page.getByText(/Refused by you at/).waitFor();
  await it.close();
});

test("always is offered only where it counts, says what it covers, and can be only once", async () => {
  const world = one({ scopes: ["once", "session", "always"], covers: "cargo test *, boxed, in this folder.", widest: "cargo test -- --ignored" });
  world.asks.push(askOf("k9", { scopes: ["once"], made: Date.now() }));
  const it = await open(world, "/approvals");
  const { page, hub } = it;
  assert.equal(await page.locator("#ask-k9").getByRole("button", { name: /always|session/ }).count(), 0);
  await settle(page);
  await page.locator("#ask-k2").getByRole("button", { name: "Allow always…" }).click();
  await page.getByText("This also covers cargo test -- --ignored.").waitFor();
  await page.getByText("cargo test *, boxed, in this folder.").last().waitFor();
  await page.getByRole("button", { name: "Always", exact: true }).click();
  await until(() => answers(hub).length === 1);
  assert.equal(answers(hub)[0].body.scope, "always");
  await it.close();
});

test("an approval by keyboard alone: to the card, A or R only there", async () => {
  const it = await open(one(), "/c/login");
  const { page, hub } = it;
  await page.locator("#ask-k2").waitFor();
  await page.locator("#message").focus();
  await page.keyboard.type("ar");
  await settle(page);
  assert.equal(answers(hub).length, 0);
  await page.getByRole("link", { name: "Look" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "ask-k2");
  await settle(page);
  await page.keyboard.press("r");
  await page.getByRole("dialog").getByLabel("A word why").waitFor();
  await page.keyboard.type("a reason");
  await page.keyboard.press("Escape");
  await page.locator("#ask-k2").focus();
  await settle(page);
  await page.keyboard.press("a");
  await until(() => answers(hub).length === 1);
  assert.equal(answers(hub)[0].body.outcome, "allow");
  await it.close();
});

test("the time left counts on the hub's clock, and can be extended", async () => {
  const it = await open(one({ expires: Date.now() + 125_000 }), "/approvals");
  const { page, hub } = it;
  await page.getByText(/2.min.\d.s left/).waitFor();
  await settle(page);
  await page.getByRole("button", { name: "30 more minutes" }).click();
  await page.getByText(/3[12].min.*left/).waitFor();
  assert.deepEqual(hub.calls("POST", /extend$/)[0].body, { seconds: 1800 });
  await it.close();
});

test("answered once, gone everywhere: three browsers", async () => {
  const first = await open(one(), "/approvals");
  const others = [await open(null, "/approvals", { hub: first.hub }), await open(null, "/c/login", { hub: first.hub })];
  await settle(first.page);
  await first.page.locator("#ask-k2").getByRole("button", { name: "Allow once" }).click();
  for (const other of others) {
    await until(async () => (await other.page.locator(".acts").count()) === 0, "buttons are gone", 1_500);
    assert.doesNotMatch(await other.page.title(), /^\(/);
    await other.close();
  }
  await first.close();
});
