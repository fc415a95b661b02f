//! The certificate of a hub that speaks TLS itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::front::TlsFiles;
use crate::clock;

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the {what} file {} cannot be read", path.display())]
    Unreadable {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} holds no {what}", path.display())]
    Nothing { what: &'static str, path: PathBuf },
    #[error("{} holds something that is no {what}, or a damaged one", path.display())]
    Damaged { what: &'static str, path: PathBuf },
    #[error("{} is not the key of the certificate {}", key.display(), cert.display())]
    OtherKey { cert: PathBuf, key: PathBuf },
    #[error("the certificate {} has ended, on {on}", path.display())]
    Ended { path: PathBuf, on: String },
    #[error("the certificate {} begins on {on} only", path.display())]
    NotYet { path: PathBuf, on: String },
    #[error("TLS cannot be spoken with {}", path.display())]
    Other {
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
}

const CERTIFICATE: &str = "certificate";
const KEY: &str = "private key";

/// Reads certificate and key, and offers HTTP/2 before HTTP/1.1: a browser then needs one
/// connection for all its tabs. What nobody would accept is refused here, where the person looks.
pub(super) fn load(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let TlsFiles { cert, key } = files;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| unread(error, CERTIFICATE, cert))?;
    let Some((own, between)) = chain.split_first() else {
        return Err(nothing(CERTIFICATE, cert));
    };
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(error, KEY, key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    dates(own, between, cert, &provider)?;
    let other = |source| TlsError::Other {
        path: cert.clone(),
        source,
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(other)?
        .with_no_client_auth();
    let mut config = builder
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::OtherKey {
                cert: cert.clone(),
                key: key.clone(),
            },
            rustls::Error::InvalidCertificate(_) => damaged(CERTIFICATE, cert),
            rustls::Error::General(_) => damaged(KEY, key),
            error => other(error),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unread(error: pem::Error, what: &'static str, path: &Path) -> TlsError {
    match error {
        pem::Error::Io(source) => TlsError::Unreadable {
            what: if what == KEY { "key" } else { what },
            path: path.to_owned(),
            source,
        },
        pem::Error::NoItemsFound => nothing(what, path),
        _ => damaged(what, path),
    }
}

fn nothing(what: &'static str, path: &Path) -> TlsError {
    TlsError::Nothing {
        what,
        path: path.to_owned(),
    }
}

fn damaged(what: &'static str, path: &Path) -> TlsError {
    TlsError::Damaged {
        what,
        path: path.to_owned(),
    }
}

/// Whether the certificate is valid now. Who trusts it is no business of ours: it stands for its
/// own authority here, and every answer but that of its dates is passed over.
fn dates(
    own: &CertificateDer<'_>,
    between: &[CertificateDer<'_>],
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<(), TlsError> {
    let mut roots = RootCertStore::empty();
    roots
        .add(own.clone().into_owned())
        .map_err(|_| damaged(CERTIFICATE, path))?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let (Ok(verifier), Ok(name)) = (verifier, ServerName::try_from("localhost")) else {
        return Ok(());
    };
    let now = Duration::from_millis(u64::try_from(clock::now_ms()).unwrap_or_default());
    let now = UnixTime::since_unix_epoch(now);
    let path = path.to_owned();
    match verifier.verify_server_cert(own, between, &name, &[], now) {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            not_after,
            ..
        })) => Err(TlsError::Ended {
            path,
            on: moment(not_after),
        }),
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before,
            ..
        })) => Err(TlsError::NotYet {
            path,
            on: moment(not_before),
        }),
        _ => Ok(()),
    }
}

fn moment(time: UnixTime) -> String {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map_or_else(|| "a day far away".to_owned(), |at| at.to_string())
}
