//! What a page shows of text that a model, a command or a file wrote.
//!
//! Everything comes out as HTML of our own making: text is escaped, marks are classes of the
//! stylesheet, and nothing that was written as HTML stays HTML. Pure functions; not here: which
//! item of a chat is shown how (`view`).

pub(crate) mod ansi;
mod code;
pub(crate) mod command;
pub(crate) mod diff;
pub(crate) mod markdown;
pub(crate) mod stream;

/// Escapes text for HTML, as content or as a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    escape_into(text, &mut out);
    out
}

pub(crate) fn escape_into(text: &str, out: &mut String) {
    for c in text.chars() {
        escape_char(c, out);
    }
}

pub(crate) fn escape_char(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    }
}

/// What a person cannot see but a program can: written out instead of shown. Newline and tab are
/// visible enough; where text turns direction, hides, or pretends to be a space, the code is named.
pub(crate) fn hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{00A0}' | '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}'
        | '\u{1680}' | '\u{17B4}' | '\u{17B5}' | '\u{2028}' | '\u{2029}' | '\u{202F}'
        | '\u{3000}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' => true,
        c => matches!(u32::from(c),
            0x180B..=0x180F | 0x2000..=0x200F | 0x202A..=0x202E | 0x205F..=0x206F
            | 0xFE00..=0xFE0F | 0xFFF9..=0xFFFB | 0x1D173..=0x1D17A
            | 0xE0000..=0xE0FFF | 0xE000..=0xF8FF | 0xF_0000..=0x10_FFFF),
    }
}

/// The name of a hidden character, as it is marked.
pub(crate) fn name_of(c: char) -> String {
    match c {
        '\u{1b}' => "ESC".to_owned(),
        '\r' => "CR".to_owned(),
        '\0' => "NUL".to_owned(),
        '\u{8}' => "BS".to_owned(),
        '\u{7f}' => "DEL".to_owned(),
        c => format!("U+{:04X}", u32::from(c)),
    }
}

/// Text with its hidden characters marked.
pub(crate) fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) {
            out.push_str("<span class=\"esc\">");
            out.push_str(&name_of(c));
            out.push_str("</span>");
        } else {
            escape_char(c, &mut out);
        }
    }
    out
}
