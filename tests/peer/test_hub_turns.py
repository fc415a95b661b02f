"""Chats of the hub with the peer's device: prompts, stops, drops and positions."""

import asyncio

from hub_bench import linked, said
from peer.journal import now

HARD = "Grüße, 你好 🙂 — \"quoted\\\" \t tab\n\nA second part with `code` and é.\n" * 30 + "end"


async def test_a_turn(tmp_path):
    """S2 S3 R1 N1 Y3 Y6 U3: new, follow, prompt with keys; the text byte for byte; acknowledged."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            await session.event("step", {"model": "m"})
            await session.grow(HARD)
            await session.whole({"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "ls", "kind": "execute",
                                 "status": "pending", "rawInput": {"command": "ls"}, "locations": []},
                                tool="bash", block="shell")
            await session.whole({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress"},
                                allowed={"source": "read", "text": "plain read", "box": "read"})
            await session.grow("one\ntwo é\n", "output", "c1")
            await session.whole({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed",
                                 "content": [{"type": "content", "content": {"type": "text", "text": "one\ntwo é\n"}}]},
                                status="ok", exit=0, ms=3, bytes=11)
            await session.grow("The end.")
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "tell it")
        assert await said(h, chat) == [HARD, "The end."]
        (session,) = device.sessions.values()
        opened = device.rpc.received("session/new")[0]["params"]
        assert opened["cwd"] == "/srv/api" and opened["mcpServers"] == []
        assert opened["_meta"]["lembas"]["mode"] == "edit" and opened["_meta"]["lembas"]["key"]
        prompt = device.prompts.get_nowait()
        assert prompt["prompt"] == [{"type": "text", "text": "tell it"}] and prompt["_meta"]["lembas"]["key"]
        (step,) = await h.items(chat, "step")
        assert step["status"] == "ok" and step["exit"] == 0 and step["title"]
        await device.rpc.until(lambda: any(a["seq"] == session.seq for a in device.acks))
        before = (0, 0)
        for a in device.acks:
            assert (a["seq"], a["at"]) >= before
            before = (a["seq"], a["at"])


async def test_twice_is_once(tmp_path):
    """U1 U2: a chunk and an item that come again by their numbers are not told twice."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            await session.grow("one two three ")
            item = session.items[-1]
            await session._send(item, "three ", len(item["text"]))  # the same bytes again
            await session.follow(item["seq"], 4)  # an overlap
            await session.grow("four")
            await session.follow(0, 0)  # all of it again
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "tell it")
        assert await said(h, chat) == ["one two three four"]
        assert len(await h.items(chat, "said")) == 1


async def test_drop_and_return(tmp_path):
    """H3 Y1 Y3 Y5 R5: it follows from its own position; the rest, cut otherwise; one prompt, one turn."""
    async with linked(tmp_path) as (h, device):
        half, go = asyncio.Event(), asyncio.Event()

        async def turn(session, _text):
            await session.grow(HARD[:1000])
            half.set()
            await go.wait()
            await session.grow(HARD[1000:])
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "tell it")
        await half.wait()
        (session,) = device.sessions.values()
        await device.rpc.until(lambda: device.acks)
        device.drop()
        await device.rpc.gone()
        go.set()
        session.size = 7
        await device.dial()
        meta = device.rpc.hello["clientCapabilities"]["_meta"]["lembas"]
        assert meta["epoch"] == device.epoch
        assert await said(h, chat) == [HARD]
        follow = device.rpc.received("_lembas/follow")[0]["params"]
        assert follow["sessionId"] == session.id and follow["seq"] > 0
        assert device.rpc.received("_lembas/sync") and session.turn == 1
        keys = {device.prompts.get_nowait()["_meta"]["lembas"]["key"] for _ in range(device.prompts.qsize())}
        assert len(keys) == 1


async def test_head_is_kept(tmp_path):
    """H3 Y2: the head of the first page, once the last was read, is said in the next handshake and sync."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            return await session.end()

        heard, device.on_prompt = device.head, turn
        chat = await h.chat(device.id, "hello")  # long after the answer to the first sync

        async def idle():
            return not (await h.call("GET", f"/chats/{chat}"))["chat"]["running"] and device.acks
        await h.until(idle)
        assert device.rpc.received("_lembas/sync")
        device.drop()
        await device.rpc.gone()
        device.touch()
        await device.dial()
        meta = device.rpc.hello["clientCapabilities"]["_meta"]["lembas"]
        sync = await device.rpc.seen(lambda m: m.get("method") == "_lembas/sync")
        assert (meta.get("epoch"), meta.get("head"), sync["params"].get("after")) == (device.epoch, heard, heard)


async def test_prompt_is_repeated_with_its_key(tmp_path):
    """R5 N2: a prompt whose answer was lost comes again with the same key and is not done twice."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            device.drop()
            await session.grow("Said while away.")
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "tell it")
        await device.rpc.gone()
        await device.dial()
        assert await said(h, chat) == ["Said while away."]
        (session,) = device.sessions.values()
        assert session.turn == 1


async def test_stop(tmp_path):
    """R7: `_lembas/stop` with a key, again with the same key after a drop, until it is answered."""
    async with linked(tmp_path) as (h, device):
        ended = asyncio.get_running_loop().create_future()

        async def turn(session, _text):
            await session.grow("Working.")
            await ended
            return await session.end("cancelled")

        async def stop(session, params):
            if len(device.stops) == 1:
                device.drop()
                await asyncio.Event().wait()
            if not ended.done():
                ended.set_result(None)
            return {"outcome": "stopped", "ms": 5, "commands": 1}

        device.on_prompt, device.on_stop = turn, stop
        chat = await h.chat(device.id, "work")
        await h.until(lambda: h.texts(chat))
        await h.call("POST", f"/chats/{chat}/stop", {"key": "stop-0001"})
        first = device.rpc
        await first.gone()
        await device.dial()
        assert await said(h, chat) == ["Working."]
        assert len(device.stops) >= 2
        assert len({s["key"] for s in device.stops}) == 1


async def test_new_epoch(tmp_path):
    """Y8: after a new epoch the hub takes up what sync from 0 lists and follows from the start."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, text):
            await session.grow(f"Answer to {text}.")
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "one")
        assert await said(h, chat) == ["Answer to one."]
        device.drop()
        await device.rpc.gone()
        device.epoch, device.head = "e-new", now()
        await device.dial()
        sync = await device.rpc.seen(lambda m: m.get("method") == "_lembas/sync")
        assert not sync["params"].get("after")


async def test_mode_and_status_of_nobody(tmp_path):
    """S6 F: a chat's mode goes as session/set_mode; an ask the hub does not know is no fault."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            await session.grow("Ok.")
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "hello")
        await said(h, chat)
        await h.call("PATCH", f"/chats/{chat}", {"mode": "manual"})
        got = await device.rpc.seen(lambda m: m.get("method") == "session/set_mode")
        assert got["params"]["modeId"] == "manual"
