//! Two ends of a link in memory, for tests: what one end sends the other receives, in order.

use std::io;

use tokio::sync::mpsc;

use super::frames::{Incoming, Outgoing, Sink, Source};

/// One end's source.
#[derive(Debug)]
pub struct PairSource(mpsc::Receiver<Outgoing>);

/// One end's sink.
#[derive(Debug)]
pub struct PairSink(mpsc::Sender<Outgoing>);

/// Two connected ends; `room` frames fit between them in each direction.
pub fn pair(room: usize) -> ((PairSource, PairSink), (PairSource, PairSink)) {
    let (there, here_in) = mpsc::channel(room);
    let (here, there_in) = mpsc::channel(room);
    let left = (PairSource(here_in), PairSink(here));
    let right = (PairSource(there_in), PairSink(there));
    (left, right)
}

impl Source for PairSource {
    async fn next(&mut self, max: usize) -> io::Result<Option<Incoming>> {
        Ok(self.0.recv().await.map(|frame| match frame {
            Outgoing::Text(text) if text.len() > max => Incoming::TooLong {
                head: text.chars().take(4096).collect(),
                bytes: text.len(),
                over: true,
            },
            Outgoing::Text(text) => Incoming::Text(text),
            Outgoing::Ping => Incoming::Alive,
            Outgoing::Close { code, reason } => Incoming::Close {
                code: Some(code),
                reason,
            },
        }))
    }
}

impl Sink for PairSink {
    async fn send(&mut self, frame: Outgoing) -> io::Result<()> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.send(frame).await.map_err(gone)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
