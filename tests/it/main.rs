//! Scenarios over public interfaces: one binary, hermetic, loopback with free ports only.

mod hub;
