// A model that says what a test scripts: OpenAI's chat completions, streamed. The newest message of the person picks
// the script by name (`!name …`); the step is the number of answers after it. Not here: what a test does with it.
import { createServer } from "node:http";

const PIECE = 12;

export class ScriptedModel {
  /** `scripts`: name → list of steps `{ text?, thought?, calls?: [[name, args]], status?, after? }`. */
  constructor(scripts = {}) {
    this.scripts = scripts;
    this.requests = [];
    this.gates = new Map();
  }

  async start() {
    this.server = createServer((request, response) => this.serve(request, response).catch((error) => response.destroy(error)));
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  /** A step with `gate: name` stays in the middle of its text until this is called. */
  open(name) {
    this.gates.get(name)?.open();
  }

  wait(name) {
    if (!this.gates.has(name)) {
      let open;
      const promise = new Promise((done) => { open = done; });
      this.gates.set(name, { open, promise });
    }
    return this.gates.get(name).promise;
  }

  step(messages) {
    const text = ({ content }) => (Array.isArray(content) ? content.map((part) => part.text ?? "").join("\n") : content ?? "");
    const at = messages.findLastIndex((one) => one.role === "user" && /^![a-z-]+/m.test(text(one)));
    const name = at < 0 ? "" : /^!([a-z-]+)/m.exec(text(messages[at]))[1];
    const done = messages.slice(at + 1).filter((one) => one.role === "assistant").length;
    const script = this.scripts[name] ?? [{ text: "Nothing is scripted for that." }];
    return script[Math.min(done, script.length - 1)];
  }

  async serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    if (request.url.endsWith("/models")) return json(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
    const body = JSON.parse(Buffer.concat(chunks).toString());
    this.requests.push(body);
    const step = this.step(body.messages ?? []);
    if (step.status) return json(response, step.status, { error: { message: step.text ?? "no" } });
    const calls = (step.calls ?? []).map(([name, args], index) => ({ index, id: `call_${this.requests.length}_${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } }));
    const usage = { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280, prompt_tokens_details: { cached_tokens: 900 } };
    if (!body.stream) return json(response, 200, { id: "x", object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: step.text ?? "", ...(calls.length ? { tool_calls: calls } : {}) }, finish_reason: "stop" }], usage });
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const say = (delta, finish = null) => response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
    say({ role: "assistant", content: "" });
    if (step.thought) say({ reasoning_content: step.thought });
    const words = step.text ?? "";
    for (let at = 0; at < words.length; at += PIECE) {
      say({ content: words.slice(at, at + PIECE) });
      if (step.gate && at + PIECE >= words.length / 2 && at < words.length / 2) await this.wait(step.gate);
    }
    if (step.gate && words === "") await this.wait(step.gate);
    if (calls.length > 0) say({ tool_calls: calls });
    say({}, calls.length > 0 ? "tool_calls" : "stop");
    response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

function json(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}
