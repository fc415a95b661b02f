//! Columns of text for a terminal.

use super::wrap::wrap;

/// Rows of cells, laid out in columns under their heads. Cells are one line each.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The space between columns.
const GAP: usize = 3;
/// A column that gives way is never narrower than this: below it rows become records.
const LEAST: usize = 16;
/// Before what else a record holds.
const INDENT: usize = 2;

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            head: head.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines of the table, each at most `width` columns wide where that is given: the widest
    /// column gives way, and what is cut ends in `…`. Where too little of it would be left, each
    /// row is a few lines, broken between words. Without a width nothing is cut.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut widths = self.widths();
        if let Some(width) = width {
            let gaps = GAP * widths.len().saturating_sub(1);
            while widths.iter().sum::<usize>() + gaps > width {
                match widths.iter_mut().max() {
                    Some(widest) if *widest > LEAST => *widest -= 1,
                    _ => return self.records(width),
                }
            }
        }
        std::iter::once(&self.head)
            .chain(&self.rows)
            .map(|row| line(row, &widths))
            .collect()
    }

    /// Each row as its first cell and, under it, what else there is with its head.
    fn records(&self, width: usize) -> Vec<String> {
        let named = self.head.iter().map(|head| columns(head)).max();
        let named = named.unwrap_or_default();
        let indent = INDENT + named + 2;
        let mut lines = Vec::new();
        for row in &self.rows {
            let mut cells = self
                .head
                .iter()
                .zip(row)
                .filter(|(_, cell)| !cell.is_empty());
            if let Some((_, first)) = cells.next() {
                lines.extend(wrap(&fitting(first, width), width, INDENT));
            }
            for (head, cell) in cells {
                let gap = named.saturating_sub(columns(head)) + 2;
                let head = head.to_lowercase();
                // A word that is longer than what a line has for it is cut, with its mark.
                let cell = fitting(cell, width.saturating_sub(indent).max(1));
                let line = format!("{:INDENT$}{head}{:gap$}{cell}", "", "");
                lines.extend(wrap(&line, width, indent));
            }
        }
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| columns(cell)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        widths
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    let mut owed = 0;
    for (cell, width) in row.iter().zip(widths) {
        let cell = cut(cell, *width);
        // Spaces are written only before something, so that no line ends in them.
        if !cell.is_empty() {
            out.extend(std::iter::repeat_n(' ', owed));
            owed = 0;
        }
        owed += width.saturating_sub(columns(&cell)) + GAP;
        out.push_str(&cell);
    }
    out
}

/// The text in at most `width` columns on one line; what is left out has the mark `…`.
fn cut(text: &str, width: usize) -> String {
    let flat = super::cut::one_line(text, usize::MAX);
    if columns(&flat) <= width {
        return flat;
    }
    let mut short = String::new();
    let mut used = 1;
    for c in flat.chars() {
        used += column(c);
        if used > width {
            break;
        }
        short.push(c);
    }
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// The text on one line, each word of at most `width` columns.
fn fitting(text: &str, width: usize) -> String {
    let flat = super::cut::one_line(text, usize::MAX);
    let words: Vec<String> = flat.split(' ').map(|word| cut(word, width)).collect();
    words.join(" ")
}

/// The columns a text takes on a terminal: two for a wide character, none for a mark on another.
pub fn columns(text: &str) -> usize {
    text.chars().map(column).sum()
}

fn column(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chats() -> Table {
        let mut table = Table::new(["CHAT", "FOLDER", "NOW"]);
        table.row(["41f", "~/projects/api", "running cargo test"].map(String::from));
        table.row(["2aa", "", "done"].map(String::from));
        table
    }

    #[test]
    fn columns_line_up_and_lines_do_not_end_in_spaces() {
        assert_eq!(
            chats().lines(None),
            [
                "CHAT   FOLDER           NOW",
                "41f    ~/projects/api   running cargo test",
                "2aa                     done",
            ]
        );
    }

    fn long() -> Table {
        let mut table = Table::new(["CHAT", "FOLDER", "TITLE", "FROM", "MODE", "LAST"]);
        let title = "Let the log say why a start was refused by the other one";
        table.row(
            [
                "41f0aa",
                "~/projects/api",
                title,
                "here",
                "edit",
                "3 min ago",
            ]
            .map(String::from),
        );
        let folder = format!("~/{}", "verylong".repeat(8));
        table.row(["2aa", &folder, "日本語の題名 は長い", "page", "", "now"].map(String::from));
        table
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_what_is_cut_says_so() {
        for width in [20, 40, 60, 80, 100, 200] {
            let lines = long().lines(Some(width));
            let wide: Vec<&String> = lines.iter().filter(|l| columns(l) > width).collect();
            assert!(wide.is_empty(), "{width}: {wide:#?}");
            // Whatever is not there whole ends in the mark.
            let all = lines.join(" ");
            for row in long().rows {
                let words = row.iter().flat_map(|cell| cell.split(' '));
                let gone = words.filter(|word| !all.contains(word)).count();
                assert!(gone == 0 || all.contains('…'), "{width}: {lines:#?}");
            }
        }
    }

    #[test]
    fn on_a_narrow_terminal_a_row_is_a_few_lines() {
        insta::assert_snapshot!(long().lines(Some(40)).join("\n"), @r"
        41f0aa
          folder  ~/projects/api
          title   Let the log say why a start
                  was refused by the other one
          from    here
          mode    edit
          last    3 min ago
        2aa
          folder  ~/verylongverylongverylongver…
          title   日本語の題名 は長い
          from    page
          last    now
        ");
    }

    #[test]
    fn in_a_pipe_nothing_is_cut() {
        let lines = long().lines(None);
        assert_eq!(lines.len(), 3);
        assert!(!lines.join("").contains('…'), "{lines:?}");
    }

    #[test]
    fn the_widest_column_gives_way() {
        let lines = chats().lines(Some(40));
        assert!(lines.iter().all(|l| columns(l) <= 40), "{lines:?}");
        assert_eq!(lines[1], "41f    ~/projects/api   running cargo t…");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("日本 a"), 6);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(cut("日本語", 5), "日本…");
    }
}
