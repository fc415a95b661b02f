// A chat: the stream, the progress line, what waits, the composer, and the side. Not here: the parts themselves.

import { h, icon, render } from "../dom.js";
import { paint } from "../beat.js";
import { flush } from "../draft.js";
import { closeLog, on, openLog, store } from "../store.js";
import { rich, t } from "../words.js";
import { banners } from "../parts/banner.js";
import { queueView } from "../parts/queue-list.js";
import { planOf, sideView } from "../parts/side.js";
import { planCount } from "../parts/plan-list.js";
import { stateBox } from "../parts/bits.js";
import "../parts/stream-view.js";
import "../parts/progress-line.js";
import "../parts/composer.js";

/** The chat's place in `main`. */
export function mount(main, { id }) {
  const log = openLog(id);
  main.className = "talk has-side";
  const draw = () => {
    const chat = store.chats.get(id);
    if (log.gone || (!chat && log.loaded)) return render(main, gone());
    render(main, view(chat, log, id));
  };
  const later = () => paint(draw);
  const offs = [on(`chat:${id}`, later), on("devices", later), on(`queue:${id}`, later), on("conn", later), on("warnings", later), on(`items:${id}`, (what) => { if (what?.all || what?.fresh) later(); })];
  const onSent = () => main.querySelector("l-stream")?.toEnd();
  const onBack = (event) => main.querySelector("l-composer")?.put(event.detail);
  const onChoose = () => main.querySelector("l-composer")?.choose();
  const onLast = () => main.querySelector("l-stream")?.showLast();
  const onWrite = () => main.querySelector("l-composer")?.focusBox();
  main.addEventListener("write", onWrite);
  main.addEventListener("sent", onSent);
  main.addEventListener("take-back", onBack);
  main.addEventListener("show-last", onLast);
  main.addEventListener("choose", onChoose);
  window.addEventListener("pagehide", flush);
  draw();
  return {
    title: () => [store.chats.get(id)?.title || t("untitled"), store.chats.get(id)?.device_name].filter(Boolean).join(" · "),
    // A person who comes with a keyboard wants to write; on a phone the keyboard would hide what they came to read.
    focus: () => { if (matchMedia("(pointer: fine)").matches) main.querySelector("l-composer")?.focusBox(); else main.querySelector("h1")?.focus({ preventScroll: true }); },
    close() {
      for (const off of offs) off();
      main.removeEventListener("write", onWrite);
      main.removeEventListener("sent", onSent);
      main.removeEventListener("take-back", onBack);
      main.removeEventListener("show-last", onLast);
      main.removeEventListener("choose", onChoose);
      window.removeEventListener("pagehide", flush);
      flush();
      closeLog(id);
    },
  };
}

function view(chat, log, id) {
  const device = store.devices.get(chat?.device);
  const { done, of } = planCount(planOf(log));
  return [
    h("header", { class: "bar", key: "bar" },
      h("a", { class: "icon-btn open-back", href: "/", "aria-label": t("back.home") }, icon("back")),
      h("div", { class: "title" },
        h("h1", { class: "cut", tabindex: "-1" }, chat ? chat.title || t("untitled") : t("chat.loading")),
        h("p", { class: "meta cut" }, chat && [chat.device_name, h("span", { class: "sep" }, "\u00a0· "), chat.cwd_words ?? chat.cwd])),
      h("button", { class: "btn btn-q btn-s open-side", type: "button", popovertarget: "side", "aria-label": of > 0 ? t("side.open.plan", { done, of }) : t("side.open") }, icon("panel"), of > 0 && h("span", null, `${done}/${of}`))),
    h("div", { class: "banners", key: "banners" }, banners()),
    h("l-stream", { class: "stream", id: "stream", key: `stream-${id}`, ".chat": id, tabindex: "0", role: "log", "aria-label": t("chat.stream"), "aria-live": "off" }),
    h("div", { class: "dock", key: "dock" },
      chat && [
        h("l-progress", { key: `progress-${id}`, ".chat": id }),
        device?.state === "away" && log.queue.length === 0 && h("p", { class: "away-note", key: "away" }, rich(chat.running ? "away.running" : "away.idle", { device: device.name })),
        queueView(log, chat, device),
        h("l-composer", { key: `composer-${id}`, ".chat": id }),
      ]),
    h("aside", { class: "side sheet", id: "side", key: "side", popover: "auto", "aria-label": t("side.label") }, chat && sideView(chat, log)),
  ];
}

function gone() {
  return [
    h("header", { class: "bar", key: "bar" }, h("a", { class: "icon-btn open-back", href: "/", "aria-label": t("back.home") }, icon("back")),
      h("div", { class: "title" }, h("h1", { class: "cut", tabindex: "-1" }, t("chat.gone")))),
    h("div", { class: "stream", key: "gone", id: "stream" }, stateBox({ shape: "cut", title: t("chat.gone"), words: t("chat.gone.words"), buttons: h("a", { class: "btn", href: "/" }, t("places.home")) })),
  ];
}
