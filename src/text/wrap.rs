//! Lines for a narrow terminal: broken between words, further lines under the first word.

use super::table::columns;

/// The text in lines of at most `width` columns; further lines begin with `indent` spaces. A word
/// that is longer than a line stays whole: addresses and commands are pasted.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    if columns(text) <= width || width <= indent {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    let mut empty = true;
    // The spaces before a word belong to it, so that columns stay as they are.
    for word in text.split_inclusive(' ') {
        let count = columns(word.trim_end());
        if !empty && used + count > width {
            lines.push(line.trim_end().to_owned());
            line = " ".repeat(indent);
            used = indent;
        }
        line.push_str(word);
        used += columns(word);
        empty = empty && count == 0;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_words_stay_whole() {
        let wrapped = wrap(
            "error: the folder ~/a/very/long/folder/name cannot be used",
            30,
            7,
        );
        insta::assert_snapshot!(wrapped.join("\n"), @r"
        error: the folder
               ~/a/very/long/folder/name
               cannot be used
        ");
        assert_eq!(wrap("  short", 30, 7), ["  short"]);
        assert_eq!(wrap("  aaaa bbbb cccc", 11, 4), ["  aaaa bbbb", "    cccc"]);
        let long = "x".repeat(50);
        assert_eq!(
            wrap(&format!("a {long} b"), 20, 2),
            ["a", &format!("  {long}"), "  b"]
        );
        assert_eq!(wrap("a b c", 2, 4), ["a b c"]);
        assert_eq!(wrap("日本 日本", 8, 1), ["日本", " 日本"]);
    }
}
