//! This computer, as it tells of itself: its name, its system, its limits in words.

use std::sync::Arc;

use serde_json::Value;

use super::machine;
use crate::acp::Limits as _;
use crate::config::{Config, Live, Paths, env};
use crate::exec::Computer;
use crate::link::http::ProxyVars;
use crate::remote::Limits;

/// The name of this computer on the page: the person's own, or the host name without its domain.
pub fn name(config: &Config) -> String {
    if let Some(name) = &config.name {
        return name.clone();
    }
    let system = rustix::system::uname();
    let node = system.nodename().to_string_lossy();
    let host = node.split('.').next().unwrap_or_default();
    let host = crate::text::escape::label(host, 64);
    if host.is_empty() {
        "this computer".to_owned()
    } else {
        host
    }
}

/// `linux`, `macos`.
pub fn os() -> &'static str {
    std::env::consts::OS
}

/// `x86_64`, `aarch64`.
pub fn arch() -> &'static str {
    std::env::consts::ARCH
}

/// The proxy variables of the environment.
pub fn proxies() -> ProxyVars {
    let either = |upper: &env::Var, lower: &env::Var| env::text(upper).or_else(|| env::text(lower));
    ProxyVars {
        https: either(&env::HTTPS_PROXY, &env::HTTPS_PROXY_LOWER),
        // The upper-case name can be set by whoever calls a web server.
        http: env::text(&env::HTTP_PROXY_LOWER),
        all: either(&env::ALL_PROXY, &env::ALL_PROXY_LOWER),
        none: either(&env::NO_PROXY, &env::NO_PROXY_LOWER),
    }
}

/// The limits as pairing says them and the approving page shows them (P1, H6).
pub async fn described(paths: &Paths, config: &Config) -> Value {
    let computer = Arc::new(Computer::new(machine::own(paths)));
    let strength = machine::strength(paths, &computer).await;
    let name = name(config);
    let named = Arc::new(move || name.clone());
    Limits::new(Live::new(config.clone()), named, strength.word()).describe()
}

/// `~/a, ~/b`, or `no folder yet`.
pub fn works_in(paths: &Paths, config: &Config) -> String {
    let roots: Vec<String> = config.remote.roots.iter().map(|r| paths.show(r)).collect();
    if roots.is_empty() {
        "no folder yet".to_owned()
    } else {
        roots.join(", ")
    }
}

/// `works in ~/a, up to Edit, scheduled work off`.
pub fn limits(paths: &Paths, config: &Config) -> String {
    let remote = &config.remote;
    if !remote.enabled {
        return "remote work off".to_owned();
    }
    format!(
        "{}works in {}, up to {}, scheduled work {}",
        if remote.paused { "paused, " } else { "" },
        works_in(paths, config),
        remote.max_mode.title(),
        if remote.scheduled { "on" } else { "off" }
    )
}
