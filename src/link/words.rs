//! Words about what was met on the way: who answered, why a connection failed. What the other side
//! wrote is cleaned before a person sees it.

use std::error::Error;

/// What the other side wrote, fit for a terminal and a log line: one line, no control or
/// direction characters, at most `max` characters.
pub(super) fn clean(text: &str, max: usize) -> String {
    let shown = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut words = String::new();
    for word in text.split_whitespace() {
        let word: String = word.chars().filter(shown).collect();
        if !words.is_empty() && !word.is_empty() {
            words.push(' ');
        }
        words.push_str(&word);
    }
    if words.chars().count() > max {
        words = words.chars().take(max.saturating_sub(1)).collect();
        words.push('…');
    }
    words
}

/// Who answered something that was not expected, as a sentence without its stop.
pub(super) fn who(status: u16, server: Option<&str>, kind: Option<&str>) -> String {
    let server = server.map(|name| clean(name, 60));
    let kind = kind.map(|kind| clean(kind, 60));
    let name = match &server {
        Some(name) if !name.is_empty() => format!("a server that calls itself \"{name}\""),
        _ => "a server without a name".into(),
    };
    let reason = reqwest::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or_default();
    let mut words = format!("{name} answered {status} {reason}")
        .trim_end()
        .to_owned();
    if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
        words = format!("{words} ({kind})");
        if kind.starts_with("text/html") {
            words.push_str(": perhaps a proxy, a captive portal or another web site");
        }
    }
    words
}

/// Why a connection failed: the innermost cause, with a hint where there is one.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    // An io::Error that wraps another error does not give it as its source.
    let words = match inner.downcast_ref::<std::io::Error>() {
        Some(io) => match io.get_ref() {
            Some(wrapped) => wrapped.to_string(),
            None => crate::text::words::io(io),
        },
        None => inner.to_string(),
    };
    let mut words = clean(&words, 200);
    if words.starts_with("failed to lookup address") {
        words = "its name is not known here: is it right, and is there a network?".to_owned();
    } else if words.starts_with("connection closed before message completed") {
        words = "it closed the connection without an answer".to_owned();
    }
    if words.contains("UnknownIssuer") {
        words.push_str(
            ". If the instance has a certificate authority of its own, name its file in config.toml: [link] ca_file",
        );
    }
    if words.contains("expired") || words.contains("NotValidYet") || words.contains("not valid yet")
    {
        let now = crate::clock::now();
        words.push_str(&format!(
            ". This computer's clock says {now:.0}: is it right?"
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_side_wrote_is_one_harmless_line() {
        assert_eq!(clean("a\u{1b}[31mb\n c\u{202e}d\te", 50), "a[31mb cd e");
        assert_eq!(clean("abcdef", 4), "abc…");
        assert_eq!(clean("", 4), "");
    }

    #[test]
    fn who_answered_is_said() {
        assert_eq!(
            who(502, Some("nginx"), None),
            "a server that calls itself \"nginx\" answered 502 Bad Gateway"
        );
        assert_eq!(
            who(200, None, Some("text/html; charset=utf-8")),
            "a server without a name answered 200 OK (text/html; charset=utf-8): perhaps a proxy, a captive portal or another web site"
        );
    }
}
