"""The link itself: frames, handshake, drops and positions, the token, refusals of the dial."""

import asyncio
import json
import secrets

import pytest

from bench import linked, refused
from peer import checks
from peer.instance import ALL
from peer.model import Step


async def raw_answer(b, text, number=None):
    """What the device answers to a raw text, found by its id."""
    place = len(b.link.rpc.frames)
    await b.link.rpc.raw(text)
    got = await b.link.rpc.seen(lambda m: "error" in m and m.get("id") == number, since=place)
    return got["error"]["code"]


async def test_frames(tmp_path):
    """F1 F5 F6 K1: what is no request of ours is answered, and the link lives on."""
    async with linked(tmp_path) as b:
        assert await raw_answer(b, "[]") == -32600
        batch = json.dumps([{"jsonrpc": "2.0", "id": n, "method": "_lembas/status", "params": {}} for n in (900, 901)])
        place = len(b.link.rpc.frames)
        assert await raw_answer(b, batch) == -32600
        assert await raw_answer(b, "{not json") == -32700
        for method in ("no/such", "_lembas/nothing", "fs/read_text_file"):
            assert (await refused(b.link.rpc.request(method, {}))).code == -32601
        for method in ("_lembas/team", "_lembas/plan", "_lembas/jobs"):  # K1: what the device did not name
            if method.split("/")[1].replace("team", "tree") not in b.meta["capabilities"]:
                assert (await refused(b.link.rpc.request(method, {"sessionId": "x", "key": "k"}))).code == -32601
        await b.link.rpc.notify("no/such", {})
        for number in ("12345", '"x"', "null"):  # F4: an answer to nothing is ignored
            await b.link.rpc.raw('{"jsonrpc":"2.0","id":%s,"result":{}}' % number)
        await b.link._socket.send_bytes(b'{"jsonrpc":"2.0","id":77,"method":"_lembas/status"}')
        await b.link.rpc.request("_lembas/status", {})
        assert not [m for m in b.link.rpc.received(since=place) if m.get("id") in (900, 901, 77)]


async def test_frame_too_long(tmp_path):
    """F2 F3: 4 MiB and one byte more is -32600 and 1009; the device comes back."""
    async with linked(tmp_path) as b:
        head = '{"jsonrpc":"2.0","id":"long","method":"_lembas/status","params":{"x":"'
        fits = head + "x" * (4_194_304 - len(head) - 3) + '"}}'
        assert len(fits) == 4_194_304
        await b.link.rpc.raw(fits)
        await b.link.rpc.seen(lambda m: m.get("id") == "long" and "result" in m)
        await b.link.rpc.raw(fits.replace("long", "past") )
        await b.link.rpc.seen(lambda m: m.get("id") == "past" and "result" in m)
        longer = head.replace('"long"', '"over"') + "x" * (4_194_304 - len(head) - 2) + '"}}'
        await b.link.rpc.raw(longer)
        assert (await b.link.rpc.gone()).code == 1009
        last = b.link.rpc.received()[-1]
        assert last.get("id") == "over" and last["error"]["code"] == -32600
        await b.connect()


async def test_frame_too_long_before_initialize(tmp_path):
    """F2 F3: before the handshake 64 KiB is the limit."""
    async with linked(tmp_path) as b:
        b.link.drop()
        b.link = await b.inst.link()
        await b.link.rpc.raw('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"' + "x" * 65_536 + '"}}')
        assert (await b.link.rpc.gone()).code == 1009
        await b.connect()


async def test_before_initialize(tmp_path):
    """H1: until `initialize` every other request is -32600 and the device sends nothing."""
    async with linked(tmp_path) as b:
        b.link.drop()
        b.link = await b.inst.link()
        error = await refused(b.link.rpc.request("_lembas/status", {}))
        assert error.code == -32600
        assert [m for m in b.link.rpc.received() if "method" in m] == []
        await b.link.hello()


@pytest.mark.parametrize("change,reason", [({"protocol": 4}, "protocol"), ({"protocol": 2}, "protocol"),
                                           ({"instance": "i-other"}, "instance")])
async def test_wrong_handshake(tmp_path, change, reason):
    """H4: another protocol or instance is -32602 and close 4004."""
    async with linked(tmp_path) as b:
        b.link.drop()
        b.link = await b.inst.link()
        error = await refused(b.link.hello(**change))
        assert (error.code, error.reason) == (-32602, reason)
        assert (await b.link.rpc.gone()).code == 4004


async def test_drop_and_return(tmp_path):
    """R5 Y1 Y2 Y3 Y5 U4 L6: the link drops in the middle of a text; the same bytes, none twice."""
    text = "Ein Stück Text, 你好 🙂, ohne Verlust.\n" * 120
    async with linked(tmp_path) as b:
        gate = asyncio.Event()
        (step,) = b.model.script("tell it", Step(text, gate=gate, pieces=13))
        session = await b.open()
        boot = b.link.headers["Lembas-Boot"]
        first = await b.link.prompt(session, "tell it", key="m-1")
        await step.reached.wait()
        await b.link.rpc.until(lambda: b.reader[session].text())
        b.link.drop()
        await b.connect()
        assert b.link.headers["Lembas-Boot"] == boot and b.meta["epoch"] == b.inst.heard["epoch"]
        assert first.done() and first.exception()
        joined = await b.link.prompt(session, "tell it", key="m-1")
        synced = await b.link.rpc.request("_lembas/sync", {"after": 0, "limit": 50})
        (mine,) = synced["sessions"]
        assert mine["id"] == session and mine["running"] and mine["turn"] == 1
        await b.link.follow(session)
        gate.set()
        assert (await joined)["stopReason"] == "end_turn"
        assert b.reader[session].text() == [text]
        assert len(b.model.asked("tell it")) == 1


async def test_return_after_the_end(tmp_path):
    """Y3 R5: what happened while away comes after follow; the prompt's key tells how it ended."""
    text = "Byte für Byte. " * 300
    async with linked(tmp_path) as b:
        gate = asyncio.Event()
        (step, _) = b.model.script("tell it", Step(text, [("bash", {"command": "seq 1 2000"})], gate=gate), Step("End."))
        session = await b.open()
        await b.link.prompt(session, "tell it", key="m-1")
        await step.reached.wait()
        await b.link.rpc.until(lambda: b.reader[session].text())
        b.inst.refuse(503, {"product": "llembas", "text": "later"}, {"Retry-After": "1"})
        b.link.drop()
        await b.inst.dialled.get()
        gate.set()
        await b.connect()
        result = await b.turn(session, "tell it", key="m-1")
        assert result["stopReason"] == "end_turn"
        await b.link.follow(session)
        await b.link.rpc.until(lambda: b.reader[session].events("turn_end"))
        assert b.reader[session].text() == [text, "End."]
        assert "".join(b.reader[session].text("output")) == "".join(f"{n}\n" for n in range(1, 2001))


async def test_follow_from_any_byte(tmp_path):
    """Y3: from the start, from the middle of an item, from the end: exactly the rest."""
    text = "abc é " * 60
    async with linked(tmp_path) as b:
        b.model.script("tell it", Step(text))
        session = await b.open()
        await b.turn(session, "tell it")
        got = b.reader[session]
        (item,) = got.of("agent_message_chunk")
        for at in (0, 3, 7, len(text.encode())):
            place = len(b.link.rpc.frames)
            await b.link.rpc.request("_lembas/unfollow", {"sessionId": session})
            got.items.clear()
            got.position = (item.seq, at)
            got.items[item.seq] = type(item)(item.seq, item.kind)
            got.items[item.seq].text = text.encode()[:at]
            await b.link.follow(session)
            await b.link.rpc.until(lambda: got.events("turn_end"))
            assert got.text() == [text]
            assert not [m for m in b.link.rpc.received("session/update", place)
                        if m["params"]["_meta"]["lembas"]["seq"] < item.seq]


async def test_position_of_the_future(tmp_path):
    """Y8: a position above the device's own is -32602 epoch with the new one, then 1012; it says it next."""
    async with linked(tmp_path) as b:
        session = await b.link.new(b.root)
        error = await refused(b.link.rpc.request("_lembas/follow", {"sessionId": session, "seq": 10**6, "at": 0}))
        assert (error.code, error.reason) == (-32602, "epoch")
        new = error.data["epoch"]
        assert new != b.meta["epoch"]
        gone = await b.link.rpc.gone()
        assert gone.code == 1012
        await b.connect()
        assert b.meta["epoch"] == new


async def test_head_of_the_future(tmp_path):
    """Y8: a head above the device's own makes a new epoch in the handshake."""
    async with linked(tmp_path) as b:
        await b.link.new(b.root)
        before = b.meta["epoch"]
        b.link.drop()
        await b.connect(epoch=before, head=2**52)
        assert b.meta["epoch"] != before


async def test_asks_come_again(tmp_path):
    """Q2 Y7: an open ask comes after every handshake, with the same `ask`; its answer counts once."""
    async with linked(tmp_path) as b:
        b.model.script("write it", Step("", [("bash", {"command": "echo 1 >> n.txt"})]), Step("Ok."))
        session = await b.open("manual")
        await b.link.prompt(session, "write it", key="m")
        first, _ = await b.ask()
        b.link.drop()
        await b.connect()
        again, _ = await b.link.ask()
        assert again["_meta"]["lembas"]["ask"] == first["_meta"]["lembas"]["ask"]
        assert again["_meta"]["lembas"]["digest"] == first["_meta"]["lembas"]["digest"]
        joined = await b.link.prompt(session, "write it", key="m")
        await b.link.answer(again)
        assert (await joined)["stopReason"] == "end_turn"
        assert (b.root / "n.txt").read_text() == "1\n"


async def test_daemon_restarts(tmp_path):
    """R9 Q1 L6: an open ask outlives the device's restart; another boot; the turn goes on."""
    async with linked(tmp_path) as b:
        b.model.script("write it", Step("", [("bash", {"command": "echo 1 >> n.txt"})]), Step("Ok."))
        session = await b.open("manual")
        await b.link.prompt(session, "write it", key="m")
        first, _ = await b.ask()
        boot = b.link.headers["Lembas-Boot"]
        await b.daemon.end()
        b.daemon = await b.pc.start("daemon")
        await b.connect()
        assert b.link.headers["Lembas-Boot"] != boot
        again, _ = await b.link.ask()
        assert again["_meta"]["lembas"]["ask"] == first["_meta"]["lembas"]["ask"]
        joined = await b.link.prompt(session, "write it", key="m")
        await b.link.answer(again)
        assert (await joined)["stopReason"] == "end_turn"
        assert (b.root / "n.txt").read_text() == "1\n"


async def test_token(tmp_path):
    """T2 T3: the new token is kept before it is answered, used by the next dial, and in no log."""
    async with linked(tmp_path) as b:
        new = secrets.token_urlsafe(32)
        assert await b.link.rpc.request("_lembas/token", {"token": new}) == {"kept": True}
        b.inst.tokens.append(new)
        b.link.drop()
        await b.connect()
        assert b.link.headers["Authorization"] == f"Bearer {new}"
        error = await refused(b.link.rpc.request("_lembas/token", {"token": "with space in it, no token"}))
        assert error.code == -32602
        logs = [p for p in tmp_path.rglob("*") if p.is_file() and "log" in p.name and new.encode() in p.read_bytes()]
        assert not logs and new not in "\n".join(b.pc.log)


async def test_limits_change(tmp_path):
    """H8: the device closes with 1012 limits and says the new ones."""
    async with linked(tmp_path) as b:
        other = tmp_path / "other"
        other.mkdir()
        await b.pc.ok("roots", "add", other)
        assert (await b.link.rpc.gone()).code == 1012
        await b.connect()
        assert sorted(b.meta["limits"]["roots"]) == sorted([str(b.root), str(other)])
        await b.link.new(other)


@pytest.mark.parametrize("status,body,headers", [
    (401, {"product": "llembas", "reason": "revoked", "text": "revoked", "since": 1},
     {"WWW-Authenticate": 'Bearer error="invalid_token"'}),
    (409, {"product": "llembas", "reason": "held", "text": "held", "holder": {"address": "192.0.2.9", "since": 1}}, {}),
])
async def test_dialling_stops(tmp_path, status, body, headers):
    """L4: 401 and 409 stop the dialling; only `link retry` or `link take` tries again."""
    async with linked(tmp_path) as b:
        b.inst.refuse(status, body, headers)
        b.link.drop()
        while not b.inst.dialled.empty():
            b.inst.dialled.get_nowait()
        await asyncio.wait_for(b.inst.dialled.get(), 20)
        phase = {401: "revoked", 409: "replaced"}[status]
        await b.pc.until("status", lambda said: said["linked"]["state"] == phase)
        dials = len(b.inst.dials)
        await b.pc.ok("link", "take" if status == 409 else "retry")
        link = await b.inst.link()
        assert len(b.inst.dials) == dials + 1
        assert link.headers.get("Lembas-Take") == ("1" if status == 409 else None)
        await link.hello()


@pytest.mark.parametrize("code,text,command", [(4003, "revoked", "retry"), (4001, "taken", "take")])
async def test_taken_from_it(tmp_path, code, text, command):
    """Close codes 4003 and 4001 taken: it dials no more, or meets its 401, until a person says so."""
    async with linked(tmp_path) as b:
        if code == 4003:
            b.inst.refuse(401, {"product": "llembas", "instance": b.inst.id, "reason": "revoked", "text": "revoked"},
                          {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        phase = {4003: "revoked", 4001: "replaced"}[code]
        await b.link.close(code, text)
        await b.pc.until("status", lambda said: said["linked"]["state"] == phase)
        dials = len(b.inst.dials)
        await b.pc.ok("link", command)
        link = await b.inst.link()
        assert len(b.inst.dials) == dials + 1
        assert link.headers.get("Lembas-Take") == ("1" if command == "take" else None)
        await link.hello()


async def test_close_of_an_old_socket(tmp_path):
    """4001 boot L6: the same process dials again after a drop with the same boot and is not stopped by the old close."""
    async with linked(tmp_path) as b:
        boot = b.link.headers["Lembas-Boot"]
        await b.link.close(4001, "boot")
        await b.connect()
        assert b.link.headers["Lembas-Boot"] == boot
        await b.link.rpc.request("_lembas/status", {})


@pytest.mark.parametrize("status,body,kind", [
    (401, {"reason": "revoked"}, "application/json"), (502, "<html>proxy</html>", "text/html"),
    (403, {"product": "llembas", "reason": "device", "text": "x"}, "application/json"),
    (409, {"product": "llembas", "instance": "i-other", "reason": "held", "text": "x"}, "application/json")])
async def test_failed_dials_are_repeated(tmp_path, status, body, kind):
    """L4 L5 L7: what is not the paired instance's word is a failed dial, and it dials again."""
    async with linked(tmp_path) as b:
        b.inst.refuse(status, body, kind=kind)
        b.link.drop()
        await b.connect()
        assert len(b.inst.dials) == 3


async def test_unlink(tmp_path):
    """Close code 1000, P11: the device closes and gives the token back."""
    async with linked(tmp_path) as b:
        await b.pc.ok("unlink")
        assert (await b.link.rpc.gone()).code == 1000
        assert b.inst.revoked and b.inst.revoked[0]["token"] == b.inst.tokens[-1]
        assert b.inst.revoked[0]["client_id"] == "lembas"


async def test_all_capabilities_are_known(tmp_path):
    """K1 H6: what the device names are names of section 7."""
    async with linked(tmp_path, ALL) as b:
        assert not checks.against_link("initialize.agent", b.meta)
