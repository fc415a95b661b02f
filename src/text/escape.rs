//! Making hidden and misleading characters visible before a person judges a text.
//!
//! Control characters, direction overrides, invisible ones and letters that look like others are
//! told apart from plain text; how they are shown is the caller's choice ([`visible`] for a
//! terminal). Not here: whether such a text may run (`permission`).

/// Why a character is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A control character other than tab and line break.
    Control,
    /// It changes the direction in which text is shown.
    Direction,
    /// It takes no place, or looks like a space and is none.
    Invisible,
    /// It looks like this other character.
    LooksLike(char),
}

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Plain(&'a str),
    Mark { c: char, why: Why },
}

/// The text in stretches: plain ones, and single characters that need a mark.
///
/// A letter of another script is marked where it stands in a word with ASCII letters or digits,
/// or in a word made of look-alikes only; a text in another language stays as it is.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut plain = 0;
    let mut word_end = 0;
    let mut word_suspect = false;
    for (at, c) in text.char_indices() {
        if at >= word_end {
            let rest = text.get(at..).unwrap_or_default();
            let word = rest
                .find(|c: char| !c.is_alphanumeric())
                .map_or(rest, |end| rest.get(..end).unwrap_or(rest));
            word_end = at + word.len().max(c.len_utf8());
            word_suspect = suspect(word);
        }
        let Some(why) = judge(c, word_suspect) else {
            continue;
        };
        if let Some(before) = text.get(plain..at)
            && !before.is_empty()
        {
            out.push(Piece::Plain(before));
        }
        out.push(Piece::Mark { c, why });
        plain = at + c.len_utf8();
    }
    if let Some(rest) = text.get(plain..)
        && !rest.is_empty()
    {
        out.push(Piece::Plain(rest));
    }
    out
}

/// The text as a terminal may show it: every marked character is written as `<U+202E>`, a
/// look-alike as itself with its number (`а<U+0430>`). Tabs and line breaks stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Mark { c, why } => {
                if matches!(why, Why::LooksLike(_)) {
                    out.push(c);
                }
                out.push_str(&name(c));
            }
        }
    }
    out
}

/// A sentence as it may be said, whatever of somebody else's stands quoted in it: as [`visible`],
/// and cut behind `max` characters.
pub fn bounded(text: &str, max: usize) -> String {
    let text = visible(text);
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// As [`visible`], on one line: line breaks and tabs are written `\n`, `\r` and `\t`.
pub fn visible_line(text: &str) -> String {
    visible(&text.replace('\r', "\\r"))
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

/// A name as it is kept and shown: one line of at most `max` characters, without those that turn
/// its direction, hide in it or pretend to be a space. Two names that look the same are the same,
/// but for letters of other scripts.
pub fn label(text: &str, max: usize) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| judge(*c, false).is_none_or(|why| matches!(why, Why::LooksLike(_))))
        .collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words.join(" ").chars().take(max).collect();
    text.trim_end().to_owned()
}

/// A text with each look-alike as the ASCII character that it is taken for: to compare names by
/// what a person reads.
pub fn read_as(text: &str) -> String {
    text.chars().map(|c| looks_like(c).unwrap_or(c)).collect()
}

/// `<U+202E>`.
pub fn name(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

fn judge(c: char, word_suspect: bool) -> Option<Why> {
    match c {
        '\n' | '\t' => None,
        c if c.is_ascii() => c.is_ascii_control().then_some(Why::Control),
        c if c.is_control() => Some(Why::Control),
        '\u{061c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{206f}' => Some(Why::Direction),
        '\u{00a0}'
        | '\u{00ad}'
        | '\u{034f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{1680}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200d}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202f}'
        | '\u{205f}'..='\u{2065}'
        | '\u{2800}'
        | '\u{3000}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => Some(Why::Invisible),
        c => {
            let other = looks_like(c)?;
            (word_suspect || !c.is_alphanumeric()).then_some(Why::LooksLike(other))
        }
    }
}

/// Whether a word mixes ASCII with other letters that look like it, or is made of those only.
fn suspect(word: &str) -> bool {
    let ascii = word.chars().any(|c| c.is_ascii_alphanumeric());
    ascii || word.chars().all(|c| looks_like(c).is_some())
}

/// The ASCII character that this one is easily taken for.
fn looks_like(c: char) -> Option<char> {
    if let '\u{ff01}'..='\u{ff5e}' = c {
        // Full-width forms stand in the order of ASCII.
        return char::from_u32(u32::from(c) - 0xfee0);
    }
    let other = match c {
        'а' | 'ɑ' | 'α' => 'a',
        'в' | 'Β' | 'В' => 'B',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ҽ' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ı' | 'ι' => 'i',
        'ј' | 'ϳ' => 'j',
        'ӏ' | 'ǀ' => 'l',
        'ո' => 'n',
        'о' | 'ο' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'А' | 'Α' => 'A',
        'С' | 'Ϲ' => 'C',
        'Е' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        'Υ' | 'У' => 'Y',
        'Ζ' => 'Z',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => '-',
        '\u{2044}' | '\u{2215}' | '\u{29f8}' => '/',
        '\u{2216}' | '\u{29f5}' => '\\',
        '\u{2018}' | '\u{2019}' | '\u{02bc}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{2033}' => '"',
        '\u{037e}' => ';',
        '\u{2223}' | '\u{2758}' => '|',
        '\u{2236}' | '\u{a789}' => ':',
        '\u{2024}' => '.',
        '\u{201a}' => ',',
        _ => return None,
    };
    Some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_is_seen_of_it() {
        assert_eq!(
            label(" my\u{202e} lap\u{200b}top\u{a0}2\n", 64),
            "my laptop 2"
        );
        assert_eq!(label("\u{202e}\u{200b}", 64), "");
        assert_eq!(label("größer Ноутбук 仕事", 64), "größer Ноутбук 仕事");
        assert_eq!(label("abcdef", 3), "abc");
        assert_eq!(label("this  \u{a0} computer", 64), "this computer");
        // The letters of "this computer" with a Cyrillic one among them.
        assert_eq!(read_as("th\u{456}s computer"), "this computer");
    }

    #[test]
    fn what_hides_is_shown() {
        for (text, shown) in [
            ("ls -l\n\tdone", "ls -l\n\tdone"),
            ("a\u{1b}[31mb", "a<U+001B>[31mb"),
            ("rm\u{202e}txt", "rm<U+202E>txt"),
            ("a\u{200b}b\u{a0}c", "a<U+200B>b<U+00A0>c"),
            ("\u{7f}\u{9b}\r", "<U+007F><U+009B><U+000D>"),
            ("tag\u{e0041}", "tag<U+E0041>"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_line("a\nb\tc\rd"), "a\\nb\\tc\\rd");
    }

    #[test]
    fn look_alikes_are_shown_where_they_mislead() {
        // Cyrillic letters among Latin ones, and a word of look-alikes only.
        assert_eq!(visible("p\u{430}th"), "p\u{430}<U+0430>th");
        assert_eq!(visible("\u{441}\u{430}"), "\u{441}<U+0441>\u{430}<U+0430>");
        assert_eq!(visible("git\u{2010}push"), "git\u{2010}<U+2010>push");
        assert_eq!(visible("\u{ff4c}s"), "\u{ff4c}<U+FF4C>s");
        // Ordinary words of other languages stay as they are.
        for text in ["Привет мир", "naïve café", "日本語", "Ελλάδα"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn pieces_hold_the_whole_text() {
        let text = "x\u{202e}y\u{430}z";
        let whole: String = pieces(text)
            .iter()
            .map(|piece| match piece {
                Piece::Plain(plain) => (*plain).to_owned(),
                Piece::Mark { c, .. } => c.to_string(),
            })
            .collect();
        assert_eq!(whole, text);
    }
}
