//! The known word that a mistyped one is nearest to.

/// The nearest of `known`, when it is near enough to have been meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .filter_map(|candidate| {
            let plain = candidate.to_lowercase().replace('-', "_");
            let far = distance(&typed, &plain);
            // About a third of the word may be wrong, one letter always.
            let longest = plain.chars().count().max(typed.chars().count());
            let allowed = (longest.saturating_add(1) / 3).max(1);
            // A word that was not finished is near to what it begins.
            let begun = typed.chars().count() >= 4 && plain.starts_with(&typed);
            (far <= allowed || begun).then_some((far, candidate))
        })
        .min_by_key(|(far, _)| *far)
        .map(|(_, candidate)| candidate)
}

/// Letters to add, drop, change or swap with their neighbour to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], k: usize| row.get(k).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, j) + usize::from(x != y))
                .min(at(&last, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let known = ["max_mode", "roots", "scheduled", "approvals"];
        assert_eq!(nearest("max_mod", known), Some("max_mode"));
        assert_eq!(nearest("max-mode", known), Some("max_mode"));
        assert_eq!(nearest("rotos", known), Some("roots"));
        assert_eq!(nearest("schedule", known), Some("scheduled"));
        assert_eq!(nearest("appr", known), Some("approvals"));
        assert_eq!(nearest("app", known), None);
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
