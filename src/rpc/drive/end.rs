//! The last moments of a link: a goodbye of ours, or a look for the other side's.

use std::io;
use std::time::Duration;

use super::Driver;
use crate::clock;
use crate::rpc::error::CloseReason;
use crate::rpc::frames::{Incoming, Outgoing, Sink, Source};

/// How long the stream is read on after our close frame, so that the other side can take it.
const LINGER: Duration = Duration::from_secs(1);

impl<W: Sink> Driver<W> {
    /// A write failed. The other side may have said why before it went: look for its close frame.
    pub(super) async fn broken(
        &mut self,
        source: &mut impl Source,
        error: &io::Error,
    ) -> CloseReason {
        let max = self.limits.first_frame;
        let last = clock::timeout(LINGER, async {
            loop {
                match source.next(max).await {
                    Ok(Some(Incoming::Close { code, reason })) => {
                        return Some(CloseReason::Remote { code, reason });
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return None,
                }
            }
        });
        let said = last.await.ok().flatten();
        said.unwrap_or_else(|| CloseReason::Broken(error.to_string()))
    }

    /// Everything is written: the close frame, and a moment for the other side to take it.
    pub(super) async fn farewell(
        &mut self,
        source: &mut impl Source,
        reason: CloseReason,
    ) -> CloseReason {
        if let CloseReason::Local { code, reason } = &reason {
            let frame = Outgoing::Close {
                code: *code,
                reason: reason.clone(),
            };
            self.writer.own(frame);
            self.writer.start();
        }
        let max = self.limits.first_frame;
        // However it ends, we are done.
        let _ = clock::timeout(LINGER, async {
            self.writer.done().await?;
            while let Some(frame) = source.next(max).await? {
                if matches!(frame, Incoming::Close { .. }) {
                    break;
                }
            }
            Ok::<(), io::Error>(())
        })
        .await;
        reason
    }
}
