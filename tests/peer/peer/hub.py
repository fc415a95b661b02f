"""Drives `lembas hub` and its page's HTTP, as a browser would.

The page's HTTP is no part of acp.md; this small shim is here so that a person's side (approving a
code, a message, an answer, a stop) can be played. Everything about the link itself is in device.py.
"""

import asyncio
import json
import secrets

import aiohttp

from .rpc import WAIT


class Hub:
    """A running hub with one account that is signed in."""

    def __init__(self, program):
        self.pc = program

    async def __aenter__(self):
        self.process = await self.pc.start("hub", "--listen", "127.0.0.1:0", "--json")
        said = json.loads(await self.process.line(lambda line: line.startswith("{")))
        self.base = said["url"]
        self.http = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.plain = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())  # a device has no cookie
        await self.call("POST", "/setup", {"token": said["token"], "name": "ana", "password": "long enough words 7"})
        return self

    async def __aexit__(self, *_):
        await self.http.close()
        await self.plain.close()
        await self.process.end()

    async def call(self, method, path, body=None, ok=True):
        """One call of the page; gives (status, answer) when `ok` is false."""
        headers = {"X-Lembas": "1", "Origin": self.base}
        async with self.http.request(method, f"{self.base}/api/v2{path}", json=body, headers=headers) as answer:
            text = await answer.text()
            said = json.loads(text) if text else {}
            if not ok:
                return answer.status, said
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return said

    async def get(self, url, token=None, **more):
        """A GET or POST of the instance's API, with a device's token; gives (status, headers, text)."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        method = "POST" if more else "GET"
        async with self.plain.request(method, url, headers=headers, **more) as answer:
            return answer.status, answer.headers, await answer.text()

    async def until(self, test):
        """Waits until `await test()` gives something true, asking again at every event of the page."""
        async with asyncio.timeout(WAIT):
            state = await self.call("GET", "/state")
            async with self.http.get(f"{self.base}/api/v2/events", params={"after": str(state["head"])},
                                     timeout=aiohttp.ClientTimeout(total=None)) as events:
                async for line in events.content:
                    if line.strip() and not line.startswith(b"data:"):
                        continue
                    found = await test()
                    if found:
                        return found
        raise AssertionError("the page's events ended")

    async def chat(self, device, text, mode="edit", cwd="/srv/api"):
        """A new chat with its first message, as the page makes it; gives its id."""
        state = await self.call("GET", "/state")
        body = {"device": device, "cwd": cwd, "model": state["models"][0]["id"], "mode": mode, "text": text,
                "key": "page-" + secrets.token_hex(8)}
        return (await self.call("POST", "/chats", body))["chat"]["id"]

    async def items(self, chat, kind=None):
        items = (await self.call("GET", f"/chats/{chat}"))["items"]
        return [i for i in items if kind is None or i["kind"] == kind]

    async def texts(self, chat):
        """The text of each of the agent's messages, as the hub keeps it."""
        return [i.get("text") for i in await self.items(chat, "text")]
