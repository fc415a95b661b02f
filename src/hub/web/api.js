// The hub's HTTP from the page: one way to call, and every failure as a Trouble in words. Not here: the stream of
// events (stream.js) and what the answers mean (store.js).

import { t } from "./words.js";
import { setHubNow } from "./time.js";

const BASE = "/api/v2";
// A call that takes longer is told as not answered; the work behind a message has its own key, so it can be sent again.
const PATIENCE = 20_000;

/** What went wrong, for a person: `text` says what, `why` the cause, `tries` what to do. */
export class Trouble extends Error {
  constructor({ code, text, why, tries, status = 0, data = null }) {
    super(text);
    Object.assign(this, { code, text, why, tries: tries ?? [], status, data });
  }

  /** True when it is not known whether the hub got the call. */
  get unknown() {
    return this.code === "unreachable" || this.code === "slow";
  }
}

let signedOut = () => {};

/** Tells `fn` when the hub says that this browser is signed out. */
export function onSignedOut(fn) {
  signedOut = fn;
}

/** Calls the hub; gives the JSON of the answer, or throws a Trouble. */
export async function call(method, path, body, { patience = PATIENCE, quiet = false } = {}) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-Lembas"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const clock = new AbortController();
  const timer = setTimeout(() => clock.abort(), patience);
  let response;
  let text;
  try {
    response = await fetch(BASE + path, {
      method, headers, signal: clock.signal, cache: "no-store", credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    text = await response.text();
  } catch {
    const code = clock.signal.aborted ? "slow" : "unreachable";
    throw new Trouble({ code, text: t(`trouble.${code}`), tries: [t(`trouble.${code}.try`)] });
  } finally {
    clearTimeout(timer);
  }
  const data = parse(text);
  if (data?.now) setHubNow(data.now);
  if (response.ok) return data ?? {};
  const trouble = troubleOf(response.status, data);
  if (response.status === 401 && !quiet) signedOut(trouble);
  throw trouble;
}

/** The Trouble in an answer that is not a success. */
export function troubleOf(status, data) {
  const said = data?.error;
  if (said?.text) {
    const tries = Array.isArray(said.try) ? said.try : said.try ? [said.try] : [];
    return new Trouble({ ...said, tries, status, data });
  }
  const key = status === 401 ? "signed_out" : status === 403 ? "forbidden" : status === 404 ? "missing" : status === 429 ? "often" : status >= 500 ? "broken" : "refused";
  return new Trouble({ code: key, text: t(`trouble.${key}`, { status }), tries: [t(`trouble.${key}.try`)], status, data });
}

function parse(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A fresh key: the same work sent twice with it is done once. */
export function newKey() {
  const raw = crypto.getRandomValues(new Uint8Array(16));
  return [...raw].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const id = encodeURIComponent;

export const api = {
  me: () => call("GET", "/me", undefined, { quiet: true }),
  signIn: (name, password) => call("POST", "/signin", { name, password }, { quiet: true }),
  signOut: () => call("POST", "/signout", {}),
  setUp: (token, name, password) => call("POST", "/setup", { token, name, password }, { quiet: true }),
  password: (body) => call("POST", "/account/password", body),
  state: () => call("GET", "/state"),

  renameDevice: (device, name) => call("PATCH", `/devices/${id(device)}`, { name }),
  revokeDevice: (device) => call("DELETE", `/devices/${id(device)}`),
  retryDevice: (device) => call("POST", `/devices/${id(device)}/retry`, {}),
  rules: (device) => call("GET", `/devices/${id(device)}/rules`),
  removeRule: (device, rule) => call("DELETE", `/devices/${id(device)}/rules/${id(rule)}`),
  directories: (device, path) => call("GET", `/devices/${id(device)}/directories${path ? `?path=${id(path)}` : ""}`),
  monitor: (device, body) => call("POST", `/devices/${id(device)}/monitor`, body, { patience: 660_000 }),
  scheduled: (device, body) => call("POST", `/devices/${id(device)}/scheduled`, body),

  linkLookup: (code) => call("POST", "/link/lookup", { code }),
  linkApprove: (code) => call("POST", "/link/approve", { code }),
  linkDeny: (code) => call("POST", "/link/deny", { code }),

  newChat: (body) => call("POST", "/chats", body),
  chats: (query) => call("GET", `/chats?${new URLSearchParams(query)}`),
  chat: (chat) => call("GET", `/chats/${id(chat)}`),
  itemsBefore: (chat, seq, limit) => call("GET", `/chats/${id(chat)}/items?before=${seq}&limit=${limit}`),
  changeChat: (chat, body) => call("PATCH", `/chats/${id(chat)}`, body),
  deleteChat: (chat) => call("DELETE", `/chats/${id(chat)}`),
  send: (chat, body) => call("POST", `/chats/${id(chat)}/messages`, body),
  editQueued: (chat, key, text) => call("PATCH", `/chats/${id(chat)}/queue/${id(key)}`, { text }),
  removeQueued: (chat, key) => call("DELETE", `/chats/${id(chat)}/queue/${id(key)}`),
  sendQueued: (chat, key) => call("POST", `/chats/${id(chat)}/queue/${id(key)}/send`, {}),
  holdQueued: (chat, key, held) => call("POST", `/chats/${id(chat)}/queue/${id(key)}/hold`, { held }),
  stop: (chat, key) => call("POST", `/chats/${id(chat)}/stop`, { key }),
  retryTurn: (chat) => call("POST", `/chats/${id(chat)}/retry`, {}),
  rewind: (chat, seq, key) => call("POST", `/chats/${id(chat)}/rewind`, { seq, key }),
  draft: (chat, text) => call("PUT", `/chats/${id(chat)}/draft`, { text }),

  answer: (ask, body) => call("POST", `/asks/${id(ask)}`, body),
  extend: (ask, seconds) => call("POST", `/asks/${id(ask)}/extend`, { seconds }),

  testModel: (body) => call("POST", "/models/test", body),
  addModel: (body) => call("POST", "/models", body),
  deleteModel: (model) => call("DELETE", `/models/${id(model)}`),
  defaultModel: (model) => call("POST", `/models/${id(model)}/default`, {}),

  sessions: () => call("GET", "/sessions"),
  endSession: (session) => call("DELETE", `/sessions/${id(session)}`),
  endOthers: () => call("DELETE", "/sessions"),
};
