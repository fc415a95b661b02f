//! `lembas asks` and `lembas answer`: the questions that wait, answered on this computer.

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{AllowOrRefuse, Answer};
use super::failure::{Exit, Failure};
use super::out::Out;
use super::{Ending, ask};
use crate::config::Paths;
use crate::session::OpenAsk;
use crate::store::item::{Question, Scope};
use crate::text::words::quoted;
use crate::text::{cut, escape, words};

/// The answer of `asks` on the control socket.
#[derive(Debug, Deserialize)]
struct Open {
    now: i64,
    asks: Vec<OpenAsk>,
}

pub(super) fn list(out: Out, paths: &Paths) -> Ending {
    let open: Open = ask::or_kept(paths, "asks", &json!({}))?;
    if out.json {
        let zone = TimeZone::system();
        let rows: Vec<Value> = open
            .asks
            .iter()
            .map(|one| row(one, open.now, &zone))
            .collect();
        out.object(&json!({ "ok": true, "asks": rows }));
        return Ok(Exit::Well);
    }
    if open.asks.is_empty() {
        out.line("No question waits.");
        return Ok(Exit::Well);
    }
    for (n, one) in open.asks.iter().enumerate() {
        if n > 0 {
            out.line("");
        }
        for line in card(paths, one, open.now) {
            // A command is shown as it is, and so is what is pasted.
            if line.starts_with("    ") || line.starts_with("  lembas ") {
                out.line(line);
            } else {
                out.hanging(line, 4);
            }
        }
    }
    Ok(Exit::Well)
}

/// A question with everything a person needs to judge it. The command is shown whole, with
/// hidden and misleading characters marked.
fn card(paths: &Paths, open: &OpenAsk, now: i64) -> Vec<String> {
    let body = &open.body;
    let id = short(open);
    let left = match open.expires_in_ms {
        Some(ms) => format!(
            ", counts as no in {}",
            words::rough(std::time::Duration::from_millis(ms))
        ),
        None => String::new(),
    };
    let mut lines = vec![format!(
        "{id}  {} in {}, asked {} ago{left}",
        escape::visible_line(&body.kind),
        paths.show(std::path::Path::new(&body.cwd)),
        words::ago(open.made, now),
    )];
    let command = escape::visible(&body.command);
    lines.extend(command.lines().map(|line| format!("    {line}")));
    if let Some(diff) = &body.diff {
        lines.extend(
            escape::visible(diff)
                .lines()
                .map(|line| format!("    {line}")),
        );
    }
    if let Some(question) = &body.question {
        lines.extend(choices(question));
        lines.extend(ways_to_choose(question).map(|way| format!("  lembas answer {id} {way}")));
        return lines;
    }
    lines.push(format!(
        "  Why: {}",
        escape::visible_line(body.reason.trim())
    ));
    match body.r#box.as_str() {
        "open" => lines.push("  Box: none, it reaches everything that you reach.".to_owned()),
        "roots" => {
            lines.push("  Box: no network, only the folders writable.".to_owned());
        }
        "read" => lines.push("  Box: no network, nothing writable.".to_owned()),
        _ => {}
    }
    if let Some(covers) = body
        .covers
        .as_ref()
        .filter(|_| body.scopes.contains(&Scope::Always))
    {
        lines.push(format!(
            "  Always would cover: {}",
            escape::visible_line(covers)
        ));
        if let Some(widest) = &body.widest {
            lines.push(format!(
                "  This also covers:   {}",
                escape::visible_line(widest)
            ));
        }
    }
    let ways = body.scopes.iter().map(|scope| match scope {
        Scope::Once => "allow",
        Scope::Session => "allow --session",
        Scope::Always => "allow --always",
    });
    let ways = ways.chain(["refuse"]);
    lines.extend(ways.map(|way| format!("  lembas answer {id} {way}")));
    lines
}

/// What can be typed behind the id of a question with choices.
fn ways_to_choose(question: &Question) -> impl Iterator<Item = String> {
    let choices = question.options.iter().map(|option| {
        let choice = escape::visible_line(&option.id);
        format!("allow --choose {}", quoted(&choice))
    });
    let own = question
        .custom
        .then(|| "allow --note 'your words'".to_owned());
    choices.chain(own).chain(["refuse".to_owned()])
}

/// The choices of a question of the agent, by the ids that `--choose` takes.
fn choices(question: &Question) -> Vec<String> {
    let mut lines = Vec::new();
    for option in &question.options {
        let meaning = option.description.as_deref().unwrap_or_default();
        let line = format!("  {}  {}: {meaning}", option.id, option.label);
        lines.push(escape::visible_line(line.trim_end_matches([':', ' '])));
    }
    if question.multiple {
        lines.push("  Several may be chosen: --choose for each.".to_owned());
    }
    lines
}

/// Enough of the id to name it.
fn short(open: &OpenAsk) -> &str {
    cut::prefix(open.body.ask.as_str(), 6)
}

/// A question in `--json`.
pub(super) fn row(open: &OpenAsk, now: i64, zone: &TimeZone) -> Value {
    let mut row = json!(open.body);
    if let Value::Object(fields) = &mut row {
        fields.insert("session".to_owned(), json!(open.session));
        fields.insert("remote".to_owned(), json!(open.remote));
        fields.insert("made".to_owned(), json!(words::rfc3339(open.made, zone)));
        if let Some(ms) = open.expires_in_ms.and_then(|ms| i64::try_from(ms).ok()) {
            let at = now.saturating_add(ms);
            fields.insert("expires".to_owned(), json!(words::rfc3339(at, zone)));
        }
    }
    row
}

/// The answer of `answer` on the control socket.
#[derive(Debug, Deserialize)]
struct Taken {
    ask: String,
    command: String,
    /// It was a question of the agent.
    #[serde(default)]
    question: bool,
}

pub(super) fn answer(out: Out, paths: &Paths, args: &Answer) -> Ending {
    let allow = args.outcome == AllowOrRefuse::Allow;
    if !allow && (args.session || args.always) {
        let scope = if args.session {
            "--session"
        } else {
            "--always"
        };
        return Err(Failure::new(
            Exit::Usage,
            "usage",
            format!("a refusal counts once: {scope} goes with allow only"),
            format!("lembas answer {} refuse", quoted(&args.ask)),
        ));
    }
    let scope = match (args.session, args.always) {
        (true, _) => Scope::Session,
        (_, true) => Scope::Always,
        _ => Scope::Once,
    };
    let params = json!({
        "ask": args.ask,
        "outcome": if allow { "allow" } else { "refuse" },
        "scope": scope,
        "note": args.note,
        "choose": args.choose,
    });
    let taken: Taken = ask::once(paths, "answer", &params)?;
    if out.json {
        out.object(&json!({
            "ok": true,
            "ask": taken.ask,
            "state": if allow { "allowed" } else { "refused" },
            "scope": scope,
        }));
    } else {
        let verb = match (allow, scope) {
            (true, _) if taken.question => "Answered",
            (false, _) => "Refused",
            (true, Scope::Once) => "Allowed",
            (true, Scope::Session) => "Allowed for the session",
            (true, Scope::Always) => "Allowed always",
        };
        out.verb(
            verb,
            cut::one_line(&escape::visible_line(&taken.command), 80),
        );
    }
    Ok(Exit::Well)
}
