use tokio::io::duplex;

use super::*;

async fn all(bytes: &[u8], chunk: usize, max: usize) -> Vec<Incoming> {
    let (mut far, near) = duplex(chunk.max(1));
    let (mut source, _sink) = new(near, tokio::io::sink());
    let write = async {
        for part in bytes.chunks(chunk) {
            far.write_all(part).await.unwrap();
        }
        drop(far);
    };
    let read = async {
        let mut frames = Vec::new();
        while let Some(frame) = source.next(max).await.unwrap() {
            frames.push(frame);
        }
        frames
    };
    tokio::join!(write, read).1
}

fn text(text: &str) -> Incoming {
    Incoming::Text(text.into())
}

#[tokio::test]
async fn lines_are_frames_however_they_are_cut() {
    let bytes = "{\"a\":1}\n\r\n{\"ü\":2}\r\nlast".as_bytes();
    let expected = [
        text("{\"a\":1}"),
        Incoming::Alive,
        text("{\"ü\":2}"),
        text("last"),
    ];
    for chunk in 1..=bytes.len() {
        assert_eq!(all(bytes, chunk, 1000).await, expected, "chunks of {chunk}");
    }
}

#[tokio::test]
async fn a_line_too_long_is_skipped_with_its_head_and_bounded_memory() {
    let long = "y".repeat(100_000);
    let bytes = format!("ab\n{long}\ncd\n{long}");
    for chunk in [1000, 4096, 70_000, 1_000_000] {
        let frames = all(bytes.as_bytes(), chunk, 10_000).await;
        let skipped = |frame: &Incoming| {
            let Incoming::TooLong { head, bytes, over } = frame else {
                panic!("{frame:?}");
            };
            assert_eq!((*bytes, *over, head.len()), (100_000, false, 4096));
        };
        assert_eq!(frames.len(), 4);
        assert_eq!((&frames[0], &frames[2]), (&text("ab"), &text("cd")));
        skipped(&frames[1]);
        skipped(&frames[3]);
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_do_not_end_the_stream() {
    let frames = all(b"\xff\xfe{\n{}\n", 3, 100).await;
    assert_eq!(frames, [text("\u{fffd}\u{fffd}{"), text("{}")]);
}

#[tokio::test]
async fn frames_are_written_as_lines_and_a_close_ends_the_stream() {
    let (mut far, near) = duplex(1000);
    let (_source, mut sink) = new(tokio::io::empty(), near);
    sink.send(Outgoing::Text("{}".into())).await.unwrap();
    sink.send(Outgoing::Ping).await.unwrap();
    sink.send(Outgoing::Text("[]".into())).await.unwrap();
    let close = Outgoing::Close {
        code: 1000,
        reason: String::new(),
    };
    sink.send(close).await.unwrap();
    let mut bytes = String::new();
    far.read_to_string(&mut bytes).await.unwrap();
    assert_eq!(bytes, "{}\n[]\n");
}
