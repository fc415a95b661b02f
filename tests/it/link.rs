//! The link over real sockets: finding, pairing, dialling, coming back.
//!
//! The other side is a small server of the test's own ([`server`]): it answers what the test tells
//! it to, over plain loopback or TLS with certificates made for the test.

mod dialling;
mod finding;
mod pairing;
pub(crate) mod server;
mod trust;
