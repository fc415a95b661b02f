// What the page knows: computers, chats, asks, models and the state of the connection, as last heard, and who wants to
// hear of changes. The items of open chats are in log.js. Not here: drawing, and how events arrive (stream.js).

import { api } from "./api.js";
import { hubNow, setHubNow } from "./time.js";
import { Log } from "./log.js";

const listeners = new Map();

export const store = {
  me: null,
  loaded: false,
  trouble: null,
  head: 0,
  devices: new Map(),
  chats: new Map(),
  total: 0,
  asks: new Map(),
  models: [],
  warnings: [],
  /** { state: "starting"|"live"|"catching"|"lost", since, left, total, next } */
  conn: { state: "starting", since: Date.now() },
  logs: new Map(),
  /** When something was last heard of a chat, by the hub's clock. */
  heard: new Map(),
};

// While a snapshot is on its way events wait here, so that none falls between the two.
let waiting = null;

/** Calls `fn` when `topic` changes: me, warnings, devices, chats, asks, models, conn, rules:ID, chat:ID, items:ID, queue:ID, draft:ID. Returns how to stop it. */
export function on(topic, fn) {
  const set = listeners.get(topic) ?? new Set();
  listeners.set(topic, set);
  set.add(fn);
  return () => set.delete(fn);
}

/** Says that `topic` changed. */
export function emit(topic, detail) {
  for (const fn of [...(listeners.get(topic) ?? [])]) fn(detail);
}

/** Forgets all that was heard, e.g. because this browser was signed out: the next account must not see it. */
export function forget() {
  Object.assign(store, { me: null, loaded: false, trouble: null, head: 0, total: 0, models: [], warnings: [], conn: { state: "starting", since: Date.now() } });
  for (const map of [store.devices, store.chats, store.asks, store.logs, store.heard]) map.clear();
}

// Past this many the oldest goes.
const WARNINGS = 5;

let loading = null;

/** Takes the whole state from the hub; true when it came. Also renews the chats that are open. */
export function load() {
  loading ??= takeSnapshot().finally(() => { loading = null; });
  return loading;
}

async function takeSnapshot() {
  waiting ??= [];
  try {
    const state = await api.state();
    take(state);
    await Promise.all([...store.logs.values()].map((log) => log.load()));
    return true;
  } catch (trouble) {
    store.trouble = trouble;
    everything();
    return false;
  } finally {
    const late = waiting ?? [];
    waiting = null;
    for (const [event, id] of late) apply(event, id);
  }
}

function take(state) {
  setHubNow(state.now);
  store.head = state.head ?? 0;
  store.devices = new Map((state.devices ?? []).map((one) => [one.id, one]));
  store.chats = new Map((state.chats ?? []).map((one) => [one.id, one]));
  store.total = state.total ?? store.chats.size;
  store.asks = new Map((state.asks ?? []).map((one) => [one.ask, one]));
  store.models = state.models ?? [];
  store.trouble = null;
  store.loaded = true;
  everything();
}

function everything() {
  for (const topic of ["devices", "chats", "asks", "models"]) emit(topic);
  for (const id of store.devices.keys()) emit(`rules:${id}`);
  for (const id of store.logs.keys()) emit(`chat:${id}`);
}

/** Applies one event of the stream; one that the snapshot already holds is let go. */
export function apply(event, id) {
  if (waiting) {
    waiting.push([event, id]);
    return;
  }
  if (id !== undefined) {
    if (id <= store.head) return;
    store.head = id;
  }
  if (event.chat && typeof event.chat === "string") store.heard.set(event.chat, hubNow());
  APPLY[event.type]?.(event);
}

const APPLY = {
  device({ device }) {
    store.devices.set(device.id, device);
    emit("devices");
  },
  rules: ({ device }) => emit(`rules:${device}`),
  device_gone({ id }) {
    store.devices.delete(id);
    emit("devices");
  },
  chat({ chat }) {
    if (!store.chats.has(chat.id)) store.total += 1;
    store.chats.set(chat.id, chat);
    store.heard.set(chat.id, hubNow());
    emit("chats");
    emit(`chat:${chat.id}`);
  },
  chat_gone({ id }) {
    if (store.chats.delete(id)) store.total = Math.max(0, store.total - 1);
    store.logs.get(id)?.goneNow();
    emit("chats");
    emit(`chat:${id}`);
  },
  ask({ ask }) {
    putAsk(ask);
  },
  models({ models }) {
    store.models = models;
    emit("models");
  },
  item: (event) => store.logs.get(event.chat)?.item(event.item),
  md: (event) => store.logs.get(event.chat)?.markdown(event),
  out: (event) => store.logs.get(event.chat)?.output(event),
  queue: (event) => {
    store.logs.get(event.chat)?.setQueue(event.queue);
  },
  // Something about a computer that its person should look at; the place that shows it stays until it is closed.
  warning(event) {
    store.warnings = [...store.warnings.filter((one) => one.text !== event.text), { text: event.text, device: event.device, at: hubNow() }].slice(-WARNINGS);
    emit("warnings");
  },
  draft: (event) => emit(`draft:${event.chat}`, event),
};

/** Puts an ask as it is now. */
export function putAsk(ask) {
  const fresh = !store.asks.has(ask.ask);
  store.asks.set(ask.ask, ask);
  forgetSettled();
  if (ask.chat) store.heard.set(ask.chat, hubNow());
  emit("asks", { ask, fresh });
  emit(`chat:${ask.chat}`);
}

// Settled asks stay for the list of answers; past this many the oldest is let go.
const SETTLED = 60;

function forgetSettled() {
  const settled = [...store.asks.values()].filter((one) => one.state === "settled");
  if (settled.length <= SETTLED) return;
  settled.sort((a, b) => (a.at ?? a.made) - (b.at ?? b.made));
  store.asks.delete(settled[0].ask);
}

/** Says what is known of the connection between this page and the hub. */
export function setConn(conn) {
  store.conn = conn;
  emit("conn");
}

/** The log of a chat, loaded when it is not yet. */
export function openLog(id) {
  let log = store.logs.get(id);
  if (!log) {
    log = new Log(id, { emit, takeChat, putAsk });
    store.logs.set(id, log);
    log.load();
  }
  return log;
}

/** Lets a chat's items go: they are loaded from the end when it is opened again. */
export function closeLog(id) {
  store.logs.delete(id);
}

function takeChat(chat) {
  store.chats.set(chat.id, chat);
  emit("chats");
  emit(`chat:${chat.id}`);
}

/** True while the ask wants something of the person. */
export const isOpen = (ask) => ask.state === "open";

/** Asks that are not settled: those that wait for the person first, by deadline, then by age. */
export function openAsks(chat) {
  return [...store.asks.values()]
    .filter((ask) => ask.state !== "settled" && (chat === undefined || ask.chat === chat))
    .sort((a, b) => Number(a.state !== "open") - Number(b.state !== "open") || (a.expires ?? Infinity) - (b.expires ?? Infinity) || a.made - b.made || (a.ask < b.ask ? -1 : 1));
}

/** How many asks wait for the person. */
export const waitingCount = () => openAsks().filter(isOpen).length;

/** Chats for a list: waiting for the person first, then at work, then by age. */
export function sortedChats(filter = () => true) {
  const asking = new Set(openAsks().filter(isOpen).map((ask) => ask.chat));
  const rank = (chat) => (asking.has(chat.id) || chat.asks > 0 ? 0 : chat.running ? 1 : 2);
  return [...store.chats.values()]
    .filter((chat) => !chat.archived && filter(chat))
    .sort((a, b) => rank(a) - rank(b) || (b.updated ?? 0) - (a.updated ?? 0));
}

/** Computers: at work first, those away after, never linked last. */
export function sortedDevices() {
  const rank = { online: 0, away: 1, never: 2, revoked: 3 };
  return [...store.devices.values()].sort((a, b) => (rank[a.state] ?? 4) - (rank[b.state] ?? 4) || a.name.localeCompare(b.name));
}

/** The model a new chat gets when nothing is chosen. */
export const defaultModel = () => store.models.find((model) => model.default) ?? store.models[0];
