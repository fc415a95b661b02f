//! The embedded instance, over real sockets.

mod asks;
mod chats;
mod device;
mod linking;
mod models;
mod pairing;
mod rig;
mod signing;
mod unattended;
mod upstream;
