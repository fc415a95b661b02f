//! `plan_write` and `plan_update`: the session's plan, changed whole or in part.

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::read::state;
use super::{Outcome, OutputSink, Prepared, Tool, ToolContext, ToolFailure};
use crate::ids::CallId;
use crate::permission::{Action, Grant, Request};
use crate::plan::{Change, Plan};
use crate::rt::CancellationToken;

pub(super) struct PlanWrite;
pub(super) struct PlanUpdate;

fn prepared(tool: &str, plan: Plan, context: &ToolContext) -> Prepared {
    Prepared {
        request: Request {
            tool: tool.to_owned(),
            action: Action::Interact,
            cwd: context.cwd.clone(),
        },
        title: if plan.title.is_empty() {
            "the plan".to_owned()
        } else {
            plan.title.clone()
        },
        locations: Vec::new(),
        state: Box::new(plan),
    }
}

fn done(prepared: Prepared) -> Outcome {
    match state::<Plan>(prepared.state) {
        Ok(plan) => Outcome {
            plan: Some(plan.to_value()),
            ..Outcome::ok(plan.to_string().trim_end().to_owned())
        },
        Err(()) => Outcome::failed("the call was not prepared by this tool"),
    }
}

impl Tool for PlanWrite {
    fn name(&self) -> &'static str {
        "plan_write"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["todo"]
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        // Called by its former name, it takes the former arguments (spec README, aliases).
        let change = if args.get("todos").is_some() && args.get("phases").is_none() {
            Change::Todo(args)
        } else {
            Change::Write(args)
        };
        let plan = context.plan.changed(change)?;
        Ok(prepared(self.name(), plan, context))
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        prepared: Prepared,
        _grant: Grant,
        _context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { done(prepared) })
    }
}

impl Tool for PlanUpdate {
    fn name(&self) -> &'static str {
        "plan_update"
    }

    fn prepare(&self, args: &Value, context: &ToolContext) -> Result<Prepared, ToolFailure> {
        let plan = context.plan.changed(Change::Update(args))?;
        Ok(prepared(self.name(), plan, context))
    }

    fn run<'a>(
        &'a self,
        _call: &'a CallId,
        prepared: Prepared,
        _grant: Grant,
        _context: &'a ToolContext,
        _output: &'a dyn OutputSink,
        _stop: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { done(prepared) })
    }
}
