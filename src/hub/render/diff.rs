//! A unified diff as the table of the stylesheet: sign, number and ground say the same thing.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use super::marked;

/// Lines that are drawn; the rest is said as a number.
const MAX_LINES: usize = 2_000;
/// Lines longer than this are not compared word by word.
const MAX_WORDS: usize = 400;

/// A drawn diff and its totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) html: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

/// Draws a unified diff of one file.
pub(crate) fn draw(diff: &str) -> Drawn {
    let mut drawn = Drawn::default();
    let mut rows = Rows::default();
    let (mut old, mut new) = (0_usize, 0_usize);
    let (mut gone, mut come): (Vec<Line<'_>>, Vec<Line<'_>>) = (Vec::new(), Vec::new());
    let mut in_hunk = false;
    for line in diff.lines() {
        if let Some(head) = line.strip_prefix("@@") {
            rows.flush(&mut gone, &mut come);
            (old, new) = numbers(head);
            in_hunk = true;
            rows.hunk(head, old);
            continue;
        }
        if !in_hunk {
            continue;
        }
        match line.split_at_checked(1) {
            Some(("-", text)) => {
                drawn.removed += 1;
                gone.push(Line { number: old, text });
                old += 1;
            }
            Some(("+", text)) => {
                drawn.added += 1;
                come.push(Line { number: new, text });
                new += 1;
            }
            Some(("\\", _)) => {}
            Some((" ", text)) => {
                rows.flush(&mut gone, &mut come);
                rows.plain(new, text);
                old += 1;
                new += 1;
            }
            _ => {
                rows.flush(&mut gone, &mut come);
                rows.plain(new, line);
                old += 1;
                new += 1;
            }
        }
    }
    rows.flush(&mut gone, &mut come);
    if rows.left_out > 0 {
        let _infallible = write!(
            rows.html,
            "<tr class=\"hunk\"><td colspan=\"3\">{} more lines</td></tr>",
            rows.left_out
        );
    }
    if !rows.html.is_empty() {
        drawn.html = format!("<table class=\"diff\"><tbody>{}</tbody></table>", rows.html);
    }
    drawn
}

struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// The first numbers of a hunk, from ` -38,5 +38,5 @@ …`.
fn numbers(head: &str) -> (usize, usize) {
    let first = |sign: char| {
        head.split_whitespace()
            .find_map(|w| w.strip_prefix(sign))
            .and_then(|w| w.split(',').next())
            .and_then(|w| w.parse().ok())
            .unwrap_or(1)
    };
    (first('-'), first('+'))
}

#[derive(Default)]
struct Rows {
    html: String,
    count: usize,
    left_out: usize,
}

impl Rows {
    fn room(&mut self) -> bool {
        if self.count >= MAX_LINES {
            self.left_out += 1;
            return false;
        }
        self.count += 1;
        true
    }

    fn hunk(&mut self, head: &str, from: usize) {
        let count: usize = head
            .split_whitespace()
            .find_map(|w| w.strip_prefix('-'))
            .and_then(|w| w.split_once(','))
            .and_then(|(_, n)| n.parse().ok())
            .unwrap_or(1);
        let to = from + count.saturating_sub(1);
        let place = head
            .split_once("@@")
            .map(|(_, p)| p.trim())
            .filter(|p| !p.is_empty())
            .map(|p| format!(", <code>{}</code>", marked(p)))
            .unwrap_or_default();
        let words = if count == 0 {
            "new file".to_owned()
        } else {
            format!("lines {from} to {to}")
        };
        let _infallible = write!(
            self.html,
            "<tr class=\"hunk\"><td colspan=\"3\">{words}{place}</td></tr>"
        );
    }

    fn row(&mut self, class: &str, number: usize, sign: &str, html: &str) {
        if self.room() {
            let class = if class.is_empty() {
                String::new()
            } else {
                format!(" class=\"{class}\"")
            };
            let _infallible = write!(
                self.html,
                "<tr{class}><td class=\"no\">{number}</td><td class=\"sg\">{sign}</td>\
                 <td class=\"tx\">{html}</td></tr>"
            );
        }
    }

    fn plain(&mut self, number: usize, text: &str) {
        self.row("", number, "", &marked(text));
    }

    /// Writes a change: lines that stand for each other are compared word by word.
    fn flush(&mut self, gone: &mut Vec<Line<'_>>, come: &mut Vec<Line<'_>>) {
        let paired = gone.len() == come.len();
        let both: Vec<(String, String)> = gone
            .iter()
            .zip(come.iter())
            .map(|(g, c)| {
                if paired {
                    words(g.text, c.text)
                } else {
                    (marked(g.text), marked(c.text))
                }
            })
            .collect();
        for (n, line) in gone.iter().enumerate() {
            let html = both
                .get(n)
                .map_or_else(|| marked(line.text), |b| b.0.clone());
            self.row("del", line.number, "−", &html);
        }
        for (n, line) in come.iter().enumerate() {
            let html = both
                .get(n)
                .map_or_else(|| marked(line.text), |b| b.1.clone());
            self.row("add", line.number, "+", &html);
        }
        gone.clear();
        come.clear();
    }
}

/// Both sides of a changed line with what differs marked.
fn words(old: &str, new: &str) -> (String, String) {
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS {
        return (marked(old), marked(new));
    }
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < 0.4 {
        return (marked(old), marked(new));
    }
    let (mut left, mut right) = (String::new(), String::new());
    for change in diff.iter_all_changes() {
        let text = marked(change.value());
        match change.tag() {
            ChangeTag::Equal => {
                left.push_str(&text);
                right.push_str(&text);
            }
            ChangeTag::Delete => {
                let _infallible = write!(left, "<del>{text}</del>");
            }
            ChangeTag::Insert => {
                let _infallible = write!(right, "<ins>{text}</ins>");
            }
        }
    }
    (left, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_drawn_with_numbers_signs_and_words() {
        let diff = "--- a/src/s.rs\n+++ b/src/s.rs\n@@ -38,4 +38,4 @@ impl Session\n     pub fn state() {\n-        if age > self.lifetime {\n+        if age >= self.lifetime {\n             return;\n         }\n";
        let drawn = draw(diff);
        assert_eq!((drawn.added, drawn.removed), (1, 1));
        insta::assert_snapshot!(drawn.html.replace("<tr", "\n<tr"), @r#"
        <table class="diff"><tbody>
        <tr class="hunk"><td colspan="3">lines 38 to 41, <code>impl Session</code></td></tr>
        <tr><td class="no">38</td><td class="sg"></td><td class="tx">    pub fn state() {</td></tr>
        <tr class="del"><td class="no">39</td><td class="sg">−</td><td class="tx">        if age <del>&gt;</del> self.lifetime {</td></tr>
        <tr class="add"><td class="no">39</td><td class="sg">+</td><td class="tx">        if age <ins>&gt;=</ins> self.lifetime {</td></tr>
        <tr><td class="no">40</td><td class="sg"></td><td class="tx">            return;</td></tr>
        <tr><td class="no">41</td><td class="sg"></td><td class="tx">        }</td></tr></tbody></table>
        "#);
    }

    #[test]
    fn markup_in_a_file_stays_text_and_long_diffs_end() {
        let drawn = draw("@@ -0,0 +1,1 @@\n+<script>alert(1)</script>\u{202e}\n");
        assert!(
            drawn.html.contains("&lt;script&gt;")
                && drawn.html.contains("U+202E")
                && drawn.html.contains("new file")
        );
        let mut long = String::from("@@ -1,0 +1,5000 @@\n");
        for _ in 0..5000 {
            long.push_str("+x\n");
        }
        let drawn = draw(&long);
        assert_eq!(drawn.added, 5000);
        assert!(drawn.html.contains("3000 more lines"));
        assert_eq!(draw("not a diff").html, "");
    }
}
