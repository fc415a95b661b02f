//! What fits into a frame: text in pieces, and values whose long strings are cut.
//!
//! We send at most 128 KiB a frame (link.md, Frames): a slow link stays fair between sessions, and
//! no peer ever meets a frame it cannot take.

use std::borrow::Cow;

use serde_json::Value;

/// The most bytes of a frame that we send.
pub(crate) const FRAME: usize = 128 * 1024;

/// The most bytes of text in one frame as JSON writes them; the rest is for the envelope.
pub(crate) const TEXT: usize = FRAME - 4 * 1024;

/// Bytes of a character inside a JSON string.
fn written(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\u{0}'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

/// Bytes of a text inside a JSON string.
pub(crate) fn written_len(text: &str) -> usize {
    text.chars().map(written).sum()
}

/// A text in pieces of at most `max` written bytes, each but an empty text's only one not empty.
pub(crate) fn pieces(text: &str, max: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut size = 0;
    for (at, c) in text.char_indices() {
        let more = written(c);
        if size + more > max && at > start {
            pieces.extend(text.get(start..at));
            start = at;
            size = 0;
        }
        size += more;
    }
    pieces.extend(text.get(start..));
    pieces
}

/// A text of at most about `max` bytes: its head and its tail, and how much is left out between.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = floor(text, max / 2);
    let tail = ceil(text, text.len() - max / 2);
    let (Some(first), Some(last), Some(middle)) =
        (text.get(..head), text.get(tail..), text.get(head..tail))
    else {
        return Cow::Borrowed("");
    };
    let left_out = middle.chars().count();
    Cow::Owned(format!("{first}\n[{left_out} characters left out]\n{last}"))
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Cuts the longest strings of a value until it fits, and says whether it did. Strings under a key
/// of `whole` stay as they are: what a person decides on is shown in full or not at all.
pub(crate) fn shrink(value: &mut Value, whole: &[&str]) -> bool {
    let mut max = 32 * 1024;
    let mut changed = false;
    while max >= 256 && value.to_string().len() > TEXT {
        cut_strings(value, max, whole);
        changed = true;
        max /= 2;
    }
    changed
}

fn cut_strings(value: &mut Value, max: usize, whole: &[&str]) {
    match value {
        Value::String(text) if written_len(text) > max => {
            // Cut by written bytes: a text of control characters takes six times its length.
            let share = max * text.len() / written_len(text).max(1);
            *text = cut(text, share).into_owned();
        }
        Value::Array(list) => {
            for value in list {
                cut_strings(value, max, whole);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                if !whole.contains(&key.as_str()) {
                    cut_strings(value, max, whole);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_the_text_and_fit(text in any::<String>(), max in 6_usize..40) {
            let pieces = pieces(&text, max);
            prop_assert_eq!(pieces.concat(), text.clone());
            for piece in &pieces {
                prop_assert!(written_len(piece) <= max);
                prop_assert_eq!(json!(piece).to_string().len(), written_len(piece) + 2);
                prop_assert!(!piece.is_empty() || text.is_empty());
            }
        }

        #[test]
        fn a_cut_text_keeps_both_ends(text in "\\PC{0,400}", max in 8_usize..64) {
            let cut = cut(&text, max);
            prop_assert!(cut.len() <= max + 64);
            if text.len() <= max {
                prop_assert_eq!(cut.as_ref(), text.as_str());
            }
        }
    }

    #[test]
    fn a_value_shrinks_until_it_fits_and_the_named_string_stays() {
        let long = "\u{1}".repeat(60_000);
        let mut value = json!({ "command": "x".repeat(64 * 1024), "a": [long], "b": "short" });
        assert!(shrink(&mut value, &["command"]));
        assert!(value.to_string().len() <= TEXT);
        assert_eq!(value["command"].as_str().unwrap().len(), 64 * 1024);
        assert_eq!(value["b"], "short");
        let mut small = json!({ "a": "b" });
        assert!(!shrink(&mut small, &[]));
    }
}
