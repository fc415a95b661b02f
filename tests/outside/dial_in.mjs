// An instance made of the official TypeScript SDK of ACP, to see whether lembas gets along with it.
//
// It serves discovery, a device grant that approves at once, a model that never comes to an end,
// and the link on one port, then drives `lembas link`, `lembas roots add` and `lembas daemon`, and
// gives up a running prompt, once with $/cancel_request and once with session/cancel.
//
// Usage: node dial_in.mjs PATH_OF_LEMBAS      (needs: npm ci in this folder)
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import * as acp from '@agentclientprotocol/sdk';
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client';
import { WebSocketServer } from 'ws';

const lembas = resolve(process.argv[2]);
const token = randomBytes(32).toString('base64url');
const seconds = 60;
let base = '';
let deviceId = '';
let completions = 0;

const body = async (request) => {
  let text = '';
  for await (const piece of request) text += piece;
  return text;
};

const json = (response, status, value) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
};

const server = createServer(async (request, response) => {
  const path = request.url.split('?')[0];
  const form = new URLSearchParams(request.method === 'POST' ? await body(request) : '');
  if (path === '/.well-known/lembas') {
    return json(response, 200, {
      product: 'llembas', version: '1', protocol: 3, spec: '3.6.0', instance: 'outside', name: 'outside',
      link: `${base.replace('http', 'ws')}/link`, models: `${base}/v1`,
    });
  }
  if (path === '/.well-known/oauth-authorization-server') {
    return json(response, 200, {
      issuer: base, device_authorization_endpoint: `${base}/device`, token_endpoint: `${base}/token`,
      revocation_endpoint: `${base}/revoke`,
    });
  }
  if (path === '/device') {
    deviceId = form.get('device_id');
    return json(response, 200, {
      device_code: 'dc', user_code: 'WDJB-MJHT', verification_uri: `${base}/link`,
      verification_uri_complete: `${base}/link?code=WDJB-MJHT`, expires_in: 600, interval: 1,
    });
  }
  if (path === '/token') {
    return json(response, 200, {
      access_token: token, token_type: 'Bearer', scope: 'link memory models', device_id: deviceId,
      instance: 'outside', account: { id: 'a', name: 'ana' },
    });
  }
  if (request.headers.authorization !== `Bearer ${token}`) return json(response, 401, {});
  if (path === '/v1/models') {
    return json(response, 200, { object: 'list', data: [{ id: 'endless', object: 'model', lembas: { name: 'endless' } }] });
  }
  if (path === '/v1/chat/completions') {
    completions += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (content) => JSON.stringify({
      id: 'c', object: 'chat.completion.chunk', created: 1, model: 'endless',
      choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }],
    });
    const timer = setInterval(() => response.write(`data: ${chunk('and ')}\n\n`), 20);
    response.on('close', () => clearInterval(timer));
    return undefined;
  }
  return json(response, 404, {});
});

const work = mkdtempSync(join(tmpdir(), 'lembas-outside-'));
const project = join(work, 'project');
const home = join(work, 'home');
mkdirSync(project);
mkdirSync(home);
const env = { PATH: process.env.PATH, HOME: home };

const run = (...args) => new Promise((done, failed) => {
  const child = spawn(lembas, args, { env, cwd: work, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (piece) => { out += piece; });
  child.on('error', failed);
  child.on('exit', (code) => (code === 0 ? done(out) : failed(new Error(`lembas ${args.join(' ')} ended with ${code}: ${out}`))));
});

// Resolves with the first update that holds text of the assistant.
const heard = () => {
  let tell;
  const promise = new Promise((done) => { tell = done; });
  return { promise, tell };
};

async function session(ws) {
  let first = heard();
  function Accepted() { return ws; }
  const stream = createWebSocketStream('ws://accepted/link', { WebSocket: Accepted });
  await acp.client({ name: 'outside' })
    .onNotification('session/update', ({ params }) => {
      if (params.update.sessionUpdate === 'agent_message_chunk') first.tell();
    })
    .onRequest('session/request_permission', () => ({ outcome: { outcome: 'cancelled' } }))
    .connectWith(stream, async (context) => {
      const hello = await context.request('initialize', { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
      assert.equal(hello.protocolVersion, 1);
      const made = await context.request('session/new', { cwd: project, mcpServers: [], _meta: { lembas: { model: 'endless' } } });
      // K1: a client that says no `_meta.lembas` has none of our methods.
      const own = await context.request('_lembas/status', { sessionId: made.sessionId }).then(() => null, (error) => error);
      assert.equal(own?.code, -32601);
      const prompt = { sessionId: made.sessionId, prompt: [{ type: 'text', text: 'Go on for ever.' }] };

      const stop = new AbortController();
      const given = context.request('session/prompt', prompt, { cancellationSignal: stop.signal });
      await first.promise;
      stop.abort();
      assert.equal((await given).stopReason, 'cancelled');

      first = heard();
      const cancelled = context.request('session/prompt', prompt);
      await first.promise;
      await context.notify('session/cancel', { sessionId: made.sessionId });
      assert.equal((await cancelled).stopReason, 'cancelled');
      assert.equal(completions, 2);

      const unknown = await context.request('_lembas/nothing', {}).then(() => null, (error) => error);
      assert.equal(unknown.code, -32601);
    });
}

const links = new WebSocketServer({ noServer: true, handleProtocols: () => 'lembas.link.3', perMessageDeflate: false });
const result = new Promise((done, failed) => {
  server.on('upgrade', (request, socket, head) => {
    if (request.headers.authorization !== `Bearer ${token}` || request.headers['lembas-device'] !== deviceId) {
      socket.end('HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n');
      return failed(new Error('the dial had no token or another device id'));
    }
    assert.ok(request.headers['sec-websocket-protocol'].includes('lembas.link.3'));
    return links.handleUpgrade(request, socket, head, (ws) => session(ws).then(done, failed));
  });
  setTimeout(() => failed(new Error(`nothing after ${seconds} s`)), seconds * 1000).unref();
});

server.listen(0, '127.0.0.1', async () => {
  base = `http://127.0.0.1:${server.address().port}`;
  let daemon;
  let code = 1;
  try {
    await run('link', base, '--json');
    await run('roots', 'add', project);
    daemon = spawn(lembas, ['daemon'], { env, cwd: work, stdio: 'inherit' });
    await result;
    console.log('ok: the TypeScript SDK accepted the dial and gave up two prompts');
    code = 0;
  } catch (error) {
    console.error(error);
  }
  if (daemon && daemon.exitCode === null) {
    daemon.kill('SIGTERM');
    await new Promise((done) => { daemon.on('exit', done); });
  }
  process.exit(code);
});
