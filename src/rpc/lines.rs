//! Frames as lines: one JSON-RPC message a line, for standard input and output and for sockets
//! between our own processes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufWriter};

use super::frames::{Incoming, Outgoing, Sink, Source};

/// How much of a line that is too long is kept, to read an id from.
const HEAD: usize = 4096;
/// Bytes asked of the stream at once.
const READ: usize = 64 * 1024;

/// Lines of `read` and `write` as frames.
pub fn new<R, W>(read: R, write: W) -> (Lines<R>, LineSink<W>)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let source = Lines {
        read,
        buffer: Vec::new(),
        start: 0,
        seen: 0,
        skipping: None,
        ended: false,
    };
    (source, LineSink(BufWriter::with_capacity(READ, write)))
}

/// A source of lines.
#[derive(Debug)]
pub struct Lines<R> {
    read: R,
    /// What was read and is not yet given out.
    buffer: Vec<u8>,
    /// Where in `buffer` that begins.
    start: usize,
    /// Up to where `buffer` is known to hold no line end.
    seen: usize,
    /// Inside a line that is too long: its head, and its bytes so far.
    skipping: Option<(Vec<u8>, usize)>,
    ended: bool,
}

impl<R: AsyncRead + Unpin + Send + 'static> Lines<R> {
    /// A frame that is in the buffer already.
    fn buffered(&mut self, max: usize) -> Option<Incoming> {
        let fresh = self.buffer.get(self.seen..).unwrap_or_default();
        if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
            let end = self.seen + end;
            let line = self
                .buffer
                .get(self.start..end)
                .unwrap_or_default()
                .to_vec();
            self.start = end + 1;
            self.seen = self.start;
            return Some(self.frame(line, max));
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.seen = self.buffer.len();
        if self.seen > max {
            let (head, bytes) = self.skipping.get_or_insert_default();
            let more = HEAD.saturating_sub(head.len()).min(self.seen);
            head.extend(self.buffer.drain(..more));
            *bytes += self.seen;
            self.buffer.clear();
            self.seen = 0;
        }
        None
    }

    fn frame(&mut self, mut line: Vec<u8>, max: usize) -> Incoming {
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let too_long = match self.skipping.take() {
            Some((head, bytes)) => Some((head, bytes + line.len())),
            None if line.len() > max => {
                let bytes = line.len();
                line.truncate(HEAD);
                Some((std::mem::take(&mut line), bytes))
            }
            None => None,
        };
        if let Some((head, bytes)) = too_long {
            return Incoming::TooLong {
                head: String::from_utf8_lossy(&head).into_owned(),
                bytes,
                over: false,
            };
        }
        if line.is_empty() {
            return Incoming::Alive;
        }
        // Bytes that are no text cannot be a message: the core answers them as such.
        Incoming::Text(
            String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Source for Lines<R> {
    async fn next(&mut self, max: usize) -> io::Result<Option<Incoming>> {
        loop {
            if let Some(frame) = self.buffered(max) {
                return Ok(Some(frame));
            }
            if self.ended {
                // A last line without its end still counts.
                let line = std::mem::take(&mut self.buffer);
                self.seen = 0;
                let rest = !line.is_empty() || self.skipping.is_some();
                return Ok(rest.then(|| self.frame(line, max)));
            }
            self.buffer.reserve(READ);
            self.ended = self.read.read_buf(&mut self.buffer).await? == 0;
        }
    }
}

/// A sink of lines. Pings are not written; a close ends the stream.
#[derive(Debug)]
pub struct LineSink<W: AsyncWrite>(BufWriter<W>);

impl<W: AsyncWrite + Unpin + Send + 'static> Sink for LineSink<W> {
    async fn send(&mut self, frame: Outgoing) -> io::Result<()> {
        match frame {
            // JSON text holds line ends only as escapes, so a frame is one line.
            Outgoing::Text(text) => {
                self.0.write_all(text.as_bytes()).await?;
                self.0.write_all(b"\n").await
            }
            Outgoing::Ping => Ok(()),
            Outgoing::Close { .. } => {
                self.0.flush().await?;
                self.0.shutdown().await
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.0.flush().await
    }
}

#[cfg(test)]
mod tests;
