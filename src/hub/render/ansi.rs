//! Terminal output as a person would read it: colours as classes, redraws folded to their last
//! frame, every other escape dropped.

use super::escape_char;

/// Columns of a line that a cursor may be moved to; text beyond is kept, movement is not.
const MAX_COLUMN: usize = 4096;

/// How a character is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    bold: bool,
    dim: bool,
    underline: bool,
    inverse: bool,
    colour: Option<u8>,
}

const COLOURS: [&str; 8] = [
    "a-black",
    "a-red",
    "a-green",
    "a-yellow",
    "a-blue",
    "a-magenta",
    "a-cyan",
    "a-white",
];

impl Style {
    fn classes(self) -> String {
        let mut names = Vec::new();
        if let Some(name) = self.colour.and_then(|c| COLOURS.get(usize::from(c))) {
            names.push(*name);
        }
        for (on, name) in [
            (self.bold, "a-b"),
            (self.dim, "a-d"),
            (self.underline, "a-u"),
            (self.inverse, "a-inv"),
        ] {
            if on {
                names.push(name);
            }
        }
        names.join(" ")
    }

    /// Select Graphic Rendition. Backgrounds are dropped: contrast is the stylesheet's promise.
    fn apply(&mut self, codes: &[u16]) {
        let mut codes = codes.iter().copied();
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                22 => {
                    self.bold = false;
                    self.dim = false;
                }
                24 => self.underline = false,
                27 => self.inverse = false,
                30..=37 => self.colour = u8::try_from(code - 30).ok(),
                39 => self.colour = None,
                90..=97 => self.colour = u8::try_from(code - 90).ok(),
                // Of the text, its ground, its underline: each takes the words that follow it.
                38 | 48 | 58 => {
                    let colour = match codes.next() {
                        Some(5) => codes.next().and_then(|n| u8::try_from(n).ok()).map(of_256),
                        Some(2) => {
                            let mut part = || codes.next().map_or(0, |n| n.min(255));
                            let (r, g, b) = (part(), part(), part());
                            Some(nearest(r, g, b))
                        }
                        _ => None,
                    };
                    if code == 38 {
                        self.colour = colour.flatten();
                    }
                }
                _ => {}
            }
        }
    }
}

/// One of our eight for a colour of the 256; greys are the text's own colour.
fn of_256(n: u8) -> Option<u8> {
    match n {
        0..=7 => Some(n),
        8..=15 => Some(n - 8),
        16..=231 => {
            let n = u16::from(n) - 16;
            let part = |v: u16| if v == 0 { 0 } else { 55 + v * 40 };
            nearest(part(n / 36), part(n / 6 % 6), part(n % 6))
        }
        232..=255 => None,
    }
}

/// One of our eight for a colour: by hue, and none where there is hardly any.
fn nearest(r: u16, g: u16, b: u16) -> Option<u8> {
    let high = r.max(g).max(b);
    let low = r.min(g).min(b);
    if high - low < 48 {
        return None;
    }
    let cut = low + (high - low) / 2;
    let bit = |v: u16, n: u8| if v > cut { n } else { 0 };
    Some(bit(r, 1) | bit(g, 2) | bit(b, 4))
}

/// A line as it stands on the screen.
#[derive(Default)]
struct Line {
    cells: Vec<(char, Style)>,
    column: usize,
}

impl Line {
    fn put(&mut self, c: char, style: Style) {
        match self.cells.get_mut(self.column) {
            Some(cell) => *cell = (c, style),
            None => {
                while self.cells.len() < self.column {
                    self.cells.push((' ', Style::default()));
                }
                self.cells.push((c, style));
            }
        }
        self.column += 1;
    }

    fn erase(&mut self, how: u16) {
        match how {
            0 => self.cells.truncate(self.column),
            1 => {
                for cell in self.cells.iter_mut().take(self.column) {
                    *cell = (' ', Style::default());
                }
            }
            _ => self.cells.clear(),
        }
    }

    fn write(&self, out: &mut String) {
        let mut at = Style::default();
        for (c, style) in &self.cells {
            if *style != at {
                if at != Style::default() {
                    out.push_str("</span>");
                }
                if *style != Style::default() {
                    out.push_str("<span class=\"");
                    out.push_str(&style.classes());
                    out.push_str("\">");
                }
                at = *style;
            }
            escape_char(*c, out);
        }
        if at != Style::default() {
            out.push_str("</span>");
        }
    }
}

/// How far before a cut an escape may begin that reaches over it.
const LONGEST: usize = 256;

/// Where to begin reading an output of which only what follows `at` is wanted: at the next line
/// or frame, and where there is none, before an escape that the cut would fall into.
pub(crate) fn whole_from(text: &str, at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    let at = boundary(text, at);
    let rest = text.get(at..).unwrap_or_default();
    if let Some(n) = rest.find(['\n', '\r'])
        && n + 1 < rest.len()
    {
        return at + n + 1;
    }
    let near = boundary(text, at.saturating_sub(LONGEST));
    let before = text.get(near..at).unwrap_or_default();
    let begins = |c: char| matches!(c, '\u{1b}' | '\u{80}'..='\u{9f}');
    before.rfind(begins).map_or(at, |n| near + n)
}

fn boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|n| text.is_char_boundary(*n))
        .unwrap_or(text.len())
}

/// The lines of some output, each as HTML.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut line = Line::default();
    let mut style = Style::default();
    let mut chars = text.chars().peekable();
    let mut end = |line: &mut Line| {
        let mut out = String::new();
        line.write(&mut out);
        done.push(out);
        *line = Line::default();
    };
    while let Some(c) = chars.next() {
        match c {
            '\n' => end(&mut line),
            '\r' => line.column = 0,
            '\u{8}' => line.column = line.column.saturating_sub(1),
            '\t' => line.put('\t', style),
            '\u{1b}' => escape(&mut chars, &mut line, &mut style),
            '\u{9b}' => control(&mut chars, &mut line, &mut style),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => string(&mut chars),
            c if c.is_control() => {}
            c => line.put(c, style),
        }
    }
    if !line.cells.is_empty() {
        end(&mut line);
    }
    done
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escape(chars: &mut Chars<'_>, line: &mut Line, style: &mut Style) {
    match chars.next() {
        Some('[') => control(chars, line, style),
        Some(']' | 'P' | '^' | '_' | 'X') => string(chars),
        // Character sets and the like: one more character.
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            chars.next();
        }
        _ => {}
    }
}

/// A string for the terminal itself (a title, a link, the clipboard): to BEL or ST.
fn string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next() {
        match c {
            // A string that was cut must not eat the rest of the output either.
            '\u{7}' | '\u{9c}' | '\n' => break,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                break;
            }
            _ => {}
        }
    }
}

/// A control sequence, after its `ESC [`.
fn control(chars: &mut Chars<'_>, line: &mut Line, style: &mut Style) {
    let mut text = String::new();
    while let Some(c) = chars.peek().copied() {
        match c {
            '\u{20}'..='\u{3f}' if text.len() < 64 => {
                text.push(c);
                chars.next();
            }
            '\u{40}'..='\u{7e}' => {
                chars.next();
                act(c, &text, line, style);
                return;
            }
            // Cut off or not a sequence at all: what follows is text again.
            _ => return,
        }
    }
}

/// The numbers of one parameter. With colons a true colour may name its space before its three
/// parts, and a kind of underline stands behind the word for it.
fn parts(parameter: &str) -> Vec<u16> {
    let numbers: Vec<u16> = parameter
        .split(':')
        .map(|n| n.parse().unwrap_or(0))
        .collect();
    match numbers.as_slice() {
        [what @ (38 | 48 | 58), 2, .., r, g, b] => vec![*what, 2, *r, *g, *b],
        [4, 0, ..] => vec![24],
        [4, ..] => vec![4],
        _ => numbers,
    }
}

fn act(what: char, text: &str, line: &mut Line, style: &mut Style) {
    if text.starts_with(['?', '>', '<', '=']) {
        return;
    }
    let codes: Vec<u16> = text.split(';').flat_map(parts).collect();
    let first = codes.first().copied().unwrap_or(0);
    let steps = usize::from(first.max(1));
    match what {
        'm' => style.apply(&codes),
        'K' => line.erase(first),
        'C' => line.column = (line.column + steps).min(MAX_COLUMN.max(line.cells.len())),
        'D' => line.column = line.column.saturating_sub(steps),
        'G' => line.column = (steps - 1).min(MAX_COLUMN.max(line.cells.len())),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        lines(text).join("\n")
    }

    #[test]
    fn colours_become_classes() {
        insta::assert_snapshot!(html("\u{1b}[1;32m   Compiling\u{1b}[0m api\n\u{1b}[38;5;196mred\u{1b}[39m \u{1b}[38;2;10;200;20mgreen\u{1b}[m \u{1b}[90mgrey\u{1b}[0m"),
            @r#"
        <span class="a-green a-b">   Compiling</span> api
        <span class="a-red">red</span> <span class="a-green">green</span> <span class="a-black">grey</span>
        "#);
        insta::assert_snapshot!(html("\u{1b}[7minv\u{1b}[27m \u{1b}[4mu\u{1b}[24m \u{1b}[2md\u{1b}[22m \u{1b}[41mno ground\u{1b}[0m \u{1b}[38;5;244mgrey\u{1b}[0m"),
            @r#"<span class="a-inv">inv</span> <span class="a-u">u</span> <span class="a-d">d</span> no ground grey"#);
    }

    #[test]
    fn redraws_fold_to_their_last_frame() {
        assert_eq!(html("10 %\r55 %\r100 %\ndone"), "100 %\ndone");
        assert_eq!(html("downloading\r\u{1b}[Kok\n"), "ok");
        assert_eq!(html("abc\u{8}\u{8}X"), "aXc");
        assert_eq!(html("abc\u{1b}[2D_\u{1b}[1G^"), "^_c");
    }

    /// What each output of the corpus is drawn as; the page's own reading is held by the same file.
    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        raw: String,
        html: String,
        read: Option<String>,
    }

    fn corpus() -> Vec<Case> {
        serde_json::from_str(include_str!("../../../tests/data/page/escapes.json")).unwrap()
    }

    /// No byte that a terminal acts on, and no element but our own.
    fn is_dead(out: &str) -> bool {
        let bare = out.replace("</span>", "");
        let bare = bare
            .split("<span class=\"a-")
            .enumerate()
            .map(|(n, piece)| match n {
                0 => piece,
                _ => piece.split_once("\">").unwrap().1,
            });
        !out.chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t')
            && bare.into_iter().all(|piece| !piece.contains(['<', '"']))
    }

    /// The drawn text without its colours.
    fn words(text: &str) -> String {
        let drawn = html(text);
        drawn
            .split('<')
            .enumerate()
            .map(|(n, piece)| match n {
                0 => piece,
                _ => piece.split_once('>').unwrap().1,
            })
            .collect()
    }

    #[test]
    fn each_output_of_the_corpus_is_drawn_as_a_person_would_read_it() {
        for case in corpus() {
            assert_eq!(html(&case.raw), case.html, "{}", case.name);
            if let Some(read) = case.read {
                assert_eq!(super::super::marked(&case.raw), read, "{}", case.name);
            }
        }
    }

    #[test]
    fn wherever_an_output_is_cut_nothing_of_a_sequence_shows() {
        for case in corpus() {
            for (at, _) in case.raw.char_indices() {
                let first = &case.raw[..at];
                assert!(is_dead(&html(first)), "{}: {first:?}", case.name);
                let from = whole_from(&case.raw, at);
                let (all, tail) = (words(&case.raw), words(&case.raw[from..]));
                // What a redraw or a move puts over the line is not there when it begins behind it.
                let moved = case.raw.contains(['\r', '\u{8}']) || case.name.contains("redraw");
                assert!(moved || all.ends_with(&tail), "{}: {tail:?}", case.name);
            }
        }
        // A chunk that ends in the middle of a sequence is read with the next one.
        let raw = "\u{1b}[1;32mdone\u{1b}[0m and on";
        for at in 0..raw.len() {
            let mut whole = raw[..at].to_owned();
            let _early = html(&whole);
            whole.push_str(&raw[at..]);
            assert_eq!(
                html(&whole),
                "<span class=\"a-green a-b\">done</span> and on"
            );
        }
        assert_eq!(whole_from("one\ntwo\nthree", 1), 4);
        assert_eq!(whole_from("abc\u{1b}[31mred", 5), 3);
        assert_eq!(whole_from("10 %\r20 %\r", 1), 5);
    }

    #[test]
    fn no_escape_and_no_markup_come_through() {
        for evil in [
            "\u{1b}]8;;https://x.example\u{7}link\u{1b}]8;;\u{7}",
            "\u{1b}]52;c;aGk=\u{1b}\\",
            "\u{1b}Pq#0\u{1b}\\text",
            "\u{1b}[?25l\u{1b}[2J\u{1b}[H<script>alert(1)</script>",
            "\u{1b}[38;5",
            "\u{1b}[",
            "\u{1b}",
            "\u{9b}31mx",
            "<img src=x onerror=1>",
            "\u{1b}]0;title without end\nnext line",
            "\u{1b}[999999999999C.",
            "\u{1b}[1;31",
        ] {
            let out = html(evil);
            assert!(
                !out.contains('\u{1b}') && !out.contains('\u{9b}') && !out.contains('\u{7}'),
                "{out:?}"
            );
            let bare = out.replace("<span class=\"", "").replace("</span>", "");
            assert!(!bare.contains('<'), "{out:?}");
            assert!(out.len() < 8000);
        }
        assert_eq!(html("\u{1b}]0;title without end\nnext line"), "next line");
    }
}
