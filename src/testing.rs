//! Fakes for tests: the scripted model server. Never part of a release.

pub mod model;
