use std::path::Path;

use super::*;
use crate::store::item::{Part, Source, Stop, Tokens};

const READ: usize = 64;

async fn open(folder: &Path) -> (Store, SessionRow) {
    let store = Store::open(folder, &folder.join("chain")).await.unwrap();
    let id = SessionId::new("s");
    if store.session(&id).await.unwrap().is_none() {
        store
            .add_session(crate::store::device::tests::row("s", "local", 1), None)
            .await
            .unwrap();
    }
    let row = store.session(&id).await.unwrap().unwrap();
    (store, row)
}

async fn journal(folder: &Path) -> Journal {
    let (store, row) = open(folder).await;
    Journal::new(store, &row, watch::Sender::new(0))
}

fn prompt() -> Body {
    Body::Prompt {
        key: "k".into(),
        source: Source::Person,
        parts: vec![Part::Text { text: "hi".into() }],
        note: None,
        run: None,
    }
}

fn notice(text: &str) -> Body {
    Body::Notice {
        text: text.into(),
        compacted: None,
    }
}

async fn add(journal: &Journal, bodies: Vec<Body>) -> Vec<Item> {
    journal
        .append(bodies, Durability::Process, Also::default())
        .await
        .unwrap()
}

/// A computer that loses its power, or a process that is killed: the store's log ends at any byte.
#[tokio::test]
async fn wherever_the_log_ends_what_was_committed_is_there_and_nothing_is_half() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    let [db, wal] = ["device.db", "device.db-wal"].map(|name| folder.path().join(name));
    let length = || std::fs::metadata(&wal).unwrap().len() as usize;
    let mut commits = vec![(length(), 0)];
    for n in 0..4 {
        let bodies = vec![prompt(), notice(&"x".repeat(1500 * n)), notice("end")];
        let also = Also::default();
        journal
            .append(bodies, Durability::Disk, also)
            .await
            .unwrap();
        commits.push((length(), 3 * (n + 1)));
    }
    let (db, wal) = (std::fs::read(db).unwrap(), std::fs::read(wal).unwrap());
    // A frame is a page and 24 bytes. Every byte of the last of them, and the others by their ends.
    let last = wal.len() - 200..=wal.len();
    let ends = (32 + 4120..wal.len()).step_by(4120);
    let near = ends.flat_map(|end| end - 30..end + 30);
    let cuts = near
        .chain((commits[0].0..wal.len()).step_by(331))
        .chain(last);
    let there = tempfile::tempdir().unwrap();
    for cut in cuts.filter(|cut| *cut >= commits[0].0 && *cut <= wal.len()) {
        let copy = there.path().join(format!("{cut}.db"));
        std::fs::write(&copy, &db).unwrap();
        std::fs::write(there.path().join(format!("{cut}.db-wal")), &wal[..cut]).unwrap();
        let found: usize = rusqlite::Connection::open(&copy)
            .unwrap()
            .query_row("select count(*) from items", [], |r| r.get(0))
            .unwrap();
        let whole = commits.iter().filter(|(end, _)| *end <= cut);
        let committed = whole.map(|(_, items)| *items).max().unwrap();
        assert_eq!(found, committed, "cut at {cut}");
        std::fs::remove_file(copy).unwrap();
    }
}

/// Everything after a position, as one list.
async fn rest(journal: &Journal, mut after: Position) -> Vec<Item> {
    let mut all = Vec::new();
    loop {
        let items = journal.read(after, READ).await.unwrap().unwrap();
        let Some(last) = items.back() else {
            return all;
        };
        after = last.position();
        all.extend(items);
    }
}

#[tokio::test]
async fn numbers_are_never_given_twice_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let journal = journal(folder.path()).await;
        // Told before it is on the disk, and lost with the process.
        journal.text(&Stream::Message, "lost").await.unwrap();
        let items = add(&journal, vec![notice("a"), notice("b")]).await;
        journal.text(&Stream::Message, "lost too").await.unwrap();
        let seqs: Vec<u64> = items.iter().map(|i| i.seq.0).collect();
        assert!(seqs[0] > last + 1, "{seqs:?} after {last}");
        last = seqs[1] + 1;
    }
    assert!(last < 3 * BLOCK);
}

#[tokio::test]
async fn a_block_that_is_used_up_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    let many = (0..BLOCK + 7).map(|n| notice(&n.to_string())).collect();
    add(&journal, many).await;
    let (_, row) = open(folder.path()).await;
    assert!(row.reserved >= row.head.0);
    journal.text(&Stream::Message, "x").await.unwrap();
    assert_eq!(
        rest(&journal, Position::default()).await.len() as u64,
        BLOCK + 8
    );
}

#[tokio::test]
async fn text_joins_closes_before_other_items_and_is_saved_whole() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    add(&journal, vec![prompt()]).await;
    let output = Stream::Output(CallId::new("0001"));
    journal.text(&Stream::Message, "Hel").await.unwrap();
    journal.text(&Stream::Message, "lo").await.unwrap();
    journal.text(&output, "1").await.unwrap();
    add(&journal, vec![notice("between")]).await;
    journal.text(&output, "2").await.unwrap();
    journal.flush().await.unwrap();
    let expected = vec![
        Body::Message {
            text: "Hello".into(),
        },
        Stream::open(&output, "1".into()),
        notice("between"),
        Stream::open(&output, "2".into()),
    ];
    let live: Vec<Body> = rest(&journal, Position::default())
        .await
        .into_iter()
        .skip(1)
        .map(|i| i.body)
        .collect();
    assert_eq!(live, expected);
    let (store, _) = open(folder.path()).await;
    let kept = store
        .items(&SessionId::new("s"), Seq(0), 99, 1 << 20)
        .await
        .unwrap();
    assert_eq!(
        kept.into_iter().skip(1).map(|i| i.body).collect::<Vec<_>>(),
        expected
    );
}

#[tokio::test(start_paused = true)]
async fn text_is_on_the_disk_a_quarter_second_later() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    let tasks = crate::rt::Tasks::new();
    tasks.spawn("flush", journal.clone().keep_flushed(tasks.stop().clone()));
    journal.text(&Stream::Message, "soon").await.unwrap();
    let (store, _) = open(folder.path()).await;
    let id = SessionId::new("s");
    let began = clock::instant();
    while store.end(&id).await.unwrap().at != 4 {
        assert!(began.elapsed() < AHEAD * 4, "never written");
        clock::sleep(Duration::from_millis(5)).await;
    }
    tasks.end().await;
}

#[tokio::test]
async fn a_reader_far_behind_gets_the_same_as_one_that_keeps_up() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    let mut close = Vec::new();
    let mut at = Position::default();
    for n in 0..600 {
        add(&journal, vec![notice(&n.to_string())]).await;
        let text = "x".repeat(n * 7 % 5000);
        journal.text(&Stream::Message, &text).await.unwrap();
        let items = journal.read(at, READ).await.unwrap().unwrap();
        at = items.back().unwrap().position();
        close.extend(items);
    }
    assert_eq!(rest(&journal, Position::default()).await, close);
    for seq in [0, 1, 100, 599, 1100] {
        let after = Position {
            seq: Seq(seq),
            at: 0,
        };
        let expected: Vec<_> = close
            .iter()
            .filter(|i| i.position() > after)
            .cloned()
            .collect();
        assert_eq!(rest(&journal, after).await, expected, "after {seq}");
    }
}

#[tokio::test]
async fn a_write_whose_caller_went_away_is_still_seen() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    add(&journal, vec![prompt()]).await;
    journal.text(&Stream::Message, "open").await.unwrap();
    let mut expected = vec!["open".to_owned()];
    let mut dropped = false;
    // The store's thread is now and then quicker than one poll; then there was nothing to drop.
    for n in 0..100 {
        let name = format!("dropped {n}");
        let write = journal.append(vec![notice(&name)], Durability::Process, Also::default());
        let mut write = Box::pin(write);
        // Polled once: the write is handed to the store's thread, its end is never awaited.
        dropped = futures_util::poll!(write.as_mut()).is_pending();
        expected.push(name);
        if dropped {
            break;
        }
    }
    assert!(dropped);
    expected.push("after".to_owned());
    add(&journal, vec![notice("after")]).await;
    let said: Vec<String> = rest(&journal, Position::default())
        .await
        .into_iter()
        .filter_map(|i| match i.body {
            Body::Notice { text, .. } | Body::Message { text } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(said, expected);
}

#[tokio::test]
async fn turns_and_calls_are_counted_on() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path()).await;
    let end = Body::TurnEnd {
        stop: Stop::EndTurn,
        reason: None,
        tokens: Tokens::default(),
        run: None,
    };
    add(&journal, vec![prompt(), end.clone()]).await;
    let items = add(&journal, vec![prompt(), end]).await;
    assert!(items.iter().all(|i| i.turn == 2));
    assert_eq!(journal.call_ids(2).await[1].as_str(), "0002");
    assert!(journal.bytes().await > 0);
}
