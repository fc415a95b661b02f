"""What an instance keeps of its sessions: the items, by U1 to U5, and the position after a drop (U4).

It lives longer than a link. Whatever does not fit the rules of numbers and bytes is a fault.
"""

GROWING = {"agent_message_chunk", "agent_thought_chunk"}


class Item:
    """One item; `text` are the bytes of a growing one, `parts` the notifications it came as."""

    def __init__(self, seq, kind):
        self.seq, self.kind, self.text, self.parts = seq, kind, b"", []


class Session:
    def __init__(self, number, fault):
        self.number, self._fault = number, fault
        self.items, self.position, self.phases = {}, (0, 0), []
        self._last = None

    def take(self, method, params):
        """Files one update or event. Replays of a load are read by themselves (S9)."""
        meta = params if method == "_lembas/event" else (params.get("_meta") or {}).get("lembas")
        if meta is None:
            return
        seq, at = meta["seq"], meta.get("at", 0)
        if params.get("type") == "phase":  # E1: not an item
            self.phases.append(params["data"])
            return
        update = params.get("update") or {"sessionUpdate": params.get("type")}
        kind = update["sessionUpdate"]
        grows = kind in GROWING or "output" in meta
        if grows and "output" in meta:
            kind = "output"
        if (seq, at) <= self.position and self._last != (seq, True):
            self._fault(f"U1/Y3: {self.number}: {kind} {seq}/{at} after {self.position}")
            return
        item = self.items.setdefault(seq, Item(seq, kind))
        item.parts.append(params)
        if grows:
            text = (meta["output"] if kind == "output" else update["content"]["text"]).encode()
            if len(item.text) + len(text) != at:
                self._fault(f"U2/U3: {self.number}: {kind} {seq}: {len(item.text)} bytes, {len(text)} more, at {at}")
            item.text += text
        elif at:
            self._fault(f"U2: {self.number}: {kind} {seq} is whole, at {at}")
        more = bool(meta.get("more"))
        self._last = (seq, more)
        if not more:  # U4
            self.position = (seq, at)

    def of(self, kind):
        return [i for _, i in sorted(self.items.items()) if i.kind == kind]

    def text(self, kind="agent_message_chunk"):
        """Each text of a kind, in the order of the items."""
        return [i.text.decode() for i in self.of(kind)]

    def updates(self, kind):
        return [p["update"] for i in self.of(kind) for p in i.parts]

    def events(self, kind):
        return [p["data"] for i in self.of(kind) for p in i.parts if "data" in p]

    def results(self):
        """(update, meta) of each call's result."""
        found = []
        for item in self.of("tool_call_update"):
            for p in item.parts:
                if p["update"].get("status") in ("completed", "failed"):
                    found.append((p["update"], p["_meta"]["lembas"]))
        return found


class Reader:
    def __init__(self):
        self.sessions, self.faults, self.replays = {}, [], {}

    def __getitem__(self, number):
        return self.sessions.setdefault(number, Session(number, self.faults.append))

    def take(self, method, params):
        meta = params if method == "_lembas/event" else (params.get("_meta") or {}).get("lembas") or {}
        if meta.get("replay") is not None:
            self.replays.setdefault(meta["replay"], []).append((method, params))
            return
        self[params["sessionId"]].take(method, params)
