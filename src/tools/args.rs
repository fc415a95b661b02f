//! Reading a call's arguments: each problem names the argument and what it must be.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ToolContext, ToolFailure};
use crate::fs::open;

/// A text that must be there.
pub(super) fn text(args: &Value, key: &str) -> Result<String, ToolFailure> {
    match args.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        None | Some(Value::Null) => Err(ToolFailure(format!("{key} is missing"))),
        Some(_) => Err(ToolFailure(format!("{key} must be a text"))),
    }
}

/// A text that may be left out. An empty one counts as left out.
pub(super) fn maybe_text(args: &Value, key: &str) -> Result<Option<String>, ToolFailure> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(_) => text(args, key).map(Some),
    }
}

/// A whole number from `least` on, also when it came as digits in a text.
pub(super) fn number(args: &Value, key: &str, least: usize) -> Result<Option<usize>, ToolFailure> {
    let wrong = || ToolFailure(format!("{key} must be a whole number, {least} or more"));
    let value = match args.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(n)) => n
            .as_u64()
            .or_else(|| whole(n.as_f64()?))
            .ok_or_else(wrong)?,
        Some(Value::String(text)) => text.trim().parse().map_err(|_| wrong())?,
        Some(_) => return Err(wrong()),
    };
    let value = usize::try_from(value).map_err(|_| wrong())?;
    if value < least {
        return Err(wrong());
    }
    Ok(Some(value))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number in range"
)]
fn whole(n: f64) -> Option<u64> {
    (n.fract() == 0.0 && (0.0..9e15).contains(&n)).then_some(n as u64)
}

/// Yes or no; no when left out.
pub(super) fn flag(args: &Value, key: &str) -> Result<bool, ToolFailure> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(text)) if text == "true" => Ok(true),
        Some(Value::String(text)) if text == "false" => Ok(false),
        Some(_) => Err(ToolFailure(format!("{key} must be true or false"))),
    }
}

/// A path with its links resolved, and the words it was called by.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) path: PathBuf,
    pub(super) given: String,
}

/// The path an argument names: relative to the session's folder, `~` for the home folder.
pub(super) fn path(args: &Value, key: &str, context: &ToolContext) -> Result<Named, ToolFailure> {
    resolve(text(args, key)?, context)
}

/// As [`path`], with the session's folder when it is left out.
pub(super) fn folder(args: &Value, key: &str, context: &ToolContext) -> Result<Named, ToolFailure> {
    resolve(
        maybe_text(args, key)?.unwrap_or_else(|| ".".to_owned()),
        context,
    )
}

fn resolve(given: String, context: &ToolContext) -> Result<Named, ToolFailure> {
    if given.contains('\0') {
        return Err(ToolFailure("a path cannot hold a NUL".to_owned()));
    }
    let home = crate::config::env::os(&crate::config::env::HOME).map(PathBuf::from);
    let path = context
        .cwd
        .join(crate::text::path::expand(given.trim(), home.as_deref()));
    Ok(Named {
        path: open::real(&path)?,
        given,
    })
}

/// A path as it is shown: relative to the session's folder when it is inside.
pub(super) fn shown(path: &Path, context: &ToolContext) -> String {
    match path.strip_prefix(&context.cwd) {
        Ok(under) if under.as_os_str().is_empty() => ".".to_owned(),
        Ok(under) => under.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
