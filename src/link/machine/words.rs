//! The reasons of the link's states, for a person: what happened and what to do.

use crate::link::discovery::protocol_words;

pub(super) fn never() -> String {
    "run lembas link <url> to link this computer".into()
}

pub(super) fn revoked(text: &str) -> String {
    let text = if text.is_empty() {
        String::new()
    } else {
        format!(" The instance says: {text}")
    };
    format!("Linked no more: run lembas link <url>.{text}")
}

pub(super) fn other_instance() -> String {
    "another instance answers at this address than the one this computer was linked to: \
     run lembas link <url>"
        .into()
}

pub(super) fn held(holder: &str) -> String {
    let holder = if holder.is_empty() {
        String::new()
    } else {
        format!(" ({holder})")
    };
    format!(
        "another process with this computer's token is linked{holder}. \
         To link this one instead: lembas link take"
    )
}

pub(super) fn taken() -> String {
    "another process with this computer's token took the link over. \
     To take it back: lembas link take"
        .into()
}

pub(super) fn version(theirs: Option<u64>) -> String {
    theirs.map_or_else(
        || {
            "the instance and this computer speak different link protocols: update the older one"
                .into()
        },
        protocol_words,
    )
}

pub(super) fn asked_to_wait() -> String {
    "the instance asked to come back later".into()
}

pub(super) fn closed(code: Option<u16>, text: &str) -> String {
    match (code, text) {
        (Some(1012), _) => "the instance is restarting".into(),
        (Some(1001), _) => "the instance is stopping".into(),
        (Some(4002), _) => "the handshake did not come in time".into(),
        (Some(code), "") => format!("the instance closed the link ({code})"),
        (Some(code), text) => format!("the instance closed the link ({code} {text})"),
        (None, "") => "the connection ended".into(),
        (None, text) => text.into(),
    }
}
