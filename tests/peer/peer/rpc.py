"""One end of the link as JSON-RPC: numbers requests, answers the other end's, keeps every frame.

Nothing here knows which end it is. `frames` is the whole exchange in order; a test waits for a frame
with `seen`, never for a time.
"""

import asyncio
import json
import re

from . import checks

WAIT = 30.0  # what a test waits for at most; a hang is then told with the frames
ENDPOINTS = []  # the endpoints of the running test, for its report


class RpcError(Exception):
    """An error answer, or the wish to give one."""

    def __init__(self, code, message="", data=None):
        super().__init__(f"{code} {message} {data}")
        self.code, self.message, self.data = code, message, data or {}

    @property
    def reason(self):
        return self.data.get("reason")


class Closed(Exception):
    """The connection ended while something was awaited; `code` and `text` are the close frame's."""

    def __init__(self, code=None, text=""):
        super().__init__(f"closed: {code} {text}")
        self.code, self.text = code, text


class Endpoint:
    """`send` takes one text message. `serve` maps a method to `async (params) -> result`."""

    def __init__(self, label, send):
        self.label, self._send = label, send
        self.frames, self.faults = [], []
        self.serve, self.hear = {}, {}
        self._open, self._running = {}, {}
        self._foreign = set()  # ids of raw texts, whose answers belong to no future
        self._next, self._tick = 0, asyncio.Event()
        self.ended = None
        ENDPOINTS.append(self)

    # sending

    async def raw(self, text):
        """Sends a text as it is, for what no well-behaved end would send."""
        self._foreign.update(re.findall(r'"id":"?(\w+)', text[:4000]))
        self.frames.append((">", text if len(text) < 2000 else f"{text[:200]}… {len(text)} characters"))
        await self._send(text)

    async def _frame(self, message):
        self.frames.append((">", message))
        await self._send(json.dumps(message, ensure_ascii=False, separators=(",", ":")))

    async def notify(self, method, params):
        await self._frame({"jsonrpc": "2.0", "method": method, "params": params})

    async def start(self, method, params):
        """Sends a request; the future gives its result, RpcError or Closed."""
        if self.ended:
            raise self.ended
        self._next += 1
        answer = asyncio.get_running_loop().create_future()
        self._open[self._next] = (method, answer)
        answer.rpc_id = self._next
        await self._frame({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return answer

    async def request(self, method, params, timeout=WAIT):
        answer = await self.start(method, params)
        return await asyncio.wait_for(answer, timeout)

    # receiving

    def feed(self, text):
        """Takes one text message of the other end."""
        size = len(text.encode())
        try:
            message = json.loads(text)
        except ValueError:
            self.fault(f"F1: not JSON: {text[:200]}")
            return
        self.frames.append(("<", message))
        if size > self.limit:
            self.fault(f"F2: a message of {size} bytes")
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.fault(f"F1: not a JSON-RPC 2.0 object: {text[:200]}")
        elif "method" in message:
            self._called(message)
        else:
            self._answered(message)
        self._wake()

    limit = 131_072

    def _called(self, message):
        method, params = message["method"], message.get("params") or {}
        for fault in checks.params(method, params):
            self.fault(fault)
        if "id" in message:
            task = asyncio.ensure_future(self._answer(message["id"], method, params))
            self._running[message["id"]] = task
            return
        if method == "$/cancel_request":
            task = self._running.get(params.get("requestId"))
            if task:
                task.cancel()
        for listen in (self.hear.get(method), self.hear.get("*")):
            if listen:
                listen(method, params)

    async def _answer(self, number, method, params):
        reply = {"jsonrpc": "2.0", "id": number}
        try:
            if method not in self.serve:
                raise RpcError(-32601, f"no method {method}")
            reply["result"] = await self.serve[method](params)
        except RpcError as error:
            reply["error"] = {"code": error.code, "message": error.message, "data": error.data}
        except asyncio.CancelledError:
            reply["error"] = {"code": -32800, "message": "given up"}
        except Exception as error:  # a bug of the peer's: told as a fault, so that the test fails
            self.fault(f"the peer's own {method} failed: {error!r}")
            reply["error"] = {"code": -32603, "message": repr(error)}
        self._running.pop(number, None)
        if not self.ended:
            await self._frame(reply)

    def _answered(self, message):
        method, answer = self._open.pop(message.get("id"), (None, None))
        if answer is None:
            if message.get("id") is not None and str(message["id"]) not in self._foreign:
                self.fault(f"F4: an answer to nothing: {str(message)[:200]}")
            return
        if "error" in message:
            for fault in checks.error(message["error"]):
                self.fault(f"{method}: {fault}")
            error = message["error"]
            failed = RpcError(error.get("code"), error.get("message"), error.get("data"))
            if not answer.done():
                answer.set_exception(failed)
                answer.exception()  # a test may look at it later or not at all
            return
        for fault in checks.result(method, message.get("result")):
            self.fault(fault)
        if not answer.done():
            answer.set_result(message.get("result"))

    def fault(self, text):
        self.faults.append(text)

    def close(self, code=None, text=""):
        """Called once when the connection is over."""
        if self.ended:
            return
        self.ended = Closed(code, text)
        self.frames.append(("x", f"closed {code} {text}"))
        for _, answer in self._open.values():
            if not answer.done():
                answer.set_exception(self.ended)
                answer.exception()
        self._open.clear()
        for task in list(self._running.values()):
            task.cancel()
        self._wake()

    # waiting

    def _wake(self):
        tick, self._tick = self._tick, asyncio.Event()
        tick.set()

    async def until(self, test, what="", timeout=WAIT):
        """Waits until `test()` gives something true, looking after every frame; gives it."""
        async with asyncio.timeout(timeout):
            while True:
                found = test()
                if found:
                    return found
                if self.ended:
                    raise self.ended
                await self._tick.wait()

    def received(self, method=None, since=0):
        """The messages of the other end, or those of one method, from a place in `frames` on."""
        got = [m for way, m in self.frames[since:] if way == "<"]
        return got if method is None else [m for m in got if m.get("method") == method]

    async def seen(self, test, since=0, timeout=WAIT):
        """The first message of the other end that passes `test`."""
        return await self.until(lambda: next((m for m in self.received(since=since) if test(m)), None), timeout=timeout)

    async def gone(self, timeout=WAIT):
        """Waits for the end of the connection; gives the close code and text."""
        async with asyncio.timeout(timeout):
            while not self.ended:
                await self._tick.wait()
        return self.ended
