use proptest::prelude::*;

use super::*;
use crate::acp::capabilities;
use crate::ids::{AskId, CallId, Digest, Seq};
use crate::permission::Origin;
use crate::session::Progress;
use crate::store::item::{
    Allowed, AskBody, CallStatus, Item, Part, Scope, Settled, Source, Stop, Tokens,
};

fn client(lembas: bool) -> Client {
    let ours = json!({ "protocol": 3, "capabilities": ["resume", "asks", "progress"] });
    let meta = if lembas {
        json!({ "lembas": ours })
    } else {
        json!({})
    };
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": { "_meta": meta } });
    capabilities::read(hello, &Origin::Local).unwrap()
}

fn view(lembas: bool) -> View {
    let start = Position::default();
    View::new(
        SessionId::new("s"),
        client(lembas),
        "own-".to_owned(),
        start,
    )
}

fn item(seq: u64, body: Body) -> Item {
    Item {
        seq: Seq(seq),
        turn: 1,
        time: 5,
        body,
    }
}

fn ask() -> AskBody {
    AskBody {
        ask: AskId::new("a1"),
        call: CallId::new("c1"),
        digest: Digest::read("sha256:00"),
        kind: "execute".to_owned(),
        command: "git push".to_owned(),
        cwd: "/srv".to_owned(),
        reason: "It reaches other computers.".to_owned(),
        segment: Some("git push".to_owned()),
        r#box: "open".to_owned(),
        covers: None,
        widest: None,
        scopes: vec![Scope::Once, Scope::Session],
        programs: vec!["git: /usr/bin/git".to_owned()],
        variables: Vec::new(),
        diff: None,
        wait_ms: None,
        question: None,
    }
}

/// One of every kind.
fn bodies() -> Vec<Body> {
    let call = || CallId::new("c1");
    let tokens = Tokens {
        input: 12,
        cached_input: 9,
        output: 3,
    };
    let run = json!({ "schedule": "w", "run": "r", "status": "ok", "reply": "hi" });
    vec![
        Body::Prompt {
            key: "k".to_owned(),
            source: Source::Person,
            parts: vec![
                Part::Text {
                    text: "look".to_owned(),
                },
                Part::Link {
                    uri: "file:///a".to_owned(),
                    name: "a".to_owned(),
                },
                Part::Image {
                    mime: "image/png".to_owned(),
                    data: "AA".to_owned(),
                },
            ],
            note: Some("for the model alone".to_owned()),
            run: None,
        },
        Body::Step {
            model: "m".to_owned(),
            note: None,
        },
        Body::Message {
            text: "Hällo".to_owned(),
        },
        Body::Thought {
            text: "hm".to_owned(),
        },
        Body::Call {
            call: call(),
            model_call: "call_1".to_owned(),
            tool: "bash".to_owned(),
            args: "{\"command\":\"ls\"}".to_owned(),
            title: "ls".to_owned(),
            block: "shell".to_owned(),
            locations: vec!["/srv/a".to_owned()],
        },
        Body::Sampled {
            tokens,
            finish: "tool_calls".to_owned(),
            ms: 7,
        },
        Body::Ask(Box::new(ask())),
        Body::Answered {
            ask: AskId::new("a1"),
            how: Settled::Allowed,
            scope: Some(Scope::Once),
            by: "ana, on the page".to_owned(),
            note: None,
            selected: Vec::new(),
        },
        Body::Started {
            call: call(),
            digest: Digest::read("sha256:00"),
            allowed: Allowed {
                source: "once".to_owned(),
                text: "you allowed it".to_owned(),
                r#box: "open".to_owned(),
            },
        },
        Body::Output {
            call: call(),
            text: "a\n".to_owned(),
        },
        Body::Result {
            call: call(),
            status: CallStatus::Ok,
            text: "a\n[exit 0]".to_owned(),
            diff: None,
            path: None,
            exit: Some(0),
            bytes: 2,
            spill: None,
            saw: None,
            ms: 4,
        },
        Body::Result {
            call: CallId::new("c2"),
            status: CallStatus::Refused,
            text: "not run".to_owned(),
            diff: Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n".to_owned()),
            path: Some("/srv/x".to_owned()),
            exit: None,
            bytes: 0,
            spill: None,
            saw: None,
            ms: 0,
        },
        Body::Plan {
            plan: json!({ "title": "T", "phases": [{ "title": "P", "tasks": [
                { "title": "one", "status": "done" }, { "title": "two", "status": "in_progress" },
                { "title": "three", "status": "todo" } ] }] }),
        },
        Body::Mode {
            mode: "edit".to_owned(),
            by: "ana".to_owned(),
        },
        Body::Model {
            model: "m2".to_owned(),
        },
        Body::Level {
            level: "high".to_owned(),
        },
        Body::Title {
            title: "Fix".to_owned(),
        },
        Body::Notice {
            text: "80 % full".to_owned(),
            compacted: None,
        },
        Body::TurnEnd {
            stop: Stop::EndTurn,
            reason: None,
            tokens,
            run: Some(run),
        },
    ]
}

fn all(lembas: bool) -> Vec<Frame> {
    let mut view = view(lembas);
    let items = bodies()
        .into_iter()
        .zip(1..)
        .map(|(body, seq)| item(seq, body));
    items
        .flat_map(|item| view.frames(Event::Item(item)))
        .collect()
}

fn lines(frames: &[Frame]) -> String {
    let lines: Vec<String> = frames
        .iter()
        .map(|frame| {
            let mut params = frame.params.clone();
            params.as_object_mut().unwrap().remove("sessionId");
            format!("{} {params}", frame.method.rsplit('/').next().unwrap())
        })
        .collect();
    lines.join("\n")
}

#[test]
fn every_kind_of_item_for_an_instance() {
    insta::assert_snapshot!(lines(&all(true)), @r#"
    update {"_meta":{"lembas":{"seq":1,"at":0,"turn":1,"time":5,"key":"k","source":"person","more":true}},"update":{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"text","text":"look"}}}
    update {"_meta":{"lembas":{"seq":1,"at":0,"turn":1,"time":5,"key":"k","source":"person","more":true}},"update":{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"resource_link","uri":"file:///a","name":"a"}}}
    update {"_meta":{"lembas":{"seq":1,"at":0,"turn":1,"time":5,"key":"k","source":"person"}},"update":{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"image","mimeType":"image/png","data":"AA"}}}
    event {"time":5,"seq":2,"type":"step","data":{"model":"m"},"turn":1}
    update {"_meta":{"lembas":{"seq":3,"at":6,"turn":1,"time":5}},"update":{"sessionUpdate":"agent_message_chunk","messageId":"3","content":{"type":"text","text":"Hällo"}}}
    update {"_meta":{"lembas":{"seq":4,"at":2,"turn":1,"time":5}},"update":{"sessionUpdate":"agent_thought_chunk","messageId":"4","content":{"type":"text","text":"hm"}}}
    update {"_meta":{"lembas":{"seq":5,"at":0,"turn":1,"time":5,"tool":"bash","block":"shell"}},"update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","kind":"execute","status":"pending","rawInput":{"command":"ls"},"locations":[{"path":"/srv/a"}]}}
    event {"time":5,"seq":6,"type":"usage","data":{"tokens":{"input":12,"cached_input":9,"output":3},"finish":"tool_calls","ms":7},"turn":1}
    event {"time":5,"seq":7,"type":"ask","data":{"ask":"a1","call":"c1","digest":"sha256:00","kind":"execute","command":"git push","cwd":"/srv","reason":"It reaches other computers.","segment":"git push","box":"open","scopes":["once","session"],"programs":["git: /usr/bin/git"],"variables":[],"state":"open"},"turn":1}
    event {"time":5,"seq":8,"type":"ask_settled","data":{"ask":"a1","how":"allowed","scope":"once","by":"ana, on the page"},"turn":1}
    update {"_meta":{"lembas":{"seq":9,"at":0,"turn":1,"time":5,"allowed":{"source":"once","text":"you allowed it","box":"open"}}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}}
    update {"_meta":{"lembas":{"seq":10,"at":2,"turn":1,"time":5,"output":"a\n"}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c1"}}
    update {"_meta":{"lembas":{"seq":11,"at":0,"turn":1,"time":5,"status":"ok","exit":0,"bytes":2,"ms":4}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\n[exit 0]"}}]}}
    update {"_meta":{"lembas":{"seq":12,"at":0,"turn":1,"time":5,"status":"refused","diff":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n","path":"/srv/x","bytes":0,"ms":0}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","content":[{"type":"diff","path":"/srv/x","oldText":"1\n","newText":"2\n"},{"type":"content","content":{"type":"text","text":"not run"}}]}}
    update {"_meta":{"lembas":{"seq":13,"at":0,"turn":1,"time":5,"more":true}},"update":{"sessionUpdate":"plan","entries":[{"content":"one","priority":"medium","status":"completed"},{"content":"two","priority":"medium","status":"in_progress"},{"content":"three","priority":"medium","status":"pending"}]}}
    event {"time":5,"seq":13,"type":"plan_state","data":{"plan":{"title":"T","phases":[{"title":"P","tasks":[{"title":"one","status":"done"},{"title":"two","status":"in_progress"},{"title":"three","status":"todo"}]}]}},"turn":1}
    update {"_meta":{"lembas":{"seq":14,"at":0,"turn":1,"time":5,"by":"ana"}},"update":{"sessionUpdate":"current_mode_update","currentModeId":"edit"}}
    event {"time":5,"seq":15,"type":"model","data":{"model":"m2"},"turn":1}
    event {"time":5,"seq":16,"type":"level","data":{"level":"high"},"turn":1}
    update {"_meta":{"lembas":{"seq":17,"at":0,"turn":1,"time":5,"more":true}},"update":{"sessionUpdate":"session_info_update","title":"Fix"}}
    event {"time":5,"seq":17,"type":"title","data":{"title":"Fix"},"turn":1}
    event {"time":5,"seq":18,"type":"notice","data":{"text":"80 % full"},"turn":1}
    event {"time":5,"seq":19,"type":"turn_end","data":{"turn":1,"stop":"end_turn","tokens":{"input":12,"cached_input":9,"output":3},"run":{"schedule":"w","run":"r","status":"ok","reply":"hi"}},"turn":1}
    "#);
}

#[test]
fn every_kind_of_item_for_a_plain_client() {
    insta::assert_snapshot!(lines(&all(false)), @r#"
    update {"_meta":{"lembas":{"seq":1,"at":0,"turn":1,"time":5,"key":"k","source":"person","more":true}},"update":{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"text","text":"look"}}}
    update {"_meta":{"lembas":{"seq":1,"at":0,"turn":1,"time":5,"key":"k","source":"person","more":true}},"update":{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"resource_link","uri":"file:///a","name":"a"}}}
    update {"_meta":{"lembas":{"seq":1,"at":0,"turn":1,"time":5,"key":"k","source":"person"}},"update":{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"image","mimeType":"image/png","data":"AA"}}}
    update {"_meta":{"lembas":{"seq":3,"at":6,"turn":1,"time":5}},"update":{"sessionUpdate":"agent_message_chunk","messageId":"3","content":{"type":"text","text":"Hällo"}}}
    update {"_meta":{"lembas":{"seq":4,"at":2,"turn":1,"time":5}},"update":{"sessionUpdate":"agent_thought_chunk","messageId":"4","content":{"type":"text","text":"hm"}}}
    update {"_meta":{"lembas":{"seq":5,"at":0,"turn":1,"time":5,"tool":"bash","block":"shell"}},"update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","kind":"execute","status":"pending","rawInput":{"command":"ls"},"locations":[{"path":"/srv/a"}]}}
    update {"_meta":{"lembas":{"seq":9,"at":0,"turn":1,"time":5,"allowed":{"source":"once","text":"you allowed it","box":"open"}}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}}
    update {"_meta":{"lembas":{"seq":11,"at":0,"turn":1,"time":5,"status":"ok","exit":0,"bytes":2,"ms":4}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\n[exit 0]"}}]}}
    update {"_meta":{"lembas":{"seq":12,"at":0,"turn":1,"time":5,"status":"refused","diff":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n","path":"/srv/x","bytes":0,"ms":0}},"update":{"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","content":[{"type":"diff","path":"/srv/x","oldText":"1\n","newText":"2\n"},{"type":"content","content":{"type":"text","text":"not run"}}]}}
    update {"_meta":{"lembas":{"seq":13,"at":0,"turn":1,"time":5}},"update":{"sessionUpdate":"plan","entries":[{"content":"one","priority":"medium","status":"completed"},{"content":"two","priority":"medium","status":"in_progress"},{"content":"three","priority":"medium","status":"pending"}]}}
    update {"_meta":{"lembas":{"seq":14,"at":0,"turn":1,"time":5,"by":"ana"}},"update":{"sessionUpdate":"current_mode_update","currentModeId":"edit"}}
    update {"_meta":{"lembas":{"seq":17,"at":0,"turn":1,"time":5}},"update":{"sessionUpdate":"session_info_update","title":"Fix"}}
    "#);
}

#[test]
fn updates_are_those_of_the_published_types() {
    use agent_client_protocol_schema::v1;
    for frame in all(true).into_iter().chain(all(false)) {
        if frame.method == "session/update" {
            let shown = frame.params.to_string();
            let read = serde_json::from_value::<v1::SessionNotification>(frame.params);
            assert!(read.is_ok(), "{shown}: {read:?}");
        }
    }
}

#[test]
fn a_progress_is_an_event_for_whoever_named_it() {
    let progress = || {
        Event::Progress(Progress {
            phase: crate::session::Phase::RunningTool,
            since: 7,
            data: json!({ "tool": "bash" }).as_object().cloned().unwrap(),
        })
    };
    insta::assert_snapshot!(
        lines(&view(true).frames(progress())),
        @r#"event {"data":{"phase":"running_tool","since":7,"tool":"bash"},"seq":0,"type":"phase"}"#
    );
    assert_eq!(view(false).frames(progress()), Vec::new());
}

#[test]
fn a_plain_client_does_not_hear_its_own_prompt_but_in_a_load() {
    let prompt = || {
        let parts = vec![Part::Text {
            text: "hi".to_owned(),
        }];
        let key = "own-1".to_owned();
        let body = Body::Prompt {
            key,
            source: Source::Person,
            parts,
            note: None,
            run: None,
        };
        Event::Item(item(1, body))
    };
    assert_eq!(view(false).frames(prompt()), Vec::new());
    assert_eq!(view(true).frames(prompt()).len(), 1);
    let replay = view(false).replaying(json!(7)).frames(prompt());
    assert_eq!(replay[0].params["_meta"]["lembas"]["replay"], 7);
}

#[test]
fn nothing_is_longer_than_a_frame() {
    let long = "é\u{1}\n".repeat(200_000);
    let parts = vec![
        Part::Text { text: long.clone() },
        Part::Image {
            mime: "image/png".to_owned(),
            data: "A".repeat(900_000),
        },
    ];
    let bodies = vec![
        Body::Prompt {
            key: "k".to_owned(),
            source: Source::Person,
            parts,
            note: None,
            run: None,
        },
        Body::Message { text: long.clone() },
        Body::Output {
            call: CallId::new("c"),
            text: long.clone(),
        },
        Body::Call {
            call: CallId::new("c"),
            model_call: String::new(),
            tool: "write".to_owned(),
            args: json!({ "path": "/a", "content": long }).to_string(),
            title: long.clone(),
            block: "edit".to_owned(),
            locations: Vec::new(),
        },
        Body::Result {
            call: CallId::new("c"),
            status: CallStatus::Ok,
            text: long.clone(),
            diff: Some(long.clone()),
            path: Some("/a".to_owned()),
            exit: None,
            bytes: 0,
            spill: None,
            saw: None,
            ms: 0,
        },
        Body::Notice {
            text: long.clone(),
            compacted: None,
        },
        Body::Plan {
            plan: json!({ "phases": [{ "tasks": [{ "title": long }] }] }),
        },
    ];
    let mut view = view(true);
    let mut said = 0;
    for (body, seq) in bodies.into_iter().zip(1..) {
        let whole = matches!(body, Body::Message { .. });
        for frame in view.frames(Event::Item(item(seq, body))) {
            let envelope =
                json!({ "jsonrpc": "2.0", "method": frame.method, "params": frame.params });
            let length = envelope.to_string().len();
            assert!(length <= size::FRAME, "{length} bytes of item {seq}");
            if whole {
                said += frame.params["update"]["content"]["text"]
                    .as_str()
                    .unwrap()
                    .len();
            }
        }
    }
    assert_eq!(said, long.len());
}

#[test]
fn only_the_last_of_several_frames_of_one_item_moves_the_position() {
    let more: Vec<Option<bool>> = all(true)
        .iter()
        .filter(|frame| frame.params["_meta"]["lembas"]["seq"] == 1)
        .map(|frame| frame.params["_meta"]["lembas"]["more"].as_bool())
        .collect();
    assert_eq!(more, [Some(true), Some(true), None]);
}

/// What a reader has: the text of each growing item, and its position (U3, U4).
#[derive(Debug, Default, PartialEq)]
struct Reader {
    texts: std::collections::BTreeMap<u64, String>,
    at: Position,
}

impl Reader {
    fn read(&mut self, frame: &Frame) {
        let meta = &frame.params["_meta"]["lembas"];
        let at = meta["at"].as_u64().unwrap();
        let seq = meta["seq"].as_u64().unwrap();
        let content = frame.params["update"]["content"]["text"].as_str();
        let text = content.or_else(|| meta["output"].as_str()).unwrap();
        let known = self.texts.entry(seq).or_default();
        known.push_str(text);
        assert_eq!(
            known.len() as u64,
            at,
            "the position is the end of the text"
        );
        self.at = Position { seq: Seq(seq), at };
    }
}

proptest! {
    /// Cut anywhere, from whichever piece, and replayed from the position: the texts are whole.
    #[test]
    fn a_cut_and_a_replay_give_the_whole_text(
        texts in prop::collection::vec("\\PC{0,30}", 1..5),
        cut in 0_usize..200,
        pieces in prop::collection::vec(1_usize..7, 1..40),
        whole_after in any::<bool>(),
    ) {
        let body = |n: usize, text: String| match n % 3 {
            0 => Body::Message { text },
            1 => Body::Thought { text },
            _ => Body::Output { call: CallId::new("c"), text },
        };
        let kind = |n: usize| match n % 3 {
            0 => TextKind::Message,
            1 => TextKind::Thought,
            _ => TextKind::Output(CallId::new("c")),
        };
        // Live, in pieces, until the cut.
        let mut reader = Reader::default();
        let mut live = view(true);
        let mut sizes = pieces.iter().cycle();
        let mut sent = 0;
        'live: for (n, text) in texts.iter().enumerate() {
            let mut at = 0;
            while at < text.len() {
                let mut to = (at + sizes.next().unwrap()).min(text.len());
                while !text.is_char_boundary(to) { to += 1; }
                let end = Position { seq: Seq(n as u64 + 1), at: to as u64 };
                let chunk = text[at..to].to_owned();
                for frame in live.frames(Event::Text { to: end, kind: kind(n), chunk }) {
                    reader.read(&frame);
                }
                at = to;
                sent += 1;
                if sent == cut { break 'live; }
            }
            if whole_after {
                // The complete item behind its pieces says nothing twice.
                let complete = item(n as u64 + 1, body(n, text.clone()));
                prop_assert_eq!(live.frames(Event::Item(complete)), Vec::new());
            }
        }
        // After the drop: from the reader's position on, as whole items.
        let mut replay = View::new(SessionId::new("s"), client(true), String::new(), reader.at);
        for (n, text) in texts.iter().enumerate() {
            for frame in replay.frames(Event::Item(item(n as u64 + 1, body(n, text.clone())))) {
                reader.read(&frame);
            }
        }
        for (n, text) in texts.iter().enumerate() {
            let read = reader.texts.get(&(n as u64 + 1)).map_or("", String::as_str);
            prop_assert_eq!(read, text.as_str());
        }
    }
}

#[test]
fn a_permission_request_says_all_of_an_ask() {
    use agent_client_protocol_schema::v1;
    let open = crate::session::OpenAsk {
        session: SessionId::new("s"),
        seq: Seq(21),
        made: 100,
        body: ask(),
        expires_in_ms: Some(5000),
        remote: true,
    };
    let params = ask::request(&open, None, None, &open.body.scopes, true, 107);
    let read: v1::RequestPermissionRequest = serde_json::from_value(params.clone()).unwrap();
    assert_eq!(read.options.len(), 3);
    insta::assert_snapshot!(serde_json::to_string_pretty(&params).unwrap(), @r#"
    {
      "sessionId": "s",
      "toolCall": {
        "toolCallId": "c1",
        "title": "git push",
        "kind": "execute",
        "status": "pending",
        "rawInput": {
          "command": "git push",
          "cwd": "/srv"
        },
        "content": [
          {
            "type": "content",
            "content": {
              "type": "text",
              "text": "It reaches other computers.\n\nIn /srv:\ngit push"
            }
          }
        ]
      },
      "options": [
        {
          "optionId": "once",
          "name": "Allow once",
          "kind": "allow_once"
        },
        {
          "optionId": "session",
          "name": "Allow for this session",
          "kind": "allow_always"
        },
        {
          "optionId": "refuse",
          "name": "Refuse",
          "kind": "reject_once"
        }
      ],
      "_meta": {
        "lembas": {
          "ask": "a1",
          "call": "c1",
          "digest": "sha256:00",
          "kind": "execute",
          "command": "git push",
          "cwd": "/srv",
          "reason": "It reaches other computers.",
          "segment": "git push",
          "box": "open",
          "scopes": [
            "once",
            "session"
          ],
          "programs": [
            "git: /usr/bin/git"
          ],
          "variables": [],
          "seq": 21,
          "made": 100,
          "now": 107,
          "expires_in": 5000
        }
      }
    }
    "#);
    assert_eq!(
        ask::request(&open, None, None, &[], false, 0)["options"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn answers_to_a_permission_request_are_read_and_nothing_else() {
    use crate::acp::outbound::ask::{Said, said};
    use crate::session::Outcome;
    let chose = |id: &str| {
        said(
            json!({ "outcome": { "outcome": "selected", "optionId": id } }),
            None,
        )
    };
    assert_eq!(chose("once"), Said::Chose(Outcome::Allow, Scope::Once));
    assert_eq!(chose("always"), Said::Chose(Outcome::Allow, Scope::Always));
    assert_eq!(chose("refuse"), Said::Chose(Outcome::Refuse, Scope::Once));
    assert_eq!(chose("all"), Said::Nonsense);
    assert_eq!(
        said(json!({ "outcome": { "outcome": "cancelled" } }), None),
        Said::Nothing
    );
    for wrong in [
        json!(null),
        json!("once"),
        json!({ "outcome": "once" }),
        json!({ "optionId": "once" }),
    ] {
        assert_eq!(said(wrong.clone(), None), Said::Nonsense, "{wrong}");
    }
}
