//! Frames over anything that is a stream and a sink of WebSocket messages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, Stream, StreamExt as _};

use crate::rpc::{Incoming, Outgoing, Sink, Source};

/// A WebSocket library's message. The hub's server implements it for its own type.
pub trait Message: Sized + Send + 'static {
    type Error: Send + 'static;

    /// What came in. Binary messages and control frames are only signs of life.
    fn incoming(self) -> Incoming;

    fn outgoing(frame: Outgoing) -> Self;

    /// What an error of the stream means: its end, a message that is too long, or a broken stream
    /// and how to call it.
    fn ended(error: Self::Error) -> Result<Option<Incoming>, String>;
}

/// The reading half.
#[derive(Debug)]
pub struct WsSource<S>(SplitStream<S>);

/// The writing half.
#[derive(Debug)]
pub struct WsSink<S, M> {
    sink: SplitSink<S, M>,
    taken: Option<Arc<AtomicU64>>,
}

/// `stream` as frames for a peer; `taken` counts the bytes its socket took, see [`Counted`].
///
/// [`Counted`]: super::Counted
pub fn frames<S, M>(stream: S, taken: Option<Arc<AtomicU64>>) -> (WsSource<S>, WsSink<S, M>)
where
    M: Message,
    S: Stream<Item = Result<M, M::Error>>
        + futures_util::Sink<M, Error = M::Error>
        + Send
        + 'static,
{
    let (sink, source) = stream.split();
    (WsSource(source), WsSink { sink, taken })
}

impl<S, M> Source for WsSource<S>
where
    M: Message,
    S: Stream<Item = Result<M, M::Error>> + Send + 'static,
{
    async fn next(&mut self, _max: usize) -> io::Result<Option<Incoming>> {
        match self.0.next().await {
            None => Ok(None),
            // The peer compares the length with its limit of the moment.
            Some(Ok(message)) => Ok(Some(message.incoming())),
            Some(Err(error)) => M::ended(error).map_err(io::Error::other),
        }
    }
}

impl<S, M> Sink for WsSink<S, M>
where
    M: Message,
    S: futures_util::Sink<M, Error = M::Error> + Send + 'static,
{
    async fn send(&mut self, frame: Outgoing) -> io::Result<()> {
        self.sink
            .feed(M::outgoing(frame))
            .await
            .map_err(broken::<M>)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.sink.flush().await.map_err(broken::<M>)
    }

    fn taken(&self) -> Option<Arc<AtomicU64>> {
        self.taken.clone()
    }
}

fn broken<M: Message>(error: M::Error) -> io::Error {
    match M::ended(error) {
        Err(text) => io::Error::other(text),
        Ok(_) => io::ErrorKind::BrokenPipe.into(),
    }
}
