// A small fake hub: serves the page's files and plays the hub's HTTP from a world in memory, so that the page can be
// seen and tested without the real one. Tests drive it: push events, cut or silence the stream, drop requests or answers.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { routes } from "./routes.mjs";

const WEB = fileURLToPath(new URL("../../../src/hub/web/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const CSP = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";
const PAGES = /^\/(?:$|c\/[^/]+$|approvals$|settings$|schedules$|link$|signin$)/;

export class FakeHub {
  constructor(world, { beat = 10_000 } = {}) {
    this.world = world;
    this.beat = beat;
    /** The hub's clock; a test may hold it. */
    this.now = () => Date.now();
    this.streams = new Set();
    this.head = world.head ?? 100;
    this.ring = [];
    this.log = [];
    this.faults = [];
    this.silent = false;
    this.down = false;
    this.sockets = new Set();
  }

  async start(port = 0) {
    this.server = createServer((request, response) => this.serve(request, response).catch((error) => {
      response.destroy(error);
    }));
    this.server.on("connection", (socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    await new Promise((done) => this.server.listen(port, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    this.world.url = this.url;
    this.timer = setInterval(() => { if (!this.silent) this.raw({ type: "beat", now: this.now(), head: this.head }); }, this.beat);
    return this;
  }

  async stop() {
    clearInterval(this.timer);
    for (const socket of this.sockets) socket.destroy();
    await new Promise((done) => this.server.close(done));
  }

  /** Sends an event to every stream and keeps it for those that come back. */
  push(event) {
    this.head += 1;
    this.ring.push([this.head, event]);
    if (!this.silent) for (const stream of this.streams) stream.write(`id: ${this.head}\ndata: ${JSON.stringify(event)}\n\n`);
    return this.head;
  }

  raw(event) {
    for (const stream of this.streams) stream.write(`data: ${JSON.stringify(event)}\n\n`);
  }

  /** Ends all streams at once; with `down` new requests are refused until it is set back. */
  cut({ down = false } = {}) {
    this.down = down;
    for (const stream of this.streams) stream.destroy();
    this.streams.clear();
  }

  /**
   * Calls that match are dropped, "request" before they count or "answer" after, until the returned function is called
   * (a browser may send a request again by itself); with [status, body] the next one gets that answer.
   */
  fault(method, pattern, what) {
    const fault = { method, pattern, what };
    this.faults.push(fault);
    return () => { this.faults = this.faults.filter((one) => one !== fault); };
  }

  calls(method, pattern) {
    return this.log.filter((one) => one.method === method && pattern.test(one.path));
  }

  async serve(request, response) {
    const url = new URL(request.url, this.url);
    const { pathname } = url;
    if (pathname.startsWith("/api/v2/")) return this.api(request, response, url);
    if (pathname.startsWith("/assets/")) return this.file(response, pathname.slice(8));
    if (PAGES.test(pathname)) return this.file(response, "index.html", { "Content-Security-Policy": CSP, "Referrer-Policy": "no-referrer" });
    response.writeHead(404).end();
  }

  async file(response, name, headers = {}) {
    const path = normalize(join(WEB, name));
    if (!path.startsWith(WEB)) return response.writeHead(404).end();
    try {
      const body = await readFile(path);
      response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", ...headers }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  }

  async api(request, response, url) {
    const path = url.pathname.slice(7);
    const { method } = request;
    if (this.down) return request.socket.destroy();
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString() || "{}") : undefined;
    const at = this.faults.findIndex((one) => one.method === method && one.pattern.test(path));
    const fault = at >= 0 ? this.faults[at].what : null;
    if (Array.isArray(fault)) this.faults.splice(at, 1);
    if (fault === "request") return request.socket.destroy();
    this.log.push({ method, path, body, at: Date.now() });
    if (Array.isArray(fault)) return send(response, fault[0], fault[1]);
    if (method !== "GET" && request.headers["x-lembas"] !== "1") return send(response, 403, { error: { code: "forbidden", text: "The header is missing." } });
    const open = ["/me", "/signin", "/setup"].includes(path);
    if (!this.world.signedIn && !(open && path !== "/me")) return send(response, 401, { error: { code: "signed_out", text: this.world.outText ?? "You are not signed in here.", why: this.world.outWhy, since: this.world.outSince } });
    if (path === "/events") return this.events(response, url);
    const answer = await routes(this, method, path, url.searchParams, body ?? {});
    if (fault === "answer") return request.socket.destroy();
    if (answer?.raw !== undefined) return response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8", "Content-Disposition": "attachment" }).end(answer.raw);
    return send(response, answer?.status ?? 200, answer?.body ?? answer ?? {});
  }

  events(response, url) {
    const after = Number(url.searchParams.get("after") ?? 0);
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform" });
    const missed = this.ring.filter(([id]) => id > after);
    const resumed = this.ring.length === 0 ? after <= this.head : after >= this.ring[0][0] - 1 && !this.world.forget;
    response.write(`data: ${JSON.stringify({ type: "hello", now: this.now(), head: this.head, resumed, missed: resumed ? missed.length : 0 })}\n\n`);
    if (resumed) for (const [id, event] of missed) response.write(`id: ${id}\ndata: ${JSON.stringify(event)}\n\n`);
    this.streams.add(response);
    response.on("close", () => this.streams.delete(response));
  }
}

function send(response, status, body) {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" }).end(JSON.stringify(body));
}
