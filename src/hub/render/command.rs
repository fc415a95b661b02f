//! A command as it is shown before the yes: every byte, the hidden ones named, the part that made
//! it ask marked.

use super::marked;

/// `command` as HTML; `segment` is the part that made it ask, verbatim.
pub(crate) fn html(command: &str, segment: Option<&str>) -> String {
    let segment = segment.filter(|s| !s.trim().is_empty());
    let Some(segment) = segment else {
        return marked(command);
    };
    let mut out = String::new();
    let mut rest = command;
    while let Some((before, after)) = rest.split_once(segment) {
        out.push_str(&marked(before));
        out.push_str("<mark class=\"why\">");
        out.push_str(&marked(segment));
        out.push_str("</mark>");
        rest = after;
    }
    out.push_str(&marked(rest));
    out
}

/// Hidden characters in it.
pub(crate) fn hidden_count(command: &str) -> usize {
    command.chars().filter(|c| super::hidden(*c)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segment_is_marked_and_nothing_hides() {
        insta::assert_snapshot!(html("git push origin main", Some("git push")),
            @r#"<mark class="why">git push</mark> origin main"#);
        insta::assert_snapshot!(html("echo '<b>' && rm \u{202e}gpj.x\u{a0}\u{1b}[0m", Some("rm")),
            @r#"echo &#39;&lt;b&gt;&#39; &amp;&amp; <mark class="why">rm</mark> <span class="esc">U+202E</span>gpj.x<span class="esc">U+00A0</span><span class="esc">ESC</span>[0m"#);
        assert_eq!(hidden_count("a\u{200b}b\nc\td"), 1);
        assert_eq!(html("ls", Some("not in it")), "ls");
    }
}
