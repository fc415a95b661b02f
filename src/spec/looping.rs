//! `loop.json`: how one prompt runs, in numbers and texts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::fill::{self, Facts};
use super::progress::ProgressTexts;
use super::read::Node;
use super::tool::named;

/// The file. Durations are in the unit their name says; the types here have none to mix up.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Steps after which a turn ends, per project.
    pub backstop: BTreeMap<String, u64>,
    /// Steps before the end from which on the model is told.
    pub wrap_up: u64,
    /// Steps in a row in which no call could run; then the turn ends.
    pub fruitless: u64,
    /// `wrap_up`, and what the person reads where a turn ends by itself.
    pub steps: Texts,
    /// Numbers of the tools, per project.
    pub budgets: BTreeMap<String, BTreeMap<String, u64>>,
    /// What a bash description says of the box.
    pub exec: Texts,
    /// Calls of one step that run side by side at most.
    pub parallel: usize,
    pub retries: Retries,
    /// How often each nudge is given in a turn.
    pub nudges_max: u64,
    /// The same call with the same result so often in a row: the next is not run.
    pub repeats: u64,
    pub nudges: Texts,
    pub progress: ProgressTexts,
    pub context: Context,
    /// What the model reads of calls that did not run to their end.
    pub calls: Texts,
    /// Refusals in one turn after which the next ends it.
    pub refusals_end_turn: u64,
    pub scheduled: Scheduled,
    /// What is read where a limit of the computer holds.
    pub limits: Texts,
    /// The modes' names for people, by their words.
    pub mode_names: BTreeMap<String, String>,
}

/// How a failed model request is tried again.
#[derive(Clone, Debug)]
pub struct Retries {
    /// In all, the first one counted.
    pub attempts: u64,
    pub first: Duration,
    pub max: Duration,
    pub retry_after_max: Duration,
    /// Until anything of an answer.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    pub texts: Texts,
}

/// Context hygiene (context.md).
#[derive(Clone, Debug)]
pub struct Context {
    pub id_digits: usize,
    /// With `id`.
    pub id: String,
    pub output: Output,
    /// `read`, `same`.
    pub stub: Texts,
    /// `header`, `empty`.
    pub read: Texts,
    pub hash_digits: usize,
    pub compact_at_percent: u64,
    pub reserve_tokens: u64,
    /// Where the model's entry says no context.
    pub default_context: u64,
    pub keep_turns: usize,
    pub compaction: Texts,
    pub instructions: Instructions,
    /// `left_out`, `refused`.
    pub images: Texts,
    /// The environment lines.
    pub env: Vec<String>,
    /// With `lines`.
    pub note_wrap: String,
    pub note: Texts,
}

/// Instruction files (AGENTS.md and the like).
#[derive(Clone, Debug)]
pub struct Instructions {
    /// File names, the first that is there counts.
    pub names: Vec<String>,
    pub max_files: usize,
    pub max_chars: usize,
    pub total_chars: usize,
    /// `cut`.
    pub texts: Texts,
}

/// What a long result keeps (context.md §5).
#[derive(Clone, Debug)]
pub struct Output {
    pub max_lines: usize,
    pub max_chars: usize,
    pub head_lines: usize,
    pub tail_lines: usize,
    pub head_chars: usize,
    pub tail_chars: usize,
    pub texts: Texts,
}

/// Scheduled work (acp.md, section 14).
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The setting's words on a screen.
    pub label: String,
    pub modes: Vec<String>,
    pub default_mode: String,
    pub approval_wait: Duration,
    pub approval_wait_min: Duration,
    pub approval_wait_max: Duration,
    pub wait_for_device: Duration,
    pub sentinel: String,
    pub monitor: Monitor,
    pub texts: Texts,
}

/// A watch command's limits.
#[derive(Clone, Debug)]
pub struct Monitor {
    pub timeout: Duration,
    pub timeout_max: Duration,
    /// From TERM to KILL.
    pub kill_after: Duration,
    pub excerpt_max_chars: usize,
    pub confirm_max: u64,
    pub confirm_wait: Duration,
    /// Checks at once on a device.
    pub parallel: usize,
    /// How long a further one waits.
    pub queue: Duration,
    /// How long a child may hold the pipe after the shell's end.
    pub background: Duration,
    /// Bytes of an output that are kept until the status is known.
    pub kept_max: u64,
}

/// Texts with variables, by name. Which names there are is checked when the spec is parsed.
#[derive(Clone, Debug, Default)]
pub struct Texts(BTreeMap<String, String>);

impl Texts {
    fn parse(node: &Node<'_>, names: &[&str]) -> Self {
        node.only(names);
        let texts = names
            .iter()
            .map(|name| ((*name).to_owned(), node.get(name).text()));
        Self(texts.collect())
    }

    /// A text as written; empty when there is none of that name.
    pub fn raw(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A text, filled. A variable that is not given is left out.
    pub fn say(&self, name: &str, facts: &[(&str, &str)]) -> String {
        let text = self.raw(name);
        debug_assert!(!text.is_empty(), "there is no text {name}");
        let mut all: Facts = fill::variables(text)
            .into_iter()
            .map(|v| (v.to_owned(), String::new()))
            .collect();
        for (key, value) in facts {
            debug_assert!(all.contains_key(*key), "the text {name} has no {key}");
            all.insert((*key).to_owned(), (*value).to_owned());
        }
        fill::fill(text, &all).unwrap_or_default()
    }

    /// All texts with their names.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

fn ms(node: &Node<'_>) -> Duration {
    Duration::from_millis(node.number())
}

fn seconds(node: &Node<'_>) -> Duration {
    Duration::from_secs(node.number())
}

impl Loop {
    pub(super) fn parse(node: &Node<'_>) -> Self {
        node.only(&[
            "steps",
            "budgets",
            "exec",
            "parallel",
            "retries",
            "nudges",
            "progress",
            "context",
            "calls",
            "scheduled",
            "limits",
        ]);
        let steps = node.get("steps");
        let nudges = node.get("nudges");
        let calls = node.get("calls");
        let limits = node.get("limits");
        steps.only(&["about", "backstop", "wrap_up", "fruitless", "texts"]);
        nudges.only(&["about", "max", "repeats", "texts"]);
        calls.only(&["about", "texts", "refusals_end_turn"]);
        limits.only(&["about", "modes", "texts"]);
        node.get("exec").only(&["about", "texts"]);
        node.get("parallel").only(&["about", "max"]);
        let budgets = node
            .get("budgets")
            .map()
            .into_iter()
            .filter(|(name, _)| *name != "about");
        Self {
            backstop: named(&steps.get("backstop"), |n| n.number()),
            wrap_up: steps.get("wrap_up").number(),
            fruitless: steps.get("fruitless").number(),
            steps: Texts::parse(
                &steps.get("texts"),
                &[
                    "wrap_up",
                    "backstop",
                    "fruitless",
                    "stuck",
                    "nothing",
                    "endless",
                    "long",
                ],
            ),
            budgets: budgets
                .map(|(name, node)| (name.to_owned(), named(&node, |n| n.number())))
                .collect(),
            exec: Texts::parse(
                &node.get("exec").get("texts"),
                &["box_full", "box_writes", "box_none", "background_none"],
            ),
            parallel: node.get("parallel").get("max").size(),
            retries: Retries::parse(&node.get("retries")),
            nudges_max: nudges.get("max").number(),
            repeats: nudges.get("repeats").number(),
            nudges: Texts::parse(
                &nudges.get("texts"),
                &[
                    "empty",
                    "bad_arguments",
                    "unknown_tool",
                    "repeated",
                    "in_text",
                ],
            ),
            progress: ProgressTexts::parse(&node.get("progress")),
            context: Context::parse(&node.get("context")),
            calls: Texts::parse(
                &calls.get("texts"),
                &[
                    "refused",
                    "refused_note",
                    "allowed_note",
                    "expired",
                    "cancelled",
                    "unknown",
                    "ended_turn",
                    "stopped",
                    "no_result",
                    "broke",
                    "closed",
                    "told",
                    "chosen",
                    "chosen_note",
                    "declined",
                    "declined_note",
                    "unanswered",
                    "answered",
                ],
            ),
            refusals_end_turn: calls.get("refusals_end_turn").number(),
            scheduled: Scheduled::parse(&node.get("scheduled")),
            limits: Texts::parse(&limits.get("texts"), &LIMITS),
            mode_names: named(&limits.get("modes"), |n| n.text()),
        }
    }
}

const LIMITS: [&str; 23] = [
    "remote_off",
    "paused",
    "roots",
    "outside",
    "missing",
    "max_sessions",
    "model",
    "mcp_servers",
    "system_prompt",
    "lowered",
    "folder_gone",
    "stopped_pause",
    "stopped_unlinked",
    "words",
    "words_none",
    "words_mode",
    "words_scheduled_on",
    "words_scheduled_off",
    "older",
    "newer",
    "stopped_off",
    "session_full",
    "session_nearly_full",
];

impl Retries {
    fn parse(node: &Node<'_>) -> Self {
        node.only(&[
            "about",
            "attempts",
            "first_ms",
            "max_ms",
            "retry_after_max_ms",
            "first_byte_ms",
            "idle_ms",
            "texts",
        ]);
        Self {
            attempts: node.get("attempts").number(),
            first: ms(&node.get("first_ms")),
            max: ms(&node.get("max_ms")),
            retry_after_max: ms(&node.get("retry_after_max_ms")),
            first_byte: ms(&node.get("first_byte_ms")),
            idle: ms(&node.get("idle_ms")),
            texts: Texts::parse(
                &node.get("texts"),
                &[
                    "gave_up",
                    "refused",
                    "quota",
                    "unknown_model",
                    "key",
                    "broken",
                    "too_long",
                ],
            ),
        }
    }
}

impl Context {
    fn parse(node: &Node<'_>) -> Self {
        node.only(&[
            "about",
            "id",
            "output",
            "stub",
            "read",
            "compaction",
            "env",
            "instructions",
            "images",
            "note",
        ]);
        let (id, read, compaction) = (node.get("id"), node.get("read"), node.get("compaction"));
        let (env, note) = (node.get("env"), node.get("note"));
        id.only(&["digits", "text"]);
        read.only(&["texts", "hash_digits"]);
        compaction.only(&[
            "at_percent",
            "reserve_tokens",
            "default_context",
            "keep_turns",
            "texts",
        ]);
        let images = node.get("images");
        images.only(&["about", "texts"]);
        env.only(&["lines", "about"]);
        note.only(&["wrap", "texts"]);
        Self {
            id_digits: id.get("digits").size(),
            id: id.get("text").text(),
            output: Output::parse(&node.get("output")),
            stub: Texts::parse(&node.get("stub").get("texts"), &["read", "same"]),
            read: Texts::parse(&read.get("texts"), &["header", "empty"]),
            hash_digits: read.get("hash_digits").size(),
            compact_at_percent: compaction.get("at_percent").number(),
            reserve_tokens: compaction.get("reserve_tokens").number(),
            default_context: compaction.get("default_context").number(),
            keep_turns: compaction.get("keep_turns").size(),
            instructions: Instructions::parse(&node.get("instructions")),
            images: Texts::parse(&images.get("texts"), &["left_out", "refused"]),
            compaction: Texts::parse(
                &compaction.get("texts"),
                &["summary", "table", "row", "notice"],
            ),
            env: env.get("lines").texts(),
            note_wrap: note.get("wrap").text(),
            note: Texts::parse(
                &note.get("texts"),
                &[
                    "date",
                    "mode",
                    "model",
                    "plan",
                    "instructions",
                    "instructions_gone",
                ],
            ),
        }
    }
}

impl Instructions {
    fn parse(node: &Node<'_>) -> Self {
        node.only(&[
            "about",
            "names",
            "max_files",
            "max_chars",
            "total_chars",
            "texts",
        ]);
        Self {
            names: node.get("names").texts(),
            max_files: node.get("max_files").size(),
            max_chars: node.get("max_chars").size(),
            total_chars: node.get("total_chars").size(),
            texts: Texts::parse(&node.get("texts"), &["cut"]),
        }
    }
}

impl Output {
    fn parse(node: &Node<'_>) -> Self {
        node.only(&[
            "max_lines",
            "max_chars",
            "head_lines",
            "tail_lines",
            "head_chars",
            "tail_chars",
            "texts",
        ]);
        Self {
            max_lines: node.get("max_lines").size(),
            max_chars: node.get("max_chars").size(),
            head_lines: node.get("head_lines").size(),
            tail_lines: node.get("tail_lines").size(),
            head_chars: node.get("head_chars").size(),
            tail_chars: node.get("tail_chars").size(),
            texts: Texts::parse(&node.get("texts"), &["lines", "chars"]),
        }
    }
}

impl Scheduled {
    fn parse(node: &Node<'_>) -> Self {
        let setting = node.get("setting");
        setting.only(&["key", "label", "default"]);
        Self {
            label: setting.get("label").text(),
            modes: node.get("modes").texts(),
            default_mode: node.get("default_mode").text(),
            approval_wait: seconds(&node.get("approval_wait_seconds")),
            approval_wait_min: seconds(&node.get("approval_wait_min_seconds")),
            approval_wait_max: seconds(&node.get("approval_wait_max_seconds")),
            wait_for_device: seconds(&node.get("wait_for_device_seconds")),
            sentinel: node.get("sentinel").text(),
            monitor: Monitor::parse(&node.get("monitor")),
            texts: Texts::parse(
                &node.get("texts"),
                &[
                    "off", "plan", "root", "model", "nobody", "expired", "silent",
                ],
            ),
        }
    }
}

impl Monitor {
    fn parse(node: &Node<'_>) -> Self {
        Self {
            timeout: seconds(&node.get("timeout_seconds")),
            timeout_max: seconds(&node.get("timeout_max_seconds")),
            kill_after: seconds(&node.get("kill_after_seconds")),
            excerpt_max_chars: node.get("excerpt_max_chars").size(),
            confirm_max: node.get("confirm_max").number(),
            confirm_wait: seconds(&node.get("confirm_wait_seconds")),
            parallel: node.get("parallel").size(),
            queue: seconds(&node.get("queue_seconds")),
            background: ms(&node.get("background_ms")),
            kept_max: node.get("kept_max_bytes").number(),
        }
    }
}
