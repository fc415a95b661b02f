//! Just enough of HTTP/1.1 to read the answer to an upgrade or a CONNECT: a head, and a short body.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of a head. A longer one is no answer.
const HEAD: usize = 16 * 1024;
/// Bytes of a body that are read. What follows is left.
const BODY: usize = 64 * 1024;

/// The status and the header lines of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    lines: Vec<(String, String)>,
}

impl Head {
    /// The first line of this name, which is in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let line = self.lines.iter().find(|(other, _)| other == name);
        line.map(|(_, value)| value.as_str())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let first = lines.next()?;
        let rest = first.strip_prefix("HTTP/1.")?;
        let status = rest.split(' ').nth(1)?.parse().ok()?;
        let lines = lines.filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(Self {
            status,
            lines: lines.collect::<Option<_>>()?,
        })
    }
}

/// Reads a head, and what came with it of what follows.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(Head, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        let from = bytes.len().saturating_sub(3);
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let fresh = bytes.get(from..).unwrap_or_default();
        let end = fresh.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(from + end + 4);
            let head = Head::parse(&bytes);
            let bad = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
            return Ok((head.ok_or_else(bad)?, rest));
        }
        if bytes.len() > HEAD {
            let text = "the head of the answer is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
    }
}

/// The body behind a head: as much of it as comes, [`BODY`] at most.
pub(super) async fn body(
    stream: &mut (impl AsyncRead + Unpin),
    head: &Head,
    mut bytes: Vec<u8>,
) -> Vec<u8> {
    let length = head
        .get("content-length")
        .and_then(|text| text.parse().ok());
    let chunked = head
        .get("transfer-encoding")
        .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    loop {
        let done = if chunked {
            let (body, done) = unchunked(&bytes);
            if done || bytes.len() > BODY {
                return body;
            }
            false
        } else {
            bytes.len() >= length.unwrap_or(BODY).min(BODY)
        };
        if done {
            bytes.truncate(length.unwrap_or(BODY));
            return bytes;
        }
        // An error ends the body as its end does: what came is judged as it is.
        if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
            return if chunked { unchunked(&bytes).0 } else { bytes };
        }
    }
}

/// What chunks hold so far, and whether the last one is there.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            return (body, false);
        };
        let line = bytes.get(..end).unwrap_or_default();
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(size).unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            return (body, true);
        };
        let data = bytes.get(end + 2..).unwrap_or_default();
        body.extend(data.iter().take(size));
        match data.get(size.saturating_add(2)..) {
            Some(_) if size == 0 => return (body, true),
            Some(rest) => bytes = rest,
            None => return (body, size == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn whole(text: &[u8]) -> io::Result<(Head, Vec<u8>)> {
        let mut stream = text;
        let (head, rest) = read(&mut stream).await?;
        let body = body(&mut stream, &head, rest).await;
        Ok((head, body))
    }

    #[tokio::test]
    async fn bodies_of_every_kind_are_read() {
        for (text, body) in [
            ("HTTP/1.1 401 No\r\nContent-Length: 3\r\n\r\nabcd", "abc"),
            ("HTTP/1.1 401\r\n\r\nabcd", "abcd"),
            (
                "HTTP/1.0 401 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n",
                "abcde",
            ),
            (
                "HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
                "ab",
            ),
            (
                "HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab",
                "ab",
            ),
        ] {
            let (head, read) = whole(text.as_bytes()).await.unwrap();
            assert_eq!(
                (head.status, read.as_slice()),
                (401, body.as_bytes()),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_not_http_is_an_error() {
        let long = "HTTP/1.1 200 OK\r\nx: ".to_owned() + &"y".repeat(20_000);
        for text in [
            "",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 x\r\n\r\n",
            &long,
        ] {
            assert!(whole(text.as_bytes()).await.is_err());
        }
    }
}
