//! Text for people and models: cutting it, making hidden characters visible, sizes and times in
//! words, tables for a terminal.
//!
//! Pure functions; nothing here knows what the text is for. Not here: rendering for the page
//! (`hub::render`) and the texts of the spec (`spec`).

pub mod cut;
pub mod escape;
pub mod json;
pub mod nearest;
pub mod path;
pub mod secrets;
pub mod table;
pub mod words;
