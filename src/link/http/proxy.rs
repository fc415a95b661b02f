//! Which proxy, if any, leads to an address: the person's setting, or the usual variables.

use std::net::IpAddr;

use base64::Engine as _;
use reqwest::Url;

use crate::link::origin;

/// The proxy variables of the environment, as they are set. They may hold passwords, so none is
/// shown.
#[derive(Clone, Default)]
pub struct ProxyVars {
    /// `HTTPS_PROXY`.
    pub https: Option<String>,
    /// `http_proxy`; the upper-case name is not read, because a web server may set it.
    pub http: Option<String>,
    /// `ALL_PROXY`.
    pub all: Option<String>,
    /// `NO_PROXY`.
    pub none: Option<String>,
}

impl std::fmt::Debug for ProxyVars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProxyVars(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the proxy {shown} ({from}) cannot be used: only http://[name:password@]host:port is understood"
)]
pub struct ProxyError {
    shown: String,
    from: &'static str,
}

/// A proxy. Its password is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy(Url);

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl Proxy {
    fn read(text: &str, from: &'static str) -> Result<Self, ProxyError> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        match Url::parse(&whole) {
            Ok(url) if url.scheme() == "http" && url.has_host() => Ok(Self(url)),
            Ok(url) => Err(ProxyError {
                shown: shown(&url),
                from,
            }),
            Err(_) => Err(ProxyError {
                // It may hold a password somewhere: only its beginning is shown.
                shown: text.split([':', '@']).next().unwrap_or_default().into(),
                from,
            }),
        }
    }

    /// With its credentials.
    pub(in crate::link) fn url(&self) -> &Url {
        &self.0
    }

    /// `host` and port to connect to.
    pub(in crate::link) fn address(&self) -> (String, u16) {
        let host = self.0.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (
            host.to_owned(),
            self.0.port_or_known_default().unwrap_or(80),
        )
    }

    /// The value of `Proxy-Authorization`.
    pub(in crate::link) fn authorization(&self) -> Option<String> {
        if self.0.username().is_empty() {
            return None;
        }
        let name = percent_decoded(self.0.username());
        let password = percent_decoded(self.0.password().unwrap_or_default());
        let pair = [name.as_slice(), b":", &password].concat();
        let pair = base64::engine::general_purpose::STANDARD.encode(pair);
        Some(format!("Basic {pair}"))
    }
}

fn shown(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() && url.set_password(Some("…")).is_err() {
        return url.scheme().to_owned();
    }
    url.to_string()
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| byte == b'%')
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

/// The proxies in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    except: Vec<Except>,
}

/// A host that is reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Except {
    All,
    Host { name: String, port: Option<u16> },
    Net { address: IpAddr, bits: u8 },
}

impl Proxies {
    /// The setting stands for both schemes and before the variables; the exceptions always hold.
    pub(super) fn new(setting: Option<&str>, vars: ProxyVars) -> Result<Self, ProxyError> {
        let except = vars.none.as_deref().map(exceptions).unwrap_or_default();
        if let Some(setting) = setting {
            let proxy = Proxy::read(setting, "config.toml, [link] proxy")?;
            return Ok(Self {
                http: Some(proxy.clone()),
                https: Some(proxy),
                except,
            });
        }
        let read = |value: Option<String>, from| {
            let value = value.filter(|value| !value.trim().is_empty());
            value
                .map(|value| Proxy::read(value.trim(), from))
                .transpose()
        };
        let all = read(vars.all, "ALL_PROXY")?;
        Ok(Self {
            http: read(vars.http, "http_proxy")?.or_else(|| all.clone()),
            https: read(vars.https, "HTTPS_PROXY")?.or(all),
            except,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// This computer itself is never reached through a proxy.
    pub(super) fn pick(&self, url: &Url) -> Option<&Proxy> {
        let proxy = match url.scheme() {
            "https" | "wss" => self.https.as_ref(),
            "http" | "ws" => self.http.as_ref(),
            _ => None,
        }?;
        let host = url.host_str()?.to_ascii_lowercase();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default();
        if origin::is_loopback(url) || self.except.iter().any(|except| except.fits(host, port)) {
            return None;
        }
        Some(proxy)
    }
}

fn exceptions(text: &str) -> Vec<Except> {
    let entries = text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    entries.map(exception).collect()
}

fn exception(entry: &str) -> Except {
    if entry == "*" {
        return Except::All;
    }
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        return Except::Net { address, bits };
    }
    if let Some((address, bits)) = entry.split_once('/')
        && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse())
    {
        return Except::Net { address, bits };
    }
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
        _ => (entry, None),
    };
    let name = name.trim_start_matches("*.").trim_start_matches('.');
    Except::Host {
        name: name.to_ascii_lowercase(),
        port,
    }
}

impl Except {
    fn fits(&self, host: &str, at: Option<u16>) -> bool {
        match self {
            Self::All => true,
            Self::Host { name, port } => {
                let under = host
                    .strip_suffix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                under && (port.is_none() || *port == at)
            }
            Self::Net { address, bits } => host
                .parse::<IpAddr>()
                .is_ok_and(|host| within(host, *address, *bits)),
        }
    }
}

fn within(host: IpAddr, net: IpAddr, bits: u8) -> bool {
    let (host, net, width) = match (host, net) {
        (IpAddr::V4(host), IpAddr::V4(net)) => {
            (u128::from(host.to_bits()), u128::from(net.to_bits()), 32)
        }
        (IpAddr::V6(host), IpAddr::V6(net)) => (host.to_bits(), net.to_bits(), 128),
        _ => return false,
    };
    let low = u32::from(width - bits.min(width));
    host.checked_shr(low).unwrap_or(0) == net.checked_shr(low).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(proxies: &Proxies, url: &str) -> Option<String> {
        let url = Url::parse(url).unwrap();
        proxies.pick(&url).map(|proxy| proxy.url().to_string())
    }

    #[test]
    fn the_variables_are_read_by_scheme() {
        let vars = ProxyVars {
            https: Some("p1:3128".into()),
            http: None,
            all: Some("http://p2:1/".into()),
            none: Some("a.example, .b.example:8443 ,10.0.0.0/8,[fd00::1],c.example:1".into()),
        };
        let proxies = Proxies::new(None, vars).unwrap();
        for (url, proxy) in [
            ("https://x.example/", Some("http://p1:3128/")),
            ("wss://x.example/link", Some("http://p1:3128/")),
            ("http://x.example/", Some("http://p2:1/")),
            ("https://a.example/", None),
            ("https://sub.A.example/", None),
            ("https://aa.example/", Some("http://p1:3128/")),
            ("https://b.example:8443/", None),
            ("https://x.b.example:8443/", None),
            ("https://b.example/", Some("http://p1:3128/")),
            ("https://10.1.2.3/", None),
            ("https://11.1.2.3/", Some("http://p1:3128/")),
            ("https://[fd00::1]/", None),
            ("https://[fd00::2]/", Some("http://p1:3128/")),
            ("http://localhost:7700/", None),
            ("http://127.0.0.1:7700/", None),
            ("https://[::1]:7700/", None),
        ] {
            assert_eq!(pick(&proxies, url).as_deref(), proxy, "{url}");
        }
    }

    #[test]
    fn the_setting_comes_before_the_variables_and_all_exceptions_hold() {
        let vars = ProxyVars {
            https: Some("http://p1".into()),
            none: Some("*".into()),
            ..ProxyVars::default()
        };
        let proxies = Proxies::new(Some("http://p2:9"), vars).unwrap();
        assert_eq!(pick(&proxies, "https://x.example"), None);
        let proxies = Proxies::new(Some("http://p2:9"), ProxyVars::default()).unwrap();
        assert_eq!(pick(&proxies, "https://x.example").unwrap(), "http://p2:9/");
        assert!(Proxies::new(None, ProxyVars::default()).unwrap().is_empty());
    }

    #[test]
    fn credentials_are_sent_and_never_shown() {
        let proxy = Proxy::read("http://me:p%40ss%3A@proxy:8080", "x").unwrap();
        assert_eq!(proxy.address(), ("proxy".into(), 8080));
        // me:p@ss:
        assert_eq!(proxy.authorization().unwrap(), "Basic bWU6cEBzczo=");
        assert!(!format!("{proxy:?}").contains("ss%3A"));
        assert_eq!(
            Proxy::read("http://proxy", "x").unwrap().authorization(),
            None
        );
        for bad in [
            "socks5://me:hunter2@proxy:1",
            "https://me:hunter2@proxy:1",
            "http://",
            "me:hunter2@:x:",
        ] {
            let error = Proxy::read(bad, "HTTPS_PROXY").unwrap_err().to_string();
            assert!(
                error.contains("HTTPS_PROXY") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
