// Everything that waits for the person, the nearest deadline first, and how the last ones ended. Not here: a card.

import { h, render } from "../dom.js";
import { paint } from "../beat.js";
import { load, on, openAsks, isOpen, sortedDevices, store } from "../store.js";
import { t } from "../words.js";
import { stateBox, troubleBox } from "../parts/bits.js";
import { settledRow } from "../parts/ask-card.js";

const SETTLED = 20;

export function mount(main) {
  // Asks that were open here and ended keep their place until the person leaves: nothing moves under the finger.
  const here = new Set();
  const draw = () => render(main, view(here));
  const later = () => paint(draw);
  const offs = ["asks", "devices", "conn"].map((topic) => on(topic, later));
  draw();
  return { title: () => t("places.approvals"), close: () => offs.forEach((off) => off()) };
}

function view(here) {
  const head = (words) => h("div", { class: "head" }, h("h1", null, t("places.approvals")), words && h("p", null, words));
  if (!store.loaded) return [head(), store.trouble ? troubleBox(store.trouble, load, { title: t("home.failed") }) : stateBox({ shape: "work", title: t("approvals.loading"), busy: true })];
  const open = openAsks();
  for (const ask of open) here.add(ask.ask);
  const kept = [...here].map((id) => store.asks.get(id)).filter((ask) => ask?.state === "settled");
  // Cards stay in the order in which they were first seen here, new ones follow.
  const order = [...here];
  const cards = [...open, ...kept].sort((a, b) => order.indexOf(a.ask) - order.indexOf(b.ask));
  const waiting = open.filter(isOpen).length;
  const sent = open.length - waiting;
  const settled = [...store.asks.values()].filter((ask) => ask.state === "settled" && !here.has(ask.ask)).sort((a, b) => (b.at ?? b.made) - (a.at ?? a.made));
  const away = sortedDevices().filter((device) => device.state === "away");
  const words = [
    waiting > 0 && t("approvals.count", { n: waiting }),
    sent > 0 && t("approvals.sent", { n: sent }),
  ].filter(Boolean).join(", ");
  return [
    head(words && `${words}.`),
    cards.length > 0
      ? h("div", { class: "stack" }, cards.map((ask) => h("l-ask", { key: ask.ask, ".ask": ask })))
      : stateBox({ shape: "done", title: t("approvals.empty"), words: t("approvals.empty.words") }),
    away.length > 0 && h("p", { class: "meta away-asks" }, t("approvals.away", { devices: away.map((one) => one.name).join(", ") })),
    settled.length > 0 && h("section", { class: "sect", "aria-labelledby": "settled" }, h("h2", { id: "settled" }, t("approvals.settled")),
      h("div", { class: "card rows" }, settled.slice(0, SETTLED).map(settledRow),
        settled.length > SETTLED && h("p", { class: "more" }, h("span", null, t("showing", { n: SETTLED, of: settled.length }))))),
  ];
}
