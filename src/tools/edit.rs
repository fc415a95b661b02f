//! `edit`: one piece of a file's text replaced by another.

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::write::{change, look, make};
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure, args};
use crate::edit::replace::{Where, replace};
use crate::fs::FsError;
use crate::fs::write::Before;
use crate::ids::CallId;
use crate::permission::Grant;
use crate::rt::CancellationToken;

pub(super) struct Edit;

impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let named = args::path(args, "path", context)?;
        let old = args::text(args, "old")?;
        let new = args::text(args, "new")?;
        let places = if args::flag(args, "all")? {
            Where::All
        } else {
            Where::Once
        };
        let file = look(&named.path, &named.given, context)?;
        if file.before == Before::Nothing {
            return Err(FsError::Missing(named.path).into());
        }
        let (old, new) = if file.text.crlf {
            (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
        } else {
            (old, new)
        };
        let made = replace(&file.text.text, &old, &new, places)?;
        change(self.name(), named.path, &file, &made, context)
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        prepared: Prepared,
        grant: Grant,
        context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(make(prepared, grant, context))
    }
}
