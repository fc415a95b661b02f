//! The bytes of an output over the link (U9 to U12).

use base64::Engine as _;
use serde_json::json;

use super::*;
use crate::schema::Schema;

fn bytes(answer: &Value) -> Vec<u8> {
    let wrong = Schema::read("schema/link.json").check_def("output.result", answer);
    assert_eq!(wrong, Vec::<String>::new());
    let data = answer["data"].as_str().unwrap();
    base64::engine::general_purpose::STANDARD
        .decode(data)
        .unwrap()
}

#[tokio::test]
async fn the_pieces_of_an_output_are_its_bytes() {
    let place = Place::new();
    let client = place.instance().await;
    let session = open(&client, &place).await;
    let whole: Vec<u8> = (0..250_000_u32).flat_map(u32::to_be_bytes).collect();
    let fake = place.sessions.one();
    let put = |call: &str, bytes: Vec<u8>, missing| {
        fake.state
            .lock()
            .outputs
            .insert(call.to_owned(), (bytes, missing));
    };
    put("c1", whole.clone(), 0);
    put("c2", b"short".to_vec(), 7);
    let ask = |params: Value| {
        let mut all = json!({ "sessionId": session });
        all.as_object_mut()
            .unwrap()
            .extend(params.as_object().unwrap().clone());
        client.ask("_lembas/output", all)
    };
    let mut got = Vec::new();
    loop {
        let answer = ask(json!({ "call": "c1", "from": got.len(), "max": 10_000_000 }))
            .await
            .unwrap();
        assert!(answer.to_string().len() < 131_072, "it fits a frame");
        assert_eq!(
            (answer["from"].as_u64(), answer["total"].as_u64()),
            (Some(got.len() as u64), Some(1_000_000))
        );
        got.extend(bytes(&answer));
        if got.len() == 92_160 {
            // What is read from then on is of the state that was begun with.
            put("c1", b"another".to_vec(), 0);
        }
        if answer["end"] == true {
            break;
        }
    }
    assert_eq!(got, whole);
    let few = ask(json!({ "call": "c2", "max": 3 })).await.unwrap();
    assert_eq!(
        (bytes(&few).as_slice(), &few["end"], &few["missing"]),
        (&b"sho"[..], &json!(false), &json!(7))
    );
    let end = ask(json!({ "call": "c2", "from": 5 })).await.unwrap();
    assert_eq!(
        (bytes(&end).as_slice(), &end["end"]),
        (&b""[..], &json!(true))
    );
    assert_eq!(
        refused(ask(json!({ "call": "c2", "from": 6 })).await),
        (-32602, "params".to_owned())
    );
    assert_eq!(
        refused(ask(json!({ "call": "c9" })).await),
        (-32004, "unknown".to_owned())
    );
    let other = place.instance_of("g2").await;
    let theirs = other
        .ask(
            "_lembas/output",
            json!({ "sessionId": session, "call": "c1" }),
        )
        .await;
    assert_eq!(theirs.unwrap_err().code, lembas::rpc::RpcError::NOT_FOUND);
}
