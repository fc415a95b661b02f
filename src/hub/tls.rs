//! The certificate of a hub that speaks TLS itself.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::HubError;
use super::front::TlsFiles;
use crate::text::words;

/// Reads certificate and key, and offers HTTP/2 before HTTP/1.1: a browser then needs one
/// connection for all its tabs.
pub(super) fn load(files: &TlsFiles) -> Result<TlsAcceptor, HubError> {
    let fail = |path: &Path, why: String| HubError::Tls {
        path: path.to_owned(),
        why,
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|e| fail(&files.cert, unread(&e)))?;
    if chain.is_empty() {
        return Err(fail(
            &files.cert,
            "there is no certificate in it".to_owned(),
        ));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| fail(&files.key, unread(&e)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| fail(&files.cert, e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| fail(&files.cert, e.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Why a PEM file cannot be read.
fn unread(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => words::io(error),
        pem::Error::NoItemsFound => "there is no key in it".to_owned(),
        _ => "it is not PEM text".to_owned(),
    }
}
