// What can be done about a turn that went wrong: its changes seen together, the agent told, its messages taken back; a
// model that fails asked again at once. Not here: the line that these stand in (progress-line.js).

import { h } from "../dom.js";
import { api, newKey } from "../api.js";
import { store } from "../store.js";
import { polite } from "../announce.js";
import { t } from "../words.js";
import { confirmSheet, openSheet } from "./sheet.js";
import { toast } from "./toast.js";

// Of a longer turn what stands before is loaded page by page up to here; past it the files are not counted.
const LOADED = 400;

/** The newest turn of a chat: the message it began with, and the files it changed, `[path, { name, diffs }]`, where all is known. */
export function lastTurn(log) {
  const turn = log?.items.get(log.order.at(-1))?.turn;
  const seqs = (log?.order ?? []).filter((seq) => log.items.get(seq).turn === turn);
  const said = seqs.map((seq) => log.items.get(seq)).find((item) => item.kind === "said");
  const whole = said !== undefined || !log?.more;
  if (!whole && log.order.length < LOADED && !log.olderTrouble) log.older();
  const files = new Map();
  for (const seq of seqs) {
    const item = log.items.get(seq);
    if (item.kind !== "step" || item.status !== "ok" || !item.diff_html) continue;
    const path = item.path ?? item.title;
    files.set(path, { name: item.title ?? path, diffs: [...(files.get(path)?.diffs ?? []), item.diff_html] });
  }
  return { said, whole, files: [...files] };
}

const quiet = (label, onclick, more = {}) => h("button", { class: "btn btn-q btn-s", type: "button", onclick, ...more }, label);

/** After Stop: the ways on. `say()` brings the person to the composer, `back(words)` gives the words to it. */
export function stoppedActs(chat, log, { say, back }) {
  const { said, whole, files } = lastTurn(log);
  return [
    whole && files.length > 0 && quiet(t("stopped.show"), () => showChanges(files)),
    quiet(t("stopped.say"), say),
    chat.rewind && said && quiet(t("stopped.back"), () => takeBack(chat, said, files.length, { say, back })),
  ];
}

function showChanges(files) {
  openSheet({
    title: t("stopped.changes", { n: files.length }),
    body: () => files.map(([path, { name, diffs }]) => h("section", { class: "changes", key: path },
      h("h3", { class: "h3" }, h("code", null, name)),
      diffs.map((html, i) => h("div", { class: "scroll ask-diff", key: i, tabindex: "0", role: "region", "aria-label": t("step.changes", { name }), html })))),
  });
}

function takeBack(chat, said, files, { say, back }) {
  // One key for all presses of this sheet: what is not known to have arrived is not done twice.
  const key = newKey();
  confirmSheet({
    title: t("stopped.back"),
    words: [t("rewind.words"), files > 0 ? ` ${t("phase.files", { n: files })}` : ""].join(""),
    yes: t("rewind.do"),
    bad: false,
    act: async () => {
      const { chat: now } = await api.rewind(chat.id, said.seq, key);
      if (now) store.chats.set(now.id, now);
      back(said.text ?? "");
      polite(t("rewind.done"));
    },
    done: say,
  });
}

// Waits for a quota that the person said they will wait for: chat and time.
const waiting = new Set();
const waitKey = (chat) => `${chat.id} ${chat.progress?.at}`;

/** True when the person said that they wait. */
export const waits = (chat) => waiting.has(waitKey(chat));

/** While a model is tried again: at once, another one, or, without quota, to wait. */
export function retryActs(chat, { redraw, choose }) {
  const quota = chat.progress.quota && !waits(chat);
  return [
    quota && quiet(t("quota.wait"), () => { waiting.add(waitKey(chat)); polite(t("quota.waits")); redraw(); }),
    chat.retry && quiet(t("try.now"), () => tryNow(chat)),
    !waits(chat) && store.models.length > 1 && quiet(t("model.other"), choose),
  ];
}

async function tryNow(chat) {
  polite(t("trying"));
  try {
    const { state } = await api.retryTurn(chat.id);
    if (state === "gone") toast(t("retry.gone"));
  } catch (trouble) {
    toast(trouble.text);
  }
}
