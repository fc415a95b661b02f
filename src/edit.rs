//! Changes of text: finding what an edit names, and showing what it did. Strings in, strings out.

pub mod diff;
pub mod replace;
