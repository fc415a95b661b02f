//! Server-sent events, read as they come. Pure, and bounded: a line or an event over its bound
//! is an error, never memory.

/// Longest line taken, in bytes.
pub const LINE: usize = 1024 * 1024;
/// Longest event taken: all its data lines together.
pub const EVENT: usize = 4 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty when the stream named none.
    pub name: String,
    pub data: String,
}

/// What a stream held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Event(Event),
    /// A line that began with `:`; some servers keep the line alive with it, some say things.
    Comment(String),
}

/// A line or event was over its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line or event of the stream is too long")]
pub struct TooLong;

/// Reads a stream in whatever pieces it comes.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
    event: Event,
    has_data: bool,
}

impl Parser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes and gives what is complete.
    ///
    /// # Errors
    /// When a bound is passed; the stream is of no use then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, TooLong> {
        let mut pieces = Vec::new();
        for &byte in bytes {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                continue;
            }
            match byte {
                b'\n' => self.end_line(&mut pieces)?,
                b'\r' => {
                    self.after_cr = true;
                    self.end_line(&mut pieces)?;
                }
                _ if self.line.len() >= LINE => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(pieces)
    }

    /// The stream has ended. An event without its blank line is given too: some servers leave
    /// out the last one.
    ///
    /// # Errors
    /// As [`Parser::push`].
    pub fn end(&mut self) -> Result<Vec<Piece>, TooLong> {
        let mut pieces = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut pieces)?;
        }
        self.dispatch(&mut pieces);
        Ok(pieces)
    }

    fn end_line(&mut self, pieces: &mut Vec<Piece>) -> Result<(), TooLong> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(pieces);
        } else if let Some(comment) = line.strip_prefix(':') {
            pieces.push(Piece::Comment(comment.trim().to_owned()));
        } else {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.event.name = value.to_owned(),
                "data" => {
                    if self.event.data.len() + value.len() > EVENT {
                        return Err(TooLong);
                    }
                    if self.has_data {
                        self.event.data.push('\n');
                    }
                    self.event.data.push_str(value);
                    self.has_data = true;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, pieces: &mut Vec<Piece>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            pieces.push(Piece::Event(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<Piece> {
        let mut parser = Parser::new();
        let mut pieces = Vec::new();
        for chunk in chunks {
            pieces.extend(parser.push(chunk).unwrap());
        }
        pieces.extend(parser.end().unwrap());
        pieces
    }

    fn event(name: &str, data: &str) -> Piece {
        Piece::Event(Event {
            name: name.into(),
            data: data.into(),
        })
    }

    #[test]
    fn lines_end_in_any_way_and_data_joins() {
        let text = "\u{feff}: alive\r\ndata: a\rdata:b\r\n\r\nevent: x\ndata: {\"n\":1}\n\nid: 4\n\ndata: tail";
        assert_eq!(
            read(&[text.as_bytes()]),
            [
                Piece::Comment("alive".into()),
                event("", "a\nb"),
                event("x", "{\"n\":1}"),
                event("", "tail"),
            ]
        );
    }

    #[test]
    fn bounds_hold() {
        let mut parser = Parser::new();
        let mut result = Ok(Vec::new());
        for _ in 0..=LINE / 1024 {
            result = parser.push(&[b'x'; 1024]);
        }
        assert_eq!(result, Err(TooLong));
        let mut parser = Parser::new();
        let line = format!("data: {}\n", "y".repeat(LINE / 2));
        assert!((0..=EVENT / (LINE / 2)).any(|_| parser.push(line.as_bytes()).is_err()));
    }

    proptest! {
        /// However a stream is cut, also inside a character, the same comes out.
        #[test]
        fn cuts_change_nothing(text in "(data: [a-zäöü€]{0,9}(\r\n|\n|\r)|(\n|\r\n)|: c\n|event: e\n){0,12}", cut in 0usize..200, second in 0usize..200) {
            let bytes = text.as_bytes();
            let a = cut.min(bytes.len());
            let b = (a + second).min(bytes.len());
            prop_assert_eq!(read(&[&bytes[..a], &bytes[a..b], &bytes[b..]]), read(&[bytes]));
        }
    }
}
