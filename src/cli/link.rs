//! `lembas link` and `lembas unlink`: pairing as a person sees it.

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::{Link, LinkAction};
use super::failure::{Exit, Failure};
use super::out::{Out, put};
use super::{Ending, ask, limits, terminal};
use crate::clock;
use crate::config::edit::Change;
use crate::config::{Approvals, Config, Mode, Paths};
use crate::daemon::about;
use crate::daemon::status::{Limits, Linked};
use crate::link::discovery::{self, DiscoveryError, Found};
use crate::link::http::{Http, HttpError};
use crate::link::instance::{Instance, InstanceError, InstanceFile, device_id};
use crate::link::origin::{Base, BaseError};
use crate::link::pair::{self, About, Code, PairError, Progress};
use crate::secret::FileError;
use crate::text::words;

pub(super) fn run(out: Out, paths: &Paths, args: &Link) -> Ending {
    match (&args.action, &args.url) {
        (Some(LinkAction::Retry), _) => dial(out, paths, "retry"),
        (Some(LinkAction::Take), _) => dial(out, paths, "take"),
        (None, Some(url)) => ask::runtime()?.block_on(async {
            tokio::select! {
                done = link(out, paths, url) => done,
                exit = terminal::told_to_end() => Err(Failure::new(
                    exit,
                    "stopped",
                    "stopped; this computer is not linked",
                    format!("lembas link {}", words::quoted(url)),
                )),
            }
        }),
        (None, None) => Err(Failure::new(
            Exit::Usage,
            "usage",
            "lembas link needs URL",
            "lembas link --help",
        )),
    }
}

fn dial(out: Out, paths: &Paths, how: &str) -> Ending {
    let linked: Linked = ask::once(paths, "link", &json!({ "do": how }))?;
    if linked.state == "never" {
        return Err(Failure::new(
            Exit::Not,
            "not_linked",
            "this computer is not linked",
            "lembas link https://your.address",
        ));
    }
    if out.json {
        out.object(&json!({ "ok": true, "state": linked.state }));
    } else {
        out.verb("Dialling", linked.instance.unwrap_or_default());
    }
    Ok(Exit::Well)
}

async fn link(out: Out, paths: &Paths, url: &str) -> Ending {
    let config = limits::read(paths)?;
    let base = Base::read(url).map_err(|error| address(&error, url))?;
    let http = Http::new(&config.link, about::proxies()).map_err(|error| settings(&error))?;
    let file = InstanceFile::in_folder(&paths.config);
    // A file that cannot be understood is replaced: that is what linking anew is for.
    let before = match file.load().await {
        Err(InstanceError::Unreadable { .. }) => None,
        other => other.map_err(|error| kept(paths, &error))?,
    };
    out.waiting("Asking", host(&base.to_string()));
    let found = discovery::discover(&base, &http)
        .await
        .map_err(|error| not_found(error, url))?;
    if let Some(before) = &before
        && before.instance != found.instance
    {
        return Err(Failure::new(
            Exit::Not,
            "linked",
            format!(
                "this computer is linked to another instance, {}",
                before.url
            ),
            "lembas unlink",
        )
        .why("it is linked to one at a time; what one may do here does not pass on to the next"));
    }
    say_found(out, &found);

    let me = About {
        device: device_id(&paths.config)
            .await
            .map_err(|error| kept(paths, &error))?,
        name: about::name(&config),
        os: about::os().to_owned(),
        arch: about::arch().to_owned(),
        limits: about::described(paths, &config).await,
    };
    let waiting = terminal::Waiting::default();
    let mut last_code = None;
    let pairing = pair::pair(&found, &me, &http, |progress| match progress {
        Progress::Code(code) => {
            say_code(out, &code, &me.name);
            waiting.begin(code.expires_in);
            last_code = Some(code.code);
        }
        Progress::Waiting { trouble } => waiting.trouble(trouble),
        Progress::Found(_) | Progress::Linked(_) => {}
    });
    let quiet = terminal::Quiet::begin(out);
    let instance = tokio::select! {
        instance = pairing => instance,
        never = waiting.tick(out) => match never {},
    };
    drop(quiet);
    let instance = instance.map_err(|error| unpaired(error, url, last_code.as_deref()))?;
    file.save(instance.clone())
        .await
        .map_err(|error| kept(paths, &error))?;
    if let Some(before) = before {
        // The old token of the same instance: of no use to anybody, and best effort.
        let _ = clock::timeout(Duration::from_secs(5), pair::revoke(&before, &http)).await;
    }
    let told = reload(paths).await;
    let config = offer_folder(out, paths, config)?;
    say_linked(out, paths, &instance, &config, &me.name, told);
    Ok(Exit::Well)
}

/// Has a daemon that runs take up the new pairing. False where none runs.
async fn reload(paths: &Paths) -> bool {
    use crate::daemon::control::client::Client;
    let Ok(mut client) = Client::connect(&paths.socket()).await else {
        return false;
    };
    client
        .request::<Value>("link", &json!({ "do": "reload" }))
        .await
        .is_ok()
}

/// Has a daemon that runs read the settings.
async fn look(paths: &Paths) {
    use crate::daemon::control::client::Client;
    if let Ok(mut client) = Client::connect(&paths.socket()).await {
        // It sees the change by itself too, a moment later.
        let _ = client.request::<Value>("look", &json!({})).await;
    }
}

/// Offers to allow work in the folder the person stands in, where that is a sensible one.
fn offer_folder(out: Out, paths: &Paths, config: Config) -> Result<Config, Failure> {
    if !config.remote.roots.is_empty() {
        return Ok(config);
    }
    match terminal::here(paths) {
        Some(folder) if out.yes(&format!("Allow work in {}?", paths.show(&folder))) => {
            Ok(limits::change(paths, &[Change::AddRoot(folder)])?.config)
        }
        _ => Ok(config),
    }
}

fn say_found(out: Out, found: &Found) {
    if out.json {
        out.object(&json!({
            "event": "found",
            "instance": {
                "url": found.base.to_string(),
                "name": found.name,
                "protocol": crate::acp::PROTOCOL,
            },
        }));
    } else {
        out.step(
            "Found",
            format!(
                "LLeMbas at {}, called \"{}\", link protocol {}",
                host(&found.base.to_string()),
                found.name,
                crate::acp::PROTOCOL
            ),
        );
    }
}

/// The address and the code come first and at once: what a person or a script needs.
fn say_code(out: Out, code: &Code, name: &str) {
    if out.json {
        let expires = clock::now_ms()
            .saturating_add(i64::try_from(code.expires_in.as_millis()).unwrap_or(i64::MAX));
        let mut object = json!({
            "event": "code",
            "address": code.page.as_str(),
            "code": code.code,
            "expires": words::rfc3339(expires, &TimeZone::system()),
        });
        if let Some(with_code) = &code.page_with_code {
            put(&mut object, "address_with_code", with_code.as_str());
        }
        out.object(&object);
        return;
    }
    out.hint("");
    out.line(format!(
        "Open   {}       on any device, and enter   {}",
        code.page, code.code
    ));
    out.hint("");
    if out.person
        && let Some(with_code) = &code.page_with_code
        && let Some(picture) = terminal::qr(with_code.as_str())
    {
        out.hint(picture);
    }
    out.hint(format!(
        "The page must show this code and the name {name}. Ctrl-C stops."
    ));
}

fn say_linked(
    out: Out,
    paths: &Paths,
    instance: &Instance,
    config: &Config,
    name: &str,
    told: bool,
) {
    if out.json {
        out.object(&json!({
            "ok": true,
            "event": "linked",
            "account": instance.account.name,
            "device": { "id": instance.device, "name": name },
            "limits": Limits::from(config),
        }));
        return;
    }
    out.hint("");
    out.verb(
        "Linked",
        format!(
            "{name} to {} for {}",
            host(&instance.url),
            instance.account.name
        ),
    );
    out.step(
        "Token",
        format!(
            "kept in {}, readable by you only, replaced every 30 days",
            paths.show(&paths.config)
        ),
    );
    out.step("Works in", about::works_in(paths, config));
    out.step(
        "Up to",
        format!(
            "{}, scheduled work {}",
            config.remote.max_mode.title(),
            if config.remote.scheduled { "on" } else { "off" }
        ),
    );
    out.hint("\nWhat it can do with this computer:  lembas help remote");
    if config.remote.roots.is_empty() {
        out.hint("Next:  lembas roots add ~/projects");
    }
    if !told {
        out.hint("Next:  lembas daemon          (nothing comes while it does not run)");
    }
}

pub(super) fn unlink(out: Out, paths: &Paths) -> Ending {
    ask::runtime()?.block_on(async {
        let config = limits::read(paths)?;
        let file = InstanceFile::in_folder(&paths.config);
        let before = file.load().await;
        let instance = match before {
            Ok(None) => {
                return Err(Failure::new(
                    Exit::Not,
                    "not_linked",
                    "this computer is not linked",
                    "lembas link https://your.address",
                ));
            }
            Ok(Some(instance)) => Some(instance),
            Err(InstanceError::Unreadable { .. }) => None,
            Err(error) => return Err(kept(paths, &error)),
        };
        file.forget().await.map_err(|error| kept(paths, &error))?;
        reload(paths).await;
        // What this instance was allowed does not pass on to the next.
        let mut changes = vec![
            Change::MaxMode(Mode::Manual),
            Change::Approvals(Approvals::Once),
            Change::Scheduled(false),
        ];
        changes.extend(config.remote.roots.iter().cloned().map(Change::RemoveRoot));
        limits::change(paths, &changes)?;
        look(paths).await;
        if let Some(instance) = &instance {
            out.waiting("Telling", format!("{}, up to 10 s", host(&instance.url)));
        }
        let taken_back = match &instance {
            Some(instance) => match Http::new(&config.link, about::proxies()) {
                Ok(http) => {
                    let revoke = pair::revoke(instance, &http);
                    matches!(
                        clock::timeout(Duration::from_secs(10), revoke).await,
                        Ok(Ok(()))
                    )
                }
                Err(_) => false,
            },
            None => false,
        };
        let url = instance
            .as_ref()
            .map(|instance| instance.url.clone())
            .unwrap_or_default();
        if out.json {
            out.object(&json!({
                "ok": true, "state": "unlinked", "instance": url, "revoked": taken_back,
            }));
            return Ok(Exit::Well);
        }
        out.verb(
            "Unlinked",
            format!("{} from {}", about::name(&config), host(&url)),
        );
        out.step(
            "Limits",
            "as at first: no folder, up to Manual, scheduled work off",
        );
        if !taken_back {
            out.warning(
                "the instance could not be told: the token is gone here, and still listed there",
                &format!("open {url}/settings and take this computer's access back"),
            );
        }
        Ok(Exit::Well)
    })
}

pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn address(error: &BaseError, url: &str) -> Failure {
    let (code, fix) = match error {
        BaseError::NoAddress(_) => ("address", "lembas link https://box.example".to_owned()),
        BaseError::Credentials => {
            let without = url.split_once('@').map_or(url, |(_, rest)| rest);
            (
                "address",
                format!(
                    "lembas link {}",
                    words::quoted(&format!("https://{without}"))
                ),
            )
        }
        BaseError::Plain(_) => {
            let secure = url.replacen("http://", "https://", 1);
            (
                "plain_http",
                format!("lembas link {}", words::quoted(&secure)),
            )
        }
    };
    Failure::new(Exit::Usage, code, error.to_string(), fix)
}

fn settings(error: &HttpError) -> Failure {
    Failure::new(
        Exit::Config,
        "config",
        "the settings for the way to the instance cannot be used",
        "lembas help config",
    )
    .why(error.to_string())
}

/// The file with the token cannot be read or written.
pub(super) fn kept(paths: &Paths, error: &InstanceError) -> Failure {
    let failure = |path: &Path, fix: String| {
        let text = format!(
            "the file with this computer's token, {}, cannot be used",
            paths.show(path)
        );
        Failure::new(Exit::Config, "token_file", text, fix)
    };
    let away = |path: &Path| {
        let path = words::quoted(&paths.show(path));
        format!("mv {path} {path}.old          then link this computer again")
    };
    let look = |path: &Path| format!("ls -la {}", words::quoted(&paths.show(path)));
    match error {
        InstanceError::Unreadable { path } => failure(path, "lembas unlink".to_owned())
            .or("lembas link https://your.address")
            .why("what is in it is not a pairing of this program"),
        InstanceError::File(FileError::NotPlain { path }) => {
            failure(path, away(path)).why("it is not an ordinary file")
        }
        InstanceError::File(FileError::TooLarge { path }) => {
            failure(path, away(path)).why("it is larger than 1 MiB")
        }
        InstanceError::File(FileError::NotOurs { path }) => {
            failure(path, look(path)).why("it belongs to another user")
        }
        InstanceError::File(FileError::Io { path, source, .. }) => {
            failure(path, look(path)).why(words::io(source))
        }
        _ => failure(&paths.config, look(&paths.config)).why(error.to_string()),
    }
}

fn not_found(error: DiscoveryError, url: &str) -> Failure {
    let again = format!("lembas link {}", words::quoted(url));
    let name = host(url);
    match error {
        DiscoveryError::Http(error) => settings(&error),
        DiscoveryError::Unreachable { base, cause } => {
            let certificate = ["certificate", "Certificate", "UnknownIssuer", "TLS"]
                .iter()
                .any(|word| cause.contains(word));
            if certificate {
                Failure::new(
                    Exit::Unavailable,
                    "tls",
                    format!("the certificate of {name} is not trusted"),
                    "lembas help config          [link] ca_file or pin",
                )
                .why(cause)
            } else {
                let probe = base.join(".well-known/lembas");
                Failure::new(
                    Exit::Unavailable,
                    "unreachable",
                    format!("{name} cannot be reached"),
                    format!("curl -s {probe}"),
                )
                .why(cause)
            }
        }
        DiscoveryError::NotAnInstance { base, path, who } => {
            let probe = base.join(path);
            let must = match path == discovery::KNOWN {
                true => "\"protocol\": 3",
                false => "\"token_endpoint\"",
            };
            Failure::new(
                Exit::Not,
                "not_an_instance",
                format!("{name} does not answer as an LLeMbas instance"),
                format!("curl -s {probe}      it must print JSON with {must}"),
            )
            .why(format!("GET {probe}: {who}"))
        }
        DiscoveryError::Elsewhere { ref to, .. } => {
            let fix = format!("lembas link {}", words::quoted(to));
            Failure::new(Exit::Not, "not_an_instance", error.to_string(), fix)
        }
        DiscoveryError::Protocol { theirs } => {
            let text = discovery::protocol_words(theirs);
            let fix = format!("after the update:  {again}");
            Failure::new(Exit::Not, "protocol", text, fix)
        }
        DiscoveryError::OtherOrigin { .. } | DiscoveryError::Field { .. } => Failure::new(
            Exit::Not,
            "not_an_instance",
            error.to_string(),
            format!("after it was mended:  {again}"),
        ),
    }
}

fn unpaired(error: PairError, url: &str, code: Option<&str>) -> Failure {
    let again = format!("lembas link {}", words::quoted(url));
    let name = host(url);
    let code = code.unwrap_or_default();
    match error {
        PairError::Discovery(error) => not_found(error, url),
        PairError::Http(error) => settings(&error),
        PairError::Unreachable(cause) => Failure::new(
            Exit::Unavailable,
            "unreachable",
            format!("{name} cannot be reached"),
            again,
        )
        .why(cause),
        PairError::Denied => Failure::new(
            Exit::Not,
            "refused",
            format!("somebody said no to the code {code} on the page of {name}"),
            again,
        ),
        PairError::Expired => Failure::new(
            Exit::Not,
            "expired",
            format!("nobody entered the code {code} within 10 minutes"),
            again,
        ),
        PairError::Refused(why) => Failure::new(
            Exit::Not,
            "refused",
            format!("{name} does not let this computer in"),
            again,
        )
        .why(why),
        PairError::Later(_) => {
            let text = error.to_string();
            Failure::new(Exit::Unavailable, "busy", text, again)
        }
        PairError::OtherInstance | PairError::Field(_) => {
            let text = error.to_string();
            Failure::new(Exit::Not, "not_an_instance", text, again)
        }
    }
}

#[cfg(test)]
mod tests;
