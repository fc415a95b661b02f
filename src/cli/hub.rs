//! `lembas hub`: an instance of one's own, and caring for it while it runs.

mod table;

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::{Hub, HubAction, HubModel, HubUser};
use super::failure::{Exit, Failure, unopened};
use super::out::{Out, put};
use super::{Ending, ask, logs, port};
use crate::config::{Config, Paths, files};
use crate::daemon::about;
use crate::daemon::control::client::{Client, ControlError};
use crate::daemon::control::{self, Methods, server};
use crate::daemon::lock::{Lock, LockError};
use crate::hub::{self, HubConfig, HubError, OneTimeLink, TlsError, TlsFiles};
use crate::rt::Tasks;
use crate::text::words;
use crate::text::words::quoted;

pub(super) use table::{MODELS, USERS, methods};

/// Chunks a second of the practice model: readable, and not slow.
const PRACTICE_PACE: u32 = 30;

pub(super) fn run(out: Out, paths: &Paths, args: Hub) -> Ending {
    match args.action {
        None => serve(out, paths, &args),
        Some(HubAction::Link { user }) => one_time(out, paths, user.as_deref()),
        Some(HubAction::Model { action }) => model(out, paths, action),
        Some(HubAction::User { action }) => user(out, paths, action),
    }
}

/// The settings of a hub in this data folder.
pub(super) fn config(paths: &Paths, config: &Config) -> HubConfig {
    HubConfig {
        data: paths.hub(),
        name: about::name(config),
        practice_pace: PRACTICE_PACE,
        ..HubConfig::default()
    }
}

/// Listens, or says who is there already.
pub(super) async fn listen(at: SocketAddr, command: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(at).await.map_err(|error| {
        if error.kind() == std::io::ErrorKind::AddrInUse {
            let who = port::holder(at.port())
                .map(|(name, pid)| format!(" by {name} (pid {pid})"))
                .unwrap_or_default();
            Failure::new(
                Exit::Unavailable,
                "in_use",
                format!("cannot listen on {at}: the port is in use{who}"),
                format!(
                    "{command} --listen {}        (any free port)",
                    SocketAddr::new(at.ip(), 0)
                ),
            )
        } else {
            Failure::new(
                Exit::Unavailable,
                "listen",
                format!("cannot listen on {at}"),
                format!("{command} --listen 127.0.0.1:8787"),
            )
            .why(words::io(&error))
        }
    })
}

fn serve(out: Out, paths: &Paths, args: &Hub) -> Ending {
    logs::begin(paths, "info");
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles {
            cert: cert.clone(),
            key: key.clone(),
        }),
        _ => None,
    };
    let runtime = super::daemon::runtime()?;
    let ended = runtime.block_on(async {
        let settings = super::limits::read(paths)?;
        let mut config = config(paths, &settings);
        config.tls = tls;
        config.url = args.url.clone();
        files::private_dir(&paths.hub()).map_err(anyhow::Error::from)?;
        let _lock = lock(paths).await?;
        let listener = listen(args.listen, "lembas hub").await?;
        let tasks = Tasks::new();
        let hub = hub::serve(config, listener, &tasks)
            .await
            .map_err(|error| failed(&error))?;
        let socket = paths.hub_socket();
        let listener = server::bind(&socket).map_err(anyhow::Error::from)?;
        server::serve(
            listener,
            methods(hub.clone())?,
            std::sync::Arc::new(NoStreams),
            &tasks,
        );

        let first = !hub.is_set_up().await.map_err(anyhow::Error::from)?;
        let link = match first {
            true => Some(hub.one_time_link().await.map_err(anyhow::Error::from)?),
            false => None,
        };
        let (mut term, mut int) = signals()?;
        say_started(out, paths, hub.url(), link.as_ref());
        if hub.assumed() && !out.json {
            out.hint(format!(
                "It listens on every address, and {} is this computer's own name for itself. \
                 Another:  lembas hub --url https://NAME",
                hub.url()
            ));
        }
        crate::daemon::ready();
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        // The socket goes first, so that a command that comes now does not meet a hub that ends.
        let _ = std::fs::remove_file(&socket);
        tasks.end().await;
        Ok(Exit::Well)
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

fn say_started(out: Out, paths: &Paths, url: &str, link: Option<&OneTimeLink>) {
    if out.json {
        let mut object = json!({
            "ok": true, "state": "started", "url": url, "pid": std::process::id(),
            "data": paths.hub(),
        });
        if let Some(link) = link {
            put(&mut object, "token", &link.token);
            put(&mut object, "token_expires", super::up::time(link.expires));
        }
        out.object(&object);
        return;
    }
    out.step(
        "Started",
        format!("hub, data in {}", paths.show(&paths.hub())),
    );
    match link {
        Some(link) => {
            out.sign_in(&link.url);
        }
        None => {
            out.line(format!("Open  {url}"));
            out.hint("A link that signs in:  lembas hub link");
        }
    }
    out.hint("Ctrl-C stops it.");
}

/// The signals that end a hub, listened to before anybody is told that it runs.
fn signals() -> Result<(Signal, Signal), Failure> {
    let failed = |error: std::io::Error| Failure::from(anyhow::Error::from(error));
    let term = signal(SignalKind::terminate()).map_err(failed)?;
    let int = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok((term, int))
}

/// The lock of the hub's data.
pub(super) async fn lock(paths: &Paths) -> Result<Lock, Failure> {
    let path = paths.hub().join("hub.lock");
    Lock::take(&path, "hub", Duration::from_secs(2))
        .await
        .map_err(|error| match error {
            LockError::Held(holder) => {
                let pid = holder
                    .pid
                    .map(|pid| format!(" (pid {pid})"))
                    .unwrap_or_default();
                Failure::new(
                    Exit::Unavailable,
                    "running",
                    format!("a hub runs with this data already{pid}"),
                    "lembas hub link",
                )
            }
            LockError::Io(error) => Failure::new(
                Exit::Config,
                "folder",
                format!("{} cannot be used", paths.show(&path)),
                format!("ls -ld {}", quoted(&paths.show(&paths.hub()))),
            )
            .why(words::io(&error)),
        })
}

pub(super) fn failed(error: &HubError) -> Failure {
    if let HubError::Tls(error) = error {
        return bad_tls(error);
    }
    if let HubError::Store(error) = error
        && let Some(failure) = unopened(error)
    {
        return failure;
    }
    let why = match error {
        HubError::Listener(source) => Some(words::io(source)),
        _ => std::error::Error::source(error).map(ToString::to_string),
    };
    let (exit, code, fix) = match error {
        HubError::Folder { path, .. } => (
            Exit::Config,
            "folder",
            format!("ls -ld {}", quoted(&path.display().to_string())),
        ),
        _ => (Exit::Unavailable, "store", "df -h ~".to_owned()),
    };
    let failure = Failure::new(exit, code, error.to_string(), fix);
    match why {
        Some(why) => failure.why(why),
        None => failure,
    }
}

/// What is wrong with the files of `--tls-cert` and `--tls-key`.
fn bad_tls(error: &TlsError) -> Failure {
    let name = |path: &Path| quoted(&path.display().to_string());
    let x509 = |path: &Path, show: &str| format!("openssl x509 -in {} -noout -{show}", name(path));
    let pkey = |path: &Path| format!("openssl pkey -in {} -noout", name(path));
    let (fix, why) = match error {
        TlsError::Unreadable { path, source, .. } => {
            (format!("ls -l {}", name(path)), Some(words::io(source)))
        }
        TlsError::Nothing { what, path } if *what == "certificate" => (
            x509(path, "subject"),
            Some("a PEM file is wanted, with a line -----BEGIN CERTIFICATE-----".to_owned()),
        ),
        TlsError::Nothing { path, .. } => (
            pkey(path),
            Some(
                "a PEM file is wanted, with a line -----BEGIN PRIVATE KEY----- (not an encrypted one)"
                    .to_owned(),
            ),
        ),
        TlsError::Damaged { what, path } if *what == "certificate" => (x509(path, "subject"), None),
        TlsError::Damaged { path, .. } => (pkey(path), None),
        TlsError::OtherKey { cert, key } => (
            format!(
                "{}; openssl pkey -in {} -pubout",
                x509(cert, "pubkey"),
                name(key)
            ),
            None,
        ),
        TlsError::Ended { path, .. } => (
            x509(path, "dates"),
            Some("no browser and no computer accepts it any more".to_owned()),
        ),
        TlsError::NotYet { path, .. } => (
            x509(path, "dates"),
            Some(
                "no browser and no computer accepts it before that; \
                 or is this computer's clock wrong?"
                    .to_owned(),
            ),
        ),
        TlsError::Other { path, source } => (x509(path, "text"), Some(source.to_string())),
    };
    let failure = Failure::new(Exit::Config, "tls", error.to_string(), fix);
    match why {
        Some(why) => failure.why(why),
        None => failure,
    }
}

/// A hub has no streams: such a connection is closed.
struct NoStreams;

impl server::Streams for NoStreams {
    fn acp(
        &self,
        _stream: tokio::net::UnixStream,
        _early: bytes::BytesMut,
    ) -> futures_util::future::BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Asks the hub that runs: one of its own, or the one of `lembas up`. Where none runs, one is
/// started for this question alone; what brings a link to the page needs one that stays.
fn ask_hub(paths: &Paths, method: &'static str, params: &Value) -> Result<Value, Failure> {
    ask::runtime()?.block_on(async {
        for socket in [paths.hub_socket(), paths.socket()] {
            match Client::connect(&socket).await {
                Ok(mut client) => match client.request(method, params).await {
                    // A daemon without a hub does not know the method.
                    Err(ControlError::Refused { detail, .. }) if detail.code.is_empty() => {}
                    other => return other.map_err(ask::failure),
                },
                Err(ControlError::NotRunning) => {}
                Err(error) => return Err(ask::failure(error)),
            }
        }
        if matches!(method, table::LINK | table::ADD_USER) {
            return Err(Failure::new(
                Exit::Unavailable,
                "not_running",
                "no hub runs on this computer",
                "lembas hub",
            )
            .or("lembas up"));
        }
        alone(paths, method, params).await
    })
}

/// What the hub that runs on this computer answers; none where none runs.
pub(super) fn if_running(paths: &Paths, method: &'static str) -> Option<Value> {
    [paths.hub_socket(), paths.socket()]
        .iter()
        .find_map(|socket| {
            let asked = ask::runtime().ok()?.block_on(async {
                let mut client = Client::connect(socket).await?;
                client.request(method, &json!({})).await
            });
            asked.ok()
        })
}

async fn alone(paths: &Paths, method: &str, params: &Value) -> Result<Value, Failure> {
    let settings = super::limits::read(paths)?;
    files::private_dir(&paths.hub()).map_err(anyhow::Error::from)?;
    let _lock = lock(paths).await?;
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), "lembas hub").await?;
    let tasks = Tasks::new();
    let hub = hub::serve(config(paths, &settings), listener, &tasks)
        .await
        .map_err(|error| failed(&error))?;
    let methods: Methods = methods(hub)?;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = methods.raw_json_request(&request.to_string(), 1).await;
    tasks.end().await;
    let (answer, _) = answer.map_err(anyhow::Error::from)?;
    control::client::read(answer.get()).map_err(ask::failure)
}

fn one_time(out: Out, paths: &Paths, user: Option<&str>) -> Ending {
    let params = match user {
        Some(name) => json!({ "name": name }),
        None => json!({}),
    };
    let link: table::Link = read(ask_hub(paths, table::LINK, &params)?)?;
    if out.json {
        out.object(&json!({
            "ok": true, "url": link.url, "token": link.token,
            "token_expires": super::up::time(link.expires),
        }));
    } else {
        out.sign_in(&link.url);
    }
    Ok(Exit::Well)
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::from(anyhow::Error::from(error)))
}

#[derive(Debug, Deserialize)]
struct Models {
    models: Vec<Value>,
}

fn model(out: Out, paths: &Paths, action: HubModel) -> Ending {
    match action {
        HubModel::Add {
            name,
            url,
            key_file,
            model,
        } => {
            let key = key_file
                .as_deref()
                .map(|file| secret(paths, file))
                .transpose()?;
            let params = json!({
                "name": name, "url": url, "key": key,
                "model": model.unwrap_or_else(|| name.clone()),
            });
            out.waiting("Trying", format!("{url}, up to 10 s"));
            let tested: table::Tested = read(ask_hub(paths, table::ADD_MODEL, &params)?)?;
            say_model(out, "Added", "added", &tested);
        }
        HubModel::Test { name } => {
            let params = json!({ "name": name });
            out.waiting("Trying", format!("{name}, up to 10 s"));
            let tested: table::Tested = read(ask_hub(paths, table::TEST_MODEL, &params)?)?;
            say_model(out, "Answers", "answers", &tested);
        }
        HubModel::Remove { name } => {
            ask_hub(paths, table::REMOVE_MODEL, &json!({ "name": name }))?;
            if out.json {
                out.object(&json!({ "ok": true, "state": "removed", "name": name }));
            } else {
                out.verb("Removed", name);
            }
        }
        HubModel::List => {
            let list: Models = read(ask_hub(paths, MODELS, &json!({}))?)?;
            if out.json {
                out.object(&json!({ "ok": true, "models": list.models }));
                return Ok(Exit::Well);
            }
            let mut table = crate::text::table::Table::new(["MODEL", "AT", "LAST TEST"]);
            for model in &list.models {
                let text = |key: &str| {
                    let text = model.get(key).and_then(Value::as_str).unwrap_or_default();
                    crate::text::escape::visible_line(text)
                };
                let mark = match model.get("default").and_then(Value::as_bool) {
                    Some(true) => " (default)",
                    _ => "",
                };
                table.row([
                    format!("{}{mark}", text("name")),
                    text("url"),
                    text("state"),
                ]);
            }
            out.table(&table);
        }
    }
    Ok(Exit::Well)
}

fn say_model(out: Out, verb: &str, state: &str, tested: &table::Tested) {
    if out.json {
        out.object(&json!({
            "ok": true, "state": state, "id": tested.id, "text": tested.text, "ms": tested.ms,
        }));
    } else {
        out.verb(verb, format!("{}: {}", tested.id, tested.text));
    }
}

/// A key from a file, or from stdin with `-`: never from the arguments, which others can read.
fn secret(paths: &Paths, file: &Path) -> Result<String, Failure> {
    let read = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map(|text| text.trim().to_owned()).map_err(|error| {
        Failure::new(
            Exit::Not,
            "key_file",
            format!("the key cannot be read from {}", paths.show(file)),
            format!("ls -l {}", quoted(&file.display().to_string())),
        )
        .why(words::io(&error))
    })
}

#[derive(Debug, Deserialize)]
struct Users {
    users: Vec<User>,
}

#[derive(Debug, Deserialize)]
struct User {
    name: String,
    password: bool,
}

fn user(out: Out, paths: &Paths, action: HubUser) -> Ending {
    match action {
        HubUser::List => {
            let list: Users = read(ask_hub(paths, USERS, &json!({}))?)?;
            if out.json {
                let names: Vec<&str> = list.users.iter().map(|user| user.name.as_str()).collect();
                out.object(&json!({ "ok": true, "users": names }));
                return Ok(Exit::Well);
            }
            for user in &list.users {
                let name = crate::text::escape::visible_line(&user.name);
                let note = if user.password {
                    ""
                } else {
                    "   no password yet:  lembas hub link"
                };
                out.line(format!("{name}{note}"));
            }
        }
        HubUser::Add { name } => {
            let params = json!({ "name": name });
            let link: table::Link = read(ask_hub(paths, table::ADD_USER, &params)?)?;
            if out.json {
                out.object(&json!({
                    "ok": true, "state": "added", "name": name, "url": link.url,
                    "token": link.token, "token_expires": super::up::time(link.expires),
                }));
            } else {
                out.step(
                    "Added",
                    format!("{name}, who signs in with this and sets a password"),
                );
                out.sign_in(&link.url);
            }
        }
    }
    Ok(Exit::Well)
}
