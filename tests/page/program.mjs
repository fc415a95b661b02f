// The real program for browser tests: `lembas up` in a folder of its own, its API with a signed-in browser's cookie,
// and its command line. LEMBAS names the binary. Not here: the fake hub (fake/).
import { spawn, execFile, execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { until } from "./rig.mjs";

export const binary = process.env.LEMBAS && resolve(process.env.LEMBAS);
export const skip = !binary && "LEMBAS does not name the program";

export class Program {
  constructor({ config = "" } = {}) {
    this.base = mkdtempSync(join(tmpdir(), "lembas-real-"));
    this.project = join(this.base, "project");
    this.env = { PATH: process.env.PATH, HOME: this.base, LEMBAS_DATA: join(this.base, "data"), LANG: "C.UTF-8", SHELL: "/bin/bash" };
    mkdirSync(this.project);
    this.write("README.md", "# A project\n");
    this.config = config;
  }

  write(name, text) {
    const path = join(this.project, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  /** Starts it; gives the line it printed. */
  async start() {
    this.up = spawn(binary, ["up", "--listen", "127.0.0.1:0", "--no-open", "--json"], { env: this.env, cwd: this.project, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface({ input: this.up.stdout })) {
      this.said = JSON.parse(line);
      break;
    }
    this.url = this.said.url;
    return this.said;
  }

  /** Ends it as a person would; what it kept stays. */
  async end() {
    if (!this.up || this.up.exitCode !== null) return;
    const ended = new Promise((done) => this.up.once("exit", done));
    this.up.kill("SIGTERM");
    await ended;
  }

  async stop() {
    await this.end();
    rmSync(this.base, { recursive: true, force: true });
  }

  /** One command of it; gives what it printed. */
  run(...words) {
    return execFileSync(binary, words, { env: this.env, cwd: this.project, encoding: "utf8" });
  }

  /** The same without waiting for its end. */
  begin(...words) {
    return new Promise((done, failed) => execFile(binary, words, { env: this.env, cwd: this.project }, (error, stdout) => (error ? failed(error) : done(stdout))));
  }

  /** Signs `page` in by the one-time link. */
  async signIn(page) {
    await page.goto(`${this.url}/in/${this.said.token}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    this.request = page.request;
  }

  /** A call of the API with the browser's cookie; throws on anything but success. */
  async api(method, path, data) {
    const response = await this.raw(method, path, data);
    if (!response.ok()) throw new Error(`${method} ${path}: ${response.status()} ${await response.text()}`);
    return response.json();
  }

  raw(method, path, data) {
    return this.request.fetch(`${this.url}/api/v2${path}`, { method, headers: { "x-lembas": "1", origin: this.url }, ...(data === undefined ? {} : { data }) });
  }

  state() {
    return this.api("GET", "/state");
  }

  /** Opens a chat with `text` as its first message; gives the chat. */
  async chat(text, more = {}) {
    this.count = (this.count ?? 0) + 1;
    const { devices } = await this.state();
    const { chat } = await this.api("POST", "/chats", { device: devices[0].id, cwd: this.project, model: "practice", text, key: `chat-${process.pid}-${this.count}`, ...more });
    return chat;
  }

  /** Waits for an open ask of a chat; gives it as the page gets it. */
  ask(chat, which = () => true) {
    return until(async () => (await this.api("GET", "/asks")).asks.find((ask) => ask.chat === chat && ask.state === "open" && which(ask)), "an ask is open", 20_000);
  }

  async answer(ask, outcome, more = {}) {
    await this.api("POST", `/asks/${ask.ask}`, { digest: ask.digest, outcome, ...more });
  }

  /** Waits until no turn runs in a chat; gives its page. */
  ended(chat, most = 30_000) {
    // A message that is only saved has begun nothing yet, and items are there a moment before the
    // chat is marked as running: the same twice in a row is the end.
    let before = "";
    return until(async () => {
      const got = await this.api("GET", `/chats/${chat}`);
      const now = JSON.stringify(got.items);
      const same = now === before;
      before = now;
      return same && !got.chat.running && got.items.some((one) => one.kind !== "said") && got;
    }, "the turn ends", most, 100);
  }
}
