"""Plays the device against a hub: the grant, the dial, the handshake and a journal of sessions."""

import asyncio
import base64
import contextlib
import json
import secrets

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from .journal import Session, now
from .rpc import Endpoint, RpcError

LIMITS = {"remote": True, "paused": False, "roots": ["/srv/api"], "max_mode": "edit", "scheduled": True,
          "terminal": False, "approvals": "once", "approval_max": 86400, "box": "full", "max_sessions": 8}
NAMES = ["resume", "asks", "directories", "progress", "token", "scheduled", "rules", "output"]
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Refused(Exception):
    """A dial that was answered with a status; `body` is its JSON, or None."""

    def __init__(self, response):
        super().__init__(f"{response.status_code} {response.body!r}")
        self.status, self.headers = response.status_code, response.headers
        try:
            self.body = json.loads(response.body or b"")
        except ValueError:
            self.body = None


class Device:
    def __init__(self, hub, name="zephyr"):
        self.hub, self.name, self.id = hub, name, secrets.token_hex(16)
        self.boot, self.token, self.epoch, self.head = secrets.token_hex(16), None, "e-" + secrets.token_hex(4), 1000
        self.protocol, self.sessions, self.asks, self.stops = 3, {}, {}, []
        self.on_prompt = self.answered = self.on_stop = None
        self.rules, self.removed, self.outputs = [], [], {}  # what it allows always; call -> (bytes, missing)
        self.links, self.prompts, self.acks, self.answers = [], asyncio.Queue(), [], asyncio.Queue()

    # pairing

    async def discover(self):
        status, _, text = await self.hub.get(f"{self.hub.base}/.well-known/lembas")
        assert status == 200
        self.instance = json.loads(text)
        _, _, text = await self.hub.get(f"{self.hub.base}/.well-known/oauth-authorization-server")
        self.oauth = json.loads(text)

    async def begin(self):
        """P1; gives the answer of P2."""
        await self.discover()
        status, headers, text = await self.hub.get(self.oauth["device_authorization_endpoint"], data={
            "client_id": "lembas", "scope": "link memory models", "device_id": self.id, "device_name": self.name,
            "device_os": "linux", "device_arch": "x86_64", "device_version": "0.1.0",
            "device_limits": json.dumps(LIMITS)})
        assert status == 200, text
        assert headers["Cache-Control"] == "no-store"
        self.grant = json.loads(text)
        return self.grant

    async def poll(self):
        """P5; gives (status, answer)."""
        status, _, text = await self.hub.get(self.oauth["token_endpoint"], data={
            "grant_type": GRANT, "device_code": self.grant["device_code"], "client_id": "lembas"})
        return status, json.loads(text)

    async def pair(self):
        """The whole grant, approved on the page. Waits as long as the hub wants between two polls."""
        grant = await self.begin()
        await self.hub.call("POST", "/link/approve", {"code": grant["user_code"]})
        wait = grant["interval"]
        while True:
            status, said = await self.poll()
            if status == 200:
                break
            assert said["error"] == "slow_down", said
            wait += 5
            await asyncio.sleep(wait)  # the interval of the grant itself (P5)
        self.token, self.id = said["access_token"], said["device_id"]
        return said

    # the dial

    async def dial(self, take=False, protocols=("lembas.link.3",), greeted=True, **headers):
        """L1; raises Refused. With `greeted` it waits until `initialize` was answered."""
        given = {"Authorization": f"Bearer {self.token}", "Lembas-Device": self.id, "Lembas-Boot": self.boot}
        if take:
            given["Lembas-Take"] = "1"
        given |= {k.replace("_", "-"): v for k, v in headers.items()}
        try:
            socket = await connect(self.instance["link"], subprotocols=list(protocols) or None, compression=None,
                                   additional_headers={k: v for k, v in given.items() if v is not None},
                                   user_agent_header="lembas/0.1.0", max_size=8 * 1024 * 1024, proxy=None, open_timeout=20)
        except InvalidStatus as error:
            raise Refused(error.response) from None
        rpc = Endpoint("hub", socket.send)
        rpc.limit, rpc.socket = 65_536, socket
        for session in self.sessions.values():
            session.followed = None
        self._serve(rpc)
        self.rpc = rpc
        self.links.append(rpc)
        rpc.pump = asyncio.ensure_future(self._pump(rpc))
        if greeted:
            await rpc.until(lambda: rpc.greeted)
        return rpc

    async def _pump(self, rpc):
        try:
            async for message in rpc.socket:
                if isinstance(message, bytes):
                    rpc.fault("F1: a binary message")
                else:
                    rpc.feed(message)
        except ConnectionClosed:
            pass
        finally:
            rpc.close(rpc.socket.close_code, rpc.socket.close_reason)

    def drop(self):
        """As a pulled cable: no close frame."""
        self.rpc.socket.transport.abort()

    async def close(self):
        for rpc in self.links:
            await rpc.socket.close()
            await rpc.pump

    async def tell(self, method, params):
        """A notification; one to a link that is gone is in the journal only."""
        if not self.rpc.ended:
            with contextlib.suppress(ConnectionClosed):
                await self.rpc.notify(method, params)

    def touch(self):
        """A new `head` for a change of a session (Y2)."""
        self.head = max(self.head + 1, now())
        return self.head

    def open_of(self, session):
        return [a for a in self.asks.values() if a["sessionId"] == session]

    # what the hub asks of it

    def _serve(self, rpc):
        rpc.greeted, rpc.hello = False, None

        async def initialize(params):
            rpc.hello, rpc.limit = params, 4_194_304
            rpc.greeted = True
            asyncio.get_running_loop().call_soon(rpc._wake)
            meta = {"protocol": self.protocol, "spec": "3.6.0", "epoch": self.epoch, "head": self.head,
                    "device": {"id": self.id, "name": self.name, "os": "linux", "arch": "x86_64", "version": "0.1.0"},
                    "capabilities": NAMES, "limits": LIMITS}
            return {"protocolVersion": 1, "agentInfo": {"name": "lembas", "title": "peer", "version": "0.1.0"},
                    "authMethods": [], "agentCapabilities": {
                        "loadSession": True, "promptCapabilities": {"image": True, "embeddedContext": True},
                        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
                        "_meta": {"lembas": meta}}}

        rpc.serve |= {"initialize": initialize, "session/new": self._new, "session/prompt": self._prompt,
                      "_lembas/sync": self._sync, "_lembas/follow": self._follow, "_lembas/stop": self._stop,
                      "_lembas/answer": self._answer, "_lembas/status": self._status,
                      "_lembas/rules": self._rules, "_lembas/rules/remove": self._remove,
                      "_lembas/output": self._output, "_lembas/unfollow": self._empty, "session/set_mode": self._empty}
        rpc.hear["_lembas/ack"] = lambda _, params: self.acks.append(params)

    async def _empty(self, _params):
        return {}

    def _session(self, params):
        if params["sessionId"] not in self.sessions:
            raise RpcError(-32002, "no such session", {"sessionId": params["sessionId"]})
        return self.sessions[params["sessionId"]]

    async def _new(self, params):
        meta = params["_meta"]["lembas"]
        key = meta.get("key", secrets.token_hex(4))  # N1: without one it is another session each time
        number = next((s.id for s in self.sessions.values() if s.key == key), secrets.token_hex(4))
        session = self.sessions.setdefault(number, Session(self, number, params["cwd"], meta["model"],
                                                            meta.get("mode", "manual")))
        session.key, session.updated = key, self.touch()
        modes = [{"id": m, "name": m.title()} for m in ("plan", "manual", "edit", "auto")]
        return {"sessionId": number, "modes": {"currentModeId": session.mode, "availableModes": modes},
                "_meta": {"lembas": {"instance": self.instance["instance"], "model": session.model,
                                     "mode": session.mode, "level": "default", "seq": session.seq}}}

    async def _prompt(self, params):
        """R1 R5: one turn a key; the test's `on_prompt(session, text)` plays it and gives its result."""
        session, key = self._session(params), params["_meta"]["lembas"]["key"]
        self.prompts.put_nowait(params)
        if key not in session.ends:
            session.ends[key] = asyncio.ensure_future(self._turn(session, key, params["prompt"]))
        return await asyncio.shield(session.ends[key])

    async def _turn(self, session, key, prompt):
        session.turn += 1
        session.running = True
        text = "".join(p.get("text", "") for p in prompt)
        await session.whole({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}},
                            key=key, source="person")
        return await self.on_prompt(session, text)

    async def _sync(self, params):
        after = params.get("after") or 0
        found = [s.summary() for s in self.sessions.values() if isinstance(after, str) or s.updated > after]
        return {"sessions": sorted(found, key=lambda s: -s["updated"]), "head": self.head}

    async def _follow(self, params):
        session = self._session(params)
        asyncio.get_running_loop().call_soon(
            lambda: asyncio.ensure_future(session.follow(params["seq"], params["at"])))
        self.followed = params
        return {}

    async def _stop(self, params):
        self.stops.append(params)
        return await self.on_stop(self._session(params), params) if self.on_stop else {
            "outcome": "gone", "ms": 0, "commands": 0}

    async def _status(self, params):
        return {"sessions": [s.summary() for s in self.sessions.values()], "limits": LIMITS, "paused": False,
                "now": now()}

    async def _rules(self, params):
        """Q15, two a page."""
        ids = [r["id"] for r in self.rules]
        start = ids.index(params["after"]) + 1 if params.get("after") in ids else 0
        page = self.rules[start:start + 2]
        more = {"next": page[-1]["id"]} if start + 2 < len(self.rules) else {}
        return {"rules": page, "total": len(self.rules), "now": now()} | more

    async def _remove(self, params):
        """Q17."""
        self.removed.append(params["id"])
        (found,) = [r for r in self.rules if r["id"] == params["id"]] or [None]
        if found is None:
            raise RpcError(-32004, "gone", {"reason": "unknown", "text": "There is no such rule."})
        self.rules.remove(found)
        return {"removed": True}

    async def _output(self, params):
        """U10 U11."""
        self._session(params)
        whole, missing = self.outputs[params["call"]]
        start = params.get("from", 0)
        part = whole[start:start + min(params.get("max", 92_160), 92_160)]
        more = {"missing": missing} if missing else {}
        return {"data": base64.b64encode(part).decode(), "from": start, "total": len(whole),
                "end": start + len(part) == len(whole)} | more

    async def _answer(self, params):
        """Q5 Q6: stored once, then told."""
        ask = self.asks.get(params["ask"])
        if ask is None:
            raise RpcError(-32004, "settled", {"reason": "settled", "text": "It was answered before.",
                                               "how": "refused", "by": "you, on this computer", "at": now()})
        del self.asks[params["ask"]]
        self.answers.put_nowait(params)
        return {"taken": True, "at": now()}

    async def raise_ask(self, session, question=None, **more):
        """Makes an ask: its item, its event, and the request; gives (params, future of the request)."""
        ask = session.question(question) if question else session.ask(**more)
        meta = ask["_meta"]["lembas"]
        meta["seq"] = session.seq + 1
        self.asks[meta["ask"]] = ask
        data = {k: v for k, v in meta.items() if k not in ("seq", "turn", "made", "now", "expires_in")}
        await session.event("ask", data | (question or {}) | {"state": "open"})
        return ask, await self.rpc.start("_lembas/ask" if question else "session/request_permission", ask)
