// A question of the agent on its card: chosen, answered in the person's own words, and not by the keys of a permission.
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { open, quit, until } from "./rig.mjs";
import { askOf, lookWorld } from "./fake/world.mjs";

after(quit);

const answers = (hub) => hub.calls("POST", /^\/asks\/[^/]+$/);
const ready = (page) => page.waitForFunction(() => [...document.querySelectorAll("l-ask")].every((card) => {
  card.guard.check();
  return performance.now() - card.guard.moved > 550;
}));

function asking(more = {}) {
  const world = lookWorld();
  world.asks = [askOf("k2", {
    kind: "question", command: "Which port?", command_html: undefined, text: "Which port?", header: "Port", box: null, reason: "The agent asks you.",
    options: [{ id: "1", label: "8080" }, { id: "2", label: "3000", description: "as before" }], multiple: false, custom: true, scopes: ["once"], ...more,
  })];
  return world;
}

test("a choice and words are one answer, and no key allows anything", async () => {
  const it = await open(asking(), "/c/login");
  const { page, hub } = it;
  const card = page.locator("l-ask");
  await card.getByRole("heading", { name: "Port" }).waitFor();
  const button = card.getByRole("button", { name: "Answer", exact: true });
  assert.equal(await button.isDisabled(), true);
  await ready(page);
  await card.locator("section").focus();
  await page.keyboard.press("a");
  assert.equal(answers(hub).length, 0);
  await card.getByRole("radio", { name: /3000/ }).check();
  await card.getByRole("textbox", { name: "Or in your own words" }).fill("as it was");
  await ready(page);
  await button.click();
  await until(() => answers(hub).length === 1);
  const { outcome, selected, note, scope } = answers(hub)[0].body;
  assert.deepEqual({ outcome, selected, note, scope }, { outcome: "allow", selected: ["2"], note: "as it was", scope: undefined });
  await it.close();
});

test("several can be chosen where several count, and words alone are an answer", async () => {
  const it = await open(asking({ multiple: true }), "/c/login");
  const { page, hub } = it;
  const card = page.locator("l-ask");
  await card.getByRole("checkbox", { name: /8080/ }).check();
  await card.getByRole("checkbox", { name: /3000/ }).check();
  await card.getByRole("checkbox", { name: /8080/ }).uncheck();
  await card.getByRole("checkbox", { name: /3000/ }).uncheck();
  await card.getByRole("textbox", { name: "Or in your own words" }).fill("4711");
  await ready(page);
  await card.getByRole("button", { name: "Answer", exact: true }).click();
  await until(() => answers(hub).length === 1);
  assert.deepEqual(answers(hub)[0].body.selected, []);
  assert.equal(answers(hub)[0].body.note, "4711");
  await it.close();
});

test("at half time a question is reminded of as one, and unanswered it ends as one", async () => {
  const world = asking();
  const [ask] = world.asks.splice(0);
  const it = await open(world, "/c/login");
  const { page, hub } = it;
  await until(() => hub.streams.size === 1);
  const made = Date.now() - 5 * 60_000 + 1_000;
  hub.ask({ ...ask, made, expires: made + 10 * 60_000 });
  await page.locator("#toasts").getByText("Half of the time is over: zephyr asks “Which port?” and waits 5 min more.").waitFor();
  hub.ask({ ask: "k2", state: "settled", outcome: "expired", at: Date.now() });
  const head = page.locator("#ask-k2 > header");
  await head.getByText("Nobody answered within 10 min.").waitFor();
  assert.doesNotMatch(await head.textContent(), /not run/);
  await it.close();
});
