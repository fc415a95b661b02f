//! Computers that dial in loops, and ones that never come to a link.

use super::device::{Device, Dial};
use super::rig::Rig;

const ID: &str = "0123456789abcdef";

#[tokio::test]
async fn a_computer_that_dials_in_a_loop_waits_and_others_do_not() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let (other, others) = rig.pair("fedcba9876543210", "linden").await;
    let mut let_in = 0;
    let refused = loop {
        match Dial::new(&id, &token).go(&rig).await {
            Ok(device) => {
                let_in += 1;
                drop(device);
            }
            Err(refused) => break refused,
        }
        assert!(let_in < 200, "nobody stops it");
    };
    assert!(let_in >= 8, "{let_in} {refused:?}");
    assert!([429, 503].contains(&refused.0), "{refused:?}");
    assert_eq!(
        refused.1["product"], "llembas",
        "a refusal of ours: {refused:?}"
    );
    // Somebody else links at once.
    Device::linked(&rig, &other, &others).await;
}

#[tokio::test]
async fn upgrades_that_never_answer_initialize_are_closed_and_counted() {
    let rig = Rig::signed().await;
    let (id, token) = rig.pair(ID, "zephyr").await;
    let silent = Dial {
        own: "initialize",
        ..Dial::new(&id, &token)
    };
    let mut silent = silent.go(&rig).await.unwrap();
    // `initialize` comes and is not answered; the hub ends it by itself (4002).
    let _asked = silent.next("initialize").await;
    let ended = tokio::time::timeout(
        std::time::Duration::from_secs(40),
        silent.done.take().unwrap().wait(),
    )
    .await;
    let reason = ended.expect("it stayed open");
    assert!(
        reason.to_string().contains("4002") || format!("{reason:?}").contains("4002"),
        "{reason:?}"
    );
}
