//! As much of HTTP/1.1 as both ends of a benchmark need.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The first line of a message, and its body.
pub(crate) struct Message {
    pub(crate) first: String,
    pub(crate) body: Vec<u8>,
}

/// Reads the head of a message: its first line and the length that it names.
fn head(from: &mut BufReader<TcpStream>) -> io::Result<Option<(String, usize)>> {
    let (mut first, mut length) = (String::new(), 0);
    if from.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(Some((first, length)));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

/// The next request of a connection; none when it was closed.
pub(crate) fn request(from: &mut BufReader<TcpStream>) -> io::Result<Option<Message>> {
    let Some((first, length)) = head(from)? else {
        return Ok(None);
    };
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(Message { first, body }))
}

/// Reads an answer's head; its chunks are read with [`chunk`].
pub(crate) fn answer(from: &mut BufReader<TcpStream>) -> io::Result<()> {
    match head(from)? {
        Some((first, _)) if first.contains(" 200 ") => Ok(()),
        Some((first, _)) => Err(io::Error::other(first)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The next chunk of an answer; none at its end.
pub(crate) fn chunk(from: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
    let mut bytes = vec![0; size + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(size);
    Ok((size > 0).then_some(bytes))
}

pub(crate) fn write_chunk(to: &mut TcpStream, text: &str) -> io::Result<()> {
    to.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

pub(crate) fn write_json(to: &mut TcpStream, body: &str) -> io::Result<()> {
    let length = body.len();
    to.write_all(
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .as_bytes(),
    )
}
