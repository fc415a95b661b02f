// The fake hub's answers, route by route.

const gone = (text) => ({ status: 404, body: { error: { code: "missing", text } } });

export async function routes(hub, method, path, query, body) {
  const { world } = hub;
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const [one, id, what, key, verb] = parts;
  const call = `${method} /${one}`;
  switch (call) {
    case "GET /me": return { account: world.account, now: hub.now(), head: hub.head, instance: { name: "home", version: "3.6.0", practice: true, url: hub.url } };
    case "POST /signin": return signIn(world, body);
    case "POST /setup": return setUp(world, body);
    case "POST /signout": world.signedIn = false; return {};
    case "POST /account": return {};
    case "GET /state": return { now: hub.now(), head: hub.head, devices: world.devices, chats: world.chats.slice(0, 50), total: world.chats.length + (world.hidden ?? 0), asks: world.asks, models: world.models };
    case "GET /sessions": return { sessions: world.sessions };
    case "DELETE /sessions": world.sessions = id ? world.sessions.filter((it) => it.id !== id) : world.sessions.filter((it) => it.this); return {};
    case "GET /models": return { models: world.models };
    case "POST /models": return models(hub, id, what, body);
    case "DELETE /models": world.models = world.models.filter((it) => it.id !== id); hub.push({ type: "models", models: world.models }); return {};
    case "POST /link": return link(world, id);
    case "POST /asks": return ask(hub, id, what, body);
    default: break;
  }
  if (one === "devices") return device(hub, method, id, what, key, query, body);
  if (one === "chats") return chat(hub, method, id, what, key, verb, query, body);
  return gone("No such route.");
}

function signIn(world, { name, password }) {
  if (name !== world.account.name || password !== "long enough words") return { status: 403, body: { error: { code: "wrong", text: "Name or password is wrong.", try: "After five wrong tries it waits a minute." } } };
  world.signedIn = true;
  return {};
}

function setUp(world, { token, name }) {
  if (token !== "ONE-TIME") return { status: 410, body: { error: { code: "expired", text: "This link was used or ran out.", try: "lembas up" } } };
  world.account = { id: "a1", name };
  world.signedIn = true;
  return {};
}

function models(hub, id, what, body) {
  const { world } = hub;
  if (id === "test") return world.test ?? { ok: true, ms: 1400, vision: false, tools: true, context: 32768 };
  if (what === "default") world.models = world.models.map((it) => ({ ...it, default: it.id === id }));
  else world.models = [...world.models, { id: `m${world.models.length}`, name: body.name, url: body.url, practice: false, default: false, tools: body.tools, vision: body.vision }];
  hub.push({ type: "models", models: world.models });
  return {};
}

function link(world, verb) {
  const { state } = world.link;
  const refusals = {
    wrong: [404, "This code is not known.", "Look at it once more: letters only, no digits."],
    expired: [410, "This code ran out after 10 minutes.", "lembas link"],
    often: [429, "Five wrong codes were entered.", "Wait ten minutes, then try again."],
  };
  if (refusals[state]) return { status: refusals[state][0], body: { error: { code: state, text: refusals[state][1], try: refusals[state][2] } } };
  return verb === "lookup" ? { ...world.link.found, expires: Date.now() + 552_000 } : {};
}

function ask(hub, id, what, body) {
  const { world } = hub;
  const found = world.asks.find((it) => it.ask === id);
  if (!found) return gone("This ask is not there any more.");
  if (what === "extend") {
    found.expires += body.seconds * 1000;
    hub.push({ type: "ask", ask: { ...found } });
    return {};
  }
  if (found.state === "settled") return { status: 409, body: { error: { code: "settled", text: found.words ?? "Settled." , how: found.outcome, by: found.by, at: found.at } } };
  Object.assign(found, { state: "sent", outcome: body.outcome, note: body.note });
  hub.push({ type: "ask", ask: { ...found } });
  const device = world.devices.find((it) => it.id === found.device);
  if (device?.state === "online" && world.takes !== false) setTimeout(() => hub.settle?.(id, body.outcome), world.takeMs ?? 30);
  return { status: 202, body: { state: "sent" } };
}

// A computer that is there takes a rule back at once; of one that is away the removal waits until hub.back(id).
function rules(hub, found, method, id) {
  const list = (hub.world.rules[found.id] ??= { rules: [], total: 0, cut: 0, heard: null });
  if (method === "GET") return { ...list, now: Date.now() };
  const rule = list.rules.find((it) => it.id === id);
  if (!rule) return gone("There is no rule like that here.");
  if (rule.verdict === "deny") return { status: 422, body: { error: { code: "refused", text: `This rule refuses something: only ${found.name} itself takes it back.`, try: `lembas rules remove ${id.slice(0, 6)}` } } };
  const online = found.state === "online";
  if (online) hub.rules(found.id, list.rules.filter((it) => it !== rule));
  else hub.rules(found.id, list.rules.map((it) => (it === rule ? { ...it, waits: true } : it)));
  return { status: 202, body: { state: online ? "sent" : "waits", text: "" } };
}

function device(hub, method, id, what, key, query, body) {
  const { world } = hub;
  const found = world.devices.find((it) => it.id === id);
  if (!found) return gone("This computer is not linked here.");
  if (what === "directories") {
    const path = query.get("path");
    const listing = world.folders[path ?? ""];
    return listing ?? { status: 400, body: { error: { code: "root", text: `${found.name} does not allow work in ${path}. It allows ${found.limits.roots.join(" and ")}.`, why: `Only ${found.name} can change that.`, try: [`lembas roots add ${path}`] } } };
  }
  if (what === "rules") return rules(hub, found, method, key);
  if (what === "monitor") return world.monitor ? world.monitor(body) : { hash: "sha256:4a1f0c9d5e77b0a2f3c8d6619e0b5a4472c1d8e3f6a9b0c7d2e5f81394a6b7c8", exit: 0, bytes: 59, excerpt: "5d1c7e0a93bf…    refs/heads/main", truncated: false, duration_ms: 410, mode: "manual" };
  if (what === "scheduled") {
    if (!found.limits.scheduled) return { status: 409, body: { error: { code: "off", text: "This computer does not accept scheduled work.", try: ["lembas service scheduled on"] } } };
    return { chat: world.chats[0], run: "r1" };
  }
  if (method === "PATCH") found.name = body.name;
  if (method === "DELETE") Object.assign(found, { state: "revoked", since: Date.now() });
  if (method !== "POST") hub.push({ type: "device", device: { ...found } });
  return {};
}

function output(world, key, query) {
  const all = Buffer.from(world.outputs?.[key] ?? "");
  const partly = world.partly?.[key];
  const why = partly && { error: { code: "away", text: partly } };
  if (!query.has("from")) return partly && query.get("part") !== "here" ? { status: 409, body: why } : { raw: all };
  const from = Number(query.get("from"));
  const part = all.subarray(from, from + Number(query.get("max") ?? 65_536));
  const next = from + part.length;
  return { text: part.toString(), from, next, total: all.length, end: next >= all.length, whole: !partly, ...(partly ? { note: partly } : {}) };
}

async function chat(hub, method, id, what, key, verb, query, body) {
  const { world } = hub;
  if (!id && method === "GET") {
    const list = world.chats.filter((it) => !query.get("device") || it.device === query.get("device"));
    return { chats: list.slice(0, 50), total: list.length, more: list.length > 50 };
  }
  if (!id && method === "POST") return world.newChat(hub, body);
  const found = world.chats.find((it) => it.id === id);
  if (!found) return gone("This chat is not there any more.");
  const items = world.items[id] ?? [];
  const queue = (world.queues[id] ??= []);
  const changed = () => { hub.push({ type: "queue", chat: id, queue: [...queue] }); return { queue: [...queue] }; };
  switch (`${method} ${what ?? ""}`) {
    case "GET ":
      if (world.slow) await new Promise((done) => setTimeout(done, world.slow));
      return { chat: found, items: items.slice(-50), asks: world.asks.filter((it) => it.chat === id), queue, more: items.length > 50 };
    case "GET items": {
      const before = Number(query.get("before"));
      const older = items.filter((it) => it.seq < before);
      return { items: older.slice(-Number(query.get("limit") ?? 50)), more: older.length > 50 };
    }
    case "GET output": return output(world, key, query);
    case "PATCH ": Object.assign(found, body); if (body.mode && world.appliesMode !== false) found.mode_applied = body.mode; hub.push({ type: "chat", chat: { ...found } }); return { chat: found };
    case "DELETE ": world.chats = world.chats.filter((it) => it.id !== id); hub.push({ type: "chat_gone", id }); return {};
    case "PUT draft": found.draft = body.text; hub.push({ type: "draft", chat: id, text: body.text, by: "s1" }); return {};
    case "POST stop":
      for (const one of queue) if (!one.held) Object.assign(one, { held: true, stopped: true });
      changed();
      hub.onStop?.(found);
      return { status: 202, body: {} };
    case "POST retry": hub.onRetry?.(found); return { state: found.running && found.progress?.phase === "retrying" ? "retried" : "gone" };
    case "POST rewind": {
      world.backs ??= new Map();
      if (!world.backs.has(body.key)) {
        if (found.running) return { status: 409, body: { error: { code: "running", text: "A turn runs in this chat.", try: ["Stop it first."] } } };
        const { seq } = hub.item(id, { kind: "rewound", to: body.seq, by: "ana, in home" });
        hub.chat(id, { progress: null });
        world.backs.set(body.key, seq);
      }
      return { seq: world.backs.get(body.key), chat: { ...found } };
    }
    case "POST messages": return message(hub, found, queue, body, changed);
    case "PATCH queue": Object.assign(queue.find((it) => it.key === key), { text: body.text }); return changed();
    case "DELETE queue": queue.splice(queue.findIndex((it) => it.key === key), 1); return changed();
    case "POST queue": {
      const one = queue.find((it) => it.key === key);
      if (!one) return gone("This message is not waiting any more.");
      if (verb === "hold") {
        Object.assign(one, { held: body.held, stopped: false });
        return changed();
      }
      queue.splice(queue.indexOf(one), 1);
      hub.prompt(found, one.key, one.text);
      return changed();
    }
    default: return gone("No such route.");
  }
}

function message(hub, found, queue, { key, text, when }, changed) {
  const { world } = hub;
  world.keys ??= new Map();
  if (world.keys.has(key)) return world.keys.get(key);
  const device = world.devices.find((it) => it.id === found.device);
  let answer;
  if (found.running || device.state !== "online") {
    queue.push({ key, text, when, held: false });
    answer = { state: "queued", ...changed() };
  } else {
    hub.prompt(found, key, text);
    answer = { state: "sent", queue };
  }
  world.keys.set(key, answer);
  return answer;
}
