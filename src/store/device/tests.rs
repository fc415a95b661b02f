use super::audit::AuditLine;
use super::*;
use crate::config::Mode;
use crate::ids::{AskId, CallId, Digest, Seq};
use crate::store::device::sessions::{Listing, SessionRow};
use crate::store::item::{AskBody, Body, Item, Scope, Settled};

pub(crate) fn row(id: &str, origin: &str, updated: i64) -> SessionRow {
    SessionRow {
        id: SessionId::new(id),
        origin: origin.to_owned(),
        shared: false,
        cwd: "/work".into(),
        also: vec![],
        model: "m".to_owned(),
        mode: Mode::Manual,
        level: None,
        title: None,
        made: updated,
        updated,
        said: None,
        context: None,
        agents: None,
        scheduled: None,
        prompt: None,
        told: None,
        reserved: 0,
        head: Seq(0),
        turn: 0,
        running: false,
        calls: 0,
        bytes: 0,
        asks: 0,
    }
}

pub(crate) fn ask(id: &str) -> AskBody {
    AskBody {
        ask: AskId::new(id),
        call: CallId::new("0001"),
        digest: Digest::of(b"x"),
        kind: "execute".to_owned(),
        command: "ls".to_owned(),
        cwd: "/work".to_owned(),
        reason: "because".to_owned(),
        segment: None,
        r#box: "open".to_owned(),
        covers: None,
        widest: None,
        scopes: vec![Scope::Once],
        programs: vec![],
        variables: vec![],
        diff: None,
        wait_ms: Some(5),
        question: None,
    }
}

async fn store(folder: &Path) -> Store {
    Store::open(folder, &folder.join("chain")).await.unwrap()
}

fn item(seq: u64, body: Body) -> Item {
    Item {
        seq: Seq(seq),
        turn: 1,
        time: 7,
        body,
    }
}

async fn put(store: &Store, session: &str, items: Vec<Item>) -> Result<(), StoreError> {
    put_also(store, session, items, items::Also::default()).await
}

async fn put_also(
    store: &Store,
    session: &str,
    items: Vec<Item>,
    also: items::Also,
) -> Result<(), StoreError> {
    let session = SessionId::new(session);
    store
        .db()
        .write(Durability::Process, move |t| {
            items::put(t, &session, &items, 1000, &also).map(drop)
        })
        .await
}

#[tokio::test]
async fn every_kind_of_item_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    store.add_session(row("s", "local", 1), None).await.unwrap();
    let items = vec![
        item(
            1,
            Body::Message {
                text: "ä\0b".into(),
            },
        ),
        item(2, Body::Ask(Box::new(ask("a")))),
        item(
            3,
            Body::Output {
                call: CallId::new("0001"),
                text: "out".into(),
            },
        ),
        item(
            4,
            Body::Mode {
                mode: "edit".into(),
                by: "you".into(),
            },
        ),
    ];
    put(&store, "s", items.clone()).await.unwrap();
    let read = store
        .items(&SessionId::new("s"), Seq(0), 10, 1 << 20)
        .await
        .unwrap();
    assert_eq!(read, items);
    let row = store.session(&SessionId::new("s")).await.unwrap().unwrap();
    assert_eq!((row.mode, row.head, row.asks), (Mode::Edit, Seq(4), 1));
    assert_eq!((row.reserved, row.updated), (1000, 7));
}

#[tokio::test]
async fn an_ask_ends_once_and_a_second_end_keeps_nothing_of_its_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    store.add_session(row("s", "local", 1), None).await.unwrap();
    put(&store, "s", vec![item(1, Body::Ask(Box::new(ask("a"))))])
        .await
        .unwrap();
    let end = |seq, how| {
        vec![item(
            seq,
            Body::Answered {
                ask: AskId::new("a"),
                how,
                scope: None,
                by: "you".into(),
                note: None,
                selected: vec![],
            },
        )]
    };
    let line = |verdict: &str| items::Also {
        audit: vec![AuditLine {
            time: 1,
            session: None,
            origin: "local".into(),
            who: "you".into(),
            what: "execute".into(),
            verdict: verdict.into(),
            digest: None,
        }],
        ..items::Also::default()
    };
    put_also(&store, "s", end(2, Settled::Refused), line("refused"))
        .await
        .unwrap();
    assert!(
        put_also(&store, "s", end(3, Settled::Allowed), line("allowed"))
            .await
            .is_err()
    );
    let kept = store.ask(&AskId::new("a")).await.unwrap().unwrap();
    assert_eq!(kept.end.unwrap().how, Settled::Refused);
    let verdicts: Vec<_> = store
        .audit_log(9)
        .await
        .unwrap()
        .into_iter()
        .map(|l| l.verdict)
        .collect();
    assert_eq!(verdicts, ["refused"]);
}

#[tokio::test]
async fn the_audit_log_cannot_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    store
        .audit(AuditLine {
            time: clock::now_ms(),
            session: None,
            origin: "local".into(),
            who: "you".into(),
            what: "limits".into(),
            verdict: "changed".into(),
            digest: None,
        })
        .await
        .unwrap();
    for sql in ["update audit set verdict = 'x'", "delete from audit"] {
        assert!(store.db().call(|c| c.execute(sql, [])).await.is_err());
    }
    store.prune().await.unwrap();
    assert_eq!(store.audit_log(9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn lists_show_an_origin_its_own_and_what_is_shared_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    for (id, origin, updated) in [("a", "x", 3), ("b", "y", 2), ("c", "x", 2), ("d", "y", 1)] {
        store
            .add_session(row(id, origin, updated), None)
            .await
            .unwrap();
    }
    // Two may share a time: as a store of before had them, a page between them still parts them.
    let same = "update sessions set updated = case id when 'a' then 3 when 'd' then 1 else 2 end";
    store.db().call(|c| c.execute(same, [])).await.unwrap();
    store.share(&SessionId::new("d"), true).await.unwrap();
    let list = |origin: Option<&str>, after, limit| {
        let which = Listing {
            origin: origin.map(ToOwned::to_owned),
            cwd: None,
            after,
            limit,
        };
        let store = store.clone();
        async move {
            let rows = store.sessions(which).await.unwrap();
            rows.iter().map(|r| r.id.to_string()).collect::<String>()
        }
    };
    assert_eq!(list(None, None, 9).await, "acbd");
    assert_eq!(list(Some("x"), None, 9).await, "acd");
    assert_eq!(list(None, None, 2).await, "ac");
    assert_eq!(list(None, Some((2, "c".into())), 9).await, "bd");
}

#[tokio::test]
async fn an_older_copy_of_the_store_gets_a_new_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("elsewhere");
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let open = || Store::open(&home, &chain);
    let first = open().await.unwrap().epoch();
    let again = open().await.unwrap();
    assert_eq!(again.epoch(), first);
    again
        .db()
        .call(|c| c.execute_batch("pragma wal_checkpoint(truncate)"))
        .await
        .unwrap();
    drop(again);
    let copy = std::fs::read(home.join("device.db")).unwrap();
    for _ in 0..3 {
        assert_eq!(open().await.unwrap().epoch(), first);
    }
    // The last connection takes its log away when it has closed; until then it could take away
    // that of the copy.
    while home.join("device.db-wal").exists() {
        tokio::task::yield_now().await;
    }
    std::fs::write(home.join("copy"), copy).unwrap();
    std::fs::rename(home.join("copy"), home.join("device.db")).unwrap();
    let restored = open().await.unwrap().epoch();
    assert_ne!(restored, first);
    assert_eq!(open().await.unwrap().epoch(), restored);
    let store = open().await.unwrap();
    let renewed = store.renew_epoch().await.unwrap();
    assert_ne!(renewed, restored);
    assert_eq!(store.epoch(), renewed);
}

#[tokio::test]
async fn the_newest_change_never_falls() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let head = async |origin: &str| store.newest_change(Some(origin.to_owned())).await.unwrap();
    store.add_session(row("a", "i", 1000), None).await.unwrap();
    store
        .add_session(row("l", "local", 2000), None)
        .await
        .unwrap();
    assert_eq!(head("i").await, 1000, "what it may not see says nothing");
    // The clock was set back: what changes now is newer all the same.
    store.add_session(row("b", "i", 500), None).await.unwrap();
    assert_eq!(head("i").await, 2001);
    let item = Item {
        seq: Seq(1),
        turn: 0,
        time: 600,
        body: Body::Notice {
            compacted: None,
            text: "n".to_owned(),
        },
    };
    put(&store, "a", vec![item]).await.unwrap();
    assert_eq!(head("i").await, 2002);
    store.delete_session(&SessionId::new("a")).await.unwrap();
    assert_eq!(head("i").await, 2002);
    store.add_session(row("c", "i", 700), None).await.unwrap();
    assert_eq!(head("i").await, 2003);
}
