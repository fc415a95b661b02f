//! The first look, at raw bytes: size, nesting, characters that are not what they look like.

use super::DoubtKind;

/// The longest text that is judged; a longer one is refused.
pub const MAX_BYTES: usize = 64 * 1024;

/// The deepest nesting, counted on raw bytes without understanding them; deeper is asked about.
pub const MAX_NESTING: usize = 64;

/// What the raw text alone already says against it.
pub fn screen(text: &str) -> Option<DoubtKind> {
    if text.chars().any(hidden) {
        return Some(DoubtKind::Hidden);
    }
    if nesting(text) > MAX_NESTING {
        return Some(DoubtKind::Bound);
    }
    None
}

/// Control characters but tab and newline, blanks that are no blanks to bash, characters without
/// width, and those that change the direction of writing.
fn hidden(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\0'..='\x1f'
        | '\x7f'..='\u{9f}'
        | '\u{a0}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{1680}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}'
        | '\u{3000}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// The most brackets, backticks and block words that are open at once, counted without regard to
/// quotes (so never too low by quoting).
pub fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0usize);
    let mut ticks = 0usize;
    let mut word = String::new();
    for c in text.chars() {
        match c {
            '(' | '{' | '[' => open += 1,
            ')' | '}' | ']' => open = open.saturating_sub(1),
            '`' => ticks += 1,
            _ => {}
        }
        if c.is_ascii_lowercase() {
            word.push(c);
        } else {
            match word.as_str() {
                "if" | "while" | "until" | "case" | "for" | "select" => open += 1,
                "fi" | "done" | "esac" => open = open.saturating_sub(1),
                _ => {}
            }
            word.clear();
        }
        most = most.max(open);
    }
    // Backticks nest only by escaping, so long rows of plain ones are no nesting.
    most.max(if ticks > 256 { ticks } else { 0 })
}
