"""Scheduled work from the hub's side (section 14), with the peer's device."""

import hashlib

from hub_bench import linked
from peer.rpc import RpcError


async def test_monitor(tmp_path):
    """M1: the page's check goes as `_lembas/monitor`; the hash comes back as it was given."""
    async with linked(tmp_path) as (h, device):
        asked = []

        async def monitor(params):
            asked.append(params)
            output = b"total 0\n"
            return {"hash": "sha256:" + hashlib.sha256(b"0\n" + output).hexdigest(), "exit": 0, "bytes": len(output),
                    "excerpt": output.decode(), "truncated": False, "duration_ms": 4}

        device.rpc.serve["_lembas/monitor"] = monitor
        said = await h.call("POST", f"/devices/{device.id}/monitor", {"cwd": "/srv/api", "command": "ls -la"})
        assert asked[0]["cwd"] == "/srv/api" and asked[0]["command"] == "ls -la"
        assert hashlib.sha256(b"0\ntotal 0\n").hexdigest() in str(said)


async def test_monitor_refused(tmp_path):
    """Z1 M6: a -32051 reaches the person with its words and is no hash."""
    async with linked(tmp_path) as (h, device):
        async def monitor(_params):
            raise RpcError(-32051, "off", {"reason": "off", "text": "This computer does not accept scheduled work."})

        device.rpc.serve["_lembas/monitor"] = monitor
        status, said = await h.call("POST", f"/devices/{device.id}/monitor", {
            "cwd": "/srv/api", "command": "ls"}, ok=False)
        assert status >= 400 and "does not accept scheduled work" in str(said)


async def test_runs_once(tmp_path):
    """Z2 N4: `session/new` with the schedule and the run; the prompt's key is the run; the same key is one run."""
    async with linked(tmp_path) as (h, device):
        async def turn(session, _text):
            await session.grow("All is well.")
            result = await session.end()
            new = device.rpc.received("session/new")[0]["params"]["_meta"]["lembas"]["scheduled"]
            result["_meta"]["lembas"]["run"] = {"schedule": new["schedule"], "run": new["run"], "status": "ok",
                                                "reply": "All is well."}
            return result

        device.on_prompt = turn
        model = (await h.call("GET", "/state"))["models"][0]["id"]
        body = {"cwd": "/srv/api", "text": "look after it", "model": model, "key": "sched-000001"}
        first = await h.call("POST", f"/devices/{device.id}/scheduled", body)
        again = await h.call("POST", f"/devices/{device.id}/scheduled", body)
        assert first["chat"]["id"] == again["chat"]["id"] and first["run"] == again["run"]
        prompt = await device.rpc.seen(lambda m: m.get("method") == "session/prompt")
        new = device.rpc.received("session/new")
        assert len(new) == 1
        scheduled = new[0]["params"]["_meta"]["lembas"]["scheduled"]
        assert prompt["params"]["_meta"]["lembas"]["key"] == scheduled["run"]
        assert len(device.sessions) == 1


async def test_scheduled_refused(tmp_path):
    """Z5: any error but -32052 fails the run, and its words are told."""
    async with linked(tmp_path) as (h, device):
        async def new(_params):
            raise RpcError(-32050, "off", {"reason": "off", "text": "This computer does not accept scheduled work."})

        device.rpc.serve["session/new"] = new
        model = (await h.call("GET", "/state"))["models"][0]["id"]
        status, said = await h.call("POST", f"/devices/{device.id}/scheduled", {
            "cwd": "/srv/api", "text": "look", "model": model, "key": "sched-000002"}, ok=False)
        if status < 300:  # told in the chat, when it was taken at once
            chat = said["chat"]["id"] if isinstance(said["chat"], dict) else said["chat"]

            async def told():
                return "does not accept scheduled work" in str(await h.call("GET", f"/chats/{chat}"))
            assert await h.until(told)
        else:
            assert "does not accept scheduled work" in str(said)
