//! Columns of text for a terminal.

/// Rows of cells, laid out in columns under their heads. Cells are one line each.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The space between columns.
const GAP: usize = 3;

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

    /// The lines of the table, each at most `width` characters wide where that is given: the
    /// widest column gives way, and what is cut ends in `…`.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut widths = self.widths();
        if let Some(width) = width {
            let gaps = GAP * widths.len().saturating_sub(1);
            // A column is never narrower than this: below it lines are longer than the terminal.
            const LEAST: usize = 8;
            while widths.iter().sum::<usize>() + gaps > width {
                match widths.iter_mut().max() {
                    Some(widest) if *widest > LEAST => *widest -= 1,
                    _ => break,
                }
            }
        }
        std::iter::once(&self.head)
            .chain(&self.rows)
            .map(|row| line(row, &widths))
            .collect()
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
        let cell = super::cut::one_line(cell, *width);
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

/// The columns a text takes on a terminal: two for a wide character.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

fn wide(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd)
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

    #[test]
    fn the_widest_column_gives_way() {
        let lines = chats().lines(Some(34));
        assert!(lines.iter().all(|l| columns(l) <= 34), "{lines:?}");
        assert_eq!(lines[1], "41f    ~/projects/…   running car…");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("日本 a"), 6);
    }
}
