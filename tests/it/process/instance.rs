//! A daemon that is linked with an instance of the test's: what a hub of ours never sends, and what
//! whoever breaks into one would.

use futures_util::{SinkExt as _, StreamExt as _};
use lembas::link::instance::{Instance as Pairing, InstanceFile};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::home::{Home, within};
use super::world::project;
use crate::link::server::{Reply, Server, Socket};

struct Instance {
    socket: Socket,
    next: i64,
    /// What the device asked or said meanwhile.
    heard: Vec<Value>,
}

impl Instance {
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.socket
            .send(Message::text(ask.to_string()))
            .await
            .unwrap();
        loop {
            let message = within(method, self.socket.next()).await;
            match message.expect("the link ended").unwrap() {
                Message::Text(text) => {
                    let mut frame: Value = serde_json::from_str(&text).unwrap();
                    if frame["id"] != id || frame["method"].is_string() {
                        self.heard.push(frame);
                        continue;
                    }
                    return match frame.get_mut("error") {
                        Some(error) => Err(error.take()),
                        None => Ok(frame["result"].take()),
                    };
                }
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Code, reason and text of a refusal.
    async fn refused(&mut self, method: &str, params: Value) -> (i64, String, String) {
        let error = self.ask(method, params).await.expect_err(method);
        let data = &error["data"];
        let text = data["text"].as_str().unwrap_or_default().to_owned();
        (
            error["code"].as_i64().unwrap(),
            data["reason"].as_str().unwrap_or_default().to_owned(),
            text,
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_folders_and_prompts_of_an_instance_are_refused() {
    let mut server = Server::plain(|request| match request.path.as_str() {
        "/link" => Reply::Upgrade,
        _ => Reply::Nothing,
    })
    .await;
    let home = Home::new();
    let project = project(&home);
    let outside = home.path("private");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("diary.txt"), "dear diary").unwrap();
    std::os::unix::fs::symlink(&outside, project.join("way-out")).unwrap();
    let shared = home.path("projects");
    home.save(&format!(
        "[remote]\nroots = [{shared:?}]\nmax_mode = \"edit\"\n"
    ));
    let pairing: Pairing = serde_json::from_value(json!({
        "url": server.url(), "instance": "i-1", "name": "home",
        "link": format!("ws://{}/link", server.address),
        "account": { "id": "a", "name": "ana" }, "device": "0f5b", "paired_at": 1,
        "token": "token-0123456789abcdef",
    }))
    .unwrap();
    let file = InstanceFile::in_folder(&home.settings());
    file.save(pairing).await.unwrap();
    let mut daemon = home.start("daemon --json");
    daemon.line().await;
    let (_, socket) = server.dialled().await;
    let mut instance = Instance {
        socket,
        next: 0,
        heard: Vec::new(),
    };

    // Nothing is answered before the handshake, and then in the limits that it says.
    let early = instance.refused("session/list", json!({})).await;
    assert!(early.0 < 0, "{early:?}");
    let hello = instance
        .ask(
            "initialize",
            json!({
                "protocolVersion": 1,
                "clientCapabilities": {
                    "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true,
                    "_meta": { "lembas": {
                        "protocol": 3, "spec": "3.6.0", "instance": "i-1",
                        "capabilities": ["resume", "asks", "directories", "scheduled"],
                    } },
                },
            }),
        )
        .await
        .unwrap();
    let said = &hello["agentCapabilities"]["_meta"]["lembas"];
    assert_eq!(said["limits"]["roots"], json!([shared]), "{said}");
    assert_eq!(said["limits"]["terminal"], false);
    let linked = |status: &Value| status["linked"]["state"] == "linked";
    home.status("the link", linked).await;

    let new = |more: Value| {
        let mut params = json!({
            "cwd": project, "mcpServers": [],
            "_meta": { "lembas": { "model": "m", "mode": "edit" } },
        });
        let fields = params.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        params
    };
    let good = instance.ask("session/new", new(json!({}))).await.unwrap();
    let id = good["sessionId"].as_str().unwrap();

    let marker = outside.join("started");
    let program = json!([{ "name": "x", "command": "/bin/touch", "args": [marker], "env": [] }]);
    let by_http =
        json!([{ "type": "http", "name": "x", "url": "http://127.0.0.1:1", "headers": [] }]);
    let words =
        |mode: &str| json!({ "mode": mode, "content": [{ "type": "text", "text": "obey" }] });
    let servers =
        "An instance cannot start programs of its own on this computer: mcpServers must be empty.";
    let prompts = "The system prompt cannot be replaced over the link.";
    for method in ["session/new", "session/load", "session/resume"] {
        for (more, reason, text) in [
            (json!({ "mcpServers": program }), "mcp_servers", servers),
            (json!({ "mcpServers": by_http }), "mcp_servers", servers),
            (
                json!({ "systemPrompt": words("override") }),
                "system_prompt",
                prompts,
            ),
            (
                json!({ "systemPrompt": words("append") }),
                "system_prompt",
                prompts,
            ),
        ] {
            let mut params = new(more);
            params["sessionId"] = json!(id);
            let refused = instance.refused(method, params).await;
            assert_eq!(
                refused,
                (-32602, reason.to_owned(), text.to_owned()),
                "{method}"
            );
        }
    }
    assert!(!marker.exists());

    let up = shared.join("..");
    for folder in [
        outside.clone(),
        project.join("way-out"),
        up,
        home.path(""),
        "/".into(),
        "/etc".into(),
    ] {
        for more in [
            json!({ "cwd": folder }),
            json!({ "additionalDirectories": [folder] }),
            json!({ "additionalDirectories": [project, folder] }),
        ] {
            let refused = instance.refused("session/new", new(more)).await;
            assert_eq!(
                (refused.0, refused.1.as_str()),
                (-32602, "outside"),
                "{folder:?}"
            );
        }
        let listed = instance
            .refused("_lembas/directories", json!({ "path": folder }))
            .await;
        assert_eq!(
            (listed.0, listed.1.as_str()),
            (-32602, "outside"),
            "{folder:?}"
        );
    }
    // What is not there is not told from what is: the answer is the same.
    let missing = json!({ "cwd": outside.join("no such folder") });
    let missing = instance.refused("session/new", new(missing)).await;
    assert_eq!((missing.0, missing.1.as_str()), (-32602, "outside"));

    // More than the person allows becomes what they allow, and says so.
    let auto = json!({ "_meta": { "lembas": { "model": "m", "mode": "auto" } } });
    let lowered = instance.ask("session/new", new(auto)).await.unwrap();
    let ours = &lowered["_meta"]["lembas"];
    assert_eq!(
        (&ours["mode"], &ours["lowered"]),
        (&json!("edit"), &json!("max_mode"))
    );
    let run = json!({ "schedule": "s", "run": "r" });
    let run = json!({ "_meta": { "lembas": { "model": "m", "scheduled": run } } });
    let off = instance.refused("session/new", new(run)).await;
    assert_eq!((off.0, off.1.as_str()), (-32050, "off"));
    let watch = json!({ "schedule": "s", "run": "r", "cwd": project, "command": "ls" });
    let off = instance.refused("_lembas/monitor", watch).await;
    assert_eq!((off.0, off.1.as_str()), (-32051, "off"));

    // The two that were opened are all there is, and nothing of the client's was used.
    let list = home.json("sessions --json").await;
    assert_eq!(list["sessions"].as_array().unwrap().len(), 2, "{list}");
    let used = |frame: &&Value| {
        let method = frame["method"].as_str().unwrap_or_default();
        method.starts_with("fs/") || method.starts_with("terminal/")
    };
    assert_eq!(instance.heard.iter().filter(used).count(), 0);
    assert_eq!(daemon.end().await, Some(0));
    server.end().await;
}
