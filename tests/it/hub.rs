//! The embedded instance, over real sockets.

mod asks;
mod chats;
pub(crate) mod device;
mod linking;
mod models;
mod pairing;
pub(crate) mod rig;
mod signing;
mod upstream;
