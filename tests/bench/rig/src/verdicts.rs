//! How long a judgement takes: the engine of the program with the facts of this computer, warm.
//! It is one thread that waits for nothing, so its CPU time is counted: what else the computer does
//! meanwhile does not.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lembas::config::{Approvals, Mode, Sudo};
use lembas::exec::Computer;
use lembas::ids::SessionId;
use lembas::permission::{Action, Attended, Command, Context, Engine, Origin, Purpose, Request};
use serde_json::{Value, json};

/// So often each command is judged.
const ROUNDS: usize = 50;
/// As long as a command can be that is still read.
const LONG: usize = 64 * 1024 - 64;

/// One shape that is taken for what it is, and some that a hostile text may have: what stands
/// before, the piece that is repeated, what stands behind.
const SHAPES: &[(&str, &str, &str)] = &[
    ("echo ", "a b ", ""),
    ("", "a|", ""),
    ("", "$(", ""),
    ("", "\"$(", ""),
    ("", "{", ""),
    ("", "env ", ""),
    ("sh -c '", "a;", "'"),
    ("sh <<'E'\n", "a\n", "E\n"),
    ("echo \"", "!a|", "\" | bash"),
    ("echo \"", "$(a) ", "\""),
    ("", "a=$a$a;", ""),
    ("cat ", "/a ", ""),
    ("cat ", "/a", ""),
];

/// `commands`: a file of lines whose second column is a command as a JSON string; the first hundred
/// are taken. `folder`: where they would run.
pub(crate) fn run(commands: &str, folder: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(commands)?;
    let commands: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| serde_json::from_str(line.split('\t').nth(1)?).ok())
        .take(100)
        .collect();
    let folder = Path::new(folder).canonicalize()?;
    let engine = Engine::with(Arc::new(Computer::new(Vec::new())));
    let context = Context {
        session: SessionId::new("bench"),
        origin: Origin::Local,
        mode: Mode::Edit,
        roots: vec![folder.clone()],
        attended: Attended::Person,
        approvals: Approvals::Once,
        sudo: Sudo::Refuse,
        released: Vec::new(),
    };
    let time = |text: &str| {
        let request = Request {
            tool: "bash".to_owned(),
            action: Action::Execute(Command {
                text: text.to_owned(),
                timeout: Duration::from_secs(60),
                purpose: Purpose::Tool,
                open: None,
            }),
            cwd: folder.clone(),
        };
        let start = used();
        std::hint::black_box(engine.judge(&request, &context, &[]));
        used().saturating_sub(start)
    };
    for command in &commands {
        time(command);
    }
    let mut times: Vec<Duration> = (0..ROUNDS)
        .flat_map(|_| commands.iter().map(|c| time(c)))
        .collect();
    times.sort();
    let at =
        |part: usize| times.get((times.len() * part / 1000).min(times.len().saturating_sub(1)));
    let long: Vec<Value> = SHAPES
        .iter()
        .map(|(before, piece, after)| {
            let text = format!("{before}{}{after}", piece.repeat(LONG / piece.len()));
            time(&text);
            let mut five: Vec<Duration> = (0..5).map(|_| time(&text)).collect();
            five.sort();
            json!({ "piece": format!("{before}{piece}"), "ms": five.get(2).copied().map(ms) })
        })
        .collect();
    let mut each: Vec<(Duration, &String)> = commands
        .iter()
        .map(|command| {
            let mut times: Vec<Duration> = (0..5).map(|_| time(command)).collect();
            times.sort();
            (times.get(2).copied().unwrap_or_default(), command)
        })
        .collect();
    each.sort();
    let slowest: Vec<Value> = each
        .iter()
        .rev()
        .take(3)
        .map(|(time, command)| json!({ "ms": ms(*time), "command": command }))
        .collect();
    let said = json!({ "slowest": slowest, "commands": commands.len(), "judged": times.len(), "p50_ms": at(500).copied().map(ms),
        "p99_ms": at(990).copied().map(ms), "max_ms": times.last().copied().map(ms), "long": long });
    writeln!(io::stdout(), "{said}")
}

/// CPU time of this thread so far.
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
