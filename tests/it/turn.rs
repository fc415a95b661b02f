//! Sessions that really run: a real store, a scripted model server on loopback, tools and a
//! judge that do as they are told.

mod asks;
mod disk;
mod follow;
mod home;
mod limits;
mod model;
mod plain;
mod restart;
mod stop;
mod wire;
