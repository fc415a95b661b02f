// The side of a chat: its plan, the files it changed, and what can be done with the chat itself. A column on a wide
// window, a sheet below. Not here: jobs and subagents, which this hub does not tell yet.

import { h, icon } from "../dom.js";
import { api } from "../api.js";
import { store } from "../store.js";
import { clock } from "../time.js";
import { totalOf } from "../totals.js";
import { t } from "../words.js";
import { go } from "../router.js";
import { confirmSheet, openSheet } from "./sheet.js";
import { planCount, planEntries, planList } from "./plan-list.js";
import { toast } from "./toast.js";

/** The newest plan of a log, as entries. */
export function planOf(log) {
  for (let i = log.order.length - 1; i >= 0; i -= 1) {
    const item = log.items.get(log.order[i]);
    if (item.kind === "plan") return planEntries(item.plan);
  }
  return [];
}

// As seen from the chat's folder; outside of it the whole.
const near = (path, cwd) => (cwd && path?.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path);

// Each file that was edited, with what its edits came to; counted again only when an edit was added.
const counted = new WeakMap();

function filesOf(log, cwd) {
  const edits = log.order.map((seq) => log.items.get(seq)).filter((item) => item.kind === "step" && item.status === "ok" && item.diff_html);
  const before = counted.get(log);
  if (before && before.edits.length === edits.length && before.edits.every((item, i) => item === edits[i])) return before.files;
  const byPath = new Map();
  for (const item of edits) {
    const path = near(item.path, cwd) ?? item.title;
    byPath.set(path, [...(byPath.get(path) ?? []), item]);
  }
  const files = [...byPath].map(([path, items]) => ({ path, total: totalOf(items), time: items.at(-1).time }));
  counted.set(log, { edits, files });
  return files;
}

function totalWords(total) {
  if (total === null) return t("side.many");
  if (total.added === 0 && total.removed === 0) return t("side.same");
  return [h("span", { class: "plus" }, `+${total.added}`), " ", h("span", { class: "minus" }, `−${total.removed}`)];
}

/** The side's content. */
export function sideView(chat, log) {
  const plan = planOf(log);
  const files = filesOf(log, chat.cwd);
  const { done, of } = planCount(plan);
  const waiting = [...store.asks.values()].some((ask) => ask.chat === chat.id && ask.state === "open");
  return [
    h("header", { class: "close" }, h("h2", null, t("side.title")),
      h("button", { class: "icon-btn", type: "button", popovertarget: "side", popovertargetaction: "hide", "aria-label": t("close") }, icon("close"))),
    plan.length > 0 && h("section", { key: "plan" }, h("h2", null, t("plan"), " ", h("span", { class: "meta" }, t("plan.count", { done, of }))), planList(plan, { waiting })),
    files.length > 0 && h("section", { key: "files" }, h("h2", null, t("side.files")),
      log.more && h("p", { class: "meta" }, t("side.files.part")),
      h("ul", { class: "tree" }, files.map(({ path, total, time }) => h("li", { key: path }, icon("edit"),
        h("span", null, h("code", null, path), h("span", { class: "meta" }, totalWords(total), time ? ` · ${clock(time)}` : "")))))),
    h("section", { key: "chat" }, h("h2", null, t("side.chat")),
      h("p", { class: "meta" }, t("side.where", { device: chat.device_name, folder: chat.cwd_words ?? chat.cwd })),
      h("div", { class: "btns side-acts" },
        h("button", { class: "btn btn-s", type: "button", onclick: () => rename(chat) }, t("rename")),
        h("button", { class: "btn btn-s", type: "button", onclick: () => archive(chat) }, t(chat.archived ? "unarchive" : "archive")),
        h("button", { class: "btn btn-s btn-bad", type: "button", onclick: () => remove(chat) }, t("delete.dots")))),
  ];
}

function rename(chat) {
  let title = chat.title ?? "";
  let trouble = null;
  openSheet({
    title: t("rename"),
    body: (close, redraw) => h("form", { class: "stack", onsubmit: async (event) => {
      event.preventDefault();
      try {
        await api.changeChat(chat.id, { title });
        close();
      } catch (caught) {
        trouble = caught;
        redraw();
      }
    } },
    h("div", { class: "field" }, h("label", { for: "title" }, t("rename.label")), h("input", { id: "title", autofocus: true, value: chat.title ?? "", oninput: (event) => { title = event.target.value; } }),
      trouble && h("span", { class: "err", role: "alert" }, trouble.text)),
    h("div", { class: "btns" }, h("button", { class: "btn btn-1", type: "submit" }, t("save")), h("button", { class: "btn btn-q", type: "button", onclick: close }, t("back")))),
  });
}

async function archive(chat) {
  const archived = !chat.archived;
  try {
    await api.changeChat(chat.id, { archived });
    if (archived) {
      go("/");
      toast(t("archived", { title: chat.title || t("untitled") }), t("undo"), () => api.changeChat(chat.id, { archived: false }).catch((trouble) => toast(trouble.text)));
    }
  } catch (trouble) {
    toast(trouble.text);
  }
}

function remove(chat) {
  confirmSheet({
    title: t("delete.title"), words: t("delete.words", { title: chat.title || t("untitled"), device: chat.device_name }), yes: t("delete"),
    act: async () => {
      await api.deleteChat(chat.id);
      go("/");
    },
  });
}
