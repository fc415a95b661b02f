use serde_json::json;

use super::*;

fn bad_id(frame: &str) -> (Option<Id>, i64) {
    match read(frame) {
        Message::Bad { id, error } => (id, error.code),
        other => panic!("{frame} was read as {other:?}"),
    }
}

#[test]
fn ids_are_integers_of_either_sign_or_strings() {
    for (text, id) in [
        ("7", Id::Number(7)),
        ("0", Id::Number(0)),
        ("-3", Id::Number(-3)),
        ("\"a-1\"", Id::Text("a-1".into())),
        ("\"\"", Id::Text(String::new())),
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#);
        let expected = Message::Request {
            id,
            method: "m".into(),
            params: Value::Null,
        };
        assert_eq!(read(&frame), expected, "{frame}");
    }
    for text in ["null", "1.5", "true", "[1]", "99999999999999999999"] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#);
        assert_eq!(bad_id(&frame), (None, -32600), "{frame}");
    }
}

#[test]
fn what_is_no_message_is_refused_with_the_id_where_there_is_one() {
    for (frame, id, code) in [
        ("{", None, -32700),
        ("", None, -32700),
        ("[]", None, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, None, -32600),
        ("3", None, -32600),
        (r#"{"jsonrpc":"2.0"}"#, None, -32600),
        (r#"{"jsonrpc":"1.0","id":4,"method":"m"}"#, Some(4), -32600),
        (r#"{"id":4,"method":"m"}"#, Some(4), -32600),
        (r#"{"jsonrpc":"2.0","id":4,"method":5}"#, Some(4), -32600),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"m","params":"p"}"#,
            Some(4),
            -32600,
        ),
    ] {
        assert_eq!(bad_id(frame), (id.map(Id::Number), code), "{frame}");
    }
}

#[test]
fn answers_are_results_or_errors() {
    let outcome = |frame: &str| match read(frame) {
        Message::Answer { id, outcome } => {
            assert_eq!(id, Id::Number(1));
            outcome
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        outcome(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
        Some(Ok(Value::Null))
    );
    assert_eq!(
        outcome(r#"{"id":1,"result":2,"error":null}"#),
        Some(Ok(json!(2)))
    );
    let error = RpcError::new(-5, "no").with_data(json!({"a": 1}));
    assert_eq!(
        outcome(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no","data":{"a":1}}}"#),
        Some(Err(error))
    );
    assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1}"#), None);
    assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#), None);
    assert_eq!(
        outcome(r#"{"id":1,"result":2,"error":{"code":1,"message":""}}"#),
        None
    );
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#),
        Message::Stray
    );
}

#[test]
fn an_id_is_found_at_the_beginning_of_a_frame_that_is_cut() {
    for (head, id) in [
        (
            r#"{"jsonrpc":"2.0","id":12,"method":"m","params":{"x":"aaaa"#,
            Some(Id::Number(12)),
        ),
        (
            r#"{"id": "q\"1" ,"method":"m"#,
            Some(Id::Text("q\"1".into())),
        ),
        (
            r#"{"params":{"id":5,"s":"\"id\":6"},"id":-7,"#,
            Some(Id::Number(-7)),
        ),
        (r#"{"method":"id","params":{"x":"aaaa"#, None),
        (r#"{"params":{"id":5,"text":"aaa"#, None),
        // It may go on behind the cut.
        (r#"{"id":12"#, None),
        (r#"{"id":"ab"#, None),
        (r#"[{"id":1,"#, None),
        ("}}}", None),
        ("", None),
    ] {
        assert_eq!(id_in(head), id, "{head}");
    }
}

#[test]
fn frames_are_written_as_the_standard_says() {
    assert_eq!(
        asking(Some(1), "a/b", &json!({"x": "\n"})),
        r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":"\n"}}"#
    );
    assert_eq!(
        asking(None, "n", &Value::Null),
        r#"{"jsonrpc":"2.0","method":"n"}"#
    );
    assert_eq!(
        answer(Some(&Id::Text("i".into())), Ok(&Value::Null)),
        r#"{"jsonrpc":"2.0","id":"i","result":null}"#
    );
    assert_eq!(
        answer(None, Err(&RpcError::new(-32600, "no"))),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#
    );
}
