//! Asking the daemon that runs on this computer, and what its refusals come to.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::{Exit, Failure, Fix};
use crate::config::Paths;
use crate::daemon::control::client::{Client, ControlError};
use crate::daemon::control::{self, Detail, RESTART};
use crate::daemon::kept;
use crate::store::device::Store;
use crate::text::json;

/// A runtime for a command: one thread, which ends with the command.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::from(anyhow::Error::from(error)))
}

/// Asks the daemon one thing.
pub(super) fn once<T: DeserializeOwned>(
    paths: &Paths,
    method: &str,
    params: &impl Serialize,
) -> Result<T, Failure> {
    runtime()?.block_on(async {
        let mut client = Client::connect(&paths.socket()).await.map_err(failure)?;
        client.request(method, params).await.map_err(failure)
    })
}

/// Asks the daemon, or reads what is on the disk where none runs: the store is this command's
/// alone meanwhile. Only what `daemon::kept` answers can be asked so.
pub(super) fn or_kept<T: DeserializeOwned>(
    paths: &Paths,
    method: &str,
    params: &Value,
) -> Result<T, Failure> {
    let answer = runtime()?.block_on(async {
        match Client::connect(&paths.socket()).await {
            Ok(mut client) => return client.request(method, params).await.map_err(failure),
            Err(ControlError::NotRunning) => {}
            Err(error) => return Err(failure(error)),
        }
        let _lock = super::daemon::lock(paths, "command").await?;
        let store = Store::look(&paths.data).map_err(anyhow::Error::from)?;
        let answer = kept::answer(&store, method, params.clone()).await;
        let answer = answer.unwrap_or_else(|| Err(control::unread(method)));
        answer.map_err(|error| failure(error.into()))
    })?;
    json::read(answer).map_err(|why| failure(ControlError::Strange(Some(why))))
}

/// Asks the daemon where one runs; none where none does.
pub(super) fn if_running<T: DeserializeOwned>(
    paths: &Paths,
    method: &str,
    params: &impl Serialize,
) -> Result<Option<T>, Failure> {
    let asked = runtime()?.block_on(async {
        let mut client = Client::connect(&paths.socket()).await?;
        client.request(method, params).await
    });
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(ControlError::NotRunning) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

/// Why the daemon could not be asked, or did not do it.
pub(super) fn failure(error: ControlError) -> Failure {
    match error {
        ControlError::NotRunning => Failure::new(
            Exit::Unavailable,
            "not_running",
            error.to_string(),
            "lembas up",
        )
        .or("lembas daemon"),
        ControlError::NoAnswer(ref cause) => {
            let failure = Failure::new(
                Exit::Unavailable,
                "no_answer",
                error.to_string(),
                "end it and start it again:  lembas daemon",
            );
            match cause {
                Some(cause) => failure.why(cause.to_string()),
                None => failure.why("it ended, or hangs"),
            }
        }
        ControlError::Refused { text, detail } => refused(text, detail),
        ControlError::Strange(ref cause) => {
            let failure = Failure::new(Exit::Unavailable, "version", error.to_string(), RESTART);
            match cause {
                Some(cause) => failure.why(cause.clone()),
                None => failure,
            }
        }
    }
}

fn refused(text: String, detail: Detail) -> Failure {
    let exit = match detail.code.as_str() {
        "usage" => Exit::Usage,
        "unavailable" | "busy" | "not_linked" => Exit::Unavailable,
        "internal" => Exit::Internal,
        "config" => Exit::Config,
        _ => Exit::Not,
    };
    let code = if detail.code.is_empty() {
        "refused".to_owned()
    } else {
        detail.code
    };
    Failure {
        exit,
        code: code.into(),
        number: detail.number,
        text,
        why: detail.why,
        fix: if detail.fixes.is_empty() {
            Fix::None("the daemon named none")
        } else {
            Fix::Try(detail.fixes)
        },
    }
}
