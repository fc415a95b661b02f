//! spec

pub mod permission;
