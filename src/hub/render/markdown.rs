//! Markdown as blocks of safe HTML.
//!
//! Written HTML is shown as the text it is. Pictures become links: the page loads nothing from
//! elsewhere. A last wall (ammonia) lets through only what prose needs.

use std::sync::LazyLock;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use super::code;

/// Text longer than this is shown as plain text: nobody writes so much prose.
const MAX_TEXT: usize = 2 * 1024 * 1024;

static WALL: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut wall = ammonia::Builder::empty();
    wall.add_tags([
        "p",
        "br",
        "hr",
        "strong",
        "em",
        "del",
        "code",
        "pre",
        "ul",
        "ol",
        "li",
        "blockquote",
        "h3",
        "h4",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
        "input",
        "sup",
        "div",
        "button",
        "span",
        "header",
    ])
    .add_tag_attributes("a", ["href", "title"])
    .add_tag_attributes("ol", ["start"])
    .add_tag_attributes("input", ["type", "checked", "disabled"])
    .add_tag_attributes("h3", ["class"])
    .add_tag_attributes("td", ["class"])
    .add_tag_attributes("th", ["class"])
    .url_schemes(["http", "https", "mailto"].into())
    .url_relative(ammonia::UrlRelative::Deny)
    .link_rel(Some("noopener noreferrer nofollow"));
    wall
});

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

/// A top-level block: where its source begins, and its HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) html: String,
}

/// All blocks of a text, each one element.
pub(crate) fn blocks(text: &str) -> Vec<String> {
    parse(text, true).into_iter().map(|b| b.html).collect()
}

/// The text as one piece of HTML.
pub(crate) fn whole(text: &str) -> String {
    blocks(text).concat()
}

/// Blocks with their places. `done` is false while the text is still being written: its last code
/// block is then not coloured, because every chunk would colour it anew.
pub(super) fn parse(text: &str, done: bool) -> Vec<Block> {
    if text.len() > MAX_TEXT {
        return vec![Block {
            start: 0,
            html: code::block(text, "", false),
        }];
    }
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    let mut events: Vec<Event<'_>> = Vec::new();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 {
            start = range.start;
        }
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        events.push(event);
        if depth == 0 {
            let last = text
                .get(range.end..)
                .is_none_or(|rest| rest.trim().is_empty());
            let html = draw(std::mem::take(&mut events), done || !last);
            if !html.trim().is_empty() {
                blocks.push(Block { start, html });
            }
        }
    }
    blocks
}

fn draw(events: Vec<Event<'_>>, coloured: bool) -> String {
    if let Some(Event::Start(Tag::CodeBlock(kind))) = events.first() {
        let language = match kind {
            CodeBlockKind::Fenced(language) => language.to_string(),
            CodeBlockKind::Indented => String::new(),
        };
        let text: String = events
            .iter()
            .filter_map(|e| match e {
                Event::Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        return code::block(&text, &language, coloured);
    }
    let mut out = String::new();
    html::push_html(&mut out, tame(events).into_iter());
    let clean = WALL.clean(&out).to_string();
    if clean.starts_with("<table") {
        return format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"A table\">{clean}</div>"
        );
    }
    clean.trim_end().to_owned()
}

/// The place of an answer's headings among the page's own: below the chat's title and what the
/// person wrote. The size stays told apart by a class.
fn level(said: HeadingLevel) -> HeadingLevel {
    if said <= HeadingLevel::H3 {
        HeadingLevel::H3
    } else {
        HeadingLevel::H4
    }
}

/// HTML becomes text, pictures become links, HTML blocks become paragraphs, headings take their
/// place on the page.
fn tame(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut out = Vec::with_capacity(events.len());
    let mut html = String::new();
    let mut in_html = false;
    for event in events {
        match event {
            Event::Start(Tag::HtmlBlock) => in_html = true,
            Event::End(TagEnd::HtmlBlock) => {
                in_html = false;
                out.push(Event::Start(Tag::Paragraph));
                out.push(Event::Text(CowStr::from(
                    std::mem::take(&mut html).trim_end().to_owned(),
                )));
                out.push(Event::End(TagEnd::Paragraph));
            }
            Event::Html(text) if in_html => html.push_str(&text),
            Event::Html(text) | Event::InlineHtml(text) => out.push(Event::Text(text)),
            Event::Start(Tag::Heading { level: said, .. }) => {
                out.push(Event::Start(Tag::Heading {
                    level: level(said),
                    id: None,
                    classes: if said <= HeadingLevel::H2 {
                        vec![CowStr::from("big")]
                    } else {
                        Vec::new()
                    },
                    attrs: Vec::new(),
                }));
            }
            Event::End(TagEnd::Heading(said)) => {
                out.push(Event::End(TagEnd::Heading(level(said))));
            }
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }) => out.push(Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            })),
            Event::End(TagEnd::Image) => out.push(Event::End(TagEnd::Link)),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_drawn_in_blocks() {
        let text = "# Two things\n\nIt *takes* the time from `clock`:\n\n- one;\n- two, **at** one hour.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n";
        insta::assert_snapshot!(blocks(text).join("\n---\n"), @r#"
        <h3 class="big">Two things</h3>
        ---
        <p>It <em>takes</em> the time from <code>clock</code>:</p>
        ---
        <ul>
        <li>one;</li>
        <li>two, <strong>at</strong> one hour.</li>
        </ul>
        ---
        <div class="scroll" tabindex="0" role="region" aria-label="A table"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>
        <tr><td>1</td><td>2</td></tr>
        </tbody></table>
        </div>
        "#);
    }

    #[test]
    fn nothing_written_as_html_is_html() {
        let text = "Hi <b onclick=x>there</b> <script>alert(1)</script>\n\n<div style=\"x\">\n<img src=https://x.example/a.png>\n</div>\n\n![alt](https://x.example/a.png) [go](javascript:alert(1)) [ok](https://x.example/?a=1&b=2)\n";
        insta::assert_snapshot!(blocks(text).join("\n---\n"), @r#"
        <p>Hi &lt;b onclick=x&gt;there&lt;/b&gt; &lt;script&gt;alert(1)&lt;/script&gt;</p>
        ---
        <p>&lt;div style="x"&gt;
        &lt;img src=https://x.example/a.png&gt;
        &lt;/div&gt;</p>
        ---
        <p><a href="https://x.example/a.png" rel="noopener noreferrer nofollow">alt</a> <a rel="noopener noreferrer nofollow">go</a> <a href="https://x.example/?a=1&amp;b=2" rel="noopener noreferrer nofollow">ok</a></p>
        "#);
    }

    #[test]
    fn every_tag_of_the_output_is_one_of_ours() {
        let evil = [
            "<svg/onload=alert(1)>",
            "<a href='javascript:x'>",
            "</p></div><script>",
            "<!-- <script> -->",
            "[a](data:text/html,<script>)",
            "`<script>`",
            "```html\n<script>\n```",
            "<https://x.example/<script>>",
            "&lt;script&gt;",
            "<math><mtext></form><form><mglyph><style></math><img src onerror=1>",
            "[x]: javascript:alert(1)\n[x]",
            "<b\n\nonclick=1>",
            "- <iframe src=x>\n  - <object>",
            "\u{0}<script>",
            "[a](//x.example/b)",
            "[a](/api/v2/signout)",
        ];
        for text in evil {
            for html in blocks(text) {
                for tag in html.split('<').skip(1) {
                    let name: String = tag
                        .trim_start_matches('/')
                        .chars()
                        .take_while(char::is_ascii_alphanumeric)
                        .collect();
                    assert!(
                        [
                            "p", "a", "code", "pre", "div", "header", "span", "button", "ul", "li",
                            "em", "strong", "br"
                        ]
                        .contains(&name.as_str()),
                        "{text:?} → {html}"
                    );
                }
                assert!(
                    !html.contains("javascript:") || !html.contains("href=\"javascript"),
                    "{html}"
                );
                assert!(!html.contains("href=\"/"), "{html}");
            }
        }
    }
}
