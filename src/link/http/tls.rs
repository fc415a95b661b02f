//! Whom TLS trusts: the system's certificates and a file of the person's, or one pinned certificate.

use std::path::Path;
use std::sync::Arc;

use ring::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::HttpError;

/// The SHA-256 of the only certificate that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin([u8; 32]);

impl Pin {
    /// `sha256:` and 64 hex digits; colons between the digits are let pass.
    pub fn read(text: &str) -> Result<Self, HttpError> {
        let digits = text.trim().strip_prefix("sha256:").ok_or(HttpError::Pin)?;
        let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b':').collect();
        let mut hash = [0; 32];
        if digits.len() != 64 {
            return Err(HttpError::Pin);
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| HttpError::Pin)?;
            if !pair.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(HttpError::Pin);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| HttpError::Pin)?;
        }
        Ok(Self(hash))
    }

    /// The pin of a certificate.
    pub fn of(certificate: &[u8]) -> Self {
        let mut hash = [0; 32];
        let digest = digest::digest(&digest::SHA256, certificate);
        for (to, from) in hash.iter_mut().zip(digest.as_ref()) {
            *to = *from;
        }
        Self(hash)
    }
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha256:{}", crate::ids::hex(&self.0))
    }
}

pub(super) fn config(ca_file: Option<&Path>, pin: Option<&Pin>) -> Result<ClientConfig, HttpError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match pin {
        Some(pin) => Arc::new(Pinned {
            pin: pin.clone(),
            provider: Arc::clone(&provider),
        }),
        None => {
            let extra = ca_file.map(read_authorities).transpose()?;
            let extra = extra.unwrap_or_default();
            let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider));
            let trust = |error: rustls::Error| HttpError::Trust(error.to_string());
            Arc::new(verifier.map_err(trust)?)
        }
    };
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Trust(error.to_string()))?;
    Ok(versions
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let bad = |cause: String| HttpError::CaFile {
        path: path.to_owned(),
        cause,
    };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let authorities: Vec<_> = read.map_err(|error| bad(error.to_string()))?;
    if authorities.is_empty() {
        return Err(bad("it holds no certificate (PEM)".into()));
    }
    Ok(authorities)
}

/// Accepts one certificate, whatever its name, its dates and its issuer say: a person compared it.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Pin::of(end_entity);
        if found == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::General(format!(
            "the certificate is not the pinned one: it is {found}"
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_with_and_without_colons() {
        let pin = Pin::of(b"certificate");
        assert_eq!(Pin::read(&pin.to_string()).unwrap(), pin);
        let hex = pin.to_string().replace("sha256:", "").to_uppercase();
        let pairs: Vec<&str> = (0..32).map(|n| &hex[2 * n..2 * n + 2]).collect();
        assert_eq!(
            Pin::read(&format!("sha256:{}", pairs.join(":"))).unwrap(),
            pin
        );
        for bad in [
            "",
            "sha256:",
            "sha1:00",
            "sha256:zz",
            &"+1".repeat(32),
            &format!("sha256:{}", "+1".repeat(32)),
        ] {
            assert!(Pin::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_without_certificates_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let said = |path: &Path| config(Some(path), None).unwrap_err().to_string();
        assert!(said(&path).contains("ca.pem"));
        std::fs::write(&path, "hello").unwrap();
        assert!(said(&path).contains("holds no certificate"));
    }
}
