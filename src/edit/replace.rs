//! Replacing one piece of text by another: exactly, or with different blanks at line ends and
//! beginnings where only one place fits. Never a guess.

use std::ops::Range;

/// Why an edit cannot be made, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    #[error("`old` is empty: to make or fill a file use write")]
    Empty,
    #[error("`old` and `new` are the same: there is nothing to change")]
    Same,
    #[error("`old` is not in the file as given. Read the place again and copy it exactly")]
    Missing,
    #[error(
        "`old` is in the file {0} times: take in enough lines around it that it fits one place, or set all"
    )]
    Several(usize),
    #[error("`old` fits {0} places when blanks are not counted: copy one of them exactly")]
    SeveralLoose(usize),
}

/// How many places an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Once,
    All,
}

/// The text with `old` replaced by `new`.
///
/// # Errors
/// When `old` is not there, or not unique where it must be. The text is untouched then.
pub fn replace(text: &str, old: &str, new: &str, places: Where) -> Result<String, ReplaceError> {
    if old.is_empty() {
        return Err(ReplaceError::Empty);
    }
    if old == new {
        return Err(ReplaceError::Same);
    }
    match (text.matches(old).count(), places) {
        (0, _) => loose(text, old, new),
        (_, Where::All) | (1, Where::Once) => Ok(text.replace(old, new)),
        (count, Where::Once) => Err(ReplaceError::Several(count)),
    }
}

/// Whole lines that are equal when blanks at their ends and a common indentation are not counted.
/// `new` is moved by the same indentation.
fn loose(text: &str, old: &str, new: &str) -> Result<String, ReplaceError> {
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return Err(ReplaceError::Missing);
    }
    let lines = line_ranges(text);
    let mut found = Vec::new();
    for window in lines.windows(wanted.len()) {
        if let Some(shift) = fits(text, window, &wanted) {
            found.push((window.first().cloned(), window.last().cloned(), shift));
        }
    }
    let [(Some(first), Some(last), shift)] = found.as_slice() else {
        return Err(match found.len() {
            0 => ReplaceError::Missing,
            count => ReplaceError::SeveralLoose(count),
        });
    };
    let mut made = String::with_capacity(text.len() + new.len());
    made.push_str(text.get(..first.start).unwrap_or_default());
    let moved: Vec<String> = new
        .trim_matches('\n')
        .lines()
        .map(|line| shift.apply(line))
        .collect();
    made.push_str(&moved.join("\n"));
    made.push_str(text.get(last.end..).unwrap_or_default());
    Ok(made)
}

/// Indentation that the file has and `old` has not, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shift {
    None,
    Add(String),
    Remove(String),
}

impl Shift {
    fn between(have: &str, given: &str) -> Option<Self> {
        if have == given {
            Some(Self::None)
        } else if let Some(more) = have.strip_suffix(given) {
            Some(Self::Add(more.to_owned()))
        } else {
            given
                .strip_suffix(have)
                .map(|less| Self::Remove(less.to_owned()))
        }
    }

    fn apply(&self, line: &str) -> String {
        match self {
            _ if line.trim().is_empty() => line.to_owned(),
            Self::None => line.to_owned(),
            Self::Add(more) => format!("{more}{line}"),
            Self::Remove(less) => line.strip_prefix(less.as_str()).unwrap_or(line).to_owned(),
        }
    }
}

fn fits(text: &str, window: &[Range<usize>], wanted: &[&str]) -> Option<Shift> {
    let mut shift = None;
    for (range, want) in window.iter().zip(wanted) {
        let have = text.get(range.clone())?;
        if have.trim() != want.trim() {
            return None;
        }
        if have.trim().is_empty() {
            continue;
        }
        let this = Shift::between(indent(have), indent(want))?;
        match &shift {
            None => shift = Some(this),
            Some(before) if *before == this => {}
            Some(_) => return None,
        }
    }
    shift
}

fn indent(line: &str) -> &str {
    let end = line.len() - line.trim_start().len();
    line.get(..end).unwrap_or_default()
}

/// The lines of a text without their line feeds.
fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    text.split('\n')
        .map(|line| {
            let range = at..at + line.len();
            at += line.len() + 1;
            range
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_what_is_named_and_nothing_else() {
        let text = "a\nb\nc\nb\n";
        assert_eq!(
            replace(text, "a\nb", "x", Where::Once).unwrap(),
            "x\nc\nb\n"
        );
        assert_eq!(replace(text, "b", "y", Where::All).unwrap(), "a\ny\nc\ny\n");
        assert_eq!(
            replace(text, "b", "y", Where::Once),
            Err(ReplaceError::Several(2))
        );
        assert_eq!(
            replace(text, "q", "y", Where::Once),
            Err(ReplaceError::Missing)
        );
        assert_eq!(
            replace(text, "", "y", Where::Once),
            Err(ReplaceError::Empty)
        );
        assert_eq!(replace(text, "b", "b", Where::All), Err(ReplaceError::Same));
    }

    #[test]
    fn blanks_may_differ_where_one_place_fits() {
        let text = "fn a() {\n        one();   \n\n        two();\n}\n";
        let made = replace(
            text,
            "one();\n\ntwo();",
            "one();\n    three();",
            Where::Once,
        )
        .unwrap();
        assert_eq!(made, "fn a() {\n        one();\n            three();\n}\n");
        let twice = "  x\n    x\n";
        assert_eq!(
            replace(twice, "\tx", "y", Where::Once),
            Err(ReplaceError::Missing)
        );
        assert_eq!(
            replace("  x y\n\n    x y\n", "x y ", "z", Where::Once),
            Err(ReplaceError::SeveralLoose(2))
        );
    }

    #[test]
    fn uneven_indentation_is_not_guessed() {
        let text = "if a:\n    b\n      c\n";
        assert_eq!(
            replace(text, "b\nc", "d", Where::Once),
            Err(ReplaceError::Missing)
        );
    }
}
