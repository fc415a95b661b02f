//! What a change of the settings does to work that runs (link.md, Limits that change while work
//! runs): it ends what may not go on, and has the link dialled again so that the instance hears
//! the new limits.

use std::sync::Arc;

use futures_util::future::join_all;

use super::limits::{Limits, STILL};
use super::monitor::Monitor;
use crate::acp::{Limits as _, Sessions};
use crate::clock;
use crate::permission::Origin;
use crate::rt::{self, CancellationToken};
use crate::session::{StopWhy, Summary};

/// Sessions that are read from the list at once.
const PAGE: usize = 200;

/// Watches the settings until `stop`. `redial` closes the link with 1012 `limits` and dials again.
pub async fn run(
    limits: Limits,
    sessions: Arc<dyn Sessions>,
    monitor: Monitor,
    redial: Arc<dyn Fn() + Send + Sync>,
    stop: CancellationToken,
) {
    let mut changes = limits.live().changes();
    let mut said = limits.describe();
    loop {
        let changed = stop.run_until_cancelled(changes.changed()).await;
        if !matches!(changed, Some(Ok(()))) {
            return;
        }
        end_what_may_not_go_on(&limits, &*sessions, &monitor).await;
        // Until nothing has changed for a moment: a person who edits a file saves more than once.
        loop {
            let still = clock::timeout(STILL, changes.changed());
            match stop.run_until_cancelled(still).await {
                None | Some(Ok(Err(_))) => return,
                Some(Err(_)) => break,
                Some(Ok(Ok(()))) => end_what_may_not_go_on(&limits, &*sessions, &monitor).await,
            }
        }
        // Once more: what was judged just before the change has begun since.
        end_what_may_not_go_on(&limits, &*sessions, &monitor).await;
        let now = limits.describe();
        if now != said {
            said = now;
            redial();
        }
    }
}

async fn end_what_may_not_go_on(limits: &Limits, sessions: &dyn Sessions, monitor: &Monitor) {
    monitor.end(|cwd| limits.ends(cwd).is_some());
    let judge = limits.clone();
    end(sessions, move |summary| judge.ends(&summary.cwd)).await;
}

/// Ends every working session of a linked instance for which `why` has words, and answers when
/// everything they ran is gone. For unlinking and for `lembas service scheduled off --now` as well.
pub async fn end(
    sessions: &dyn Sessions,
    why: impl Fn(&Summary) -> Option<String> + Send + 'static,
) {
    let working = working(sessions).await;
    let judged = rt::blocking(move || {
        let judged = working
            .into_iter()
            .filter_map(|summary| Some((why(&summary)?, summary)));
        judged.collect::<Vec<_>>()
    });
    let stops = judged
        .await
        .unwrap_or_default()
        .into_iter()
        .map(|(words, summary)| async move {
            if let Ok(session) = sessions.get(&summary.id, &Origin::Local).await {
                tracing::info!(session = %summary.id, words, "a limit ends a turn");
                session
                    .stop(Some(summary.turn), StopWhy::Limit(words))
                    .await;
            }
        });
    join_all(stops).await;
}

/// The sessions of linked instances that have a turn running or parked.
async fn working(sessions: &dyn Sessions) -> Vec<Summary> {
    let mut working = Vec::new();
    let mut after = None;
    loop {
        let page = sessions.list(&Origin::Local, None, after, PAGE).await;
        let Ok((page, next)) = page else {
            tracing::error!("the sessions could not be listed to end what may not go on");
            return working;
        };
        working.extend(
            page.into_iter()
                .filter(|s| s.running && s.origin != "local"),
        );
        let Some(next) = next else { return working };
        after = Some(next);
    }
}
