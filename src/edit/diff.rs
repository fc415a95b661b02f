//! Differences as unified diffs, bounded.

use similar::TextDiff;

/// Characters of a diff that is kept and shown; what is longer is cut with a line that says so.
pub const MAX_DIFF: usize = 60_000;

/// A unified diff of two texts with three lines around each change; empty when they are equal.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let diff = TextDiff::configure()
        .timeout(std::time::Duration::from_millis(500))
        .diff_lines(old, new);
    let mut shown = diff
        .unified_diff()
        .context_radius(3)
        .header(path, path)
        .to_string();
    if shown.len() > MAX_DIFF {
        let total = shown.lines().count();
        let kept = crate::text::cut::prefix(&shown, MAX_DIFF).to_owned();
        let kept_lines = kept.lines().count();
        shown = kept;
        shown.push_str(&format!(
            "\n[{} lines of the diff left out]\n",
            total - kept_lines
        ));
    }
    shown
}
