//! The embedded instance, over real sockets.

mod asks;
mod back;
mod chats;
pub(crate) mod device;
mod linking;
mod models;
mod pairing;
pub(crate) mod rig;
mod signing;
mod unattended;
mod upstream;
