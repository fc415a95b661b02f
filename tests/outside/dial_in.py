"""An instance made of the official Python SDK of ACP, to see whether lembas gets along with it.

It serves discovery, a device grant that approves at once, a scripted model, and the link on one
port, then drives `lembas link`, `lembas roots add` and `lembas daemon`, and runs two prompts: one
that only answers, and one whose call asks for permission. Nothing of lembas is imported.

Usage: dial_in.py PATH_OF_LEMBAS      (needs: pip install agent-client-protocol==0.12.1 websockets)
"""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qs

import acp
import websockets
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse
from acp.ws.client import _WebSocketTransport  # no public name for a socket that was accepted

TOKEN = secrets.token_urlsafe(32)
SECONDS = 60


class Instance:
    """The HTTP side. The head of each connection is read here; an upgrade goes on to the link."""

    def __init__(self):
        self.base = ""
        self.link_port = 0
        self.device_id = ""
        self.requests = []

    async def serve(self):
        self.server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        self.base = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def connection(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            method, path, _ = lines[0].split(" ", 2)
            headers = {k.lower(): v.strip() for k, v in (l.split(":", 1) for l in lines[1:] if ":" in l)}
            self.requests.append(f"{method} {path}")
            if headers.get("upgrade", "").lower() == "websocket":
                await self.relay(head, headers, reader, writer)
                return
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            await self.answer(method, path, headers, body, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # the other side, or this script, is done
        finally:
            writer.close()

    async def relay(self, head, headers, reader, writer):
        if headers.get("authorization") != f"Bearer {TOKEN}" or headers.get("lembas-device") != self.device_id:
            body = json.dumps({"product": "llembas", "instance": "outside", "reason": "unknown", "text": "no"}).encode()
            await reply(writer, 401, body, 'WWW-Authenticate: Bearer error="invalid_token"\r\n')
            return
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.link_port)
        inner_writer.write(head)

        async def pump(source, sink):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer), return_exceptions=True)

    async def answer(self, method, path, headers, body, writer):
        path = path.split("?")[0]
        form = {k: v[0] for k, v in parse_qs(body.decode()).items()} if method == "POST" else {}
        ws = self.base.replace("http", "ws")
        if path == "/.well-known/lembas":
            value = {"product": "llembas", "version": "1", "protocol": 3, "spec": "3.6.0", "instance": "outside",
                     "name": "outside", "link": f"{ws}/link", "models": f"{self.base}/v1"}
        elif path == "/.well-known/oauth-authorization-server":
            value = {"issuer": self.base, "device_authorization_endpoint": f"{self.base}/device",
                     "token_endpoint": f"{self.base}/token", "revocation_endpoint": f"{self.base}/revoke",
                     "grant_types_supported": ["urn:ietf:params:oauth:grant-type:device_code"]}
        elif path == "/device":
            self.device_id = form["device_id"]
            assert form["client_id"] == "lembas" and "link" in form["scope"].split(), form
            value = {"device_code": "dc", "user_code": "WDJB-MJHT", "verification_uri": f"{self.base}/link",
                     "verification_uri_complete": f"{self.base}/link?code=WDJB-MJHT", "expires_in": 600, "interval": 1}
        elif path == "/token":
            assert form["device_code"] == "dc", form
            value = {"access_token": TOKEN, "token_type": "Bearer", "scope": "link memory models",
                     "device_id": self.device_id, "instance": "outside", "account": {"id": "a", "name": "ana"}}
        elif headers.get("authorization") != f"Bearer {TOKEN}":
            await reply(writer, 401, b"{}")
            return
        elif path == "/v1/models":
            value = {"object": "list", "data": [{"id": "scripted", "object": "model",
                                                  "lembas": {"name": "scripted", "context": 32768, "tools": True}}]}
        elif path == "/v1/chat/completions":
            await self.complete(json.loads(body), writer)
            return
        else:
            await reply(writer, 404, b"{}")
            return
        await reply(writer, 200, json.dumps(value).encode())

    async def complete(self, request, writer):
        """Answers in words, but for a prompt that says "write": that one gets a call first."""
        last = request["messages"][-1]
        words = json.dumps(last["content"])
        if last["role"] == "user" and "write" in words:
            args = json.dumps({"path": "from-outside.txt", "content": "hello\n"})
            call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write", "arguments": args}}
            deltas, finish = [{"role": "assistant", "tool_calls": [call]}], "tool_calls"
        else:
            deltas, finish = [{"role": "assistant", "content": c} for c in ("All ", "is ", "well.")], "stop"
        chunks = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        chunks.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for chunk in chunks:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", **chunk}
            writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()


async def reply(writer, status, body, more=""):
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


class Client(acp.Client):
    """Keeps what it hears, and says yes once to everything."""

    def __init__(self):
        self.updates, self.asked = [], []

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, options, session_id, tool_call, **_):
        self.asked.append((tool_call.title, [o.option_id for o in options]))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="once"))

    async def ext_method(self, method, params):
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method, params):
        raise AssertionError(f"a plain client got {method}")


def text_of(updates):
    return "".join(u.content.text for u in updates if u.session_update == "agent_message_chunk")


async def main(lembas):
    instance, done = Instance(), asyncio.get_running_loop().create_future()
    work = Path(tempfile.mkdtemp(prefix="lembas-outside-"))
    project = work / "project"
    project.mkdir()
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TZ")} | {"HOME": str(work / "home")}
    (work / "home").mkdir()

    async def session(ws):
        client = Client()
        conn = acp.connect_to_agent(client, _WebSocketTransport(ws))
        hello = await conn.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
        assert hello.protocol_version == 1 and hello.agent_capabilities.load_session, hello
        ours = hello.agent_capabilities.field_meta["lembas"]
        assert ours["protocol"] == 3 and ours["limits"]["roots"], ours
        made = await conn.new_session(cwd=str(project), mcp_servers=[], lembas={"model": "scripted", "mode": "manual"})
        said = await conn.prompt(prompt=[acp.text_block("How is it?")], session_id=made.session_id)
        assert said.stop_reason == "end_turn", said
        assert text_of(client.updates) == "All is well.", client.updates
        assert client.asked == [], client.asked
        written = await conn.prompt(prompt=[acp.text_block("Please write the file.")], session_id=made.session_id)
        assert written.stop_reason == "end_turn", written
        assert len(client.asked) == 1 and client.asked[0][1][0] == "once", client.asked
        assert (project / "from-outside.txt").read_text() == "hello\n"
        kinds = [u.session_update for u in client.updates]
        assert "tool_call" in kinds and "tool_call_update" in kinds, kinds
        try:
            await conn.new_session(cwd="/etc", mcp_servers=[], lembas={"model": "scripted"})
            raise AssertionError("a session outside the roots was opened")
        except acp.RequestError as error:
            assert error.code == -32602, error

    async def accepted(ws):
        try:
            await session(ws)
            done.done() or done.set_result(None)
        except BaseException as error:  # whatever it was, it is this script's result
            done.done() or done.set_exception(error)

    await instance.serve()
    link = await websockets.serve(accepted, "127.0.0.1", 0, subprotocols=["lembas.link.3"], compression=None)
    instance.link_port = link.sockets[0].getsockname()[1]

    async def run(*args):
        process = await asyncio.create_subprocess_exec(lembas, *args, env=env, cwd=work, stdout=subprocess.PIPE)
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        assert process.returncode == 0, f"lembas {' '.join(args)} ended with {process.returncode}: {out.decode()}"
        return out.decode()

    events = [json.loads(line) for line in (await run("link", instance.base, "--json")).splitlines()]
    assert [e.get("event") for e in events] == ["found", "code", "linked"], events
    await run("roots", "add", str(project))
    daemon = await asyncio.create_subprocess_exec(lembas, "daemon", env=env, cwd=work)
    try:
        await asyncio.wait_for(done, SECONDS)
    finally:
        daemon.terminate()
        await asyncio.wait_for(daemon.wait(), SECONDS)
    print("ok: the Python SDK accepted the dial, ran two prompts and answered one ask")


if __name__ == "__main__":
    asyncio.run(main(os.path.abspath(sys.argv[1])))
