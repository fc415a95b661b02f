//! Addresses: the base URL a person names, what belongs to its origin, and where a credential may
//! go (spec/acp.md D1, D4, D7).

use std::fmt;
use std::sync::Arc;

use reqwest::Url;

/// The address of an instance: an origin and, if any, a path without a final `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base(Arc<Url>);

/// Why an address is not taken. Each message is whole and for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseError {
    #[error(
        "\"{0}\" is no address of an instance. One looks like https://lembas.example or localhost:7700."
    )]
    NoAddress(String),
    #[error(
        "An address with a name and password in it is not taken: leave out what is before the @."
    )]
    Credentials,
    #[error(
        "{0} is not encrypted: anybody on the way could read this computer's token. \
         Use https://; plain http is taken only for this computer itself (localhost)."
    )]
    Plain(String),
}

impl Base {
    /// Reads what a person typed. Without a scheme `https` is meant, `http` for loopback.
    pub fn read(text: &str) -> Result<Self, BaseError> {
        let text = text.trim();
        let none = || BaseError::NoAddress(super::words::clean(text, 100));
        let parse = |text: &str| Url::parse(text).map_err(|_| none());
        let mut url = if text.contains("://") {
            parse(text)?
        } else {
            let url = parse(&format!("https://{text}"))?;
            if is_loopback(&url) {
                parse(&format!("http://{text}"))?
            } else {
                url
            }
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(none());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseError::Credentials);
        }
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        check_credential(&url)?;
        Ok(Self(Arc::new(url)))
    }

    /// `<base>/<path>`; `path` has no leading `/`.
    pub fn join(&self, path: &str) -> Url {
        let mut url = (*self.0).clone();
        let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        url
    }

    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Whether `url` has the host and port of this base and is as encrypted as it is.
    pub fn owns(&self, url: &Url) -> bool {
        same_origin(&self.0, url)
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// Same host, same port, both encrypted or both not (`ws` counts as `http`, `wss` as `https`).
/// The names of this computer's own loopback count as one host: what is sent there stays here.
pub(super) fn same_origin(a: &Url, b: &Url) -> bool {
    (a.host() == b.host() || is_loopback(a) && is_loopback(b))
        && a.port_or_known_default() == b.port_or_known_default()
        && encrypted(a).is_some()
        && encrypted(a) == encrypted(b)
}

fn encrypted(url: &Url) -> Option<bool> {
    match url.scheme() {
        "https" | "wss" => Some(true),
        "http" | "ws" => Some(false),
        _ => None,
    }
}

/// Whether the host is this computer itself, by its name or address.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// Whether a credential may be sent to `url`: encrypted, or to this computer itself.
pub fn check_credential(url: &Url) -> Result<(), BaseError> {
    if encrypted(url) == Some(true) || (encrypted(url) == Some(false) && is_loopback(url)) {
        return Ok(());
    }
    let shown = url.as_str().trim_end_matches('/');
    Err(BaseError::Plain(super::words::clean(shown, 100)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types_becomes_a_base() {
        for (text, base) in [
            ("lembas.example", "https://lembas.example"),
            (" https://Lembas.example/ ", "https://lembas.example"),
            (
                "https://lembas.example/a/b/?code=1#x",
                "https://lembas.example/a/b",
            ),
            ("lembas.example:8443/x", "https://lembas.example:8443/x"),
            ("localhost:7700", "http://localhost:7700"),
            ("127.0.0.1:7700", "http://127.0.0.1:7700"),
            ("[::1]:7700", "http://[::1]:7700"),
            ("http://localhost", "http://localhost"),
            ("https://localhost:1", "https://localhost:1"),
        ] {
            assert_eq!(Base::read(text).unwrap().to_string(), base, "{text}");
        }
        for text in [
            "",
            "  ",
            "ftp://x",
            "https://",
            "a b",
            "file:///etc",
            "http:///x y",
        ] {
            assert!(
                matches!(Base::read(text), Err(BaseError::NoAddress(_))),
                "{text}"
            );
        }
        assert_eq!(Base::read("https://a:b@c"), Err(BaseError::Credentials));
    }

    #[test]
    fn a_credential_goes_only_where_nobody_listens() {
        for text in [
            "http://lembas.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://[::2]:1",
            "http://0.0.0.0:1",
        ] {
            assert!(
                matches!(Base::read(text), Err(BaseError::Plain(_))),
                "{text}"
            );
        }
        let plain = Url::parse("ws://lembas.example/link").unwrap();
        assert!(check_credential(&plain).is_err());
        let own = Url::parse("ws://127.9.9.9/link").unwrap();
        assert!(check_credential(&own).is_ok());
    }

    #[test]
    fn an_origin_is_host_port_and_encryption() {
        let base = Base::read("https://a.example/x").unwrap();
        let owns = |url: &str| base.owns(&Url::parse(url).unwrap());
        assert!(owns("wss://a.example/link"));
        assert!(owns("https://a.example:443/v1"));
        for other in [
            "ws://a.example/link",
            "wss://a.example:444/link",
            "wss://b.example/link",
            "wss://a.example.evil/link",
            "ftp://a.example/",
        ] {
            assert!(!owns(other), "{other}");
        }
    }

    #[test]
    fn paths_are_joined_under_the_base() {
        let join = |base: &str| {
            Base::read(base)
                .unwrap()
                .join(".well-known/lembas")
                .to_string()
        };
        assert_eq!(
            join("https://a.example"),
            "https://a.example/.well-known/lembas"
        );
        assert_eq!(
            join("https://a.example/b/"),
            "https://a.example/b/.well-known/lembas"
        );
    }
}
