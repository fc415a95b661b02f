// What the hub's objects look like, once: the fake hub and the real one are both held against it, so that neither tells
// the page something that the other does not. A key with "?" may be left out or null. Not here: what they mean.

const TYPES = {
  text: (v) => typeof v === "string",
  html: (v) => typeof v === "string",
  flag: (v) => typeof v === "boolean",
  count: (v) => Number.isInteger(v) && v >= 0,
  time: (v) => Number.isInteger(v) && v > 1_500_000_000_000,
  any: () => true,
  texts: (v) => Array.isArray(v) && v.every((one) => typeof one === "string"),
  list: (v) => Array.isArray(v),
  object: (v) => v !== null && typeof v === "object" && !Array.isArray(v),
};

const oneOf = (...words) => (v) => words.includes(v);

const ITEM = { seq: "count", turn: "count", time: "time", kind: oneOf("said", "text", "thought", "step", "mid", "plan") };

export const SHAPES = {
  me: { account: "object", now: "time", head: "count", instance: "object", "browser?": "text" },
  state: { now: "time", head: "count", total: "count", devices: "list", chats: "list", asks: "list", models: "list" },
  device: {
    id: "text", name: "text", "os?": "text", "arch?": "text", "version?": "text", state: oneOf("online", "away", "never", "revoked"), since: "time", "last_heard?": "time",
    "last_words?": "text", "address?": "text", "paired?": "time", "limits?": "limits", "home?": "text", chats_running: "count", asks: "count", "why?": "text",
  },
  limits: {
    remote: "flag", "paused?": "flag", roots: "texts", max_mode: oneOf("plan", "manual", "edit", "auto"), scheduled: "flag", "approvals?": oneOf("local", "once", "full"),
    "box?": oneOf("full", "writes only", "none"), words: "text", "terminal?": "flag", "approval_max?": "count", "max_sessions?": "count", "approval_timeout?": "count", "mcp_servers?": "any",
  },
  chat: {
    id: "text", device: "text", device_name: "text", cwd: "text", cwd_words: "text", "title?": "text", mode: "text", mode_applied: "text", modes: "list", model: "text", "level?": "text",
    levels: "texts", "progress?": "object", asks: "count", running: "flag", turn: "count", updated: "time", created: "time", origin: oneOf("page", "schedule", "device", "editor", "terminal"), unread: "flag",
    "seen?": "count", "head?": "count", archived: "flag", queue: "count", "draft?": "text", "wanted?": "object", "lowered?": "text", "closed?": "text", "steer?": "flag", "retry?": "flag", "rewind?": "flag",
  },
  ask: {
    ask: "text", chat: "text", "chat_title?": "text", device: "text", device_name: "text", cwd: "text", cwd_words: "text", "call?": "text", "seq?": "count", kind: "text", command: "text",
    command_html: "html", "hidden?": "count", "reason?": "text", "segment?": "text", "box?": oneOf("read", "roots", "open"), digest: "text", scopes: "texts", "programs?": "list", "variables?": "list",
    made: "time", now: "time", state: oneOf("open", "sending", "sent", "settled"), "late?": "flag", "words?": "text", "covers?": "text", "widest?": "text", "scheduled?": "any", "job?": "any",
    "subagent?": "any", "header?": "text", "text?": "text", "options?": "list", "multiple?": "flag", "custom?": "flag", "diff_html?": "html", "expires?": "time",
    "outcome?": oneOf("allow", "refuse", "allowed", "refused", "expired", "cancelled", "gone"), "scope?": "text", "note?": "text", "by?": "text", "at?": "time",
  },
  model: {
    id: "text", name: "text", "url?": "text", "model?": "text", practice: "flag", default: "flag", "context?": "count", "vision?": "flag", "tools?": "flag", "efforts?": "texts", "tried?": "text",
    "tested?": "time", "key?": "flag",
  },
  session: { id: "text", agent: "text", "address?": "text", made: "time", seen: "time", this: "flag" },
  queued: { key: "text", text: "text", "parts?": "list", when: oneOf("after", "next"), held: "flag", "stopped?": "flag", "state?": oneOf("saved", "sent", "failed"), "why?": "text", "made?": "time" },
  said: { ...ITEM, html: "html", text: "text", state: oneOf("saved", "sent", "taken", "failed"), "key?": "text", "source?": "text" },
  text: { ...ITEM, blocks: "texts", "text?": "text", open: "flag", "at?": "count" },
  thought: { ...ITEM, html: "html", "open?": "flag" },
  rewound: { ...ITEM, to: "count", "by?": "text" },
  mid: { ...ITEM, html: "html", "tone?": "text" },
  plan: { ...ITEM, html: "html", plan: "object" },
  step: {
    ...ITEM, call: "text", tool: "text", block: "text", title: "text", status: oneOf("pending", "asking", "running", "ok", "failed", "refused", "cancelled", "unknown"), "ran?": "ran", "ask?": "text",
    "path?": "text", "exit?": "any", "ms?": "count", "bytes?": "count", "spill?": "text", "lines?": "count", "tail_html?": "html", "diff_html?": "html", "text_html?": "html", "title_html?": "html",
    "added?": "count", "removed?": "count", "download?": "text", "kept?": "count", "command?": "text", "unanswered?": "count",
  },
  ran: { "source?": oneOf("read", "mode", "rule", "session", "once", "interact"), text: "text", "box?": oneOf("read", "roots", "open") },
  rules: { rules: "list", total: "count", cut: "count", "heard?": "time", now: "time" },
  rule: {
    id: "text", words: "text", verdict: oneOf("allow", "deny"), origin: oneOf("instance", "local"), "folder?": "text", "folder_words?": "text", by: "text", at: "time", "used?": "time",
    "command?": "text", waits: "flag", "why?": "text",
  },
  stretch: { text: "text", from: "count", next: "count", total: "count", end: "flag", whole: "flag", "note?": "text" },
  lookup: { device: "object", limits: "limits", expires: "time", "now?": "time" },
  monitor: { hash: "text", exit: "any", bytes: "count", "excerpt?": "text", "truncated?": "flag", duration_ms: "count", "mode?": "text", "unstable?": "flag", "cwd?": "text", "signal?": "any", "run?": "text", "run_id?": "text", "state?": "text", "runs?": "any" },
  folders: { "path?": "text", "parent?": "text", "roots?": "texts", folders: "list", "truncated?": "flag" },
};

/** What of `value` is not as `shape` says, as lines. */
export function misfits(shape, value, where = shape) {
  if (!TYPES.object(value)) return [`${where}: no object but ${JSON.stringify(value)}`];
  const wrong = [];
  const known = new Map(Object.entries(SHAPES[shape]).map(([key, type]) => [key.replace("?", ""), { type, optional: key.endsWith("?") }]));
  for (const [key, { type, optional }] of known) {
    const got = value[key];
    if (got === undefined || got === null) {
      if (!optional) wrong.push(`${where}.${key}: is missing`);
    } else if (typeof type === "string" && type in SHAPES && !(type in TYPES)) {
      wrong.push(...misfits(type, got, `${where}.${key}`));
    } else if (!(typeof type === "function" ? type : TYPES[type])(got)) {
      wrong.push(`${where}.${key}: ${JSON.stringify(got)?.slice(0, 80)}`);
    }
  }
  for (const key of Object.keys(value)) if (!known.has(key)) wrong.push(`${where}.${key}: is not known`);
  return wrong;
}

/** The same for a whole chat's page or state: each of its objects by its own shape. */
export function misfitsIn({ devices = [], chats = [], asks = [], rules = [], models = [], sessions = [], items = [], queue = [] }) {
  return [
    ...devices.flatMap((one) => misfits("device", one)), ...chats.flatMap((one) => misfits("chat", one)), ...asks.flatMap((one) => misfits("ask", one)),
    ...rules.flatMap((one) => misfits("rule", one)), ...models.flatMap((one) => misfits("model", one)), ...sessions.flatMap((one) => misfits("session", one)), ...queue.flatMap((one) => misfits("queued", one)),
    ...items.flatMap((one) => (one.kind in SHAPES ? misfits(one.kind, one, `${one.kind} ${one.seq}`) : [`item ${one.seq}: of kind ${one.kind}`])),
  ];
}
