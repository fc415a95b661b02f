// Each place in each of its states, at 320 and 1440 px, light and dark: drawn, kept as a picture outside the project,
// never wider than the window, and by checks.mjs fit for everybody (U25, U29, U53, U55).
import { after, test } from "node:test";
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { frames, open, quit, until } from "./rig.mjs";
import { axe, fit, focusRings, landmarks } from "./checks.mjs";
import { chatOf, freshWorld, longWorld, lookWorld } from "./fake/world.mjs";

const SHOTS = process.env.LEMBAS_SHOTS ?? join(tmpdir(), "lembas-shots");
mkdirSync(SHOTS, { recursive: true });
after(quit);

const broken = { status: 500, body: { error: { code: "store", text: "This instance could not read its store.", try: "Its log has the reason." } } };
const out = (more) => () => ({ ...lookWorld(), signedIn: false, ...more });

const PLACES = {
  home: ["/", lookWorld],
  "home-first": ["/", freshWorld],
  "home-no-folder": ["/", () => freshWorld({ roots: false })],
  "home-empty": ["/", () => ({ ...freshWorld(), devices: [] })],
  "home-error": ["/", lookWorld, { fault: ["GET", /^\/state$/, [broken.status, broken.body]] }],
  "home-all": ["/?device=zephyr", lookWorld],
  "new-chat": ["/?new=zephyr", lookWorld],
  "new-away": ["/?new=attic", lookWorld],
  chat: ["/c/login", lookWorld],
  "chat-away": ["/c/scans", lookWorld],
  "chat-long": ["/c/long", () => longWorld(120)],
  "chat-empty": ["/c/blank", () => { const world = lookWorld(); world.chats.push(chatOf("blank", { title: "Nothing yet", turn: 0 })); return world; }],
  "chat-loading": ["/c/login", () => ({ ...lookWorld(), slow: 3_000 }), { early: true }],
  "chat-gone": ["/c/nope", lookWorld],
  "chat-error": ["/c/login", lookWorld, { fault: ["GET", /^\/chats\/login$/, [broken.status, broken.body]] }],
  approvals: ["/approvals", lookWorld],
  "approvals-empty": ["/approvals", freshWorld],
  settings: ["/settings", lookWorld],
  schedules: ["/schedules", lookWorld],
  "schedules-off": ["/schedules", freshWorld],
  "schedules-no-folder": ["/schedules", () => freshWorld({ roots: false })],
  link: ["/link?code=WDJBMJHT", lookWorld],
  "link-expired": ["/link?code=WDJBMJHT", () => { const world = lookWorld(); world.link.state = "expired"; return world; }],
  signin: ["/signin", out()],
  "signin-out": ["/signin", out({ outText: "You were signed out here. Your draft is kept.", outWhy: "ended from Firefox on zephyr", outSince: Date.now() - 60_000 })],
  setup: ["/signin?setup=ONE-TIME", out()],
};

const SMALL = { width: 320, height: 640, touch: true };
const MIDDLE = { width: 768, height: 1024, touch: true };
const WIDE = { width: 1440, height: 900, touch: false };

/** Draws what `page` shows in this window, light and dark, and gives what is wrong with it. */
async function judged(page, name, size) {
  const wrong = [];
  for (const scheme of ["light", "dark"]) {
    // Without transitions: colours are measured, not what they pass through.
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await frames(page);
    await page.screenshot({ path: join(SHOTS, `${name}-${size.width}-${scheme}.png`) });
    // Between the small and the middle window only the room differs.
    if (size !== MIDDLE) wrong.push(...await axe(page, scheme === "dark" ? "colours" : "all"));
  }
  wrong.push(...await fit(page, size), ...await landmarks(page));
  if (!size.touch) wrong.push(...await focusRings(page));
  return wrong;
}

// The small window is turned into the middle one: the place is there already.
for (const [size, turned] of [[SMALL, MIDDLE], [WIDE]]) {
  test(`each place fits ${size.width} px, and can be read, pressed and heard by everybody`, async (t) => {
    const it = await open(lookWorld(), "/", size);
    const { page } = it;
    for (const [name, [path, world, how = {}]] of Object.entries(PLACES)) {
      await t.test(name, async () => {
        it.hub.world = world();
        it.hub.world.url = it.hub.url;
        if (how.fault) it.hub.fault(...how.fault);
        await page.setViewportSize(size);
        await page.evaluate(() => localStorage.clear()).catch(() => {});
        await page.goto(it.hub.url + path);
        await page.locator("h1").first().waitFor();
        if (!how.early) await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
        assert.deepEqual(await judged(page, name, size), []);
        if (!turned) return;
        await page.setViewportSize(turned);
        assert.deepEqual(await judged(page, name, turned), [], `${turned.width} px`);
      });
    }
    await it.close();
  });
}

test("pinch zoom is never switched off, and nothing inline is needed", async () => {
  const it = await open(lookWorld(), "/");
  const viewport = await it.page.locator("meta[name=viewport]").getAttribute("content");
  assert.doesNotMatch(viewport, /user-scalable|maximum-scale/);
  assert.equal(await it.page.locator("script:not([src]), style, [style]:not([data-space]):not(html)").count(), 0);
  await it.close();
});

test("places are reached by address, by link and by Back", async () => {
  const it = await open(lookWorld(), "/");
  const { page } = it;
  await page.getByRole("link", { name: "Steady the flaky test" }).first().click();
  await page.getByRole("heading", { level: 1, name: "Steady the flaky test" }).waitFor();
  assert.match(page.url(), /\/c\/flaky$/);
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Settings" }).click();
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Steady the flaky test" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Computers" }).waitFor();
  await page.goForward();
  await page.getByRole("heading", { level: 1, name: "Steady the flaky test" }).waitFor();
  await it.close();
});

test("forced colours and reduced motion: states stay words and shapes, nothing turns", async () => {
  const it = await open(lookWorld(), "/c/login", { context: { forcedColors: "active", reducedMotion: "reduce" } });
  await it.page.getByRole("button", { name: "Allow once" }).waitFor();
  await it.page.screenshot({ path: join(SHOTS, "chat-forced-colours.png") });
  const turning = await it.page.evaluate(() => [...document.querySelectorAll(".ring")].filter((el) => getComputedStyle(el).animationName !== "none").length);
  assert.equal(turning, 0);
  assert.ok(await it.page.getByText("Waits for you").first().isVisible());
  await it.close();
});

test("linking: a press meant for the look-up does not answer; a later one does", async () => {
  const world = lookWorld();
  const it = await open(world, "/settings");
  const { page, hub } = it;
  await page.clock.install();
  await page.goto(`${hub.url}/link`);
  await page.locator("#code").waitFor();
  // The page's clock is held: the half second is the test's to spend.
  await page.clock.pauseAt(await page.evaluate(() => Date.now()) + 5_000);
  await page.locator("#code").fill("WDJBMJHT");
  const yes = page.locator(".answers .btn-1");
  await until(async () => {
    await page.clock.runFor(10);
    return (await yes.count()) === 1;
  }, "the question stands there");
  const press = async () => {
    await yes.scrollIntoViewIfNeeded();
    const box = await yes.boundingBox();
    await page.mouse.click(box.x + 20, box.y + 10);
  };
  await press();
  assert.equal(hub.calls("POST", /approve/).length, 0, "the first half second counts for nothing");
  await page.clock.runFor(700);
  await press();
  await until(() => hub.calls("POST", /approve/).length === 1);
  await it.close();
});

test("where no folder is allowed yet, both forms say how one is", async () => {
  const it = await open(freshWorld({ roots: false }), "/schedules");
  for (const form of await it.page.locator("form").all()) {
    await form.getByText("zephyr works in no folder yet. Allow a folder on zephyr, then start here:").waitFor();
    await form.getByText("lembas roots add ~/projects").waitFor();
  }
  await it.close();
});

test("a watch with the switch on asks for it, and a failed check is shown as one with its command", async () => {
  const world = lookWorld();
  world.monitor = () => ({ hash: "sha256:00", exit: 3, failed: true, bytes: 0, excerpt: "", truncated: false, duration_ms: 5, mode: "manual" });
  const it = await open(world, "/schedules");
  const { page, hub } = it;
  await page.locator("#watch-command").fill("exit 3");
  await page.getByRole("switch").check();
  await page.locator("form").nth(1).locator("button[type=submit]").click();
  await page.locator(".result .is-bad").waitFor();
  assert.equal(hub.calls("POST", /monitor$/)[0].body.fail_on, "nonzero");
  // The mode of a schedule that says none, as far as the computer allows it.
  assert.equal(hub.calls("POST", /monitor$/)[0].body.mode, "edit");
  assert.equal(await page.locator(".result p code").first().textContent(), "exit 3");
  await it.close();
});
