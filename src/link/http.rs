//! The one way out to the instance over HTTP: trust, proxy, and a client for discovery, pairing and
//! the model API. The link's own dial shares the trust and the proxy.
//!
//! Not here: what is asked (`link::discovery`, `link::pair`, `model`).

mod proxy;
mod tls;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use reqwest::{Url, redirect};

pub use proxy::{Proxy, ProxyError, ProxyVars};
pub use tls::Pin;

use super::origin;
use crate::config;

/// How long a connection may take to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// How long a short request may take in all.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// Bytes of a short answer. A longer one is refused.
pub(super) const SHORT_BODY: usize = 64 * 1024;
/// Redirects that are followed inside an origin.
const REDIRECTS: usize = 3;

/// What this program calls itself.
pub const USER_AGENT: &str = concat!("lembas/", env!("CARGO_PKG_VERSION"));

/// Why nothing can be sent. Each message is whole and for a person.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the certificate file {path} (config.toml, [link] ca_file) cannot be used: {cause}")]
    CaFile { path: PathBuf, cause: String },
    #[error("the pin in config.toml, [link] pin, is not sha256: and 64 hex digits")]
    Pin,
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(
        "this computer's trusted certificates cannot be read: {0}. \
         Install the package ca-certificates, or name a file in config.toml: [link] ca_file"
    )]
    Trust(String),
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// Trust, proxy and client. Cheap to clone, and all clones are renewed together; nothing is read
/// from disk before it is needed.
#[derive(Clone, Debug)]
pub struct Http(Arc<ArcSwap<Inner>>);

#[derive(Debug)]
struct Inner {
    ca_file: Option<PathBuf>,
    pin: Option<Pin>,
    proxies: proxy::Proxies,
    tls: OnceLock<Arc<rustls::ClientConfig>>,
    client: OnceLock<reqwest::Client>,
}

impl Http {
    /// From the person's settings and the proxy variables of the environment.
    pub fn new(settings: &config::Link, vars: ProxyVars) -> Result<Self, HttpError> {
        let inner = Inner::new(settings, vars)?;
        Ok(Self(Arc::new(ArcSwap::from_pointee(inner))))
    }

    /// Other settings, for everything that is begun from now on; what is on its way goes on as it
    /// is. With settings that cannot be used all stays as it was.
    pub fn renew(&self, settings: &config::Link, vars: ProxyVars) -> Result<(), HttpError> {
        self.0.store(Arc::new(Inner::new(settings, vars)?));
        Ok(())
    }

    /// The client. It follows redirects inside an origin only; any other is given back as it is.
    pub fn client(&self) -> Result<reqwest::Client, HttpError> {
        let inner = self.0.load_full();
        if let Some(client) = inner.client.get() {
            return Ok(client.clone());
        }
        let mut tls = (*inner.tls()?).clone();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let inside = redirect::Policy::custom(|attempt| {
            let from = attempt.previous().last();
            let same = from.is_some_and(|from| origin::same_origin(from, attempt.url()));
            if same && attempt.previous().len() <= REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        let proxies = inner.proxies.clone();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT)
            .redirect(inside)
            .no_proxy();
        let client = if proxies.is_empty() {
            client
        } else {
            let pick = move |url: &Url| proxies.pick(url).map(|proxy| proxy.url().clone());
            client.proxy(reqwest::Proxy::custom(pick))
        };
        let client = client
            .build()
            .map_err(|error| HttpError::Client(super::words::cause(&error)))?;
        Ok(inner.client.get_or_init(|| client).clone())
    }

    /// Trust for a TLS stream of our own, over which HTTP/1.1 is spoken.
    pub fn tls(&self) -> Result<Arc<rustls::ClientConfig>, HttpError> {
        self.0.load().tls()
    }

    /// The proxy through which `url` is reached.
    pub fn proxy(&self, url: &Url) -> Option<Proxy> {
        self.0.load().proxies.pick(url).cloned()
    }
}

impl Inner {
    fn new(settings: &config::Link, vars: ProxyVars) -> Result<Self, HttpError> {
        let pin = settings.pin.as_deref().map(Pin::read);
        Ok(Self {
            ca_file: settings.ca_file.clone(),
            pin: pin.transpose()?,
            proxies: proxy::Proxies::new(settings.proxy.as_deref(), vars)?,
            tls: OnceLock::new(),
            client: OnceLock::new(),
        })
    }

    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, HttpError> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let mut tls = tls::config(self.ca_file.as_deref(), self.pin.as_ref())?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::clone(self.tls.get_or_init(|| Arc::new(tls))))
    }
}

/// A short answer, read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) url: Url,
    pub(super) server: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) location: Option<String>,
    pub(super) retry_after: Option<Duration>,
    /// None when it was longer than [`SHORT_BODY`].
    pub(super) body: Option<Vec<u8>>,
}

impl Answer {
    /// The body as a JSON object.
    pub(super) fn object(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        serde_json::from_slice(self.body.as_deref()?).ok()
    }

    /// Who answered.
    pub(super) fn who(&self) -> String {
        super::words::who(self.status, self.server.as_deref(), self.kind.as_deref())
    }
}

/// The longest wait that is obeyed; a longer one counts as this.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// The value of `Retry-After`, in seconds. The form with a date is not used between us.
pub(super) fn read_retry_after(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// Sends a request and reads its answer whole, within [`SHORT`] and [`SHORT_BODY`].
pub(super) async fn short(request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
    let mut response = request.timeout(SHORT).send().await?;
    let header = |name| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let mut answer = Answer {
        status: response.status().as_u16(),
        url: response.url().clone(),
        server: header("server"),
        kind: header("content-type"),
        location: header("location"),
        retry_after: header("retry-after").and_then(|text| read_retry_after(&text)),
        body: None,
    };
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > SHORT_BODY {
            return Ok(answer);
        }
        body.extend_from_slice(&chunk);
    }
    answer.body = Some(body);
    Ok(answer)
}
