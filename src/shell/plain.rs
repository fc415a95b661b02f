//! The plain spelling of a text, for the wide reader: what is only there to look different is
//! taken out.

/// Escape sequences and NUL out, full-width forms to ASCII, `$IFS` to a blank.
///
/// Joining lines, dropping backslashes and empty quotes is the tokenizer's work, which knows where
/// quotes stand.
pub fn plain(text: &str) -> String {
    super::work::add(text.len());
    // Whether a `}` may still follow: looking for it to the end is done once.
    let mut closes = true;
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                // CSI … final byte, OSC … BEL, or two characters.
                match chars.next() {
                    Some('[') => {
                        while chars
                            .next()
                            .is_some_and(|c| !('\x40'..='\x7e').contains(&c))
                        {
                        }
                    }
                    Some(']') => while chars.next().is_some_and(|c| c != '\x07') {},
                    _ => {}
                }
            }
            '\0'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
            | '\u{ad}' => {}
            '\r' | '\x0b' | '\x0c' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{3000}' => {
                out.push(' ');
            }
            '\u{ff01}'..='\u{ff5e}' => {
                out.extend(char::from_u32(c as u32 - 0xfee0));
            }
            '$' => out.push_str(ifs(&mut chars, &mut closes)),
            c => out.push(c),
        }
    }
    out
}

/// A `$` was read: what it stands for when `IFS` follows.
fn ifs(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, closes: &mut bool) -> &'static str {
    let mut ahead = chars.clone();
    let braced = ahead.peek() == Some(&'{');
    if braced {
        ahead.next();
    }
    if !"IFS".chars().all(|c| ahead.next() == Some(c)) {
        return "$";
    }
    if braced {
        // `${IFS}`, `${IFS:0:1}`, `${IFS%?}`
        if ahead
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            return "$";
        }
        while *closes {
            super::work::add(1);
            match ahead.next() {
                Some('}') => {
                    *chars = ahead;
                    return " ";
                }
                Some(_) => {}
                None => *closes = false,
            }
        }
        return "$";
    }
    if ahead
        .peek()
        .is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
    {
        return "$";
    }
    *chars = ahead;
    " "
}
