use insta::assert_snapshot;

use super::*;

fn said(failure: &Failure) -> String {
    format!(
        "{}\n[{} {}]",
        failure.lines().join("\n"),
        failure.code,
        failure.exit as u8
    )
}

#[test]
fn every_way_of_not_being_linked_has_its_words_and_a_next_step() {
    let url = "https://box.example";
    let base = || Base::read(url).unwrap();
    let mut all: Vec<String> = [
        "not an address",
        "http://box.example",
        "https://a:b@box.example",
    ]
    .iter()
    .map(|typed| said(&address(&Base::read(typed).unwrap_err(), typed)))
    .collect();
    let found = [
        DiscoveryError::Unreachable {
            base: base(),
            cause: "connection refused".into(),
        },
        DiscoveryError::Unreachable {
            base: base(),
            cause: "invalid peer certificate: UnknownIssuer".into(),
        },
        DiscoveryError::NotAnInstance {
            base: base(),
            path: discovery::KNOWN,
            who: "a server that calls itself \"nginx\" answered 404 Not Found".into(),
        },
        DiscoveryError::Elsewhere {
            base: base(),
            to: "https://other.example".into(),
        },
        DiscoveryError::Protocol { theirs: 2 },
        DiscoveryError::Protocol { theirs: 4 },
        DiscoveryError::Field {
            base: base(),
            field: "link",
        },
    ];
    all.extend(found.into_iter().map(|error| said(&not_found(error, url))));
    let paired = [
        PairError::Denied,
        PairError::Expired,
        PairError::Refused("too many computers".into()),
        PairError::Later(Duration::from_secs(90)),
        PairError::OtherInstance,
    ];
    all.extend(
        paired
            .into_iter()
            .map(|error| said(&unpaired(error, url, Some("WDJB-MJHT")))),
    );
    assert_snapshot!(all.join("\n\n"), @r#"
    error: "not an address" is no address of an instance. One looks like https://lembas.example or localhost:7700.
      try: lembas link https://box.example
    [address 64]

    error: http://box.example is not encrypted: anybody on the way could read this computer's token. Use https://; plain http is taken only for this computer itself (localhost).
      try: lembas link https://box.example
    [plain_http 64]

    error: An address with a name and password in it is not taken: leave out what is before the @.
      try: lembas link https://box.example
    [address 64]

    error: box.example cannot be reached
      why: connection refused
      try: curl -s https://box.example/.well-known/lembas
    [unreachable 69]

    error: the certificate of box.example is not trusted
      why: invalid peer certificate: UnknownIssuer
      try: lembas help config          [link] ca_file or pin
    [tls 69]

    error: box.example does not answer as an LLeMbas instance
      why: GET https://box.example/.well-known/lembas: a server that calls itself "nginx" answered 404 Not Found
      try: curl -s https://box.example/.well-known/lembas      it must print JSON with "protocol": 3
    [not_an_instance 1]

    error: https://box.example sends this computer on to https://other.example, another address. If that is your instance, link it by its own address.
      try: lembas link https://other.example
    [not_an_instance 1]

    error: This instance speaks link protocol 2 and this computer 3: update the instance to LLeMbas 2.0 or later.
      try: after the update:  lembas link https://box.example
    [protocol 1]

    error: This instance speaks link protocol 4 and this computer 3: update lembas on this computer.
      try: after the update:  lembas link https://box.example
    [protocol 1]

    error: https://box.example answers as an instance but without a usable "link": the instance needs an update or a repair
      try: after it was mended:  lembas link https://box.example
    [not_an_instance 1]

    error: somebody said no to the code WDJB-MJHT on the page of box.example
      try: lembas link https://box.example
    [refused 1]

    error: nobody entered the code WDJB-MJHT within 10 minutes
      try: lembas link https://box.example
    [expired 1]

    error: box.example does not let this computer in
      why: too many computers
      try: lembas link https://box.example
    [refused 1]

    error: the instance asks to wait: try again in 90 seconds
      try: lembas link https://box.example
    [busy 69]

    error: the answer is of another instance than the one that was found: its token was thrown away
      try: lembas link https://box.example
    [not_an_instance 1]
    "#);
}
