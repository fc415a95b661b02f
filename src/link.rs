//! The link to the instance: finding it, pairing with it, dialling it, and keeping one link up.
//!
//! The instance is not trusted with more than the device's own limits allow; those are judged by
//! whoever serves the link (`remote`), not here. Here a credential is kept safe on its way and on
//! the disk, and one link is there whenever there can be one.
//!
//! Not here: what is said over the link (`acp`), JSON-RPC itself (`rpc`).

mod dial;
pub mod discovery;
pub mod http;
pub mod instance;
pub mod machine;
pub mod origin;
pub mod pair;
mod run;
mod state;
mod stir;
mod words;
pub mod ws;

pub use run::{Link, LinkConfig, LinkDone, ServiceFactory};
pub use state::{LinkState, Phase};
