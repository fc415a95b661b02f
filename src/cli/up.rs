//! `lembas up`: an instance and this computer's daemon in one process, linked over loopback by the
//! ordinary pairing. What is not ordinary is only who approves it: this process itself, with the
//! code that it was given, and never because a request came from loopback.

mod found;

use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::Up;
use super::failure::{Exit, Failure};
use super::hub::{self as hub_cli};
use super::out::Out;
use super::{Ending, ask, daemon as daemon_cli, limits, link, logs, terminal};
use crate::clock;
use crate::config::edit::Change;
use crate::config::{Approvals, Config, Live, Mode, Paths, files};
use crate::daemon::control::client::{Client, ControlError};
use crate::daemon::lock::Lock;
use crate::daemon::status::{Limits, Status};
use crate::daemon::{self, Daemon, Start, about};
use crate::hub::{self, Hub, OneTimeLink};
use crate::link::discovery;
use crate::link::http::Http;
use crate::link::instance::{Instance, InstanceError, InstanceFile, device_id};
use crate::link::origin::Base;
use crate::link::pair::{self, About, PairError, Progress};
use crate::link::{LinkState, Phase};
use crate::rt::Tasks;
use crate::text::words;

/// How long the link may take before the page is shown without it.
const LINKED: Duration = Duration::from_secs(10);

/// How long another one may hold the place without answering before that is an error; after how
/// much of it the person is told; and how often it is looked at.
const STARTING: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(50);

pub(super) fn run(out: Out, paths: &Paths, args: &Up) -> Ending {
    logs::begin(paths, "warn");
    let runtime = daemon_cli::runtime()?;
    let ended = runtime.block_on(async {
        match first(out, paths).await? {
            First::Other(client) => attach(out, paths, client, args).await,
            First::Us(lock) => start(out, paths, args, lock).await,
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// Who is the first one with this data.
enum First {
    Us(Lock),
    Other(Client),
}

/// Takes the place of the first one, or finds who has it. One that is just starting has the place
/// and does not answer yet: it is waited for.
async fn first(out: Out, paths: &Paths) -> Result<First, Failure> {
    let began = clock::instant();
    let mut told = false;
    loop {
        match Client::connect(&paths.socket()).await {
            Ok(client) => return Ok(First::Other(client)),
            Err(ControlError::NotRunning) => {}
            Err(error) => return Err(ask::failure(error)),
        }
        match daemon_cli::lock_within(paths, "up", Duration::ZERO).await {
            Ok(lock) => return Ok(First::Us(lock)),
            Err(failure) if began.elapsed() > STARTING => return Err(failure),
            Err(failure) => {
                if !told && began.elapsed() > QUIET {
                    told = true;
                    out.hint(format!("Waiting: {}", failure.text));
                }
            }
        }
        clock::sleep(AGAIN).await;
    }
}

/// A second copy: the first one goes on, and gives a fresh link.
async fn attach(out: Out, paths: &Paths, mut client: Client, args: &Up) -> Ending {
    let status: Status = client
        .request("status", &json!({}))
        .await
        .map_err(ask::failure)?;
    if status.page.is_none() {
        return Err(Failure::new(
            Exit::Unavailable,
            "running",
            format!(
                "lembas {} (pid {}) runs on this computer already, without a page",
                status.what, status.pid
            ),
            "lembas status",
        )
        .or("lembas --data OTHER-FOLDER up          (a second one, apart from it)"));
    }
    let link: Value = client
        .request("hub_link", &json!({}))
        .await
        .map_err(ask::failure)?;
    let text = |key: &str| {
        link.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let link = OneTimeLink {
        token: text("token"),
        url: text("url"),
        expires: link.get("expires").and_then(Value::as_i64).unwrap_or(0),
    };
    if out.json {
        out.object(&json!({
            "ok": true, "state": "running", "url": status.page, "token": link.token,
            "token_expires": time(link.expires), "pid": status.pid, "data": paths.data,
            "device": status.device, "limits": status.limits,
        }));
    } else {
        let zone = TimeZone::system();
        out.step(
            "Running",
            format!(
                "since {} (pid {}), data in {}",
                words::clock(status.since, status.now, &zone),
                status.pid,
                paths.show(&paths.data)
            ),
        );
        out.sign_in(&link.url);
        open(out, paths, args, &link);
    }
    Ok(Exit::Well)
}

async fn start(out: Out, paths: &Paths, args: &Up, lock: Lock) -> Ending {
    let config = prepare(out, paths)?;
    files::private_dir(&paths.hub()).map_err(anyhow::Error::from)?;
    let _hub_lock = hub_cli::lock(paths).await?;
    let listener = hub_cli::listen(args.listen, "lembas up").await?;
    let hubs = Tasks::new();
    let hub = hub::serve(hub_cli::config(paths, &config), listener, &hubs)
        .await
        .map_err(|error| hub_cli::failed(&error))?;
    pair_own(paths, &config, &hub).await?;

    let daemon = Daemon::start(Start {
        paths: paths.clone(),
        live: Live::new(config.clone()),
        lock,
        what: "up",
        link: true,
        more: Some((hub_cli::methods(hub.clone())?, hub.url().to_owned())),
    })
    .await?;
    say_begun(out, paths);
    let linked = wait_linked(&daemon).await;
    let link = hub.one_time_link().await.map_err(anyhow::Error::from)?;
    let (models, servers) = tokio::join!(hub.models(), found::look());
    let models = models.map_err(anyhow::Error::from)?;
    let signals = daemon_cli::Signals::listen()?;
    say(
        out,
        paths,
        &Said {
            config: &config,
            hub: &hub,
            link: &link,
            linked: linked.as_ref(),
            model: chosen(&models),
            servers: &servers,
            device: device_id(&paths.config)
                .await
                .map_err(anyhow::Error::from)?
                .to_string(),
        },
    );
    open(out, paths, args, &link);
    daemon::ready();

    signals.until_told(&daemon).await;
    if out.person {
        out.hint("");
    }
    daemon.stop().await;
    hubs.end().await;
    Ok(Exit::Well)
}

/// The settings, with those of a first start: up to Edit, answers from the page count in full
/// because it is the person's own process, and the folder one stands in after a yes. It asks for
/// the folder again while none is allowed.
fn prepare(out: Out, paths: &Paths) -> Result<Config, Failure> {
    let mut changes = Vec::new();
    if paths.config_file().exists() {
        let config = limits::read(paths)?;
        if !config.remote.roots.is_empty() {
            return Ok(config);
        }
    } else {
        changes.extend([
            Change::MaxMode(Mode::Edit),
            Change::Approvals(Approvals::Full),
        ]);
        if out.person {
            let limits = "up to Edit; answers on the page count, also for always.";
            out.step(
                "First start",
                format!("{limits}  lembas mode, lembas approvals"),
            );
        }
    }
    if let Some(folder) = terminal::here(paths)
        && out.yes(&format!("Allow work in {}?", paths.show(&folder)))
    {
        changes.push(Change::AddRoot(folder));
    }
    Ok(limits::change(paths, &changes)?.config)
}

/// Links this computer to the hub of this process, unless it is. One that is linked to another
/// instance stays so.
async fn pair_own(paths: &Paths, config: &Config, hub: &Hub) -> Result<(), Failure> {
    let broken = |error: &InstanceError| link::kept(paths, error);
    let file = InstanceFile::in_folder(&paths.config);
    let before = file.load().await.map_err(|error| broken(&error))?;
    if let Some(before) = &before
        && before.instance != hub.instance()
    {
        return Err(Failure::new(
            Exit::Not,
            "linked",
            format!(
                "this computer is linked to another instance, {}",
                before.url
            ),
            "lembas --data OTHER-FOLDER up          (a second one, apart from it)",
        )
        .or("lembas unlink"));
    }
    let base = Base::read(hub.url()).map_err(anyhow::Error::from)?;
    let http = Http::new(&config.link, about::proxies()).map_err(anyhow::Error::from)?;
    let found = discovery::discover(&base, &http)
        .await
        .map_err(anyhow::Error::from)?;
    if let Some(before) = before {
        // The same hub, perhaps on another port: its addresses are the new ones.
        let now = Instance {
            url: found.base.to_string(),
            link: found.link.to_string(),
            models: found.models.as_ref().map(ToString::to_string),
            ..(*before).clone()
        };
        if now != *before {
            file.save(now).await.map_err(|error| broken(&error))?;
        }
        return Ok(());
    }
    let me = About {
        device: device_id(&paths.config)
            .await
            .map_err(|error| broken(&error))?,
        name: about::name(config),
        os: about::os().to_owned(),
        arch: about::arch().to_owned(),
        limits: about::described(paths, config).await,
    };
    // The code reaches the approval inside this process, over a channel.
    let (give, take) = tokio::sync::oneshot::channel();
    let mut give = Some(give);
    let tell = |progress| match progress {
        Progress::Code(code) => {
            if let Some(give) = give.take() {
                // The receiver lives as long as the pairing.
                let _ = give.send(code.code);
            }
        }
        Progress::Waiting { trouble } => {
            tracing::warn!(trouble, "this computer's own pairing is not through yet");
        }
        Progress::Found(_) | Progress::Linked(_) => {}
    };
    let approved = async {
        if let Ok(code) = take.await
            && let Err(error) = hub.approve_own(&code).await
        {
            tracing::error!(%error, "this computer's own pairing could not be approved");
        }
    };
    let instance = pair::pair_when(&found, &me, &http, tell, approved);
    let instance: Instance = instance
        .await
        .map_err(|error: PairError| anyhow::Error::from(error))?;
    file.save(instance).await.map_err(|error| broken(&error))
}

/// The state of the link once it is up, or after a while as it is then.
async fn wait_linked(daemon: &Daemon) -> Option<LinkState> {
    let mut state = daemon.link_state()?;
    let linked = state.wait_for(|state| {
        matches!(
            state.phase,
            Phase::Linked | Phase::Revoked | Phase::Version | Phase::Replaced
        )
    });
    // A link that is late is shown as it stands.
    let _ = clock::timeout(LINKED, linked).await;
    Some(state.borrow().clone())
}

/// The name of the model that a chat gets, and whether it is the practice model.
fn chosen(models: &[Value]) -> (String, bool) {
    let is = |model: &&Value, key: &str| model.get(key).and_then(Value::as_bool) == Some(true);
    let model = models
        .iter()
        .find(|model| is(model, "default"))
        .or_else(|| models.first());
    let text = |key: &str| {
        model
            .and_then(|model| model.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    (
        text("id"),
        model.is_some_and(|model| is(&model, "practice")),
    )
}

struct Said<'a> {
    config: &'a Config,
    hub: &'a Hub,
    link: &'a OneTimeLink,
    linked: Option<&'a LinkState>,
    model: (String, bool),
    servers: &'a [found::Server],
    device: String,
}

/// Said before the link is waited for, which may take a while on a busy machine.
fn say_begun(out: Out, paths: &Paths) {
    if !out.json {
        out.step(
            "Started",
            format!(
                "hub and this computer's daemon, data in {}",
                paths.show(&paths.data)
            ),
        );
    }
}

fn say(out: Out, paths: &Paths, said: &Said<'_>) {
    let name = about::name(said.config);
    let (model, practice) = &said.model;
    if out.json {
        let servers: Vec<Value> = said
            .servers
            .iter()
            .map(|one| json!({ "server": one.name, "url": one.url, "models": one.models }))
            .collect();
        out.object(&json!({
            "ok": true, "state": "started", "url": said.hub.url(), "token": said.link.token,
            "token_expires": time(said.link.expires), "pid": std::process::id(),
            "data": paths.data, "device": { "id": said.device, "name": name },
            "limits": Limits::from(said.config),
            "model": { "id": model, "practice": practice },
            "found_models": servers,
        }));
        return;
    }
    match said.linked {
        Some(state) if state.phase != Phase::Linked => {
            let why = if state.reason.is_empty() {
                String::new()
            } else {
                format!(": {}", state.reason)
            };
            out.step("Link", format!("{}{why}", state.phase));
        }
        _ => out.step(
            "Linked",
            format!("{name}, {}", about::limits(paths, said.config)),
        ),
    }
    if *practice {
        out.step("Model", "practice model (a script without intelligence)");
    } else {
        out.step("Model", model);
    }
    for server in said.servers {
        let count = words::plural(server.models, "model", "models");
        out.hint(format!(
            "              found: {} on {} with {count}, choose one on the page",
            server.title, server.at
        ));
    }
    out.hint("");
    out.sign_in(&said.link.url);
    out.hint("");
    if said.config.remote.roots.is_empty() {
        out.hint("Allow a folder:    lembas roots add ~/projects");
    }
    out.hint("From a phone:      needs HTTPS, see lembas help phone");
    out.hint("Ctrl-C stops it.");
}

/// A browser, for a person who sits here and did not say no.
fn open(out: Out, paths: &Paths, args: &Up, link: &OneTimeLink) {
    if out.person && !args.no_open {
        terminal::browse(paths, &link.url);
    }
}

/// A moment, as `--json` carries it.
pub(super) fn time(ms: i64) -> String {
    words::rfc3339(ms, &TimeZone::system())
}
