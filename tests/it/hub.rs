//! The embedded instance, over real sockets.

mod accounts;
mod asks;
mod back;
mod chats;
pub(crate) mod device;
mod floods;
mod hostile;
mod keys;
mod linking;
mod models;
mod pairing;
pub(crate) mod rig;
mod signing;
mod unattended;
mod upstream;
