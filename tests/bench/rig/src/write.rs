//! A program that writes much: so many bytes in pieces of 64 KiB.

use std::io::{self, Write as _};

pub(crate) fn run(bytes: &str) -> io::Result<()> {
    let mut left: usize = bytes.parse().map_err(io::Error::other)?;
    let piece = [b'l'; 64 * 1024];
    let mut out = io::stdout().lock();
    while left > 0 {
        let next = piece.get(..left.min(piece.len())).unwrap_or(&piece);
        out.write_all(next)?;
        left -= next.len();
    }
    out.flush()
}
