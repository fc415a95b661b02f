//! The practice model: a script without intelligence, so that everything can be tried without a
//! key.
//!
//! A pure function: messages and tools as they stand in a chat completion request, and out comes
//! the next answer. It shows streamed text, thinking, a plan, a read, a command that asks, an edit,
//! and how an agent takes a no. It calls only tools that the request offers. Not here: pacing and
//! the wire (`hub::v1`).

use serde_json::{Value, json};

/// The id under which it is served.
pub const ID: &str = "practice";

/// How a person reads its name.
pub const NAME: &str = "practice model: a script without intelligence";

/// The file that its edits write and change.
const FILE: &str = "lembas-practice.md";

/// One answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Reasoning, shown folded.
    pub thought: String,
    pub text: String,
    /// Tool calls: name and arguments.
    pub calls: Vec<(String, Value)>,
}

impl Answer {
    fn says(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn thinks(mut self, thought: &str) -> Self {
        thought.clone_into(&mut self.thought);
        self
    }

    fn calls(mut self, name: &str, args: Value) -> Self {
        self.calls.push((name.to_owned(), args));
        self
    }

    /// Text in the pieces that a model would stream: a word or two each.
    pub fn pieces(text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut piece = String::new();
        for word in text.split_inclusive([' ', '\n']) {
            piece.push_str(word);
            if piece.len() >= 8 || word.ends_with('\n') {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        if !piece.is_empty() {
            pieces.push(piece);
        }
        pieces
    }
}

/// About how many tokens a text is.
pub fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// What it answers next. `messages` and `tools` as in the request.
pub fn next(messages: &[Value], tools: &[Value]) -> Answer {
    let script = Script::read(messages, tools);
    if let Some(note) = script.refused() {
        return script.after_no(&note);
    }
    match script.wish() {
        Wish::Long => long(),
        Wish::Markdown => markdown(),
        Wish::Command => script.command(),
        Wish::Edit => script.edit(),
        Wish::Plan => script.plan(),
        Wish::Read => script.list(),
        Wish::Tour => script.tour(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Tour,
    Plan,
    Read,
    Command,
    Edit,
    Long,
    Markdown,
}

/// What the script goes by: the person's last words and what its own calls since came to.
struct Script<'a> {
    asked: String,
    /// Tool results since the person's last words: the call's name and the result's text.
    results: Vec<(String, String)>,
    tools: Vec<&'a str>,
}

impl<'a> Script<'a> {
    fn read(messages: &[Value], tools: &'a [Value]) -> Self {
        let tools = tools
            .iter()
            .filter_map(|t| t.pointer("/function/name").and_then(Value::as_str))
            .collect();
        let last = messages
            .iter()
            .rposition(|m| role(m) == "user")
            .unwrap_or_default();
        let asked = messages.get(last).map(content).unwrap_or_default();
        let asked = without_notes(&asked);
        let mut names: Vec<(String, String)> = Vec::new();
        let mut results = Vec::new();
        for message in messages.iter().skip(last + 1) {
            for call in message
                .get("tool_calls")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let text = |path: &str| {
                    let text = call.pointer(path).and_then(Value::as_str);
                    text.unwrap_or_default().to_owned()
                };
                names.push((text("/id"), text("/function/name")));
            }
            if role(message) == "tool" {
                let id = message.get("tool_call_id").and_then(Value::as_str);
                let name = names
                    .iter()
                    .find(|(call, _)| Some(call.as_str()) == id)
                    .map(|(_, name)| name.clone())
                    .unwrap_or_default();
                results.push((name, content(message)));
            }
        }
        Self {
            asked,
            results,
            tools,
        }
    }

    fn has(&self, tool: &str) -> bool {
        self.tools.contains(&tool)
    }

    fn did(&self, tool: &str) -> bool {
        self.results.iter().any(|(name, _)| name == tool)
    }

    /// What the person asks to see.
    fn wish(&self) -> Wish {
        let words = self.asked.to_lowercase();
        let says = |list: &[&str]| {
            list.iter().any(|w| {
                words
                    .split(|c: char| !c.is_alphanumeric())
                    .any(|said| said == *w)
            })
        };
        if says(&["long", "slow", "slowly"]) {
            Wish::Long
        } else if says(&["markdown", "table", "code"]) {
            Wish::Markdown
        } else if says(&["plan"]) {
            Wish::Plan
        } else if says(&["edit", "write", "change"]) {
            Wish::Edit
        } else if says(&["command", "run", "ask"]) {
            Wish::Command
        } else if says(&["read", "look", "list"]) {
            Wish::Read
        } else {
            Wish::Tour
        }
    }

    /// When the last thing it wanted was refused: the words that came with it.
    fn refused(&self) -> Option<String> {
        let (_, text) = self.results.last()?;
        let lower = text.to_lowercase();
        let no = [
            "refused",
            "not allowed",
            "did not allow",
            "nobody answered",
            "not run",
        ]
        .iter()
        .any(|w| lower.contains(w));
        no.then(|| first_line(text))
    }

    fn after_no(&self, note: &str) -> Answer {
        let mut answer = Answer::says(format!(
            "That was not run. What came back was: “{note}” A model would now look for another way, \
             or ask you. I am a script, so I only say that I saw it, and go on.\n\n"
        ));
        if self.wish() == Wish::Tour && self.has("write") && !self.did("write") {
            answer.text.push_str("Next is an edit.");
            return self.marked(3, answer.calls("write", first_file(&self.asked)));
        }
        answer.text.push_str(&self.end());
        answer
    }

    /// A step with the plan brought up to it: the tasks before it are done, this one is under way.
    fn marked(&self, task: u64, step: Answer) -> Answer {
        if !self.has("plan_update") || !self.did("plan_write") {
            return step;
        }
        let mut tasks = vec![json!({ "id": format!("t{task}"), "status": "doing" })];
        if task > 1 {
            let before = format!("t{}", task - 1);
            tasks.insert(0, json!({ "id": before, "status": "done" }));
        }
        let mut step = step;
        let mark = ("plan_update".to_owned(), json!({ "tasks": tasks }));
        step.calls.insert(0, mark);
        step
    }

    fn tour(&self) -> Answer {
        if self.results.is_empty() {
            let hello = format!(
                "This is the {NAME}. You wrote: “{}” I cannot understand it. Instead I show you \
                 what a turn looks like.\n\n",
                first_line(&self.asked)
            );
            let thought = "The person wants to see how this works. I show each kind of step once: a \
                           plan, a look at the folder, a command that needs a yes, and an edit.";
            if self.has("plan_write") {
                return Answer::says(format!("{hello}First a plan."))
                    .thinks(thought)
                    .calls("plan_write", plan());
            }
            return Answer {
                text: hello,
                ..self.list()
            }
            .thinks(thought);
        }
        if !self.did("list") && !self.did("read") && self.has("list") {
            let look = Answer::says("Now I look at the folder. Looking needs no yes.")
                .calls("list", json!({ "path": ".", "depth": 1 }));
            return self.marked(1, look);
        }
        if !self.did("bash") && self.has("bash") {
            let command = Answer::says(
                "Next a command that leaves the box: it wants the network, so this computer asks \
                 you first. It looks whether one page is there. Say yes or no.",
            )
            .calls("bash", network());
            return self.marked(2, command);
        }
        if !self.did("write") && self.has("write") {
            let write = Answer::says("Now an edit, shown as a difference.")
                .calls("write", first_file(&self.asked));
            return self.marked(3, write);
        }
        if !self.did("edit") && self.has("edit") && self.did("write") {
            return Answer::says("And a change to what I just wrote.").calls("edit", second_file());
        }
        let open = self
            .results
            .last()
            .is_some_and(|(name, _)| name != "plan_update");
        if open && self.has("plan_update") && self.did("plan_write") {
            let all = ["t1", "t2", "t3", "t4"].map(|id| json!({ "id": id, "status": "done" }));
            return Answer::default().calls("plan_update", json!({ "tasks": all }));
        }
        Answer::says(self.end())
    }

    fn list(&self) -> Answer {
        if self.results.is_empty() && self.has("list") {
            return Answer::says("I look at the folder. Looking needs no yes.")
                .calls("list", json!({ "path": ".", "depth": 1 }));
        }
        let seen = self
            .results
            .last()
            .map_or(0, |(_, text)| text.lines().count());
        Answer::says(format!(
            "The folder listing has {seen} lines. That is all a script can say about it."
        ))
    }

    fn command(&self) -> Answer {
        if self.results.is_empty() && self.has("bash") {
            return Answer::says(
                "A command that wants the network, so this computer asks you first.",
            )
            .calls("bash", network());
        }
        let said = self.results.last().map(|(_, text)| first_line(text));
        Answer::says(format!(
            "It ran. Its first line was: “{}”",
            said.unwrap_or_default()
        ))
    }

    fn edit(&self) -> Answer {
        if self.results.is_empty() && self.has("write") {
            return Answer::says("An edit, shown as a difference.")
                .calls("write", first_file(&self.asked));
        }
        if !self.did("edit") && self.has("edit") && self.did("write") {
            return Answer::says("And a change to it.").calls("edit", second_file());
        }
        Answer::says(format!("`{FILE}` is written. Delete it whenever you like."))
    }

    fn plan(&self) -> Answer {
        if self.results.is_empty() && self.has("plan_write") {
            return Answer::says("A plan is shown beside the chat and changes as work goes on.")
                .calls("plan_write", plan());
        }
        if self.results.is_empty() {
            return Answer::says(
                "There is no tool for plans here, so only this: first look, then try, then say what came of it.",
            );
        }
        Answer::says("The plan is there. A model would now work along it.")
    }

    fn end(&self) -> String {
        let mut text = String::from("That was everything I can show:\n\n");
        for (name, result) in self
            .results
            .iter()
            .filter(|(name, _)| name != "plan_update")
        {
            let first = first_line(result);
            let first: String = first.chars().take(80).collect();
            text.push_str(&format!("- `{name}`: {first}\n"));
        }
        text.push_str(
            "\nAdd a model under Settings, and the same page, the same questions and the same folder \
             work with something that thinks. Until then, write `plan`, `read`, `command`, `edit`, \
             `markdown` or `long` to see one thing alone.",
        );
        text
    }
}

fn role(message: &Value) -> &str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The text of a message, also when it comes in parts.
fn content(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|p| p.get("text").and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// A message without what the session put before the person's words.
fn without_notes(text: &str) -> String {
    const OPEN: &str = "<session-note>";
    const CLOSE: &str = "</session-note>";
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(OPEN) {
        kept.push_str(before);
        rest = after.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

/// One line to echo, bounded.
fn first_line(text: &str) -> String {
    let line = text
        .lines()
        .find(|l| !l.trim().is_empty() && !is_label(l))
        .unwrap_or("");
    let mut short: String = line.trim().chars().take(160).collect();
    if short.len() < line.trim().len() {
        short.push('…');
    }
    short
}

/// The line under which a session keeps a result: `[#0003]`.
fn is_label(line: &str) -> bool {
    let inner = line
        .trim()
        .strip_prefix("[#")
        .and_then(|l| l.strip_suffix(']'));
    inner.is_some_and(|l| l.chars().all(|c| c.is_ascii_hexdigit()))
}

/// A harmless request that a box without network cannot make.
fn network() -> Value {
    json!({
        "command": "curl -sSI -m 5 https://example.com",
        "open": true,
        "why": "it reads a page from the network",
    })
}

fn first_file(asked: &str) -> Value {
    let line = first_line(asked);
    json!({
        "path": FILE,
        "content": format!(
            "# Practice\n\nWritten by the practice model, a script without intelligence.\n\nYou wrote: {line}\n\nDelete this file whenever you like.\n"
        ),
    })
}

fn second_file() -> Value {
    json!({
        "path": FILE,
        "old": "# Practice\n",
        "new": "# Practice, changed once\n",
    })
}

fn plan() -> Value {
    json!({
        "title": "Show what a turn looks like",
        "summary": "Each kind of step once, so that you know it when you see it.",
        "findings": [],
        "objectives": ["You have seen a read, a question and an edit."],
        "phases": [{
            "title": "The tour",
            "tasks": [
                { "text": "Look at the folder" },
                { "text": "Run a command that needs your yes" },
                { "text": "Write a small file and change it" },
                { "text": "Say what came of it" },
            ],
        }],
    })
}

fn long() -> Answer {
    let mut text = String::from("This is a long answer, to see how the page follows it.\n\n");
    for n in 1..=120 {
        text.push_str(&format!(
            "{n}. Line {n} of 120. Scroll up and the page stops following; `End` takes hold again.\n"
        ));
        if n % 30 == 0 {
            text.push_str(&format!("\nA quarter more is done: {n} of 120.\n\n"));
        }
    }
    text.push_str("\nThat was the end of the long answer.");
    Answer::says(text)
}

fn markdown() -> Answer {
    Answer::says(
        "Prose with *emphasis*, **weight** and `code`.\n\n\
         | step | what it needs |\n|---|---|\n| read | nothing |\n| edit | mode Edit |\n| network | your yes |\n\n\
         ```rust\nfn main() {\n    // Written by a script.\n    let answer = 6 * 7;\n    println!(\"{answer}\");\n}\n```\n\n\
         > A quotation, for the look of it.\n\n\
         1. one\n2. two\n   - and a half\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<Value> {
        names
            .iter()
            .map(|n| json!({ "type": "function", "function": { "name": n } }))
            .collect()
    }

    fn user(text: &str) -> Value {
        json!({ "role": "user", "content": text })
    }

    /// Plays a whole turn; `say` gives the result of each call.
    fn play(asked: &str, tools: &[Value], say: impl Fn(&str) -> String) -> Vec<String> {
        let mut messages = vec![
            user("hello"),
            json!({"role":"assistant","content":"x"}),
            user(asked),
        ];
        let mut seen = Vec::new();
        for step in 0..12 {
            let answer = next(&messages, tools);
            if answer.calls.is_empty() {
                seen.push(format!("end: {}", answer.text));
                return seen;
            }
            let mut calls = Vec::new();
            let mut results = Vec::new();
            for (n, (name, args)) in answer.calls.iter().enumerate() {
                assert!(
                    tools.iter().any(|t| t["function"]["name"] == *name),
                    "{name} is not offered"
                );
                let id = format!("c{step}-{n}");
                calls.push(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": args.to_string() } }));
                results.push(json!({ "role": "tool", "tool_call_id": id, "content": say(name) }));
                seen.push(name.clone());
            }
            messages
                .push(json!({ "role": "assistant", "content": answer.text, "tool_calls": calls }));
            messages.extend(results);
        }
        panic!("the script does not end: {seen:?}");
    }

    #[test]
    fn the_tour_shows_each_step_once_and_ends() {
        let all = tools(&["plan_write", "list", "bash", "write", "edit"]);
        let seen = play("show me", &all, |n| format!("{n} is done"));
        assert_eq!(seen[..5], ["plan_write", "list", "bash", "write", "edit"]);
        assert!(seen[5].contains("`bash`: bash is done"));
        // With the plan followed, one note of where it stands goes before each step.
        let all = tools(&["plan_write", "plan_update", "list", "bash", "write", "edit"]);
        let seen = play("show me", &all, |n| format!("{n} is done"));
        let marks = seen.iter().filter(|name| *name == "plan_update").count();
        assert_eq!(marks, 4, "{seen:?}");
        assert!(seen.last().unwrap().contains("`edit`: edit is done"));
        assert!(!seen.last().unwrap().contains("`plan_update`"));
    }

    #[test]
    fn only_offered_tools_are_called() {
        for names in [
            &[][..],
            &["bash"],
            &["list"],
            &["write"],
            &["edit"],
            &["plan_write", "edit"],
        ] {
            for asked in ["hi", "plan", "read", "run", "edit", "markdown", "long"] {
                play(asked, &tools(names), |_| "ok".into());
            }
        }
    }

    #[test]
    fn a_no_is_heard_with_its_words_and_the_tour_goes_on() {
        let all = tools(&["list", "bash", "write"]);
        let messages = vec![
            user("show me"),
            json!({ "role": "assistant", "tool_calls": [{ "id": "a", "function": { "name": "bash", "arguments": "{}" } }] }),
            json!({ "role": "tool", "tool_call_id": "a", "content": "Refused by the person: not from this network." }),
        ];
        let answer = next(&messages, &all);
        assert!(
            answer.text.contains("not from this network"),
            "{}",
            answer.text
        );
        assert_eq!(answer.calls[0].0, "write");
    }

    #[test]
    fn notes_of_the_session_are_not_the_persons_words() {
        let text = "<session-note>\nThe mode is Edit; run and write.\n</session-note>\nhello there";
        let answer = next(&[user(text)], &tools(&["list"]));
        assert!(answer.text.contains("“hello there”"), "{}", answer.text);
        assert_eq!(answer.calls[0].0, "list");
    }

    #[test]
    fn it_says_what_it_is_and_echoes_the_words() {
        let answer = next(
            &[
                json!({ "role": "user", "content": [{ "type": "text", "text": "Fix the bug\nplease" }] }),
            ],
            &[],
        );
        assert!(answer.text.contains("a script without intelligence"));
        assert!(answer.text.contains("“Fix the bug”"), "{}", answer.text);
        assert_eq!(Answer::pieces(&answer.text).concat(), answer.text);
    }
}
