//! The models: neutral request and stream types, clients, and the practice model.

pub mod practice;
