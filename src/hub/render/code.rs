//! Code in prose: a block with its language, its words in classes.
//!
//! The classes are few and named for what they are: `k` keyword, `s` text, `c` comment, `n` number,
//! `f` function, `t` type, each with `h-` before it. Languages are loaded when the first is needed.

use std::sync::LazyLock;

use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};

use super::{escape, escape_into};

/// Longer code is shown without classes: reading it costs more than it tells.
const MAX_COLOURED: usize = 64 * 1024;
/// A line longer than this is not read either.
const MAX_LINE: usize = 2_000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// A code block of our stylesheet. `coloured` is false while it is still being written.
pub(crate) fn block(code: &str, language: &str, coloured: bool) -> String {
    let language: String = language
        .split([' ', ',', '{'])
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "+-#._".contains(*c))
        .take(32)
        .collect();
    let inner = if coloured && code.len() <= MAX_COLOURED {
        words(code, &language).unwrap_or_else(|| escape(code))
    } else {
        escape(code)
    };
    let label = if language.is_empty() {
        "text"
    } else {
        &language
    };
    format!(
        "<div class=\"block\"><header><span>{}</span><button class=\"link\" type=\"button\" \
         data-copy>Copy</button></header><pre tabindex=\"0\"><code>{inner}</code></pre></div>",
        escape(label)
    )
}

fn words(code: &str, language: &str) -> Option<String> {
    let syntax = find(language)?;
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut runs = Runs::default();
    for line in code.split_inclusive('\n') {
        if line.len() > MAX_LINE {
            return None;
        }
        let ops = state.parse_line(line, &SYNTAXES).ok()?;
        let mut from = 0;
        for (at, op) in ops {
            runs.put(line.get(from..at)?, &stack);
            from = at;
            stack.apply(&op).ok()?;
        }
        runs.put(line.get(from..)?, &stack);
    }
    runs.flush();
    Some(runs.out)
}

/// Text of one class after the other.
#[derive(Default)]
struct Runs {
    out: String,
    class: Option<&'static str>,
    text: String,
}

impl Runs {
    fn put(&mut self, text: &str, stack: &ScopeStack) {
        if text.is_empty() {
            return;
        }
        let class = class(stack);
        if class != self.class {
            self.flush();
            self.class = class;
        }
        self.text.push_str(text);
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.class {
            Some(class) if !text.trim().is_empty() => {
                self.out.push_str("<span class=\"");
                self.out.push_str(class);
                self.out.push_str("\">");
                escape_into(&text, &mut self.out);
                self.out.push_str("</span>");
            }
            _ => escape_into(&text, &mut self.out),
        }
    }
}

fn find(language: &str) -> Option<&'static SyntaxReference> {
    let language = language.to_ascii_lowercase();
    let token = match language.as_str() {
        "" | "text" | "txt" | "plain" => return None,
        "sh" | "shell" | "console" | "zsh" => "bash",
        "ts" | "tsx" | "jsx" | "typescript" | "mjs" => "js",
        "jsonc" | "json5" => "json",
        other => other,
    };
    SYNTAXES.find_syntax_by_token(token)
}

fn class(stack: &ScopeStack) -> Option<&'static str> {
    stack.as_slice().iter().rev().find_map(|scope| {
        let name = scope.build_string();
        let starts = |p: &str| name.starts_with(p);
        if starts("comment") || starts("punctuation.definition.comment") {
            Some("h-c")
        } else if starts("string") || starts("punctuation.definition.string") {
            Some("h-s")
        } else if starts("constant.numeric") || starts("constant.language") {
            Some("h-n")
        } else if starts("keyword.operator") {
            None
        } else if starts("keyword") || starts("storage") {
            Some("h-k")
        } else if starts("entity.name.function") || starts("support.function") {
            Some("h-f")
        } else if starts("entity.name") || starts("support.type") || starts("support.class") {
            Some("h-t")
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_gets_few_classes_and_stays_text() {
        insta::assert_snapshot!(block("let x = 1; // <b>", "rust", true),
            @r#"<div class="block"><header><span>rust</span><button class="link" type="button" data-copy>Copy</button></header><pre tabindex="0"><code><span class="h-k">let</span> x = <span class="h-n">1</span>; <span class="h-c">// &lt;b&gt;</span></code></pre></div>"#);
        assert!(block("<i>", "\"><script>", true).contains("<span>script</span>"));
        assert!(!block("<i>", "\"><script>", true).contains("<script"));
    }
}
