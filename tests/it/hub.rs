//! The embedded instance, over real sockets.

mod asks;
mod chats;
pub(crate) mod device;
mod linking;
mod models;
mod outputs;
mod pairing;
pub(crate) mod rig;
mod rules;
mod signing;
mod unattended;
mod upstream;
