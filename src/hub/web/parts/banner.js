// The banner about this page's own connection: since when there is none, and catching up after. Not here: the link
// between the hub and a computer; that stands in the progress line and on the computer's card.

import { h, mark } from "../dom.js";
import { emit, store } from "../store.js";
import { moment, when } from "../time.js";
import { count, t } from "../words.js";
import { lastHeard, retryStream } from "../session.js";

/** What is wrong between this page and the hub, or nothing. */
function connBanner() {
  const { conn } = store;
  if (conn.state === "lost") {
    return h("div", { class: "banner", role: "status", key: "conn" }, mark("cut"), h("span", null, t("conn.lost", { since: moment(conn.since) })),
      h("button", { class: "link", type: "button", onclick: retryStream }, t("try.now")));
  }
  if (conn.state === "catching") {
    return h("div", { class: "banner", role: "status", key: "conn" }, mark("work"), h("span", null, t(conn.left ? "conn.catching" : "conn.catching.all", { n: conn.left, count: count(conn.left ?? 0) })));
  }
  return null;
}

/** All that is told above a place: the page's own connection, and warnings about computers until they are closed. */
export function banners() {
  const warnings = store.warnings.map((one) => h("div", { class: "banner is-bad", role: "alert", key: one.text }, mark("warn"), h("span", null, one.text, " ", when(one.at, "moment")),
    h("button", { class: "link", type: "button", onclick: () => { store.warnings = store.warnings.filter((it) => it !== one); emit("warnings"); } }, t("close"))));
  return [connBanner(), ...warnings].filter(Boolean);
}

/** The page's own connection in the rail's foot. */
export function connFoot() {
  const { conn } = store;
  switch (conn.state) {
    case "lost": return [mark("cut"), t("foot.lost", { since: moment(conn.since) })];
    case "catching": return [mark("work"), t("foot.catching")];
    case "live": return [mark("on"), t("foot.live", { time: moment(lastHeard()) })];
    default: return [mark("open"), t("foot.starting")];
  }
}
