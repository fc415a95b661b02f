//! The daemon: builds the device from the settings, owns the store's lock and the control socket,
//! listens to signals. The command line talks to it through [`control`].
//!
//! Not here: what an instance may ask (`remote`), the link's machine (`link`).

pub mod about;
pub mod control;
pub mod device;
pub mod kept;
pub mod lock;
mod machine;
mod models;
pub mod monitor;
mod notify;
mod run;
pub mod status;
pub mod table;
mod watches;

pub use notify::ready;
pub use run::{Daemon, Start};
