// Every text of the page, once. `{name}` is filled in, `{n:one|many}` picks by number, `code` and **strong** are marked.
// Not here: what the computer or the hub say in their own words (reasons, limits, covers).

export const TEXTS = {
  // small words
  "add": "Add", "always": "Always", "archive": "Archive", "back": "Back", "change": "Change", "close": "Close",
  "computer": "Computer", "copied": "Copied", "copy": "Copy", "copy.failed": "Could not copy", "delete": "Delete", "delete.dots": "Delete…",
  "done": "Done", "edit": "Edit", "folder": "Folder", "level": "Level", "loading": "Loading", "look": "Look", "mode": "Mode", "model": "Model",
  "name": "Name", "off": "off", "on": "on", "password": "Password", "places": "Places", "plan": "Plan", "refuse": "Refuse", "refuse.dots": "Refuse…",
  "remove": "Remove", "rename": "Rename", "running": "running", "save": "Save", "sections": "Sections", "send": "Send", "send.now": "Send now",
  "show.more": "Show more", "starting": "Starting", "stop": "Stop", "stopping": "Stopping.", "thought": "Thought", "try.again": "Try again", "try.now": "Try now",
  "trying": "Trying", "unarchive": "Take out of the archive", "undo": "Undo", "untitled": "New chat", "the.model": "the model",
  "unknown.reason": "the reason is not known", "unknown.time": "a time not known", "unread": "new", "new.since": "New since you looked", "queue": "Waiting messages", "chats": "Chats",
  "copy.line": "Copy: {line}", "copy.of": "Copy {name}", "copy.answer": "Copy the answer as text",
  "lines": "{count} {n:line|lines}", "tokens": "{count} {n:token|tokens}", "exit": "exit {exit}", "showing": "showing {n} of {of}",
  "waits.for.you": "Waits for you", "waits.for.you.small": "waits for you", "wait.for.you": "{n:waits|wait} for you",
  "option.away": "{device} (away)",

  // places
  "places.home": "Computers", "places.approvals": "Approvals", "places.schedules": "Schedules", "places.settings": "Settings", "places.chat": "Chat", "places.link": "Link a computer", "places.missing": "Not here",
  "missing": "Not here", "missing.title": "There is no such place", "missing.words": "The address may be cut off, or the chat was deleted.",
  "start.failed": "The page could not start",

  // the connection of this page
  "conn.lost": "This page has no connection since {since}. What you see is from then.",
  "conn.catching": "Catching up: {count} {n:event|events}.", "conn.catching.all": "Catching up.",
  "foot.lost": "No connection since {since}", "foot.catching": "Catching up", "foot.live": "Up to date, {time}", "foot.starting": "Connecting", "foot.title": "This page and {host}",

  // troubles without words of the hub
  "trouble.unreachable": "This page cannot reach the instance.", "trouble.unreachable.try": "Look whether this device has a network and lembas up still runs.",
  "trouble.slow": "The instance did not answer in time.", "trouble.slow.try": "It may have got the request; trying again is safe.",
  "trouble.signed_out": "You are not signed in.", "trouble.signed_out.try": "Sign in again; your drafts are kept.",
  "trouble.forbidden": "This is not allowed.", "trouble.forbidden.try": "Who runs this instance can change that.",
  "trouble.missing": "This is not there any more.", "trouble.missing.try": "It may have been deleted on another device.",
  "trouble.often": "That was too often in a short time.", "trouble.often.try": "Wait a minute, then try again.",
  "trouble.broken": "The instance had a fault (answer {status}).", "trouble.broken.try": "Try again. If it stays, the instance's log has the reason.",
  "trouble.refused": "The instance did not accept this (answer {status}).", "trouble.refused.try": "Load the page anew and try again.",

  // computers
  "home.loading": "Loading your computers", "home.failed": "Your computers could not be loaded",
  "home.empty": "No computer is linked yet", "home.empty.words": "Run this on a computer of yours. It prints a code; enter the code here within 10 minutes.",
  "link": "Link", "link.rest": "a computer", "enter.code": "Enter the code",
  "device.online": "online since {since}", "device.away": "away since {since}", "device.never": "never linked", "device.revoked": "access taken back, {since}", "device.ended": "unlinked by {name} itself, {since}",
  "device.why": "Asleep, off or without network: that cannot be seen from here.", "device.limits.then": "Limits as last heard:", "device.limits.unknown": "What it allows is known once it is linked.",
  "device.no_roots": "works in no folder yet", "device.roots": "works in {roots}",
  "device.away.heard": "Last heard: {last}. The work may go on there; nothing is lost.", "device.away.nothing": "Nothing ran when it was last heard.",
  "device.revoked.note": "Access to {device} was taken back{why}. Its chats stay readable. To link it again, run there:",
  "device.paused": "Work from here is paused on {device}. Only {device} can change that: `lembas resume-work`",
  "device.off": "{device} does not take work from here. Only {device} can change that: `lembas help config`",
  "device.no_chats": "No chats on {device} yet", "device.missing": "This computer is not linked here",
  "all.chats": "All chats on {device}", "chats.loading": "Loading the chats", "chats.archived": "Archived chats on {device}", "chats.archived.link": "Archived chats", "chats.archived.empty": "No archived chats",
  "never.title": "Nothing here yet", "never.words": "Run this on {device}. It prints a code; enter the code here within 10 minutes.",
  "roots.title": "{device} works in no folder yet", "roots.words": "Allow a folder on {device}, then start here:",
  "retry.asked": "Asked {device} to answer",
  "row.queued": "{n} {n:message waits|messages wait}", "row.scheduled": "scheduled",
  "new.chat": "New chat", "new.chat.on": "New chat on {device}",

  // first run
  "practice.title": "Try it without a key",
  "practice.words": "This is the practice model: a script without intelligence, so that you can try everything without a key. It shows an answer, a read, a command that asks, an edit and a plan.",
  "no.password": "You came in by a link that works once. To sign in on another device, set a name and a password.", "no.password.do": "Set a password", "practice.start": "Start a practice chat", "practice.first": "Show me everything.", "practice.no_folder": "A chat works in a folder, and none is allowed yet. Below stands how to allow one.",

  // a new chat
  "new.folder": "In which folder", "new.recent": "used lately", "new.browse": "Another folder on {device}", "new.browse.away": "Other folders can be seen when {device} is back",
  "new.browse.loading": "Asking {device} for its folders", "new.use": "Use this folder", "new.roots": "Allowed folders", "new.folders": "Folders", "new.no_folders": "No folders in here.", "new.truncated": "Not all folders are shown.",
  "new.words": "What should be done", "new.example": "For example: the login test fails since yesterday, find out why", "new.how": "Mode **{mode}**, with **{model}**.", "new.start": "Start", "no.model": "no model",

  // modes
  "mode.plan": "Plan", "mode.manual": "Manual", "mode.edit": "Edit", "mode.auto": "Auto",
  "mode.plan.about": "Only reads and makes a plan. Changes nothing.",
  "mode.manual.about": "Reads freely. Asks before each change and each command.",
  "mode.edit.about": "Changes files in its folders and runs boxed commands. Asks for the rest.",
  "mode.auto.about": "Asks hardly ever. For work you would let run alone.",
  "mode.name": "Mode: {mode}", "model.name": "Model: {model}", "level.name": "Level: {level}",
  "mode.asked": "{mode} is asked for, not yet taken by {device}.", "mode.lowered": "Lowered to {mode} by {device}.", "mode.limit": "Up to {mode} is set on {device}. Only {device} can change that: `lembas mode edit` or `lembas mode auto`",
  "chooser.title": "How it works here", "chooser.name": "{mode} · {model}{level}, change how it works", "chooser.level": " · {level}",

  // a chat
  "chat.loading": "Loading the last 50 messages", "chat.older": "Load older messages", "chat.older.loading": "Loading older messages", "chat.begin": "The beginning of this chat",
  "chat.empty": "Nothing was said here yet", "chat.empty.words": "Write below what {device} should do.", "chat.stream": "Chat", "chat.done": "done", "chat.revoked": "access taken back; it stays readable", "chat.revoked.heard": "access taken back; it stays readable · last heard: {last}", "chat.ready": "ready",
  "chat.gone": "This chat is gone", "chat.gone.words": "It was deleted, or it never was. Nothing on the computer was changed by that.",
  "chat.last_heard": "last heard: {last}", "back.home": "Back to Computers",
  "jump.new": "{n} new", "jump.end": "To the newest",
  "said.by_you": "You wrote", "said.saved": "saved here", "said.sent": "sent", "said.taken": "taken by {device}", "said.failed": "not sent", "said.refused": "not sent: {why}", "said.back": "Back into the box",
  "away.running": "Your message waits here and goes when {device} is back.", "away.idle": "Your message waits here and goes when {device} is back.", "away.idle.plain": "Your message waits here and goes when {device} is back.",

  // phases
  "phase.queued": "queued", "phase.queued.at": "queued · {nth} in line", "phase.waiting_for_model": "waiting for {model}", "phase.loading_model": "loading {model}", "phase.loading_model.percent": "loading {model} {percent} %",
  "phase.reading_prompt": "reading the prompt", "phase.reading_prompt.of": "reading the prompt {tokens} of {total} tokens", "phase.thinking": "thinking", "phase.writing": "writing", "phase.running_tool": "running `{what}`",
  "phase.waiting_for_person": "**waits for you:** `{what}`", "phase.waiting_for_person.bare": "**waits for you**", "phase.waiting_for_subagents": "waiting for {n} {n:subagent|subagents}", "phase.waiting_for_subagents.named": "waiting for {n} {n:subagent|subagents}: {names}",
  "phase.compacting": "making room in the context", "phase.retrying": "{model} does not answer. Attempt {attempt} of {of}", "phase.retrying.why": "{model} does not answer ({reason}). Attempt {attempt} of {of}",
  "phase.retrying.said": "{reason}. Attempt {attempt} of {of}", "phase.retrying.full": "{model} takes no more just now ({reason}). Attempt {attempt} of {of}", "phase.retrying.fault": "{model} had a fault ({reason}). Attempt {attempt} of {of}",
  "phase.quota": "{model} has no quota left until {time}", "quota.wait": "Wait until then", "quota.waits": "It goes on by itself then.", "retry.gone": "It is not waiting any more.",
  "phase.stopped.at": "Stopped by {by} at {time}", "phase.stopped.after": "Stopped after {time}", "phase.stopped.now": "Stopped at once", "you": "you", "phase.failed": "failed: {reason}", "phase.other": "{text}",
  "phase.commands": "{n} {n:command|commands} ended", "phase.files": "{n} {n:file was|files were} changed and {n:stays|stay} changed.",
  "stopped.show": "Show the changes", "stopped.changes": "{n} {n:file|files} changed in this turn", "stopped.say": "Say what was wrong", "stopped.back": "Back to before this message",
  "rewind.words": "This takes back the messages, not the changes to files.", "rewind.do": "Take them back", "rewind.done": "The messages are taken back. Your words are in the box.",
  "rewound": "{n} {n:message was|messages were} taken back. Changes to files stay.", "rewound.some": "Messages were taken back. Changes to files stay.", "rewound.show": "Show them", "rewound.hide": "Hide them",
  "trying.now": "asking now", "phase.next.in": "next in {time}", "phase.next.at": "next at {time}", "phase.quiet": "quiet for {time}",
  "quiet.long": "Nothing was heard for 10 min. It may still be working.", "quiet.show": "Show the last output", "model.other": "Use another model", "send.again": "Send again",
  "stop.away": "It will stop when {device} is back; it may still be working.",
  "away": "No connection to {device} since {since}", "away.heard": "No connection to {device} since {since} · last heard: {last}", "away.plain": "No connection to {device}",

  // composer and queue
  "composer": "Message", "composer.label": "Message to {device}", "composer.write": "Write to {device}", "composer.write.away": "Write to {device}, it is away",
  "composer.revoked": "Access to {device} was taken back. This chat stays readable.", "composer.relink": "Link it again", "composer.closed": "This chat ended on its computer and stays readable. Start a new one to go on.", "composer.archived": "This chat is archived. Take it out of the archive to go on.",
  "send.after": "After this turn", "send.next": "At the next step", "send.away": "Send when it is back",
  "queue.after": "After this turn: ", "queue.next": "At the next step: ", "queue.held": "On hold: ", "queue.stopped": "Held since you stopped: ", "queue.waits": "Waits for {device}: ", "queue.failed": "Not sent: ", "queue.more": "and {n} more", "queue.folder": "Choose a folder", "queue.away": "Goes when {device} is back.",
  "queue.edit": "Edit the waiting message", "queue.text": "Message", "queue.hint": "It is on hold while this is open.",
  "queue.edit.name": "Edit: {text}", "queue.remove.name": "Remove: {text}", "queue.send.name": "Send now: {text}",

  // tool cards
  "verb.shell.now": "Running", "verb.shell.want": "Run", "verb.shell.done": "Ran", "verb.edit.now": "Editing", "verb.edit.want": "Edit", "verb.edit.done": "Edited",
  "verb.read.now": "Reading", "verb.read.want": "Read", "verb.read.done": "Read", "verb.search.now": "Searching", "verb.search.want": "Search", "verb.search.done": "Searched",
  "verb.plan.now": "Plan", "verb.plan.want": "Plan", "verb.plan.done": "Plan", "verb.task.now": "Subagent", "verb.task.want": "Subagent", "verb.task.done": "Subagent",
  "verb.fetch.now": "Fetching", "verb.fetch.want": "Fetch", "verb.fetch.done": "Fetched", "verb.web.now": "Fetching", "verb.web.want": "Fetch", "verb.web.done": "Fetched",
  "verb.other.now": "Doing", "verb.other.want": "Tool", "verb.other.done": "Tool",
  "ran": "ran: {ran}", "step.at_least": "at least", "step.pending": "not started", "step.refused": "refused, not run", "step.cancelled": "stopped", "step.failed": "failed", "step.unknown": "not known: the computer stopped while it ran",
  "step.changes": "Changes in {name}", "step.output": "Output of {name}", "step.no_output": "No output.", "step.no_output.yet": "No output yet.",
  "step.last": "last {n} of {count} lines", "step.first": "first {bytes} of {of}", "step.part": "{bytes} of {of}, from {from}", "step.more": "Show more", "step.more.failed": "The output could not be loaded.", "step.download": "Download all", "step.download.part": "Download what is here", "step.loading": "Loading", "step.kept": "{of} in all, of which {kept} are stored here; the rest comes from the computer.",
  "plan.count": "{done} of {of} done", "plan.done": "done", "plan.now": "at work", "plan.open": "not started", "plan.failed": "failed",

  // the side of a chat
  "side.title": "This chat", "side.label": "Plan, files and the chat itself", "side.open": "Plan, files and the chat itself", "side.open.plan": "{done}/{of} of the plan, files and the chat itself", "side.files": "Files changed", "side.files.part": "As far back as this chat is loaded here.", "side.same": "as before", "side.many": "much was changed", "side.chat": "Chat", "side.where": "on {device}, in {folder}",
  "rename.label": "Title", "archived": "“{title}” is archived.", "delete.title": "Delete this chat", "delete.words": "“{title}” is deleted here and on {device}. Changes to files stay. This cannot be undone.",

  // approvals
  "approvals.loading": "Loading what waits for you", "approvals.count": "{n} {n:waits|wait} for you", "approvals.sent": "{n} {n:is|are} on the way", "approvals.settled": "Settled",
  "approvals.empty": "Nothing waits for you", "approvals.empty.words": "When a computer wants to do something that needs your yes, it stands here, in its chat and in the title of this tab.",
  "approvals.away": "Away now: {devices}. What they may have asked since is not known here.",
  "question.title": "{device} asks you", "question.one": "Choose one", "question.several": "Choose one or more", "question.own": "Or in your own words", "question.answer": "Answer", "question.skip": "Do not answer…", "question.chosen": "Chosen:", "question.not_delivered": "Not delivered yet.", "question.not_delivered.away": "{device} is away. Not delivered yet.", "end.answered": "Answered at {time}",
  "ask.title": "{device} wants to run this in `{folder}`", "ask.past.ask.title": "{device} wanted to run this in `{folder}`", "ask.past.ask.title.edit": "{device} wanted to change this in `{folder}`", "ask.past.ask.title.read": "{device} wanted to read this from `{folder}`", "ask.past.ask.title.fetch": "{device} wanted to fetch this from `{folder}`", "ask.past.ask.title.other": "{device} asked something in `{folder}`", "ask.title.edit": "{device} wants to change this in `{folder}`", "ask.title.read": "{device} wants to read this from `{folder}`", "ask.title.fetch": "{device} wants to fetch this from `{folder}`", "ask.title.other": "{device} asks something in `{folder}`",
  "ask.command": "The whole command", "ask.diff": "What it would change", "ask.blank": "The command is empty or cannot be read. It cannot be allowed.",
  "ask.size": "{count} {n:line|lines}, {bytes}", "ask.hidden": "{n} hidden {n:character|characters} shown",
  "ask.because": "It asks:", "ask.asked_because": "It asked:", "ask.left": "{time} left", "ask.ending": "ending now", "ask.asked_at": "asked {time}", "ask.asked_ago": "asked {time} ago", "ask.no_limit": "no time limit",
  "ask.counts_as_no": "No answer by {time} counts as no; the turn goes on without it.", "ask.sets": "It sets `{name}`.",
  "ask.you": "you: {what}, {time}", "ask.sending": "Sending", "ask.sent": "Sent. Waiting for {device}.", "ask.not_delivered": "Not delivered yet. The command has not run.", "ask.not_delivered.away": "{device} is away. Not delivered yet. The command has not run.",
  "ask.moved": "It moved just now. Press once more.", "ask.unsure": "It is not known whether your answer arrived. {why} Press again: it counts once.", "ask.failed": "Not answered: {why}",
  "ask.half": "Half of the time is over: {command} on {device} has {time} left, then it counts as no.", "ask.half.question": "Half of the time is over: {device} asks “{command}” and waits {time} more.", "ask.extend": "30 more minutes", "ask.extended": "30 minutes more", "ask.unknown_kind": "This page does not know this kind of question. It can only be refused here.",
  "ask.session_covers": "For this session would cover:", "ask.keys": "A allows once, R refuses", "ask.keys.refuse": "R refuses",
  "allow.once": "Allow once", "allow.session": "Allow for this session", "allow.always": "Allow always", "allow.always.dots": "Allow always…",
  "always.title": "Allow always", "always.covers": "From now on {device} does this without asking:", "always.widest": "This also covers `{widest}`.", "always.back": "Take it back any time under Settings, {device}, or there with `lembas rules`", "always.once": "Only once",
  "allow.and": "Allow, and…", "allow.and.why": "A word that the agent reads after it ran", "refuse.why": "A word why, which the agent reads", "refuse.hint": "Kept as a draft until you send it.",
  "box.read": "In a box: nothing can be written, no network.", "box.roots": "In a box: only the shared folders can be written, no network.", "box.open": "Without a box: it would run with your rights and the network.",
  "from.chat": "Asked by the chat {chat}.", "from.subagent": "Asked by the subagent **{name}** in the chat {chat}.", "from.subagent.under": "Asked by the subagent **{name}**, under {parents}, in the chat {chat}.", "from.job": "Asked by job {name} in the chat {chat}.", "from.schedule": "Asked by a scheduled run, {chat}.",
  "end.allowed": "Allowed by you at {time}", "end.allowed.elsewhere": "Settled elsewhere: allowed by {by} at {time}", "end.refused": "Refused by you at {time}", "end.refused.elsewhere": "Settled elsewhere: refused by {by} at {time}",
  "end.expired.question": "Nobody answered within {time}.", "end.expired": "Nobody answered within {time}: not run.", "end.gone": "Gone: the turn ended before an answer", "end.other": "Settled at {time}", "end.late": "Too late: it ended as {how} at {time}.",
  "how.allow": "allowed", "how.allowed": "allowed", "how.refuse": "refused", "how.refused": "refused", "how.expired": "refused", "how.unanswered": "refused", "how.cancelled": "gone", "how.gone": "gone",

  // settings
  "settings.loading": "Loading the settings", "settings.account": "Account", "settings.computers": "Computers", "settings.models": "Models", "settings.signed": "Signed in",
  "settings.computers.words": "What a computer allows is set on the computer. This page shows it and cannot raise it.",
  "account.on": "on {host}, called “{name}”", "account.zone": "your zone is {zone}", "signout": "Sign out", "signout.words": "Signing out here keeps your drafts.",
  "password.change": "Change password", "password.set": "Set a password", "password.old": "Password now", "password.new": "New password", "password.changed": "The password is changed.", "password.first": "The password is set.",
  "limits.roots": "Works in", "limits.no_roots": "no folder yet", "limits.mode": "Up to", "limits.lowered": "a wish above {mode} is lowered by {device}", "limits.approvals": "Answers from here",
  "limits.approvals.once": "allow once, or for the session; never a rule, never sudo", "limits.approvals.full": "allow once, for the session, or always", "limits.approvals.local": "do not count; only answers given on the computer do",
  "limits.scheduled": "Scheduled work", "limits.box": "Box", "limits.box.full": "full", "limits.box.writes": "writes only", "limits.box.none": "none", "limits.system": "System", "limits.heard": "Heard", "limits.heard.words": "these limits are from {time}", "limits.change": "What can be changed, and how, only on {device}:",
  "rules.count": "Allowed on {device} without asking: {count} {n:rule|rules}", "rules.none": "Nothing is allowed on {device} without asking but what the mode allows.",
  "rules.cut": "{count} {n:rule|rules} more on {device}, in `lembas rules list` there.", "rules.failed": "What is allowed always could not be loaded.", "rules.remove.name": "Remove {name}",
  "rules.waits": "removal waits for {device}", "rules.going": "removing", "rules.by": "by {by}, {day}", "rules.used": "last used {time}", "rules.unused": "not used yet",
  "rules.not_taken": "{device} did not take it back: {why}", "rules.deny": "Without this more would be allowed: only {device} takes it back.",
  "rename.device": "Rename {device}", "forget": "Forget it", "forget.dots": "Forget it…", "forget.title": "Forget {device}", "forget.words": "What is kept here of {device} is deleted: its chats and their answers. Nothing on {device} changes. This cannot be undone.", "revoke": "Take access back", "revoke.dots": "Take access back…", "revoke.title": "Take access back from {device}", "revoke.words": "{device} is ended here at once and cannot come back by itself. Nothing on it is deleted, and its chats stay readable here.",
  "signed.loading": "Loading who is signed in", "signed.browser": "A browser", "signed.this": "this one", "signed.end": "End", "signed.end.name": "End {name}", "signed.seen": "seen {time}", "signed.since": "since {day}", "signed.count": "{n} signed in", "signed.end_others": "End all others",
  "models.empty": "No model yet.", "models.words": "A model is tried before it is saved.",
  "model.add": "Add a model", "model.added": "{name} is added.", "model.default": "used when nothing is chosen", "model.make_default": "Use by default", "model.make_default.name": "Use by default: {name}", "model.remove.name": "Remove {name}", "model.remove.title": "Remove {name}", "model.remove.words": "Chats that use it stay readable; they need another model to go on. Its key is deleted here.",
  "model.tried": "answered {time}", "model.practice.about": "a script without intelligence, to try everything without a key", "model.context": "{count} tokens of context", "model.tools": "calls tools", "model.no_tools": "calls no tools", "model.images": "sees images", "model.no_images": "sees no images",
  "model.url": "Address", "model.url.hint": "Of a server that speaks the OpenAI API, as seen from this instance.", "model.id": "Name of the model there", "model.id.hint": "As the server calls it.", "model.names": "It has: {names}", "model.key": "Key", "model.key.hint": "Empty when it needs none. It is never shown again.", "model.name.label": "Called here", "model.name.hint": "Empty: the same name.",
  "model.try": "Try it", "model.trying": "Trying it", "model.save": "Save it", "model.saving": "Saving it", "model.answers": "answers in {time}", "model.answers.plain": "answers",

  // linking
  "link.a.computer": "Link a computer", "link.about": "A computer that is linked takes work from here, in the folders it allows.", "link.run": "On the computer, run", "link.code": "Enter the code it shows", "link.hint": "Eight letters. The code and the name must be the same there and here.", "link.left": "{time} left. The code and the name must be the same there and here.",
  "link.look": "Look it up", "link.looking": "Looking it up", "link.from": "from {address}", "link.will": "What it allows: {words}.", "link.will.unknown": "What it allows is known once it is linked.", "link.same": "You have another computer called **{name}**. They are told apart by their names only: give one of them another name in Settings once this one is linked.", "link.can": "Whoever runs this instance will be able to read what you allow there.",
  "link.question": "Did you start this on that computer just now?", "link.yes": "Yes, link {name}", "link.no": "No, refuse it", "link.expired": "The code ran out. Run lembas link there again.",
  "link.done": "{name} is linked", "link.done.words": "It works in no folder until you allow one. On {name}:", "link.denied": "{name} was refused", "link.denied.words": "Its code counts no more. If you did not start it, somebody may have tried to get you to let them in.", "link.another": "Enter another code",

  // signing in
  "signin": "Sign in", "signin.title": "Sign in", "signin.at": "at {host}", "signin.busy": "Signing in", "signin.since": "That was {time}.", "signin.used": "This link was used already, or its ten minutes are over. A new one is printed by the line below.", "signin.many": "That was tried too often. Wait ten minutes, then open the link again.", "signin.drafts": "Your drafts are kept.", "signin.need.name": "Your name is missing.", "signin.need.password": "The password is missing.",
  "signin.code": "That looks like a code for linking a computer.", "signin.code.where": "Sign in first, then enter it under **Link a computer**.", "signin.code.keep": "Keep it for there", "signin.code.kept": "The code `{code}` is looked up under **Link a computer** once you are signed in.", "signin.help": "Nothing set up yet, or no password? A link that signs you in once is printed by",
  "setup.title": "Make the first account", "setup.words": "This instance has no account yet. Who makes it can use every computer that is linked here later.", "setup.hint": "At least {n} characters.", "setup.short": "That is shorter than {n} characters.", "setup.do": "Make the account",

  // schedules
  "schedules.words": "Nothing repeats by itself yet. Here you can start one run as a schedule would, and check a command as a watch would.", "schedules.none": "No computer is linked yet", "schedules.none.words": "Scheduled work runs on a linked computer.",
  "run.title": "Run once, scheduled", "run.words": "Runs without you: what is asked waits 30 min, then counts as no.", "run.text": "What should be done", "run.example": "Compare the newest backup with ~/notes. Say what is missing, or nothing.", "run.do": "Run it once",
  "folder.hint": "Within {roots}.", "scheduled.off": "{device} does not accept scheduled work. Only {device} can change that:",
  "watch.title": "Check a command (watch)", "watch.words": "Runs a command that only reads and makes a fingerprint of its output. Checked again, it says whether something changed.", "watch.command": "Command", "watch.timeout": "Longest time, in seconds", "watch.timeout.hint": "1 to 600.", "watch.nonzero": "An exit other than 0 is a failed check",
  "watch.do": "Check now", "watch.busy": "Checking", "watch.first": "first check", "watch.same": "unchanged", "watch.changed": "changed", "watch.failed": "could not check", "watch.not_a_change": "Not counted as a change.", "watch.unstable": "two runs did not agree", "watch.excerpt": "Excerpt of the output",

  // said to a screen reader
  "say.finished": "Answer finished. {words}", "say.ask": "{device} wants to run {command} in {cwd}. It waits for you.", "say.ask.edit": "{device} wants to change {command} in {cwd}. It waits for you.",
  "say.ask.read": "{device} wants to read {command} from {cwd}. It waits for you.", "say.ask.fetch": "{device} wants to fetch {command} in {cwd}. It waits for you.",
  "say.ask.question": "{device} asks you: {command} It waits for you.", "say.ask.other": "{device} asks for {command} in {cwd}. It waits for you.",
};
