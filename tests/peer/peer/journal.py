"""The sessions of the peer's device: items with numbers, streamed to whoever follows (U1 to U5, Y3)."""

import secrets
import time


def now():
    return int(time.time() * 1000)


class Session:
    """One session's items; `size` is how many characters one chunk has at most."""

    def __init__(self, device, number, cwd, model, mode):
        self.device, self.id, self.cwd, self.model, self.mode = device, number, cwd, model, mode
        self.items, self.seq, self.turn, self.running = [], 0, 0, False
        self.followed, self.size, self.ends = None, 40, {}
        self.updated = now()

    def _meta(self, item, at):
        return {"seq": item["seq"], "at": at, "turn": item["turn"], "time": item["time"]} | item["meta"]

    def _open(self, kind, meta=None, **more):
        self.seq += 1
        self.updated = self.device.touch()
        item = {"seq": self.seq, "kind": kind, "turn": self.turn, "time": now(), "meta": meta or {}, "text": ""} | more
        self.items.append(item)
        return item

    async def _send(self, item, text=None, at=0):
        if item["kind"] == "event":
            params = {"sessionId": self.id, "seq": item["seq"], "turn": item["turn"], "time": item["time"],
                      "type": item["type"], "data": item["data"]}
            await self.device.tell("_lembas/event", params)
            return
        meta = self._meta(item, at)
        update = item.get("update")
        if item["kind"] == "output":
            update, meta["output"] = {"sessionUpdate": "tool_call_update", "toolCallId": item["call"]}, text
        elif update is None:
            update = {"sessionUpdate": item["kind"], "content": {"type": "text", "text": text}}
        await self.device.tell("session/update", {
            "sessionId": self.id, "update": update, "_meta": {"lembas": meta}})

    async def _chunks(self, item, start):
        """What an item that grows has from byte `start` on, cut between characters."""
        rest, at = item["text"].encode()[start:].decode(), start
        for i in range(0, len(rest), self.size):
            piece = rest[i:i + self.size]
            at += len(piece.encode())
            await self._send(item, piece, at)

    async def grow(self, text, kind="agent_message_chunk", call=None):
        """Text of the newest item when it is of that kind and open, or of a new one."""
        item = self.items[-1] if self.items and self.items[-1]["kind"] == kind else self._open(kind, call=call)
        start = len(item["text"].encode())
        item["text"] += text
        if self.followed:
            await self._chunks(item, start)
        return item

    async def whole(self, update, **meta):
        item = self._open("whole", meta, update=update)
        if self.followed:
            await self._send(item)
        return item

    async def event(self, kind, data):
        item = self._open("event", type=kind, data=data)
        if self.followed:
            await self._send(item)
        return item

    async def follow(self, seq, at):
        """Y3: the rest of item `seq` from `at`, then every later one."""
        self.followed = True
        for item in list(self.items):
            if item["seq"] < seq or (item["seq"] == seq and not item["text"]):
                continue
            if item["text"]:
                await self._chunks(item, at if item["seq"] == seq else 0)
            else:
                await self._send(item)

    async def end(self, stop="end_turn"):
        """The end of the turn: the event first, then what the prompt answers (R8)."""
        tokens = {"input": 10, "cached_input": 4, "output": 2}
        await self.event("turn_end", {"turn": self.turn, "stop": stop, "tokens": tokens})
        self.running = False
        return {"stopReason": stop, "_meta": {"lembas": {"turn": self.turn, "tokens": tokens}}}

    def summary(self):
        return {"id": self.id, "seq": self.seq, "running": self.running, "asks": len(self.device.open_of(self.id)),
                "cwd": self.cwd, "model": self.model, "mode": self.mode, "turn": self.turn, "updated": self.updated}

    def ask(self, command="git push", scopes=("once", "session")):
        """The params of an ask about a command (Q2, Q3)."""
        number = secrets.token_hex(4)
        names = {"once": ("Allow once", "allow_once"), "session": ("Allow for this session", "allow_always")}
        options = [{"optionId": s, "name": names[s][0], "kind": names[s][1]} for s in scopes]
        options.append({"optionId": "refuse", "name": "Refuse", "kind": "reject_once"})
        meta = {"ask": number, "call": "c1", "seq": 0, "turn": self.turn, "made": now(),
                "digest": "sha256:" + secrets.token_hex(32), "now": now(), "kind": "execute", "command": command,
                "cwd": self.cwd, "reason": "It reaches other computers.", "box": "open", "scopes": list(scopes),
                "programs": [], "variables": []}
        call = {"toolCallId": "c1", "title": command, "kind": "execute", "status": "pending",
                "rawInput": {"command": command}}
        return {"sessionId": self.id, "toolCall": call, "options": options, "_meta": {"lembas": meta}}

    def question(self, asked):
        """The params of `_lembas/ask` (Q13)."""
        meta = self.ask(asked["text"], ["once"])["_meta"]["lembas"]
        meta |= {"kind": "question", "reason": "The agent asks you.", "box": ""}
        return {"sessionId": self.id, "ask": meta["ask"], "digest": meta["digest"], "kind": "question"} | asked | {
            "_meta": {"lembas": meta}}
