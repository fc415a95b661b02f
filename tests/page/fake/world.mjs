// Worlds for the fake hub: the one of the drawn look, an empty one, and long chats. Markup is what the hub's renderer
// makes; times are relative to now so that pages look alive.

const MIN = 60_000;
const HOUR = 3_600_000;
const now = Date.now();

const esc = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

export const devices = () => [
  {
    id: "zephyr", name: "zephyr", os: "Linux", arch: "x86-64", version: "3.6.0", state: "online", since: now - 5 * HOUR, last_heard: now, address: "192.168.1.20", home: "/home/ana", chats_running: 5, asks: 3,
    limits: { remote: true, roots: ["/home/ana/projects", "/home/ana/notes"], max_mode: "edit", scheduled: true, approvals: "once", box: "full", words: "works in ~/projects and ~/notes · up to Edit · scheduled work on · box: full" },
  },
  {
    id: "attic", name: "attic", os: "Linux", arch: "arm64", version: "3.5.2", state: "away", since: now - 14 * HOUR, last_heard: now - 14 * HOUR, last_words: "running pdftotext", address: "192.168.1.31", home: "/home/ana", chats_running: 1, asks: 0,
    limits: { remote: true, roots: ["/home/ana/notes"], max_mode: "manual", scheduled: false, approvals: "once", box: "writes only", words: "works in ~/notes · up to Manual · scheduled work off" },
  },
  { id: "bench", name: "bench", state: "never", since: now - 48 * HOUR, limits: null, chats_running: 0, asks: 0 },
];

export const rules = () => ({
  zephyr: {
    total: 2, cut: 0, heard: now, rules: [
      { id: "4a1f0c9d5e77b0a2", words: "cargo test *, boxed, in this folder. It runs code that the agent can change.", verdict: "allow", origin: "instance", folder: "/home/ana/projects/api", folder_words: "~/projects/api", by: "you, on zephyr", at: now - 18 * 24 * HOUR, used: now - 2 * HOUR, command: "cargo test login", waits: false },
      { id: "77c1d2e3f4a5b6c7", words: "Refused: git push *, in this folder and those in it.", verdict: "deny", origin: "local", folder: "/home/ana/projects", folder_words: "~/projects", by: "you, on zephyr", at: now - 27 * 24 * HOUR, command: "git push", waits: false },
    ],
  },
  attic: {
    total: 1, cut: 0, heard: now - 14 * HOUR, rules: [
      { id: "91ab0c9d5e77b0a2", words: "exactly pdftotext a.pdf, boxed, in this folder.", verdict: "allow", origin: "instance", folder: "/home/ana/notes", folder_words: "~/notes", by: "ana, on the page", at: now - 27 * 24 * HOUR, waits: false },
    ],
  },
});

export const models = () => [
  { id: "m1", name: "qwen3-32b", url: "http://127.0.0.1:11434/v1", practice: false, default: true, context: 32768, vision: false, tools: true },
  { id: "m2", name: "qwen3-coder", url: "http://127.0.0.1:11434/v1", practice: false, default: false, tried: "answers in 1.4 s, calls tools", tested: now - HOUR },
  { id: "practice", name: "practice model", practice: true, default: false },
];

export function chatOf(id, more) {
  return {
    id, device: "zephyr", device_name: "zephyr", cwd: "/home/ana/projects/api", cwd_words: "~/projects/api", title: id, mode: "edit", mode_applied: "edit", modes: ["plan", "manual", "edit", "auto"],
    model: "m1", level: "medium", levels: ["low", "medium", "high"], progress: null, asks: 0, running: false, turn: 1, updated: now - HOUR, created: now - HOUR, origin: "page", unread: false, archived: false, queue: 0, ...more,
  };
}

export function askOf(ask, more) {
  return {
    ask, chat: "login", chat_title: "Fix the login test", device: "zephyr", device_name: "zephyr", cwd: "/home/ana/projects/api", cwd_words: "~/projects/api", call: `call-${ask}`, kind: "execute",
    command: "git push origin main", command_html: '<mark class="why">git push</mark> origin main', reason: "It sends commits to another computer.", segment: "git push", box: "open", covers: null, widest: null,
    scopes: ["once", "session"], digest: `digest-${ask}`, programs: [], variables: [], made: now - 2 * MIN, now, state: "open", words: null, ...more,
  };
}

const LONG = `set -e
for crate in api session clock; do
    cargo update -p "$crate" --precise "$(cat vers/$crate)"
done
cargo metadata --format-version 1 > target/lock.json
printf '%s\u00a0\\n' "checked" >> CHANGELOG.md`;

export const asks = () => [
  askOf("k1", { chat: "notes", chat_title: "Copy the notes", cwd_words: "~/notes", command: "rsync -a --delete ~/notes/ /mnt/backup/notes/", command_html: '<mark class="why">rsync -a --delete</mark> ~/notes/ <mark class="why">/mnt/backup/notes/</mark>', reason: "writes and deletes outside the folders it works in", scopes: ["once"], made: now - 12 * MIN, expires: now + 18 * MIN + 4_000, scheduled: { schedule: "Copy the notes" } }),
  askOf("k2", {}),
  askOf("k3", { segment: "cargo update", chat: "deps", chat_title: "Update the dependencies", command: LONG, command_html: esc(LONG).replace("cargo update", '<mark class="why">cargo update</mark>').replace("\u00a0", '<span class="esc">U+00A0</span>'), reason: "It wants the network. In the box it stopped at registry.example:443", box: "open", made: now - 40_000, subagent: "lockfile", covers: "cargo update *, in this folder, with the network." }),
  askOf("k4", { chat: "site", chat_title: "Site preview", cwd_words: "~/projects/site", command: "python3 -m http.server 8080 --bind 0.0.0.0", command_html: 'python3 -m <mark class="why">http.server 8080 --bind 0.0.0.0</mark>', reason: "opens a port to other computers", made: now - 3 * MIN, state: "sent", outcome: "allow", job: 3 }),
  askOf("k5", { command: 'git commit -am "Expire at one hour"', state: "settled", outcome: "allowed", by: "ana in the terminal on zephyr", at: now - 5 * MIN }),
  askOf("k6", { chat: "deps", chat_title: "Update the dependencies", command: "rm -r target/ vendor/", state: "settled", outcome: "refused", at: now - 33 * MIN }),
  askOf("k7", { chat: "notes", chat_title: "Copy the notes", command: "systemctl --user restart notes-sync", state: "settled", outcome: "expired", at: now - 47 * HOUR }),
  askOf("k8", { chat: "site", chat_title: "Site preview", command: "npm publish --dry-run", state: "settled", outcome: "gone", at: now - 16 * HOUR }),
];

const CARGO = `<span class="a-green a-b">   Compiling</span> api v0.9.2 (~/projects/api)
<span class="a-green a-b">    Finished</span> test profile in 9.8 s
<span class="a-green a-b">     Running</span> tests/login.rs

running 3 tests
test login_refuses_wrong_password ... <span class="a-green">ok</span>
test login_keeps_session          ... <span class="a-green">ok</span>
test login_expires_after_an_hour  ... <span class="a-red a-b">FAILED</span>

<span class="a-d">---- login_expires_after_an_hour ----</span>
assertion \`left == right\` failed: session still valid
  left: <span class="a-yellow">Valid</span>
 right: <span class="a-yellow">Expired</span>
<span class="a-cyan">   at tests/login.rs:61:5</span>

test result: <span class="a-red a-b">FAILED</span>. 2 passed; 1 failed; finished in 0.41 s`;

const DIFF = `<table class="diff"><tbody>
<tr class="hunk"><td colspan="3">lines 38 to 42, <code>impl Session</code></td></tr>
<tr><td class="no">38</td><td class="sg"></td><td class="tx">    pub fn state(&amp;self, clock: &amp;Clock) -&gt; State {</td></tr>
<tr class="del"><td class="no">39</td><td class="sg">−</td><td class="tx">        let age = <del>Utc::now()</del> - self.started;</td></tr>
<tr class="del"><td class="no">40</td><td class="sg">−</td><td class="tx">        if age <del>&gt;</del> self.lifetime {</td></tr>
<tr class="add"><td class="no">39</td><td class="sg">+</td><td class="tx">        let age = <ins>clock.now()</ins> - self.started;</td></tr>
<tr class="add"><td class="no">40</td><td class="sg">+</td><td class="tx">        if age <ins>&gt;=</ins> self.lifetime {</td></tr>
<tr><td class="no">41</td><td class="sg"></td><td class="tx">            return State::Expired;</td></tr>
<tr><td class="no">42</td><td class="sg"></td><td class="tx">        }</td></tr>
</tbody></table>`;

export const PLAN = { entries: [
  { content: "Read the failing test and what it calls", status: "completed", ms: 22_000 },
  { content: "Find why the session stays valid after an hour", status: "completed", ms: 70_000 },
  { content: "Let the test set the clock, and correct the limit", status: "completed", ms: 48_000 },
  { content: "Push to main", status: "in_progress" },
  { content: "Say what changed and what was left alone", status: "pending" },
] };

export function loginItems() {
  const t = now - 6 * MIN;
  return [
    { seq: 1, turn: 1, time: t, kind: "said", html: "<p>The login test fails since yesterday. Find out why, fix it, and push when all tests pass.</p>", text: "The login test fails", state: "taken", key: "k-1" },
    { seq: 2, turn: 1, time: t + 2000, kind: "text", blocks: ["<p>I read the test first, then what it calls.</p>"], text: "I read the test first, then what it calls.", open: false },
    { seq: 3, turn: 1, time: t + 4000, kind: "step", call: "c1", tool: "read", block: "read", title: "tests/login.rs", status: "ok", ran: { source: "read", text: "plain read", box: "read" }, lines: 84, bytes: 2900 },
    { seq: 4, turn: 1, time: t + 5000, kind: "step", call: "c2", tool: "grep", block: "search", title: "started in src", title_html: "<code>started</code> in <code>src</code>", status: "ok", ran: { text: "plain read" }, text_html: '<pre class="out">src/session.rs:12:    pub <b>started</b>: Timestamp,\nsrc/session.rs:39:        let age = Utc::now() - self.<b>started</b>;</pre>' },
    { seq: 5, turn: 1, time: t + 6000, kind: "plan", html: "", plan: PLAN },
    { seq: 6, turn: 1, time: t + 8000, kind: "step", call: "c3", tool: "bash", block: "shell", title: "cargo test login", status: "failed", exit: 101, ms: 10_600, ran: { source: "mode", text: "Edit mode, in the box", box: "roots" }, lines: 18, bytes: 1100, tail_html: CARGO, download: "/api/v2/chats/login/output/c3" },
    { seq: 7, turn: 1, time: t + 20_000, kind: "text", blocks: ["<p>The session compares with the wall clock, and the test moves its own. The limit itself is also off by one: a session of exactly one hour still counts as valid.</p>"], text: "The session compares", open: false },
    { seq: 8, turn: 1, time: t + 30_000, kind: "step", call: "c4", tool: "edit", block: "edit", title: "src/session.rs", path: "src/session.rs", status: "ok", added: 2, removed: 2, diff_html: DIFF, ran: { source: "mode", text: "Edit mode" } },
    { seq: 9, turn: 1, time: t + 70_000, kind: "step", call: "c5", tool: "bash", block: "shell", title: "cargo test", status: "ok", exit: 0, ms: 31_000, ran: { source: "mode", text: "Edit mode, in the box" }, lines: 164, bytes: 9400, tail_html: 'test result: <span class="a-green a-b">ok</span>. 118 passed; 0 failed; finished in 3.92 s\n\n<span class="a-green a-b">   Doc-tests</span> api: <span class="a-green">ok</span>. 6 passed', download: "/api/v2/chats/login/output/c5" },
    { seq: 10, turn: 1, time: t + 80_000, kind: "step", call: "c6", tool: "task", block: "task", title: "review: look for other callers of Utc::now", status: "running" },
    { seq: 11, turn: 1, time: t + 90_000, kind: "text", blocks: ["<p>All 118 tests pass. Two things changed in <code>src/session.rs</code>:</p>", "<ul><li>it takes the time from the clock it is given;</li><li>the limit is reached <strong>at</strong> one hour, not after it.</li></ul>", '<div class="block"><header><span>rust</span><button class="link" type="button">Copy</button></header><pre tabindex="0"><code>let age = clock.now() - self.started;</code></pre></div>', "<p>I would push this to main now.</p>"], text: "All 118 tests pass.", open: false },
    { seq: 12, turn: 1, time: now - 2 * MIN, kind: "step", call: "call-k2", tool: "bash", block: "shell", title: "git push origin main", status: "asking", ask: "k2" },
  ];
}

/** The world of the drawn look. */
export function lookWorld() {
  return {
    signedIn: true, account: { id: "a1", name: "ana" }, head: 100, devices: devices(), rules: rules(), models: models(), asks: asks(), hidden: 24,
    chats: [
      chatOf("notes", { title: "Copy the notes", cwd: "/home/ana/notes", cwd_words: "~/notes", asks: 1, running: true, progress: { phase: "waiting_for_person", since: now - 12 * MIN, ask: "k1" }, updated: now - 12 * MIN, origin: "schedule" }),
      chatOf("login", { title: "Fix the login test", seen: 7, head: 12, asks: 1, running: true, steer: true, progress: { phase: "waiting_for_person", since: now - 2 * MIN, ask: "k2" }, updated: now - 2 * MIN, queue: 1 }),
      chatOf("deps", { title: "Update the dependencies", asks: 1, running: true, progress: { phase: "waiting_for_person", since: now - 40_000, ask: "k3" }, updated: now - 40_000 }),
      chatOf("flaky", { title: "Steady the flaky test", running: true, progress: { phase: "running_tool", tool: "bash", purpose: "cargo test", since: now - 48_000 }, updated: now }),
      chatOf("site", { title: "Site preview", cwd_words: "~/projects/site", running: true, progress: { phase: "loading_model", model: "qwen3-32b", percent: 40, since: now - 12_000 }, updated: now }),
      chatOf("tidy", { title: "Tidy the meeting notes", cwd_words: "~/notes", progress: null, updated: now - HOUR }),
      chatOf("scans", { title: "Sort the scans", device: "attic", device_name: "attic", cwd: "/home/ana/notes/scans", cwd_words: "~/notes/scans", running: true, progress: { phase: "running_tool", tool: "bash", purpose: "pdftotext", since: now - 15 * HOUR }, updated: now - 14 * HOUR, queue: 1 }),
    ],
    items: { login: loginItems(), scans: [{ seq: 1, turn: 1, time: now - 15 * HOUR, kind: "said", html: "<p>Sort the scans by year.</p>", text: "Sort the scans by year.", state: "taken", key: "s" }] },
    queues: { login: [{ key: "q1", text: "Add a line to CHANGELOG.md too", when: "after", held: false }], scans: [{ key: "q2", text: "Then put the bills into 2026.", when: "after", held: false }] },
    outputs: { c5: Array.from({ length: 164 }, (_, i) => `test number_${i} ... \u001b[32mok\u001b[0m`).join("\n") },
    sessions: [
      { id: "s1", agent: "Firefox on zephyr", this: true, made: now - 18 * 24 * HOUR, seen: now, address: "192.168.1.20" },
      { id: "s2", agent: "Phone, on the home screen", this: false, made: now - 16 * 24 * HOUR, seen: now - HOUR, address: "10.0.8.3" },
      { id: "s3", agent: "Chromium on attic", this: false, made: now - 59 * 24 * HOUR, seen: now - 6 * 24 * HOUR, address: "192.168.1.31" },
    ],
    link: { state: "ok", found: { device: { name: "bench", os: "Linux", arch: "x86-64", version: "3.6.0", address: "192.168.1.24" }, limits: { remote: true, roots: [], max_mode: "manual", scheduled: false, words: "works in no folder yet · up to Manual · scheduled work off" } } },
    folders: {
      "": { roots: ["/home/ana/projects", "/home/ana/notes"], folders: [] },
      "/home/ana/projects": { path: "/home/ana/projects", folders: [{ name: "api", path: "/home/ana/projects/api", git: true }, { name: "site", path: "/home/ana/projects/site", git: true }, { name: "sketches", path: "/home/ana/projects/sketches", git: false }] },
      "/home/ana/projects/api": { path: "/home/ana/projects/api", parent: "/home/ana/projects", folders: [{ name: "src", path: "/home/ana/projects/api/src" }, { name: "tests", path: "/home/ana/projects/api/tests" }] },
    },
    newChat(hub, body) {
      this.keys ??= new Map();
      if (this.keys.has(body.key)) return this.keys.get(body.key);
      const chat = chatOf(`new${this.chats.length}`, { title: body.text?.slice(0, 40) ?? "", device: body.device, cwd: body.cwd, cwd_words: body.cwd.replace("/home/ana", "~"), model: body.model, mode: body.mode ?? "edit", mode_applied: body.mode ?? "edit", updated: Date.now() });
      this.chats.unshift(chat);
      this.items[chat.id] = [];
      if (body.text) hub.prompt(chat, body.key, body.text);
      this.keys.set(body.key, { chat });
      return { chat };
    },
  };
}

/** Freshly set up: one computer, the practice model, nothing said. */
export function freshWorld({ roots = true } = {}) {
  const world = lookWorld();
  const [zephyr] = world.devices;
  zephyr.limits = { ...zephyr.limits, roots: roots ? ["/home/ana/projects"] : [], scheduled: false, words: roots ? "works in ~/projects · up to Edit · scheduled work off" : "works in no folder yet · up to Edit · scheduled work off" };
  return Object.assign(world, { devices: [zephyr], chats: [], asks: [], items: {}, queues: {}, hidden: 0, models: [{ id: "practice", name: "practice model", practice: true, default: true }] });
}

/** One chat of `count` messages. */
export function longWorld(count) {
  const world = lookWorld();
  const items = [];
  for (let seq = 1; seq <= count; seq += 1) {
    const time = now - (count - seq) * 30_000;
    if (seq % 6 === 1) items.push({ seq, turn: seq, time, kind: "said", html: `<p>Question ${seq}</p>`, text: `Question ${seq}`, state: "taken", key: `k${seq}` });
    else if (seq % 6 === 3 || seq % 6 === 4) items.push({ seq, turn: seq, time, kind: "step", call: `c${seq}`, tool: "bash", block: "shell", title: `cargo test number_${seq}`, status: "ok", exit: 0, ms: 1200, ran: { text: "Edit mode, in the box" }, lines: 3, bytes: 80, tail_html: "one\ntwo\nthree" });
    else items.push({ seq, turn: seq, time, kind: "text", blocks: [`<p>Answer ${seq}. ${"Some words about what was found. ".repeat((seq * 7) % 9 + 1)}</p>`, `<ul><li>first of ${seq}</li><li>second</li></ul>`], text: `Answer ${seq}`, open: false });
  }
  world.chats = [chatOf("long", { title: "A long chat", updated: now })];
  world.asks = [];
  world.items = { long: items };
  world.queues = {};
  return world;
}
