//! The certificate of a hub that speaks TLS itself.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::HubError;
use super::front::TlsFiles;

/// Reads certificate and key, and offers HTTP/2 before HTTP/1.1: a browser then needs one
/// connection for all its tabs.
pub(super) fn load(files: &TlsFiles) -> Result<TlsAcceptor, HubError> {
    let fail = |path: &Path, why: String| HubError::Tls {
        path: path.to_owned(),
        why,
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|e| fail(&files.cert, e.to_string()))?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|e| fail(&files.key, e.to_string()))?;
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
