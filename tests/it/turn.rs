//! Sessions that really run: a real store, a scripted model server on loopback, tools and a
//! judge that do as they are told.

mod asks;
mod context;
mod dialects;
mod disk;
mod follow;
mod home;
mod instructions;
mod limits;
mod model;
mod phases;
mod plain;
mod rest;
mod restart;
mod stop;
mod wire;
