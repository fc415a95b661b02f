//! Cutting long text: from the middle out for tool output, at the end for titles.
//!
//! Characters are Unicode scalar values. Not here: keeping the whole text (a spill file).

use std::borrow::Cow;

/// How much of a text stays, by lines and by characters. Half of each is kept at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub lines: usize,
    pub chars: usize,
}

/// What a model sees of a tool's output (context.md): over this, head and tail stay.
pub const OUTPUT: Limits = Limits {
    lines: 400,
    chars: 40_000,
};

/// Keeps the first and last lines of a text that is over the limits, and of those the first and
/// last characters. Between them stands `[N lines elided, full output #id]`, or `[N characters
/// elided, full output #id]` where the character limit decided. `id` is without the `#`.
///
/// Text within the limits comes back untouched, and a cut text never has more than
/// `limits.chars` characters of the original.
pub fn middle_out<'a>(text: &'a str, limits: Limits, id: &str) -> Cow<'a, str> {
    let lines = count_lines(text);
    let over_lines = lines > limits.lines;
    // Bytes are never fewer than characters: most texts are judged without counting.
    let over_chars = text.len() > limits.chars && text.chars().count() > limits.chars;
    if !over_lines && !over_chars {
        return Cow::Borrowed(text);
    }

    let half_lines = limits.lines / 2;
    let half_chars = limits.chars / 2;
    let (mut head, mut tail) = if over_lines {
        (head_lines(text, half_lines), tail_lines(text, half_lines))
    } else {
        (text.len(), 0)
    };
    let mut by_chars = false;
    let head_cap = head_chars(text, half_chars);
    if head_cap < head {
        head = head_cap;
        by_chars = true;
    }
    let tail_cap = tail_chars(text, half_chars);
    if tail_cap > tail {
        tail = tail_cap;
        by_chars = true;
    }
    let (Some(first), Some(last)) = (text.get(..head), text.get(tail..)) else {
        return Cow::Borrowed(text);
    };
    let marker = if by_chars {
        let elided = text.get(head..tail).unwrap_or_default().chars().count();
        format!("[{elided} characters elided, full output #{id}]")
    } else {
        format!(
            "[{} lines elided, full output #{id}]",
            lines.saturating_sub(half_lines * 2)
        )
    };
    let gap = if first.is_empty() || first.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Cow::Owned(format!("{first}{gap}{marker}\n{last}"))
}

/// The text in at most `max` characters on one line: line breaks become spaces, and `…` stands at
/// the end when something was left out.
pub fn one_line(text: &str, max: usize) -> String {
    let mut flat = String::new();
    let mut space = false;
    let mut count = 0;
    for c in text.trim().chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c == ' ' && space {
            continue;
        }
        space = c == ' ';
        if count == max {
            flat.pop();
            while flat.ends_with(' ') {
                flat.pop();
            }
            flat.push('…');
            return flat;
        }
        flat.push(c);
        count += 1;
    }
    flat
}

/// The longest prefix of at most `max` bytes that ends on a character.
pub fn prefix(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max.min(text.len())))
        .unwrap_or_default()
}

/// The longest suffix of at most `max` bytes that starts on a character.
pub fn suffix(text: &str, max: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(max))..)
        .unwrap_or_default()
}

/// The lines of a text; a line break at its end does not open another.
pub fn count_lines(text: &str) -> usize {
    let breaks = text.bytes().filter(|b| *b == b'\n').count();
    breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

fn head_lines(text: &str, lines: usize) -> usize {
    text.match_indices('\n')
        .nth(lines.saturating_sub(1))
        .map_or(text.len(), |(at, _)| at + 1)
}

fn tail_lines(text: &str, lines: usize) -> usize {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.rmatch_indices('\n')
        .nth(lines.saturating_sub(1))
        .map_or(0, |(at, _)| at + 1)
}

fn head_chars(text: &str, chars: usize) -> usize {
    text.char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at)
}

fn tail_chars(text: &str, chars: usize) -> usize {
    if chars == 0 {
        return text.len();
    }
    text.char_indices()
        .rev()
        .nth(chars - 1)
        .map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> String {
        (1..=count).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn text_at_the_limit_is_untouched() {
        let lines = numbered(400);
        assert!(matches!(
            middle_out(&lines, OUTPUT, "000a"),
            Cow::Borrowed(t) if t == lines
        ));
        let wide = "ä".repeat(40_000);
        assert!(matches!(
            middle_out(&wide, OUTPUT, "000a"),
            Cow::Borrowed(_)
        ));
        assert_eq!(middle_out("", OUTPUT, "1"), "");
    }

    #[test]
    fn one_line_over_keeps_two_hundred_at_either_end() {
        let cut = middle_out(&numbered(401), OUTPUT, "000a").into_owned();
        let lines: Vec<&str> = cut.lines().collect();
        assert_eq!(lines.len(), 401);
        assert_eq!(lines[199], "200");
        assert_eq!(lines[200], "[1 lines elided, full output #000a]");
        assert_eq!(lines[201], "202");
        assert_eq!(lines[400], "401");
        assert!(cut.ends_with("401\n"));
    }

    #[test]
    fn a_last_line_without_a_break_counts() {
        let text = numbered(1000).trim_end().to_owned();
        let cut = middle_out(&text, OUTPUT, "2");
        assert!(cut.contains("[600 lines elided, full output #2]"));
        assert!(cut.ends_with("\n1000"));
        assert_eq!(cut.lines().nth(201), Some("801"));
    }

    #[test]
    fn one_long_line_is_cut_by_characters() {
        let text = format!("{}{}", "a".repeat(30_000), "é".repeat(20_001));
        let cut = middle_out(&text, OUTPUT, "000b");
        let lines: Vec<&str> = cut.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], "a".repeat(20_000));
        assert_eq!(lines[1], "[10001 characters elided, full output #000b]");
        assert_eq!(lines[2], "é".repeat(20_000));
    }

    #[test]
    fn many_long_lines_are_under_both_limits() {
        let line = format!("{}\n", "x".repeat(999));
        let cut = middle_out(&line.repeat(500), OUTPUT, "c").into_owned();
        // 20 lines of 1,000 characters at either end.
        assert_eq!(cut.lines().count(), 41);
        assert!(cut.contains("[460000 characters elided, full output #c]"));
        assert!(cut.chars().count() < 40_100);
    }

    #[test]
    fn small_limits_hold_too() {
        let limits = Limits { lines: 2, chars: 6 };
        assert_eq!(
            middle_out("a\nb\nc\n", limits, "1"),
            "a\n[1 lines elided, full output #1]\nc\n"
        );
        assert_eq!(
            middle_out("1234567", limits, "1"),
            "123\n[1 characters elided, full output #1]\n567"
        );
    }

    #[test]
    fn titles_are_one_line() {
        assert_eq!(one_line("  fix\n the\ttest ", 20), "fix the test");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("abcd efg", 6), "abcd…");
    }

    #[test]
    fn byte_bounds_end_on_characters() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(prefix("aé", 3), "aé");
        assert_eq!(suffix("éa", 2), "a");
        assert_eq!(suffix("éa", 9), "éa");
    }
}
