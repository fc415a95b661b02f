//! Masking what looks like a secret, before output is sent anywhere as an excerpt.
//!
//! Known shapes only: a help against accidents, not a wall.

/// Beginnings of tokens of well-known services; the word that begins so is masked.
const BEGINNINGS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "sk-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "dop_v1_",
    "hf_",
    "eyJ",
];
/// Names whose value after `=` or `:` is masked.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "authorization",
    "bearer",
];
/// A shorter word with such a beginning is not a token.
const SHORTEST: usize = 16;
const MASK: &str = "[masked]";

/// The text with tokens, passwords in addresses, values of secret names and private keys masked.
pub fn masked(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        let ends = if line.ends_with('\n') { "\n" } else { "" };
        if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
            in_key = true;
            made.push_str(MASK);
            made.push_str(ends);
        } else if in_key {
            in_key = !line.contains("-----END ");
        } else {
            mask_line(line, &mut made);
        }
    }
    made
}

fn mask_line(line: &str, made: &mut String) {
    let mut secret_next = false;
    for piece in line.split_inclusive(|c: char| c.is_whitespace() || "\"',;()<>".contains(c)) {
        let word = piece.trim_end_matches(|c: char| c.is_whitespace() || "\"',;()<>".contains(c));
        let rest = piece.get(word.len()..).unwrap_or_default();
        if word.is_empty() {
            made.push_str(piece);
            continue;
        }
        if secret_next && !word.eq_ignore_ascii_case("bearer") && word != "=" && word != ":" {
            made.push_str(MASK);
            secret_next = false;
        } else {
            let (shown, next) = mask_word(word);
            made.push_str(&shown);
            secret_next = next || (secret_next && word.len() < 8);
        }
        made.push_str(rest);
    }
}

/// The word as it is shown, and whether the next one is a secret.
fn mask_word(word: &str) -> (String, bool) {
    if word.len() >= SHORTEST && BEGINNINGS.iter().any(|b| word.starts_with(b)) {
        return (MASK.to_owned(), false);
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((who, place)) = rest.split_once('@')
        && let Some((user, _)) = who.split_once(':')
    {
        return (format!("{scheme}://{user}:{MASK}@{place}"), false);
    }
    let at = word.find(['=', ':']);
    let name = word.get(..at.unwrap_or(word.len())).unwrap_or(word);
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let secret = NAMES.iter().any(|n| lower.ends_with(n));
    match at {
        Some(at) if secret => {
            let value = word.get(at + 1..).unwrap_or_default();
            let sign = word.get(at..=at).unwrap_or("=");
            if value.is_empty() {
                (word.to_owned(), true)
            } else {
                (format!("{name}{sign}{MASK}"), false)
            }
        }
        Some(at) => {
            let value = word.get(at + 1..).unwrap_or_default();
            if value.len() >= SHORTEST && BEGINNINGS.iter().any(|b| value.starts_with(b)) {
                let sign = word.get(at..=at).unwrap_or("=");
                (format!("{name}{sign}{MASK}"), false)
            } else {
                (word.to_owned(), false)
            }
        }
        None => (word.to_owned(), lower == "bearer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes_are_masked_and_words_are_not() {
        for (text, shown) in [
            ("token=abc123", "token=[masked]"),
            ("DB_PASSWORD: hunter2\n", "DB_PASSWORD: [masked]\n"),
            (
                "Authorization: Bearer abcdefgh",
                "Authorization: Bearer [masked]",
            ),
            (
                "https://ana:pw@box.example/x",
                "https://ana:[masked]@box.example/x",
            ),
            ("ghp_0123456789abcdefghij", "[masked]"),
            ("KEY=sk-0123456789abcdefghij", "KEY=[masked]"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb\n",
                "a\n[masked]\nb\n",
            ),
            ("the token is on the table", "the token is on the table"),
            ("tests: 12 passed, 0 failed", "tests: 12 passed, 0 failed"),
            ("sk-short npm_x", "sk-short npm_x"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
