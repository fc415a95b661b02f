//! What a transport gives the peer: a source and a sink of text frames. One frame, one message.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A pair of frame source and frame sink.
pub trait Frames: Send + 'static {
    type Source: Source;
    type Sink: Sink;

    fn split(self) -> (Self::Source, Self::Sink);
}

impl<R: Source, W: Sink> Frames for (R, W) {
    type Source = R;
    type Sink = W;

    fn split(self) -> (R, W) {
        self
    }
}

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    Text(String),
    /// A frame that says nothing but that the other side lives: ping, pong, binary, an empty line.
    Alive,
    /// A frame longer than the limit. `head` is its beginning, to read an id from; `over` says that
    /// the stream cannot go on after it.
    TooLong {
        head: String,
        bytes: usize,
        over: bool,
    },
    /// A close frame.
    Close {
        code: Option<u16>,
        reason: String,
    },
}

/// Frames from the other side.
pub trait Source: Send + 'static {
    /// The next frame; `None` when the stream has ended. `max` bytes are the most that is taken.
    ///
    /// Must be safe to cancel: a dropped future loses no byte.
    fn next(&mut self, max: usize) -> impl Future<Output = io::Result<Option<Incoming>>> + Send;
}

/// What goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    Text(String),
    /// Asks for a sign of life. A transport without pings ignores it.
    Ping,
    /// A transport without close frames ends its stream.
    Close {
        code: u16,
        reason: String,
    },
}

/// Frames to the other side.
pub trait Sink: Send + 'static {
    /// Takes a frame, which may rest in a buffer until [`Sink::flush`].
    fn send(&mut self, frame: Outgoing) -> impl Future<Output = io::Result<()>> + Send;

    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// A counter of the bytes that the socket took so far, to tell a slow write from a dead one.
    /// Without one a write is given time by its length.
    fn taken(&self) -> Option<Arc<AtomicU64>> {
        None
    }
}
