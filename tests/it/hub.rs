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
mod outputs;
mod pairing;
pub(crate) mod rig;
mod rules;
mod signing;
mod unattended;
mod upstream;
