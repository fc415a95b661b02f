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
    assert_snapshot!(all.join("\n\n"), @"");
}
