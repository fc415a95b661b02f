use super::*;
use crate::model::sse::Event;

fn read(events: &[&str]) -> Result<Vec<Chunk>, ModelError> {
    let mut reader = Reader::new(false);
    let mut chunks = Vec::new();
    for data in events {
        chunks.extend(reader.piece(Piece::Event(Event {
            name: String::new(),
            data: (*data).to_owned(),
        }))?);
        if matches!(chunks.last(), Some(Chunk::Done(_))) {
            return Ok(chunks);
        }
    }
    chunks.extend(reader.end()?);
    Ok(chunks)
}

fn answer(events: &[&str]) -> Answer {
    match read(events).unwrap().pop() {
        Some(Chunk::Done(answer)) => answer,
        other => panic!("no answer: {other:?}"),
    }
}

fn calls(events: &[&str]) -> Vec<(String, String)> {
    answer(events)
        .calls
        .into_iter()
        .map(|c| (c.name, c.args))
        .collect()
}

fn pair(name: &str, args: &str) -> (String, String) {
    (name.to_owned(), args.to_owned())
}

#[test]
fn text_reasoning_and_usage() {
    let chunks = read(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
        "[DONE]",
    ])
    .unwrap();
    assert_eq!(
        chunks,
        [
            Chunk::Thought("hm".into()),
            Chunk::Text("Hi".into()),
            Chunk::Done(Answer {
                calls: vec![],
                finish: "stop".into(),
                tokens: Tokens {
                    input: 9,
                    cached_input: 4,
                    output: 2
                },
            }),
        ]
    );
}

#[test]
fn calls_in_pieces_by_index() {
    assert_eq!(
        calls(&[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"bash","arguments":"{\"c\""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]},"finish_reason":"tool_calls"}]}"#,
            "[DONE]",
        ]),
        [pair("read", r#"{"p":1}"#), pair("bash", r#"{"c":2}"#)]
    );
}

#[test]
fn calls_without_an_index_or_all_with_the_same() {
    for index in ["", r#""index":0,"#] {
        let first = format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}"id":"a","function":{{"name":"read","arguments":"{{}}"}}}}]}}}}]}}"#
        );
        let second = format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}"id":"b","function":{{"name":"read","arguments":"{{\"x\""}}}}]}}}}]}}"#
        );
        let more = format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}"function":{{"arguments":":1}}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
        );
        assert_eq!(
            calls(&[&first, &second, &more]),
            [pair("read", "{}"), pair("read", r#"{"x":1}"#)],
            "index {index:?}"
        );
    }
}

#[test]
fn calls_get_ids_of_their_own_and_arguments_that_are_an_object_are_text() {
    let answer = answer(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a","arguments":{"k":1}}},{"index":1,"function":{"name":"b"}}]},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(answer.calls[0].args, r#"{"k":1}"#);
    assert_eq!(answer.calls[1].args, "{}");
    assert!(!answer.calls[0].id.is_empty());
    assert_ne!(answer.calls[0].id, answer.calls[1].id);
}

#[test]
fn a_stream_without_an_end_is_cut() {
    assert!(matches!(
        read(&[r#"{"choices":[{"delta":{"content":"Hal"}}]}"#]),
        Err(ModelError::Cut)
    ));
    assert!(matches!(read(&["[DONE]"]), Err(ModelError::Cut)));
    assert_eq!(
        answer(&[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}"#]).finish,
        "length"
    );
}

#[test]
fn errors_in_the_stream_have_their_words() {
    for (data, words) in [
        (
            r#"{"error":{"message":"no memory","code":500}}"#,
            "no memory",
        ),
        (r#"{"error":"plain"}"#, "plain"),
    ] {
        let error = read(&[data]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the model's server reported an error: {words}")
        );
    }
    assert_eq!(error_text(b"<b>\nno\x07</b>", 50), "<b> no</b>");
    assert_eq!(error_text(b"", 50), "no words with it");
}

#[test]
fn hints_come_as_events_and_as_comments() {
    let mut reader = Reader::new(false);
    let comment = reader
        .piece(Piece::Comment(
            r#"{"lembas":{"phase":"loading_model","percent":40}}"#.into(),
        ))
        .unwrap();
    assert_eq!(comment, [Chunk::Hint(Hint::Loading { percent: Some(40) })]);
    assert_eq!(reader.piece(Piece::Comment("ping".into())).unwrap(), []);
    let event = read(&[
        r#"{"lembas":{"phase":"queued","position":2}}"#,
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"prompt_progress":{"processed":5,"total":9}}"#,
    ])
    .unwrap();
    assert_eq!(event[0], Chunk::Hint(Hint::Queued { position: Some(2) }));
    assert_eq!(
        event[1],
        Chunk::Hint(Hint::Reading {
            tokens: Some(5),
            total: Some(9)
        })
    );
}

#[test]
fn an_answer_as_one_object() {
    let mut reader = Reader::new(true);
    reader
        .collect(br#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"#)
        .unwrap();
    reader.collect(br#""usage":{"prompt_tokens":3}}"#).unwrap();
    let chunks = reader.end().unwrap();
    assert_eq!(chunks[0], Chunk::Text("Hi".into()));
    assert!(matches!(&chunks[1], Chunk::Done(a) if a.tokens.input == 3));
}
