"""A hub with a paired device of the peer's, as the tests of the hub need it."""

import contextlib

from peer import rpc
from peer.device import Device
from peer.hub import Hub
from peer.program import Program


@contextlib.asynccontextmanager
async def hub(folder):
    """A hub that runs and is signed in to; ends with the judgement of all frames it sent."""
    async with Program(folder) as pc, Hub(pc) as running:
        running.devices = []
        try:
            yield running
        finally:
            for device in running.devices:
                await device.close()
        faults = [f for end in rpc.ENDPOINTS for f in end.faults]
        assert not faults, "\n".join(sorted(set(faults))[:20])


@contextlib.asynccontextmanager
async def linked(folder, dial=True):
    async with hub(folder) as running:
        device = Device(running)
        running.devices.append(device)
        await device.pair()
        if dial:
            await device.dial()

            async def online():
                devices = (await running.call("GET", "/state"))["devices"]
                return [d for d in devices if d["id"] == device.id and d["state"] == "online"]
            # The handshake's answer is on its way: the page works with what the hub made of it.
            await running.until(online)
        yield running, device


async def said(h, chat):
    """Waits until the chat does nothing; gives its texts."""
    async def idle():
        state = (await h.call("GET", f"/chats/{chat}"))["chat"]
        return not state["running"] and await h.texts(chat)
    return await h.until(idle)
