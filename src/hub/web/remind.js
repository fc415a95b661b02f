// One reminder a question, when half of its time is over: told where the person is, once (U17). What was past its half
// when this page opened is no news. Not here: the time left on the card itself.

import { isOpen, store } from "./store.js";
import { everySecond, hubNow, waitSpan } from "./time.js";
import { t } from "./words.js";
import { go } from "./router.js";
import { firm } from "./announce.js";
import { toast } from "./parts/toast.js";
import { isQuestion } from "./parts/question.js";
import { firstLine } from "./parts/progress-words.js";

const told = new Set();

const pastHalf = (ask) => Boolean(ask.expires) && hubNow() >= ask.made + (ask.expires - ask.made) / 2;

function look() {
  for (const ask of store.asks.values()) {
    if (!isOpen(ask) || told.has(ask.ask) || !pastHalf(ask)) continue;
    told.add(ask.ask);
    const left = ask.expires - hubNow();
    if (left <= 0) continue;
    const words = t(isQuestion(ask) ? "ask.half.question" : "ask.half", { command: firstLine(ask.command) || ask.kind, device: ask.device_name, time: waitSpan(left) });
    firm(words);
    toast(words, t("look"), () => go(ask.chat ? `/c/${encodeURIComponent(ask.chat)}#ask-${ask.ask}` : "/approvals"));
  }
}

/** Begins to remind; returns how to stop it. */
export function startReminders() {
  for (const ask of store.asks.values()) if (pastHalf(ask)) told.add(ask.ask);
  return everySecond(look);
}
