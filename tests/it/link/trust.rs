//! Whom the link trusts, and how it gets out: certificates, pins, proxies.

use lembas::config;
use lembas::link::discovery::discover;
use lembas::link::http::{Http, Pin, ProxyVars};
use lembas::link::origin::Base;

use super::dialling::{Home, initialize};
use super::finding::says;
use super::server::{Reply, Request, Server, Tls};

fn answer(request: &Request) -> Reply {
    match request.path.as_str() {
        "/.well-known/lembas" => {
            let base = format!("https://{}", request.header("host").unwrap());
            let mut says = says(&base);
            says["link"] = format!("{}/link", base.replace("https", "wss")).into();
            Reply::json(&says)
        }
        "/link" => Reply::Upgrade,
        path => panic!("nobody asks for {path}"),
    }
}

async fn secure(tls: &Tls) -> Server {
    let at = "127.0.0.1:0".parse().unwrap();
    Server::start(at, Some(tls.acceptor.clone()), answer).await
}

/// Finds the instance and links with it over one set of settings.
async fn reach(server: &mut Server, host: &str, http: &Http) -> Result<(), String> {
    let base = format!("https://{host}:{}", server.address.port());
    let found = discover(&Base::read(&base).unwrap(), http).await;
    found.map_err(|error| error.to_string())?;
    let home = Home::linked(&base.replace("https", "wss")).await;
    let (link, _service) = home.link(http.clone());
    let (request, mut socket) = server.dialled().await;
    assert_eq!(
        request.header("authorization").unwrap(),
        "Bearer token-0123456789abcdef"
    );
    initialize(&mut socket).await;
    link.linked().await;
    link.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_certificate_authority_of_ones_own_is_trusted_when_named() {
    let tls = Tls::new();
    let mut server = secure(&tls).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, &tls.authority).unwrap();
    let settings = config::Link {
        ca_file: Some(file),
        ..config::Link::default()
    };
    let http = Http::new(&settings, ProxyVars::default()).unwrap();
    reach(&mut server, "localhost", &http).await.unwrap();
    reach(&mut server, "127.0.0.1", &http).await.unwrap();
    let unknown = Http::new(&config::Link::default(), ProxyVars::default()).unwrap();
    let error = reach(&mut server, "localhost", &unknown).await.unwrap_err();
    assert!(
        error.contains("UnknownIssuer") && error.contains("ca_file"),
        "{error}"
    );
    server.end().await;
}

#[tokio::test]
async fn a_pinned_certificate_is_the_only_one() {
    let tls = Tls::new();
    let mut server = secure(&tls).await;
    let pinned = |pin: Pin| {
        let settings = config::Link {
            pin: Some(pin.to_string()),
            ..config::Link::default()
        };
        Http::new(&settings, ProxyVars::default()).unwrap()
    };
    let right = pinned(Pin::of(&tls.certificate));
    reach(&mut server, "localhost", &right).await.unwrap();
    let wrong = pinned(Pin::of(b"another"));
    let error = reach(&mut server, "localhost", &wrong).await.unwrap_err();
    assert!(error.contains("not the pinned one"), "{error}");
    assert!(
        error.contains(&Pin::of(&tls.certificate).to_string()),
        "{error}"
    );
    server.end().await;
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_with_its_password() {
    let tls = Tls::new();
    let mut server = secure(&tls).await;
    let to = server.address;
    // The name is resolved by the proxy alone: this computer could not.
    let proxy = Server::plain(move |request| {
        assert_eq!(request.method, "CONNECT");
        assert_eq!(request.path, format!("instance.invalid:{}", to.port()));
        // me:p@ss
        match request.header("proxy-authorization") {
            Some("Basic bWU6cEBzcw==") => Reply::Tunnel(to),
            _ => Reply::Http("407 Proxy Authentication Required", vec![], String::new()),
        }
    })
    .await;
    let through = |credentials: &str| {
        let settings = config::Link {
            pin: Some(Pin::of(&tls.certificate).to_string()),
            ..config::Link::default()
        };
        let vars = ProxyVars {
            https: Some(format!("http://{credentials}{}", proxy.address)),
            ..ProxyVars::default()
        };
        Http::new(&settings, vars).unwrap()
    };
    let http = through("me:p%40ss@");
    reach(&mut server, "instance.invalid", &http).await.unwrap();
    let home = Home::linked(&format!("wss://instance.invalid:{}", to.port())).await;
    let (link, _service) = home.link(through(""));
    let reason = link.offline().await;
    assert!(reason.contains("wants a name and password"), "{reason}");
    link.stop().await;
    proxy.end().await;
    server.end().await;
}
