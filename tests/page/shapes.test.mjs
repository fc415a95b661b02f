// The fake hub tells the page nothing that the real one does not: both are held against shapes.mjs, here the fake one's
// worlds, in real.test.mjs and looks.test.mjs what the real one says.
import { test } from "node:test";
import assert from "node:assert/strict";
import { freshWorld, longWorld, lookWorld } from "./fake/world.mjs";
import { routes } from "./fake/routes.mjs";
import { misfits, misfitsIn } from "./shapes.mjs";

for (const [name, make] of Object.entries({ look: lookWorld, fresh: freshWorld, long: () => longWorld(60) })) {
  test(`the fake hub's world “${name}” has the shapes of the real one`, () => {
    const world = make();
    assert.deepEqual(misfitsIn({ ...world, rules: Object.values(world.rules).flatMap((one) => one.rules), items: Object.values(world.items).flat(), queue: Object.values(world.queues).flat() }), []);
  });
}

test("the fake hub's answers have the shapes of the real one's", async () => {
  const world = lookWorld();
  const hub = { world, head: 1, now: Date.now, url: "http://127.0.0.1", push() {} };
  const get = (path, query = {}) => routes(hub, "GET", path, new URLSearchParams(query), {});
  assert.deepEqual(misfits("me", await get("/me")), []);
  assert.deepEqual(misfits("state", await get("/state")), []);
  assert.deepEqual(misfits("lookup", await routes(hub, "POST", "/link/lookup", new URLSearchParams(), {})), []);
  assert.deepEqual(misfits("monitor", await routes(hub, "POST", "/devices/zephyr/monitor", new URLSearchParams(), {})), []);
  assert.deepEqual(misfits("folders", await get("/devices/zephyr/directories", { path: "/home/ana/projects" })), []);
  assert.deepEqual(misfits("rules", await get("/devices/zephyr/rules")), []);
  assert.deepEqual(misfits("stretch", await get("/chats/login/output/c5", { from: "0", max: "100" })), []);
  assert.equal(typeof (await get("/chats", { device: "zephyr" })).more, "boolean");
});
