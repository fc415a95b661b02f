"""What the peer's device allows always, and its outputs, at the hub's page (Q15 to Q18, U9 to U12, F11)."""

import asyncio
import secrets

from hub_bench import linked, said


def rule(number, verdict="allow"):
    return {"id": number, "words": f"cargo {number} *, boxed, in this folder.", "verdict": verdict, "by": "you",
            "folder": "/srv/api", "origin": "instance" if verdict == "allow" else "local", "at": 1_764_512_500_000}


async def listed(h, device, *ids):
    """Waits until the page lists these rules; gives them."""
    async def found():
        rules = (await h.call("GET", f"/devices/{device.id}/rules"))["rules"]
        return rules if [r["id"] for r in rules] == list(ids) else None
    return await h.until(lambda: _true(found))


async def _true(found):
    got = await found()
    return [got] if got is not None else None


async def test_rules(tmp_path):
    """Q15 Q17 Q18: read in pages, read anew when told, taken back once, also after a time away."""
    async with linked(tmp_path, dial=False) as (h, device):
        device.rules = [rule(n) for n in ("r1", "r2", "r3")] + [rule("r4", "deny")]
        await device.dial()
        await listed(h, device, "r1", "r2", "r3", "r4")
        device.rules.insert(0, rule("r0"))
        await device.tell("_lembas/rules/changed", {})
        await listed(h, device, "r0", "r1", "r2", "r3", "r4")
        path = f"/devices/{device.id}/rules"
        await h.call("DELETE", f"{path}/r1")
        await listed(h, device, "r0", "r2", "r3", "r4")
        status, _ = await h.call("DELETE", f"{path}/r4", ok=False)
        assert status == 422 and device.removed == ["r1"]
        device.drop()

        async def away():
            return [d for d in (await h.call("GET", "/state"))["devices"] if d["state"] == "away"]
        await h.until(away)
        assert (await h.call("DELETE", f"{path}/r2"))["state"] == "waits"
        assert [r["id"] for r in (await h.call("GET", path))["rules"] if r["waits"]] == ["r2"]
        await device.dial()
        await listed(h, device, "r0", "r3", "r4")
        assert device.removed == ["r1", "r2"]


async def test_output(tmp_path):
    """U10 U11 U12: asked for piece by piece, and what was not kept is no quiet end."""
    async with linked(tmp_path) as (h, device):
        whole = secrets.token_bytes(1_000_000)

        async def turn(session, _text):
            for call, size in (("c1", len(whole)), ("c2", len(whole) + 5)):
                await session.whole({"sessionUpdate": "tool_call", "toolCallId": call, "title": "make", "kind": "execute",
                                     "status": "pending", "rawInput": {}, "locations": []}, tool="bash", block="shell")
                await session.whole({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
                                     "content": []}, status="ok", exit=0, ms=5, bytes=size)
            await session.grow("Made.")
            return await session.end()
        device.on_prompt, device.outputs = turn, {"c1": (whole, 0), "c2": (whole, 5)}
        chat = await h.chat(device.id, "make it")
        assert await said(h, chat) == ["Made."]
        url = f"{h.base}/api/v2/chats/{chat}/output"
        async with h.http.get(f"{url}/c1") as answer:
            assert answer.status == 200 and await answer.read() == whole
        async with h.http.get(f"{url}/c2") as answer:
            assert answer.status == 409 and (await answer.json())["error"]["code"] == "partial"
        async with h.http.get(f"{url}/c2?part=here") as answer:
            assert (await answer.read()).startswith(whole + b"\n[")


async def test_a_wrong_notification_is_left_out_alone(tmp_path):
    """F11: what is no event and no update counts for nothing, and the link lives on."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            wrong = {"sessionId": session.id, "seq": 2**63, "type": "notice", "data": {"text": "x"}}
            for params in (wrong, wrong | {"seq": 9, "data": "x"}, {"sessionId": session.id}, {"type": "notice"}):
                await device.tell("_lembas/event", params)
            await device.tell("session/update", {"sessionId": session.id, "update": {}})
            await session.grow("Still here.")
            return await session.end()
        device.on_prompt = turn
        chat = await h.chat(device.id, "go on")
        assert await said(h, chat) == ["Still here."]
        assert not device.rpc.ended and len(device.links) == 1
