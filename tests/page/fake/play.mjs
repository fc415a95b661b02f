// What the fake hub plays: prompts, streamed answers, asks that are settled. Mixed into a FakeHub.

import { FakeHub } from "./hub.mjs";

const nextSeq = (hub, chat) => (hub.world.items[chat] ??= []).reduce((most, item) => Math.max(most, item.seq), 0) + 1;

/** Puts or changes an item and tells it. */
FakeHub.prototype.item = function item(chat, data) {
  const list = (this.world.items[chat] ??= []);
  const seq = data.seq ?? nextSeq(this, chat);
  const old = list.find((one) => one.seq === seq);
  const full = { turn: 2, time: Date.now(), ...old, ...data, seq };
  if (old) list[list.indexOf(old)] = full;
  else list.push(full);
  this.push({ type: "item", chat, item: full });
  return full;
};

/** Changes a chat and tells it. */
FakeHub.prototype.chat = function chat(id, change) {
  const found = this.world.chats.find((one) => one.id === id);
  Object.assign(found, change);
  this.push({ type: "chat", chat: { ...found } });
  return found;
};

/** Changes a computer and tells it. */
FakeHub.prototype.device = function device(id, change) {
  const found = this.world.devices.find((one) => one.id === id);
  Object.assign(found, change);
  this.push({ type: "device", device: { ...found } });
  return found;
};

/** What a computer allows always is this now. */
FakeHub.prototype.rules = function rules(id, list) {
  const { cut = 0 } = this.world.rules[id] ?? {};
  this.world.rules[id] = { rules: list, total: list.length + cut, cut, heard: Date.now() };
  this.push({ type: "rules", device: id });
};

/** A computer is back: what waited for it is taken back. */
FakeHub.prototype.back = function back(id) {
  this.device(id, { state: "online", since: Date.now() });
  this.rules(id, this.world.rules[id].rules.filter((rule) => !rule.waits));
};

/** Makes or changes an ask and tells it. */
FakeHub.prototype.ask = function ask(data) {
  const old = this.world.asks.find((one) => one.ask === data.ask);
  const full = { ...old, ...data };
  if (old) this.world.asks[this.world.asks.indexOf(old)] = full;
  else this.world.asks.push(full);
  this.push({ type: "ask", ask: full });
  return full;
};

/** The computer took the answer. */
FakeHub.prototype.settle = function settle(id, outcome, by = "you") {
  const found = this.world.asks.find((one) => one.ask === id);
  if (!found || found.state === "settled") return;
  this.ask({ ask: id, state: "settled", outcome: outcome === "allow" ? "allowed" : "refused", by, at: Date.now() });
  const step = (this.world.items[found.chat] ?? []).find((one) => one.call === found.call);
  if (step) this.item(found.chat, { seq: step.seq, status: outcome === "allow" ? "running" : "refused", ran: { text: "you allowed it" } });
};

/** A prompt was taken by the computer. */
FakeHub.prototype.prompt = function prompt(chat, key, text) {
  this.item(chat.id, { kind: "said", html: `<p>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</p>`, text, state: "taken", key });
  this.onPrompt?.(chat, text);
};

/** Streams `chunks` pieces of text, `perSecond` a second, as one answer; resolves with its item. */
FakeHub.prototype.stream = async function stream(chat, chunks, perSecond, { word = (i) => `word${i} `, per = 40 } = {}) {
  const item = this.item(chat, { kind: "text", blocks: [], open: true });
  const blocks = [];
  let at = 0;
  const start = Date.now();
  for (let i = 0; i < chunks; i += 1) {
    if (i % per === 0) blocks.push("");
    blocks[blocks.length - 1] += word(i);
    at += word(i).length;
    Object.assign(item, { blocks: blocks.map((text) => `<p>${text}</p>`), at });
    this.push({ type: "md", chat, seq: item.seq, keep: blocks.length - 1, html: [`<p>${blocks.at(-1)}</p>`], at });
    const due = start + ((i + 1) * 1000) / perSecond;
    if (due > Date.now() + 4) await new Promise((done) => setTimeout(done, due - Date.now()));
    else if (i % 50 === 0) await new Promise((done) => setImmediate(done));
  }
  this.item(chat, { ...item, open: false, text: blocks.join("\n\n") });
  return item;
};

export { FakeHub };
