//! Beginning and end of an output, for people to read.

/// Stands where something was left out.
const MARK: &str = "\n[…]\n";

/// Beginning and end of an output of `bytes` bytes, valid text without control characters but tab
/// and newline, known shapes of secrets masked; whether something was left out. `head` and `tail`
/// hold at least four bytes for each of the `most` characters, where there are so many.
pub(super) fn of(head: &[u8], tail: &[u8], bytes: u64, most: usize) -> (String, bool) {
    let clean = |bytes: &[u8]| -> Vec<char> {
        crate::text::secrets::masked(&String::from_utf8_lossy(bytes))
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\t' | '\n'))
            .collect()
    };
    let whole = head.len() as u64 == bytes;
    let head = clean(head);
    if whole && head.len() <= most {
        return (head.into_iter().collect(), false);
    }
    let tail = clean(tail);
    // The mark counts too: the excerpt is never longer than it may be (acp.md M8).
    let half = most.saturating_sub(MARK.chars().count()) / 2;
    let first: String = head.iter().take(half).collect();
    let last: String = tail
        .get(tail.len().saturating_sub(half)..)
        .unwrap_or_default()
        .iter()
        .collect();
    (format!("{first}{MARK}{last}"), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_never_longer_than_it_may_be() {
        let text = "0123456789\n".repeat(1_000);
        let (cut, truncated) = of(text.as_bytes(), text.as_bytes(), text.len() as u64, 4_000);
        assert!(truncated && cut.contains(MARK));
        assert!(cut.chars().count() <= 4_000, "{}", cut.chars().count());
        let (whole, truncated) = of(b"a\x07\xff\n", b"", 4, 4_000);
        assert_eq!((whole.as_str(), truncated), ("a\u{fffd}\n", false));
    }
}
