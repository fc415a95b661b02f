"""A paired device against the peer's instance, as most tests need it."""

import asyncio
import contextlib
import json

from peer import rpc
from peer.instance import ALL, Instance
from peer.program import Program


class Bench:
    """`inst` the instance, `pc` the computer, `root` the folder it shares, `link` the newest link."""

    def __init__(self, inst, pc, root):
        self.inst, self.pc, self.root = inst, pc, root
        self.model, self.reader, self.link, self.meta = inst.model, inst.reader, None, None

    async def pair(self):
        """`lembas link`, to its end; gives its lines."""
        done = await self.pc.ok("link", self.inst.base, "--json")
        self.inst.heard = {}
        return done.lines

    async def connect(self, capabilities=ALL, **hello):
        """The next link of the device, with its handshake."""
        self.link = await self.inst.link()
        self.meta = await self.link.hello(capabilities, **hello)
        if capabilities is not None:  # a plain client keeps nothing
            self.inst.heard = {"epoch": self.meta["epoch"], "head": self.meta["head"]}
        return self.link

    async def open(self, mode="edit", **meta):
        """A session that is followed."""
        session = await self.link.new(self.root, mode, **meta)
        await self.link.follow(session)
        return session

    async def turn(self, session, text, **meta):
        """A whole turn without asks; gives the prompt's result."""
        return await asyncio.wait_for(await self.link.prompt(session, text, **meta), rpc.WAIT)

    async def ask(self):
        """The next ask, acknowledged (Y6), so that its wait has begun."""
        ask, answer = await self.link.ask()
        seq = ask["_meta"]["lembas"]["seq"]
        await self.link.rpc.notify("_lembas/ack", {"sessionId": ask["sessionId"], "seq": seq, "at": 0})
        return ask, answer

    def write(self, name, text):
        path = self.root / name
        path.write_text(text, "utf-8")
        return path

    def clean(self):
        """No frame broke the page or a schema."""
        faults = [f"{e.label}: {f}" for e in rpc.ENDPOINTS for f in e.faults] + self.reader.faults
        assert not faults, "\n".join(sorted(set(faults))[:20])


@contextlib.asynccontextmanager
async def unlinked(folder, **discovery):
    """A computer that shares one folder, and an instance it is not linked to yet."""
    root = folder / "work"
    root.mkdir()
    async with Instance(**discovery) as inst, Program(folder) as pc:
        yield Bench(inst, pc, root.resolve())


@contextlib.asynccontextmanager
async def linked(folder, capabilities=ALL, mode="edit", scheduled=False, **hello):
    """The same with its daemon running, linked and greeted; ends with the judgement of all frames."""
    async with unlinked(folder) as b:
        await b.pc.ok("roots", "add", b.root)
        await b.pc.ok("mode", mode)
        if scheduled:
            await b.pc.ok("service", "scheduled", "on")
        await b.pair()
        b.daemon = await b.pc.start("daemon")
        await b.connect(capabilities, **hello)
        yield b
        b.clean()


async def refused(awaitable):
    """The error a request is answered with."""
    try:
        result = await awaitable
    except rpc.RpcError as error:
        return error
    raise AssertionError(f"it was answered: {json.dumps(result)[:400]}")
