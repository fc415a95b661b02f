//! Finding the end of what stands between brackets and quotes, without recursion.

use super::work;

/// What is open while skipping.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Paren,
    Brace,
    Double,
    Tick,
}

/// Whether a bracketed piece begins here and how many characters open it.
fn opens(text: &[char], at: usize) -> Option<(Open, usize)> {
    match (text.get(at)?, text.get(at + 1)) {
        ('$' | '<' | '>', Some('(')) => Some((Open::Paren, 2)),
        ('$', Some('{')) => Some((Open::Brace, 2)),
        ('`', _) => Some((Open::Tick, 1)),
        _ => None,
    }
}

/// The place behind the bracketed piece that begins at `at` (`$(`, `<(`, `>(`, `${`, a backtick),
/// or the end of the text where it is never closed.
pub(super) fn bracketed(text: &[char], at: usize) -> usize {
    let Some((first, width)) = opens(text, at) else {
        return at + 1;
    };
    let mut stack = vec![first];
    let mut i = at + width;
    while let Some(&c) = text.get(i) {
        let Some(&top) = stack.last() else { break };
        let step = match (top, c) {
            (_, '\\') => 2,
            (Open::Double, '"') | (Open::Tick, '`') | (Open::Paren, ')') | (Open::Brace, '}') => {
                stack.pop();
                1
            }
            (Open::Double, '$' | '`') => match opens(text, i) {
                Some((open, width)) => {
                    stack.push(open);
                    width
                }
                None => 1,
            },
            // Nothing is opened in backticks, so they never stand in themselves.
            (Open::Double, _) | (Open::Tick, _) => 1,
            (_, '\'') => single(text, i) - i,
            (_, '"') => {
                stack.push(Open::Double);
                1
            }
            (Open::Paren, '(') => {
                stack.push(Open::Paren);
                1
            }
            (_, '$' | '`' | '<' | '>') => match opens(text, i) {
                Some((open, width)) => {
                    stack.push(open);
                    width
                }
                None => 1,
            },
            _ => 1,
        };
        i += step;
        if stack.is_empty() {
            break;
        }
    }
    work::add(i.saturating_sub(at));
    i.min(text.len())
}

/// The place behind the single-quoted piece that begins at `at`.
pub(super) fn single(text: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while let Some(&c) = text.get(i) {
        i += 1;
        if c == '\'' {
            break;
        }
    }
    work::add(i.saturating_sub(at));
    i.min(text.len())
}

/// The place behind the double-quoted piece that begins at `at`.
pub(super) fn double(text: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while let Some(&c) = text.get(i) {
        i = match c {
            '\\' => i + 2,
            '"' => {
                i += 1;
                break;
            }
            '$' | '`' if opens(text, i).is_some() => bracketed(text, i),
            _ => i + 1,
        };
    }
    work::add(i.saturating_sub(at));
    i.min(text.len())
}

/// The place behind the `$'…'` piece whose quote stands at `at`.
pub(super) fn ansi(text: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while let Some(&c) = text.get(i) {
        i = match c {
            '\\' => i + 2,
            '\'' => {
                i += 1;
                break;
            }
            _ => i + 1,
        };
    }
    work::add(i.saturating_sub(at));
    i.min(text.len())
}

/// The place behind the word that begins at `at`: up to an unquoted blank or operator.
pub(super) fn word(text: &[char], at: usize) -> usize {
    let mut i = at;
    while let Some(&c) = text.get(i) {
        i = match c {
            '\\' => i + 2,
            '\'' => single(text, i),
            '"' => double(text, i),
            '$' if text.get(i + 1) == Some(&'\'') => ansi(text, i + 1),
            '$' | '`' if opens(text, i).is_some() => bracketed(text, i),
            '<' | '>' if i == at && text.get(i + 1) == Some(&'(') => bracketed(text, i),
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
            _ => i + 1,
        };
    }
    work::add(i.saturating_sub(at));
    i.min(text.len()).max(at)
}
