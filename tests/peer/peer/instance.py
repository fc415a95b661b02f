"""Plays the instance: discovery, the grant, the model API and the link, on one loopback port."""

import asyncio
import json
import secrets

from aiohttp import WSMsgType, web

from .model import Model
from .reader import Reader
from .rpc import Endpoint, WAIT

ALL = ["resume", "asks", "directories", "progress", "token", "scheduled", "steer", "retry", "rewind", "plan", "jobs",
       "rules", "output"]
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Link:
    """One connection of a device: its upgrade's headers and the endpoint on it."""

    def __init__(self, instance, headers, socket):
        self.instance, self.headers, self._socket = instance, headers, socket
        self.rpc = Endpoint("device", socket.send_str)
        self.asks = asyncio.Queue()  # (params, answer): a future for clients that answer themselves
        for method in ("session/request_permission", "_lembas/ask"):
            self.rpc.serve[method] = self._ask
        self.rpc.hear["session/update"] = self.rpc.hear["_lembas/event"] = instance.reader.take

    async def _ask(self, params):
        answer = asyncio.get_running_loop().create_future()
        self.asks.put_nowait((params, answer))
        return await answer

    async def ask(self):
        return await asyncio.wait_for(self.asks.get(), WAIT)

    async def hello(self, capabilities=ALL, **changes):
        """`initialize` as H3 says; gives the device's `_meta.lembas` and keeps the whole result."""
        meta = {"protocol": 3, "spec": "3.6.0", "instance": self.instance.id, "capabilities": list(capabilities or [])}
        meta.update(self.instance.heard)
        meta.update(changes)
        params = {"protocolVersion": 1, "clientInfo": {"name": "peer", "version": "0"},
                  "clientCapabilities": {"_meta": {"lembas": meta}} if capabilities is not None else {}}
        self.result = await self.rpc.request("initialize", params)
        return self.result["agentCapabilities"]["_meta"]["lembas"]

    async def new(self, cwd, mode="edit", **meta):
        """`session/new`; gives the session's id and keeps the result."""
        meta = {"model": Model.name, "mode": mode, "key": secrets.token_hex(8)} | meta
        self.opened = await self.rpc.request("session/new", {
            "cwd": str(cwd), "mcpServers": [], "_meta": {"lembas": meta}})
        return self.opened["sessionId"]

    async def follow(self, session):
        seq, at = self.instance.reader[session].position
        return await self.rpc.request("_lembas/follow", {"sessionId": session, "seq": seq, "at": at})

    async def prompt(self, session, text, key=None, **meta):
        """Sends a prompt; the future gives how its turn ended."""
        meta = {"key": key or secrets.token_hex(8)} | meta
        return await self.rpc.start("session/prompt", {
            "sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": {"lembas": meta}})

    async def answer(self, ask, outcome="allow", **more):
        """`_lembas/answer` to the params of an ask; also acknowledges it."""
        meta = ask["_meta"]["lembas"]
        return await self.rpc.request("_lembas/answer", {
            "ask": meta["ask"], "digest": ask.get("digest") or meta["digest"], "outcome": outcome} | more)

    def drop(self):
        """Ends the connection as a pulled cable does: no close frame."""
        self._socket._req.transport.abort()

    async def close(self, code=1001, text="stopping"):
        await self._socket.close(code=code, message=text.encode())

    async def pump(self):
        try:
            async for message in self._socket:
                if message.type == WSMsgType.TEXT:
                    self.rpc.feed(message.data)
                elif message.type == WSMsgType.BINARY:
                    self.rpc.fault("F1: a binary message")
        finally:
            self.rpc.close(self._socket.close_code)


class Instance:
    """`grants` are the answers of the token endpoint in order, the last one again and again."""

    def __init__(self, **discovery):
        self.id, self.model, self.reader = "i-" + secrets.token_hex(3), Model(), Reader()
        self.changes, self.heard = discovery, {}
        self.grants, self.refusals = ["pending", "approve"], []
        self.seen, self.forms, self.dials = [], [], []
        self.links, self.tokens, self.revoked = asyncio.Queue(), [], []
        self.dialled = asyncio.Queue()  # headers of every dial, also of refused ones

    async def __aenter__(self):
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.base = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()

    async def link(self):
        """The next connection of the device."""
        return await asyncio.wait_for(self.links.get(), WAIT)

    async def _serve(self, request):
        self.seen.append((request.method, request.path))
        routes = {
            "/.well-known/lembas": self._discovery,
            "/.well-known/oauth-authorization-server": self._metadata,
            "/oauth/device": self._device, "/oauth/token": self._token, "/oauth/revoke": self._revoke,
            "/v1/models": self.model.models, "/v1/chat/completions": self.model.complete, "/link": self._link,
        }
        serve = routes.get(request.path)
        if serve is None:
            return web.json_response({"error": {"code": "not_found", "message": "no such page"}}, status=404)
        if request.path.startswith("/v1/") and request.headers.get("Authorization") != f"Bearer {self.tokens[-1]}":
            return web.json_response({"error": {"code": "unauthorized", "message": "the token"}}, status=401)
        return await serve(request)

    async def _discovery(self, _request):
        if isinstance(self.changes.get("answer"), web.Response):
            return self.changes["answer"]
        said = {"product": "llembas", "version": "0", "protocol": 3, "spec": "3.6.0", "instance": self.id,
                "name": "peer", "link": f"ws://127.0.0.1:{self.port}/link", "models": f"{self.base}/v1"}
        return web.json_response(said | {k: v for k, v in self.changes.items() if k != "answer"})

    async def _metadata(self, _request):
        return web.json_response({
            "issuer": self.base, "device_authorization_endpoint": f"{self.base}/oauth/device",
            "token_endpoint": f"{self.base}/oauth/token", "revocation_endpoint": f"{self.base}/oauth/revoke"})

    def _oauth(self, body, status=200):
        return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})

    async def _device(self, request):
        self.forms.append(dict(await request.post()))
        self.code = secrets.token_urlsafe(24)
        return self._oauth({
            "device_code": self.code, "user_code": "BCDF-GHJK", "verification_uri": f"{self.base}/link",
            "verification_uri_complete": f"{self.base}/link?code=BCDF-GHJK", "expires_in": 600, "interval": 1})

    async def _token(self, request):
        form = dict(await request.post())
        self.forms.append(form)
        if form.get("grant_type") != GRANT or form.get("client_id") != "lembas" or form.get("device_code") != self.code:
            return self._oauth({"error": "invalid_grant"}, 400)
        step = self.grants.pop(0) if len(self.grants) > 1 else self.grants[0]
        errors = {"pending": "authorization_pending", "slow": "slow_down", "deny": "access_denied",
                  "expire": "expired_token"}
        if step in errors:
            return self._oauth({"error": errors[step]}, 400)
        self.tokens.append(secrets.token_urlsafe(32))
        start = self.forms[0]
        return self._oauth({
            "access_token": self.tokens[-1], "token_type": "Bearer", "scope": start["scope"],
            "device_id": start["device_id"], "instance": step if step.startswith("i-") else self.id,
            "account": {"id": "a-1", "name": "ana"}, "further": {"ignored": True}})

    async def _revoke(self, request):
        self.revoked.append(dict(await request.post()))
        return self._oauth({})

    def refuse(self, status, body, headers=None, kind="application/json"):
        """The next dial gets this answer instead of an upgrade."""
        self.refusals.append((status, body, headers or {}, kind))

    async def _link(self, request):
        self.dials.append(request.headers.copy())
        self.dialled.put_nowait(request.headers.copy())
        if self.refusals:
            status, body, headers, kind = self.refusals.pop(0)
            text = body if isinstance(body, str) else json.dumps(body)
            return web.Response(status=status, text=text, headers=headers, content_type=kind)
        socket = web.WebSocketResponse(protocols=["lembas.link.3"], max_msg_size=8 * 1024 * 1024, compress=False,
                                       heartbeat=20)
        await socket.prepare(request)
        link = Link(self, request.headers.copy(), socket)
        self.links.put_nowait(link)
        await link.pump()
        return socket
