//! A prompt crosses: hub, pairing, daemon and model as processes over TLS, and a page that is
//! loaded again in the middle of an answer.

use std::sync::Arc;

use lembas::rt::Tasks;
use lembas::testing::model::{Act, ModelServer, Reply, done, finish, say, usage};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::certificates::Authority;
use super::home::Home;
use super::page::{Events, Page, client};
use super::world::{add, online, project};

/// One text as a page builds it: from what it loaded, and events after that.
#[derive(Default)]
struct Shown {
    blocks: Vec<String>,
    whole: bool,
}

impl Shown {
    fn loaded(item: &Value) -> Self {
        Self {
            blocks: blocks(&item["blocks"]),
            whole: false,
        }
    }

    fn take(&mut self, event: &Value) {
        if event["type"] == "md" {
            let keep = usize::try_from(event["keep"].as_u64().unwrap()).unwrap();
            assert!(keep <= self.blocks.len(), "a piece is missing: {event}");
            self.blocks.truncate(keep);
            self.blocks.extend(blocks(&event["html"]));
        } else if event["type"] == "item" && event["item"]["kind"] == "text" {
            self.blocks = blocks(&event["item"]["blocks"]);
            self.whole = event["item"]["open"] == false;
        }
    }

    /// Reads until the blocks are as wanted.
    async fn until(&mut self, events: &mut Events, what: &str, want: impl Fn(&Self) -> bool) {
        while !want(self) {
            let event = events.until(what, |event| Some(event.clone())).await;
            self.take(&event);
        }
    }
}

fn blocks(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|html| html.as_str().unwrap().to_owned()).collect()
}

const WHOLE: [&str; 3] = [
    "<p>The first part.</p>",
    "<p>The second part.</p>",
    "<p>The end.</p>",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_crosses_over_tls_and_a_reload_in_the_middle_loses_nothing() {
    let home = Home::new();
    let authority = Authority::new();
    let (cert, key) = authority.now().write(&home, "good");
    let ca = home.path("ca.pem");
    std::fs::write(&ca, &authority.pem).unwrap();
    let mut hub = home.start(&format!(
        "hub --listen 127.0.0.1:0 --tls-cert {} --tls-key {} --json",
        cert.display(),
        key.display()
    ));
    let started = hub.line().await;
    assert!(started["url"].as_str().unwrap().starts_with("https://"));
    let page = Page::sign_in(client(Some(&authority.der)), &started).await;

    home.save(&format!("[link]\nca_file = {ca:?}\n"));
    let mut link = home.start(&format!("link {} --json", page.url));
    let found = link.line().await;
    assert_eq!(found["event"], "found");
    assert_eq!(found["instance"]["protocol"], 3);
    let code = link.line().await;
    let code = json!({ "code": code["code"] });
    let asked = page.post("/link/lookup", code.clone()).await;
    assert_eq!(asked["limits"]["roots"], json!([]), "{asked}");
    page.post("/link/approve", code).await;
    let linked = link.line().await;
    assert_eq!(linked["event"], "linked", "{linked}");
    assert_eq!(link.wait().await, Some(0));

    let tasks = Tasks::new();
    let model = ModelServer::start(&tasks).await.unwrap();
    add(&home, &model).await;
    let project = project(&home);
    home.well("roots add projects").await;
    let mut daemon = home.start("daemon --json");
    daemon.line().await;
    let mut first = page.events(None).await;
    let device = online(&page, &mut first).await;
    let status = home.json("status --json").await;
    assert_eq!(status["linked"]["state"], "linked");
    assert_eq!(status["linked"]["instance"], page.url);
    assert_eq!(status["ok"], true);

    let (one, two) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    model.play([Reply::stream(vec![
        say("The first part.\n\nThe sec"),
        Act::Wait(one.clone()),
        say("ond part.\n\n"),
        Act::Wait(two.clone()),
        say("The end."),
        finish("stop"),
        usage(),
        done(),
    ])]);
    let made = page
        .post(
            "/chats",
            json!({
                "device": device, "cwd": project, "model": "scripted", "mode": "manual",
                "text": "tell me", "key": "key-of-this-chat",
            }),
        )
        .await;
    let chat = made["chat"]["id"].as_str().unwrap().to_owned();
    let path = format!("/chats/{chat}");
    let mut shown = Shown::default();
    shown
        .until(&mut first, "the first part", |s| {
            s.blocks.get(1).is_some_and(|b| b.contains("The sec"))
        })
        .await;

    // Loaded anew in the middle, as another tab does it: the state, the chat, the stream from there.
    let head = page.get("/state").await["head"].as_u64();
    let text = |shown: &Value| {
        let items = shown["items"].as_array().unwrap();
        items.iter().find(|item| item["kind"] == "text").cloned()
    };
    let half = page.get(&path).await;
    assert_eq!(half["chat"]["running"], true);
    let half = text(&half).unwrap();
    assert_eq!(half["open"], true);
    assert_eq!(half["text"], "The first part.\n\nThe sec");
    let mut again = Shown::loaded(&half);
    let mut second = page.events(head).await;
    assert_eq!(second.next().await["resumed"], true);
    one.add_permits(1);
    again
        .until(&mut second, "the second part", |s| {
            s.blocks.get(1).is_some_and(|b| b == WHOLE[1])
        })
        .await;

    // And a stream that broke off is gone on with from its last number.
    let mut third = page.events(Some(first.last)).await;
    let hello = third.next().await;
    assert_eq!(hello["resumed"], true, "{hello}");
    let mut resumed = Shown {
        blocks: shown.blocks.clone(),
        whole: false,
    };
    two.add_permits(1);
    for (shown, events) in [
        (&mut shown, &mut first),
        (&mut again, &mut second),
        (&mut resumed, &mut third),
    ] {
        shown.until(events, "the end", |s| s.whole).await;
        assert_eq!(shown.blocks, WHOLE);
    }
    let whole = text(&page.get(&path).await).unwrap();
    assert_eq!(blocks(&whole["blocks"]), WHOLE);
    assert_eq!(
        whole["text"],
        "The first part.\n\nThe second part.\n\nThe end."
    );

    // The device's token, and no key of the model's, went along; it is in nobody's log.
    let pairing = std::fs::read_to_string(home.settings().join("instance.json")).unwrap();
    let pairing: Value = serde_json::from_str(&pairing).unwrap();
    let token = pairing["token"].as_str().unwrap();
    assert!(!hub.log().contains(token) && !daemon.log().contains(token));
    assert!(!hub.log().contains("The first part") && !daemon.log().contains("The first part"));
    assert_eq!(daemon.end().await, Some(0));
    assert_eq!(hub.end().await, Some(0));
}
