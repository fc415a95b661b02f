//! A stream to the instance: names to addresses, the first address that answers, a proxy's tunnel,
//! TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use reqwest::Url;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Io, PHASE, failed, head};
use crate::clock;
use crate::link::http::{Http, Proxy};
use crate::link::machine::Refusal;
use crate::link::words;
use crate::link::ws::Counted;

/// How long an address has before the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);
/// Addresses of one name that are tried.
const ADDRESSES: usize = 16;

pub(super) async fn connect(
    url: &Url,
    http: &Http,
) -> Result<(Box<dyn Io>, Arc<AtomicU64>), Refusal> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(443);
    let tcp = match http.proxy(url) {
        None => tcp(host, port).await.map_err(failed)?,
        Some(proxy) => tunnel(&proxy, host, port).await.map_err(failed)?,
    };
    let tcp = Counted::new(tcp);
    let taken = tcp.taken();
    if !matches!(url.scheme(), "wss" | "https") {
        return Ok((Box::new(tcp), taken));
    }
    let config = http.tls().map_err(|error| failed(error.to_string()))?;
    let bad_name = |_| failed(format!("{host} is no name a certificate could be for"));
    let name = ServerName::try_from(host.to_owned()).map_err(bad_name)?;
    let tls = TlsConnector::from(config).connect(name, tcp);
    match clock::timeout(PHASE, tls).await {
        Ok(Ok(tls)) => Ok((Box::new(tls), taken)),
        Ok(Err(error)) => {
            let cause = words::cause(&error);
            Err(failed(format!("no trusted connection to {host}: {cause}")))
        }
        Err(_) => Err(failed(format!(
            "{host} did not finish TLS within 10 seconds"
        ))),
    }
}

/// The address that answers first, families in turn (RFC 8305 in short).
async fn tcp(host: &str, port: u16) -> Result<TcpStream, String> {
    let race = async {
        let found = tokio::net::lookup_host((host, port)).await;
        let found =
            found.map_err(|error| format!("{host} cannot be found: {}", words::cause(&error)))?;
        let stream = race(in_turn(found.collect())).await;
        stream.map_err(|error| format!("{host}:{port} cannot be reached: {}", words::cause(&error)))
    };
    let stream = clock::timeout(PHASE, race).await;
    let stream =
        stream.map_err(|_| format!("{host}:{port} did not answer within 10 seconds"))??;
    // Without it small frames wait for each other; that it fails costs speed alone.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY cannot be set");
    }
    Ok(stream)
}

/// Addresses with the families in turn, the one that the system put first before the other.
fn in_turn(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let six_first = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|address| address.is_ipv6() == six_first);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut turns = Vec::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return turns;
        }
        turns.extend(pair.into_iter().flatten());
        turns.truncate(ADDRESSES);
    }
}

async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut rest = addresses.into_iter();
    let mut tries = FuturesUnordered::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut more = true;
    loop {
        if more {
            match rest.next() {
                Some(address) => tries.push(TcpStream::connect(address)),
                None if tries.is_empty() => return Err(last),
                None => {}
            }
        }
        tokio::select! {
            Some(tried) = tries.next() => match tried {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    last = error;
                    more = true;
                }
            },
            () = clock::sleep(STAGGER), if rest.len() > 0 => more = true,
        }
    }
}

/// A tunnel through a proxy.
async fn tunnel(proxy: &Proxy, host: &str, port: u16) -> Result<TcpStream, String> {
    let (by, at) = proxy.address();
    let stream = tcp(&by, at).await;
    let mut stream = stream.map_err(|text| format!("the proxy {text}"))?;
    let target = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let authorization = proxy.authorization();
    let authorization = authorization
        .map(|value| format!("proxy-authorization: {value}\r\n"))
        .unwrap_or_default();
    let request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{authorization}\r\n");
    let asked = async {
        stream.write_all(request.as_bytes()).await?;
        head::read(&mut stream).await
    };
    let answer = clock::timeout(PHASE, asked).await;
    let answer =
        answer.map_err(|_| format!("the proxy {by}:{at} did not answer within 10 seconds"))?;
    let (head, rest) = answer.map_err(|error| {
        let cause = words::cause(&error);
        format!("the proxy {by}:{at} did not answer as a proxy does: {cause}")
    })?;
    match head.status {
        // A server speaks only when spoken to here: bytes in front of TLS are not its own.
        200..=299 if rest.is_empty() => Ok(stream),
        407 => Err(format!(
            "the proxy {by}:{at} wants a name and password, or others than it was given"
        )),
        _ => {
            let who = words::who(head.status, head.get("server"), head.get("content-type"));
            Err(format!(
                "the proxy {by}:{at} does not let this computer through to {target}: {who}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let read = |text: &str| -> Vec<SocketAddr> {
            text.split(' ')
                .map(|address| address.parse().unwrap())
                .collect()
        };
        let found = read("[::1]:1 [::2]:1 [::3]:1 1.1.1.1:1 2.2.2.2:1");
        let turns = read("[::1]:1 1.1.1.1:1 [::2]:1 2.2.2.2:1 [::3]:1");
        assert_eq!(in_turn(found), turns);
        assert_eq!(in_turn(vec![]), []);
        assert_eq!(in_turn(read("1.1.1.1:1")), read("1.1.1.1:1"));
    }

    #[tokio::test]
    async fn an_address_that_refuses_gives_way_to_the_next() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let closed = {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        let stream = race(vec![closed, closed, good]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        assert!(race(vec![closed, closed]).await.is_err());
        assert!(race(vec![]).await.is_err());
    }
}
