//! Following a journal: from anywhere, the same text.

use std::collections::BTreeMap;

use lembas::ids::{Position, Seq};
use lembas::session::{Event, Session};
use lembas::store::device::items::text;
use lembas::store::item::Body;
use lembas::testing::model::{Reply, call, done, finish, say, think};

use super::home::{Home, bash, begin, journal, prompt, soon};

/// What a follower has: each item's number, and the bytes of its text from where it began.
async fn heard(session: &Session, from: Position, last: Seq) -> BTreeMap<Seq, String> {
    let mut follow = session.follow(from);
    let mut texts: BTreeMap<Seq, String> = BTreeMap::new();
    soon(async {
        loop {
            match follow.next().await.unwrap() {
                Event::Item(item) => {
                    let known = text(&item.body).cloned().unwrap_or_default();
                    assert!(
                        texts.insert(item.seq, known).is_none(),
                        "an item came twice"
                    );
                    if item.seq == last {
                        return;
                    }
                }
                Event::Text { to, chunk, .. } => {
                    let known = texts.entry(to.seq).or_default();
                    known.push_str(&chunk);
                }
                Event::Progress(_) => {}
            }
        }
    })
    .await;
    texts
}

#[tokio::test]
async fn from_every_position_a_follower_hears_what_the_journal_says() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let long = "wörter €🙂 ".repeat(12_000);
    home.model.play([
        Reply::stream(vec![
            think("grübel"),
            say("Erst "),
            say("€🙂"),
            call(0, "bash", &bash("chatty").1.to_string()),
            finish("tool_calls"),
            done(),
        ]),
        Reply::stream(vec![say(&long), say("Ende"), finish("stop"), done()]),
    ]);
    let live = session.clone();
    let last = Seq(1000);
    // One that follows from the start while it happens; stopped when the turn has ended.
    let following = home.tasks.spawn("follower", async move {
        let mut follow = live.follow(Position::default());
        let mut texts: BTreeMap<Seq, String> = BTreeMap::new();
        while let Some(event) = follow.next().await {
            match event {
                Event::Item(item) => {
                    let known = text(&item.body).cloned().unwrap_or_default();
                    texts.insert(item.seq, known);
                    if matches!(item.body, Body::TurnEnd { .. }) {
                        break;
                    }
                }
                Event::Text { to, chunk, .. } => {
                    let known = texts.get_mut(&to.seq).unwrap();
                    known.push_str(&chunk);
                    assert_eq!(known.len() as u64, to.at);
                }
                Event::Progress(_) => {}
            }
        }
        texts
    });
    soon(session.prompt(prompt("k", "go"))).await.unwrap();
    let items = journal(&session).await;
    let expected: BTreeMap<Seq, String> = items
        .iter()
        .map(|i| (i.seq, text(&i.body).cloned().unwrap_or_default()))
        .collect();
    assert!(
        items
            .iter()
            .any(|i| matches!(&i.body, Body::Output { text, .. } if text.contains("line 199")))
    );
    assert_eq!(soon(following).await.unwrap().unwrap(), expected);
    let last = items.last().map_or(last, |i| i.seq);
    for item in &items {
        let length = text(&item.body).map_or(0, String::len) as u64;
        let steps = (length / 40).max(1);
        let mut at = 0;
        while at <= length {
            if item.seq == last {
                break;
            }
            let from = Position { seq: item.seq, at };
            let heard = heard(&session, from, last).await;
            for (seq, whole) in expected.range(item.seq..) {
                if *seq == item.seq {
                    // A position inside a character is taken as its beginning.
                    let cut = whole.floor_char_boundary(usize::try_from(at).unwrap());
                    let tail = heard.get(seq).map_or("", String::as_str);
                    assert_eq!(tail, &whole[cut..], "from {from:?}");
                } else {
                    assert_eq!(heard.get(seq), Some(whole), "from {from:?}");
                }
            }
            at += steps;
        }
    }
}

#[tokio::test]
async fn a_slow_follower_does_not_slow_the_model_and_gets_joined_text() {
    let home = Home::new().await;
    let (_registry, session) = home.local().await;
    let mut follow = session.follow(Position::default());
    let mut acts: Vec<_> = (0..2000).map(|n| say(&format!("{n} "))).collect();
    acts.extend([finish("stop"), done()]);
    home.model.play([Reply::stream(acts)]);
    // Nobody reads while the model answers.
    let turn = begin(&home.tasks, &session, prompt("k", "go"));
    soon(turn).await.unwrap().unwrap().unwrap();
    let mut events = 0;
    let mut said = String::new();
    soon(async {
        loop {
            events += 1;
            match follow.next().await.unwrap() {
                Event::Item(item) => {
                    if let Body::Message { text } = &item.body {
                        said.push_str(text);
                    }
                    if matches!(item.body, Body::TurnEnd { .. }) {
                        return;
                    }
                }
                Event::Text { chunk, .. } => said.push_str(&chunk),
                Event::Progress(_) => {}
            }
        }
    })
    .await;
    assert!(events < 12, "{events}");
    assert_eq!(said.split(' ').count(), 2001);
}
