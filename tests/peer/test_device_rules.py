"""What is allowed always (Q15 to Q18) and the bytes of outputs (U9 to U12), of our device."""

import base64
import hashlib

from bench import linked, refused
from peer.model import Step

COMMAND = "echo more >> log.txt"


async def open_to_always(b):
    """A device on which an answer from the page may count for good."""
    await b.pc.ok("approvals", "full")
    assert (await b.link.rpc.gone()).code == 1012
    await b.connect()


async def rules(b):
    return await b.link.rpc.request("_lembas/rules", {})


async def changed(b, since):
    await b.link.rpc.seen(lambda m: m.get("method") == "_lembas/rules/changed", since=since)


async def test_always_and_back(tmp_path):
    """Q15 Q16 Q17 Q18: made, told, used, taken back, and then the same command asks."""
    async with linked(tmp_path) as b:
        await open_to_always(b)
        same = [("bash", {"command": COMMAND})]
        b.model.script("first", Step("", same), Step("One."))
        b.model.script("again", Step("", same), Step("Two."))
        b.model.script("third", Step("", same), Step("Three."))
        assert (await rules(b)) | {"now": 0} == {"rules": [], "total": 0, "now": 0}
        session = await b.open("manual")
        done = await b.link.prompt(session, "first")
        ask, _ = await b.ask()
        assert "always" in ask["_meta"]["lembas"]["scopes"]
        place = len(b.link.rpc.frames)
        await b.link.answer(ask, scope="always", by="ana, on the page")
        await changed(b, place)
        assert (await done)["stopReason"] == "end_turn"
        told = await rules(b)
        (rule,) = told["rules"]
        assert told["total"] == 1 and "next" not in told
        assert rule["verdict"] == "allow" and rule["origin"] == "instance" and rule["folder"] == str(b.root)
        assert rule["by"].startswith("ana, on the page") and rule["command"] == COMMAND
        assert rule["at"] <= rule["used"] <= told["now"] and rule["words"]
        # In another session, too, it asks no more.
        session = await b.open("manual")
        assert (await b.turn(session, "again"))["stopReason"] == "end_turn"
        assert b.link.asks.empty()
        assert (b.root / "log.txt").read_text() == "more\nmore\n"
        place = len(b.link.rpc.frames)
        assert await b.link.rpc.request("_lembas/rules/remove", {"id": rule["id"]}) == {"removed": True}
        await changed(b, place)
        error = await refused(b.link.rpc.request("_lembas/rules/remove", {"id": rule["id"]}))
        assert (error.code, error.reason) == (-32004, "unknown")
        done = await b.link.prompt(session, "third")
        ask, _ = await b.ask()
        await b.link.answer(ask, "refuse")
        await done
        assert (b.root / "log.txt").read_text() == "more\nmore\n"


async def test_taken_back_in_the_terminal(tmp_path):
    """Q15 Q18 F10: what is done on the device is told; paused, the list is told and narrowed all the same."""
    async with linked(tmp_path) as b:
        await open_to_always(b)
        b.model.script("both", Step("", [("bash", {"command": f"echo {n} > {n}.txt"}) for n in "ab"]), Step("Done."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "both")
        for _ in "ab":
            ask, _ = await b.ask()
            await b.link.answer(ask, scope="always")
        await done
        first, second = (await rules(b))["rules"]
        assert first["at"] >= second["at"]
        place = len(b.link.rpc.frames)
        await b.pc.ok("rules", "remove", first["id"])
        await changed(b, place)
        assert [r["id"] for r in (await rules(b))["rules"]] == [second["id"]]
        await b.pc.ok("pause")
        assert (await b.link.rpc.gone()).code == 1012
        await b.connect()
        assert [r["id"] for r in (await rules(b))["rules"]] == [second["id"]]
        assert await b.link.rpc.request("_lembas/rules/remove", {"id": second["id"]}) == {"removed": True}
        assert (await rules(b))["total"] == 0


async def whole(b, session, call):
    """An output, piece by piece, and how many pieces it was."""
    got, pieces = b"", 0
    while True:
        answer = await b.link.rpc.request("_lembas/output", {"sessionId": session, "call": call, "from": len(got)})
        assert answer["from"] == len(got)
        got += base64.b64decode(answer["data"])
        pieces += 1
        if answer["end"]:
            assert len(got) == answer["total"] and "missing" not in answer
            return got, pieces


async def test_outputs(tmp_path):
    """U9 U10 U11 U12: the bytes that were written, of a long output, of one that is no text, of none."""
    async with linked(tmp_path) as b:
        commands = ["seq 1 400000", "printf 'a\\377\\376b'", "true"]
        b.model.script("run", Step("", [("bash", {"command": c}) for c in commands]), Step("Done."))
        session = await b.open("edit")
        assert (await b.turn(session, "run"))["stopReason"] == "end_turn"
        calls = [p["update"]["toolCallId"] for i in b.reader[session].of("tool_call") for p in i.parts]
        expected = ["".join(f"{n}\n" for n in range(1, 400_001)).encode(), b"a\xff\xfeb", b""]
        for call, bytes_ in zip(calls, expected, strict=True):
            got, pieces = await whole(b, session, call)
            assert hashlib.sha256(got).digest() == hashlib.sha256(bytes_).digest()
            assert pieces == max(1, -(-len(bytes_) // 92_160))
        ask = {"sessionId": session, "call": calls[1]}
        part = await b.link.rpc.request("_lembas/output", ask | {"from": 1, "max": 2})
        assert base64.b64decode(part["data"]) == b"\xff\xfe" and part["end"] is False and part["total"] == 4
        error = await refused(b.link.rpc.request("_lembas/output", ask | {"from": 5}))
        assert (error.code, error.reason) == (-32602, "params")
        error = await refused(b.link.rpc.request("_lembas/output", ask | {"call": "ffff"}))
        assert (error.code, error.reason) == (-32004, "unknown")
        for file in (b.pc.data).rglob(f"{calls[0]}.out"):
            file.unlink()
        error = await refused(b.link.rpc.request("_lembas/output", ask | {"call": calls[0]}))
        assert (error.code, error.reason) == (-32004, "gone")
