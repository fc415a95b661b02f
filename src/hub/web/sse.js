// Reads a stream of server-sent events from bytes. Not here: what the events mean.

// A message longer than this is a fault of the other side; the stream ends and is taken up again.
const MOST = 8 * 1024 * 1024;

/** Gives `{ id, data }` for each message of an event stream. */
export async function* sseMessages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      if (rest.length > MOST) return;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { id, data: data.join("\n") };
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line[5] === " " ? 6 : 5));
        } else if (line.startsWith("id:")) {
          id = line.slice(3).trim();
        } else if (line.startsWith(":")) {
          // A comment is bytes on the wire all the same: the stream lives.
          yield { id, data: "" };
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
