//! The certificate of a hub: made for a test, and every way in which it can be wrong.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::CertificateDer;

use super::home::Home;

/// A certificate authority of the test's own.
pub(super) struct Authority {
    pub(super) pem: String,
    pub(super) der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate for 127.0.0.1 and its key, PEM.
pub(super) struct Certificate {
    chain: String,
    key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            pem: certificate.pem(),
            der: certificate.der().to_vec().into(),
            issuer: Issuer::new(params, key),
        }
    }

    /// One that is good now.
    pub(super) fn now(&self) -> Certificate {
        self.between(1990, 2200)
    }

    fn between(&self, from: i32, until: i32) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from, 3, 1);
        params.not_after = date_time_ymd(until, 3, 1);
        Certificate {
            chain: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Certificate {
    /// Its two files.
    pub(super) fn write(&self, home: &Home, name: &str) -> (PathBuf, PathBuf) {
        let files = (
            home.path(&format!("{name}.pem")),
            home.path(&format!("{name}-key.pem")),
        );
        std::fs::write(&files.0, &self.chain).unwrap();
        std::fs::write(&files.1, &self.key).unwrap();
        files
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_certificate_is_said_before_anybody_listens() {
    let home = Home::new();
    let authority = Authority::new();
    authority.now().write(&home, "good");
    authority.now().write(&home, "other");
    authority.between(2019, 2020).write(&home, "old");
    authority.between(2190, 2200).write(&home, "early");
    std::fs::write(home.path("empty.pem"), "").unwrap();
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(home.path("damaged.pem"), damaged).unwrap();
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(home.path("locked.pem"), locked).unwrap();
    for (cert, key, says) in [
        (
            "none.pem",
            "good-key.pem",
            "error: the certificate file none.pem cannot be read
  why: it does not exist
  try: ls -l none.pem
",
        ),
        (
            "good.pem",
            "none.pem",
            "error: the key file none.pem cannot be read
  why: it does not exist
  try: ls -l none.pem
",
        ),
        (
            "projects",
            "good-key.pem",
            "error: the certificate file projects cannot be read
  why: it is a folder
  try: ls -l projects
",
        ),
        (
            "empty.pem",
            "good-key.pem",
            "error: empty.pem holds no certificate
  why: a PEM file is wanted, with a line -----BEGIN CERTIFICATE-----
  try: openssl x509 -in empty.pem -noout -subject
",
        ),
        (
            "good-key.pem",
            "good.pem",
            "error: good-key.pem holds no certificate
  why: a PEM file is wanted, with a line -----BEGIN CERTIFICATE-----
  try: openssl x509 -in good-key.pem -noout -subject
",
        ),
        (
            "damaged.pem",
            "good-key.pem",
            "error: damaged.pem holds something that is no certificate, or a damaged one
  try: openssl x509 -in damaged.pem -noout -subject
",
        ),
        (
            "good.pem",
            "empty.pem",
            "error: empty.pem holds no private key
  why: a PEM file is wanted, with a line -----BEGIN PRIVATE KEY----- (not an encrypted one)
  try: openssl pkey -in empty.pem -noout
",
        ),
        (
            "good.pem",
            "locked.pem",
            "error: locked.pem holds no private key
  why: a PEM file is wanted, with a line -----BEGIN PRIVATE KEY----- (not an encrypted one)
  try: openssl pkey -in locked.pem -noout
",
        ),
        (
            "good.pem",
            "other-key.pem",
            "error: other-key.pem is not the key of the certificate good.pem
  try: openssl x509 -in good.pem -noout -pubkey; openssl pkey -in other-key.pem -pubout
",
        ),
        (
            "old.pem",
            "old-key.pem",
            "error: the certificate old.pem has ended, on 2020-03-01T00:00:00Z
  why: no browser and no computer accepts it any more
  try: openssl x509 -in old.pem -noout -dates
",
        ),
        (
            "early.pem",
            "early-key.pem",
            "error: the certificate early.pem begins on 2190-03-01T00:00:00Z only
  why: no browser and no computer accepts it before that; or is this computer's clock wrong?
  try: openssl x509 -in early.pem -noout -dates
",
        ),
    ] {
        let line = format!("hub --listen 127.0.0.1:0 --tls-cert {cert} --tls-key {key}");
        let ran = home.run(&line).await;
        assert_eq!(ran.err, says, "{line}");
        assert_eq!((ran.code, ran.out.as_str()), (Some(78), ""), "{line}");
    }
    let one = home
        .run("hub --listen 127.0.0.1:0 --tls-cert good.pem")
        .await;
    assert_eq!(one.code, Some(64), "{}", one.err);
    assert!(one.err.contains("--tls-key"), "{}", one.err);
}
