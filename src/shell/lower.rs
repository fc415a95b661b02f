//! The strict reader: tree-sitter's tree, walked with a cursor, lowered to invocations.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::greedy::{assignment, commands};
use super::payload::{Inner, inner};
use super::word::{Dynamic, Word};
use super::work::{self, Bound};
use super::{
    Assignment, Doubt, DoubtKind, Invocation, MAX_BYTES, MAX_DEPTH, MAX_INVOCATIONS, Redirect,
    Script, screen, segment, skip,
};
use crate::clock;

/// A parse that takes more is given up: so many reports of the parser, which makes one each hundred
/// of its steps. Four thousand words or five hundred lines of commands take less, and the body of
/// a quoted here-document hardly any, however long it is.
const MOST_REPORTS: u32 = 256;

/// The same where its steps are long ones. It is the thread's own time: a busy machine does not
/// count.
const LONGEST_PARSE: Duration = Duration::from_millis(25);

/// The most commands on one level of one text. The parser's recovery from errors is quadratic in
/// their number, and does not report its steps then.
const MOST_COMMANDS: usize = 512;

/// So many characters are gone over for one text, payloads and all, each time counted: texts in
/// texts in texts are read again and again. What is longer is a doubt, and the rest is not read.
const MOST_STEPS: u64 = 8 * MAX_BYTES as u64;

thread_local! {
    /// Making a parser costs as much as a small parse.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Reads a text. The caller has refused what is longer than [`super::MAX_BYTES`].
pub fn read(text: &str) -> Script {
    let mut script = Script::default();
    let bound = Bound::of(MOST_STEPS);
    if let Some(kind) = screen(text) {
        script.doubt(kind, text);
        if kind == DoubtKind::Bound {
            return script;
        }
    }
    lower(text, 0, None, bound, &mut script);
    let nothing = script.invocations.is_empty()
        && script.redirects.is_empty()
        && script.assignments.is_empty();
    if nothing && script.doubts.is_empty() {
        script.doubt(DoubtKind::Empty, text);
    }
    let mut at = 0;
    while at < script.invocations.len() {
        if bound.over() {
            script.doubt(DoubtKind::Bound, text);
            break;
        }
        follow(at, bound, &mut script);
        at += 1;
    }
    script
}

impl Script {
    fn doubt(&mut self, kind: DoubtKind, text: &str) {
        // As many as a person reads; they weigh the same however many there are.
        const MOST: usize = 64;
        if self.doubts.len() >= MOST {
            return;
        }
        let doubt = Doubt {
            kind,
            segment: segment(text),
        };
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }
}

/// Follows what the invocation at `at` runs in turn.
fn follow(at: usize, bound: Bound, script: &mut Script) {
    let Some(invocation) = script.invocations.get(at) else {
        return;
    };
    let (segment, depth) = (invocation.segment.clone(), invocation.depth);
    if invocation.program().is_none() {
        script.doubt(DoubtKind::Program, &segment);
        return;
    }
    if chain(at, script) > usize::from(MAX_DEPTH) {
        script.doubt(DoubtKind::Bound, &segment);
        return;
    }
    let evaluates = subscripts(invocation);
    work::add(invocation.words.len());
    let (inner, transparent) = inner(&invocation.words);
    if evaluates {
        script.doubt(DoubtKind::Subscript, &segment);
    }
    let mut whole = transparent && !inner.is_empty();
    for inner in inner {
        match inner {
            Inner::Words { words, open_ended } => {
                work::add(words.len());
                let Some(mut found) = Invocation::of(words, &segment) else {
                    continue;
                };
                found.by = Some(at);
                found.depth = depth;
                found.open_ended = open_ended;
                script.invocations.push(found);
            }
            Inner::Text(text) if depth < MAX_DEPTH => {
                let before = script.invocations.len();
                if let Some(kind) = screen(&text) {
                    script.doubt(kind, &text);
                } else {
                    lower(&text, depth + 1, Some(at), bound, script);
                }
                whole &= script.invocations.len() > before;
            }
            Inner::Text(text) => script.doubt(DoubtKind::Bound, &text),
            Inner::Unknown => script.doubt(DoubtKind::Payload, &segment),
            Inner::Command(_) | Inner::Code(_) => {}
        }
    }
    if let Some(invocation) = script.invocations.get_mut(at) {
        invocation.transparent = whole;
    }
    if script.invocations.len() > MAX_INVOCATIONS {
        script.invocations.truncate(MAX_INVOCATIONS);
        script.doubt(DoubtKind::Bound, &segment);
    }
}

/// How many invocations stand above this one.
fn chain(at: usize, script: &Script) -> usize {
    let (mut length, mut up) = (0, script.invocations.get(at).and_then(|i| i.by));
    while let Some(next) = up {
        length += 1;
        up = script.invocations.get(next).and_then(|i| i.by);
    }
    length
}

/// Builtins that evaluate `name[subscript]` in an operand, arithmetic included.
fn subscripts(invocation: &Invocation) -> bool {
    let evaluates = matches!(
        invocation.program(),
        Some(
            "test"
                | "["
                | "unset"
                | "printf"
                | "read"
                | "declare"
                | "typeset"
                | "local"
                | "export"
                | "readonly"
                | "let"
                | "wait"
                | "mapfile"
                | "readarray"
                | "getopts"
        )
    );
    evaluates
        && invocation
            .words
            .iter()
            .skip(1)
            .map(Word::text)
            .chain(invocation.assignments.iter().map(|a| a.value.text()))
            .any(evaluated)
}

/// `[` with a substitution behind it, in text that a builtin evaluates.
fn evaluated(text: &str) -> bool {
    text.find('[')
        .and_then(|at| text.get(at..))
        .is_some_and(|rest| rest.contains("$(") || rest.contains('`') || rest.contains("${"))
}

impl Invocation {
    fn of(words: Vec<Word>, text: &str) -> Option<Self> {
        (!words.is_empty()).then(|| Self {
            words,
            assignments: Vec::new(),
            segment: segment(text),
            depth: 0,
            by: None,
            open_ended: false,
            transparent: false,
        })
    }
}

fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser
                .set_language(&tree_sitter_bash::LANGUAGE.into())
                .ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        parser.reset();
        // Text made to be ambiguous would take seconds; it is given up, which is a doubt.
        let (began, mut reports) = (clock::worked(), 0);
        let mut progress = |_: &ParseState| {
            reports += 1;
            if reports > MOST_REPORTS || clock::worked().saturating_sub(began) > LONGEST_PARSE {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = text.as_bytes();
        let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
        parser.parse_with_options(&mut read, None, Some(options))
    })
}

/// Lowers one text into the script.
fn lower(text: &str, depth: u8, by: Option<usize>, bound: Bound, script: &mut Script) {
    let parsed = if bound.over() || commands(text, MOST_COMMANDS + 1) > MOST_COMMANDS {
        None
    } else {
        parse(text)
    };
    let Some(tree) = parsed else {
        script.doubt(DoubtKind::Bound, text);
        return;
    };
    if tree.root_node().has_error() {
        script.doubt(DoubtKind::Syntax, text);
    }
    let mut lowering = Lowering {
        text,
        depth,
        by,
        bound,
        script,
    };
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let deeper = lowering.node(node);
        if lowering.script.invocations.len() > MAX_INVOCATIONS || bound.over() {
            lowering.script.doubt(DoubtKind::Bound, text);
            return;
        }
        if deeper && cursor.goto_first_child() {
            continue;
        }
        loop {
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// How many substitutions the parser sees in a node, itself left out.
fn substitutions(node: Node<'_>) -> usize {
    let mut cursor = node.walk();
    let (mut count, mut depth) = (0, 0usize);
    loop {
        let found = matches!(
            cursor.node().kind(),
            "command_substitution" | "process_substitution"
        );
        work::add(1);
        count += usize::from(found);
        if !found && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        loop {
            if depth == 0 {
                return count;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            cursor.goto_parent();
            depth -= 1;
        }
    }
}

struct Lowering<'t, 's> {
    text: &'t str,
    depth: u8,
    by: Option<usize>,
    bound: Bound,
    script: &'s mut Script,
}

impl<'t> Lowering<'t, '_> {
    fn of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Takes up one node; whether its children are to be visited.
    fn node(&mut self, node: Node<'_>) -> bool {
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(node),
            "variable_assignment" => self.bare_assignment(node),
            "file_redirect" => self.redirect(node),
            "heredoc_redirect" => self.heredoc(node),
            "function_definition" => {
                if let Some(name) = node.child_by_field_name("name") {
                    let name = Word::read(self.of(name)).text().to_owned();
                    self.script.defined.push(name);
                }
            }
            "test_command" => {
                let text = self.of(node);
                work::add(text.len());
                if text.starts_with('[') && !text.starts_with("[[") {
                    self.bracket(text);
                }
                // A quoted word is evaluated again by `-eq` and its kind.
                if text.contains('\'') && evaluated(text.trim_start_matches('[')) {
                    self.script.doubt(DoubtKind::Subscript, text);
                }
            }
            "expansion" => {
                let (text, word) = (self.of(node), Word::read(self.of(node)));
                // The parser overlooks a substitution in some of its operators: `${x^^$(…)}`.
                if !word.commands.is_empty() && substitutions(node) < word.commands.len() {
                    self.script.doubt(DoubtKind::Syntax, text);
                }
                if word.dynamic == Some(Dynamic::Transform) {
                    self.script.doubt(DoubtKind::Transform, text);
                }
            }
            "comment" => return false,
            _ => {}
        }
        true
    }

    fn command(&mut self, node: Node<'_>) {
        let mut words = Vec::new();
        let mut assignments = Vec::new();
        let mut cursor = node.walk();
        let mut go = cursor.goto_first_child();
        while go {
            let child = cursor.node();
            let text = self.of(child);
            match child.kind() {
                "variable_assignment" => {
                    // Behind the program it is an argument; of a declaration it is both.
                    if words.is_empty() || node.kind() == "declaration_command" {
                        assignments.extend(self.assignment(text));
                    }
                    if !words.is_empty() {
                        words.push(Word::read(text));
                    }
                }
                "file_redirect"
                | "heredoc_redirect"
                | "herestring_redirect"
                | "comment"
                | "\\"
                | "\n" => {}
                _ if !text.is_empty() => words.push(Word::read(text)),
                _ => {}
            }
            go = cursor.goto_next_sibling();
        }
        if words.first().and_then(Word::literal) == Some("alias") {
            let names = words.iter().skip(1).map(Word::text);
            let names = names.filter_map(|w| w.split('=').next()).map(str::to_owned);
            self.script.defined.extend(names);
        }
        let text = self.of(node);
        for word in &words {
            if word.dynamic == Some(Dynamic::Transform) {
                self.script.doubt(DoubtKind::Transform, &word.raw);
            }
        }
        let Some(mut invocation) = Invocation::of(words, text) else {
            self.script.assignments.extend(assignments);
            return;
        };
        invocation.assignments = assignments;
        invocation.depth = self.depth;
        invocation.by = self.by;
        self.script.invocations.push(invocation);
    }

    /// `[ … ]` is a program's call to bash, but a node of its own to the parser.
    fn bracket(&mut self, text: &str) {
        let chars: Vec<char> = text.chars().collect();
        let (mut at, mut words) = (0, Vec::new());
        while let Some(c) = chars.get(at) {
            let end = skip::word(&chars, at).max(at + 1);
            if !c.is_whitespace() {
                let raw: String = chars.get(at..end).unwrap_or_default().iter().collect();
                words.push(Word::read(&raw));
            }
            at = end;
        }
        if let Some(first) = words.first_mut() {
            *first = Word::plain("[");
        }
        if let Some(mut invocation) = Invocation::of(words, text) {
            invocation.depth = self.depth;
            invocation.by = self.by;
            self.script.invocations.push(invocation);
        }
    }

    fn assignment(&mut self, text: &str) -> Option<Assignment> {
        let (name, value) = assignment(text)?;
        let assignment = Assignment {
            name: name.to_owned(),
            value: Word::read(value),
            segment: segment(text),
        };
        if evaluated(assignment.value.text()) {
            self.script.doubt(DoubtKind::Subscript, text);
        }
        Some(assignment)
    }

    fn bare_assignment(&mut self, node: Node<'_>) {
        let owned = node.parent().is_some_and(|p| {
            matches!(
                p.kind(),
                "command" | "declaration_command" | "unset_command"
            )
        });
        if owned {
            return;
        }
        let text = self.of(node);
        match self.assignment(text) {
            Some(assignment) => self.script.assignments.push(assignment),
            None => self.script.doubt(DoubtKind::Syntax, text),
        }
    }

    fn redirect(&mut self, node: Node<'_>) {
        let text = self.of(node);
        let Some(at) = text.find(['<', '>']) else {
            self.script.doubt(DoubtKind::Syntax, text);
            return;
        };
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.find(|c| !"<>&|".contains(c)).unwrap_or(rest.len());
        let (operator, target) = rest.split_at(end);
        let target = Word::read(target.trim());
        // `2>&1`, `>&-`: only a descriptor moves.
        let descriptor = operator.ends_with('&')
            && target
                .literal()
                .is_some_and(|t| t.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()));
        if !descriptor {
            self.script.redirects.push(Redirect {
                target,
                writes: operator.contains('>') || text.starts_with('&'),
                segment: segment(text),
            });
        }
    }

    /// The parser shows `$(…)` in the body of an unquoted here-document but not backticks.
    fn heredoc(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let (mut quoted, mut body) = (false, None);
        let mut go = cursor.goto_first_child();
        while go {
            match cursor.node().kind() {
                "heredoc_start" => quoted = self.of(cursor.node()).contains(['\'', '"', '\\']),
                "heredoc_body" => body = Some(self.of(cursor.node())),
                _ => {}
            }
            go = cursor.goto_next_sibling();
        }
        let Some(body) = body.filter(|b| !quoted && b.contains('`')) else {
            return;
        };
        let word = Word::read(&format!("\"{}\"", body.replace('"', "\\\"")));
        for command in word.commands {
            if self.depth < MAX_DEPTH {
                lower(&command, self.depth + 1, self.by, self.bound, self.script);
            } else {
                self.script.doubt(DoubtKind::Bound, &command);
            }
        }
    }
}
