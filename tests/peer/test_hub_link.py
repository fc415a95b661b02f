"""The hub's discovery, grant, upgrade and frames, with the peer's device."""

import asyncio
import json
import re
import secrets

import pytest

from hub_bench import hub, linked
from peer import checks
from peer.device import Device, Refused
from peer.model import Model


async def dial_refused(device, **how):
    try:
        await device.dial(**how)
    except Refused as refused:
        return refused
    raise AssertionError("it was let in")


async def test_pairs(tmp_path):
    """D2 D4 D5 P2 P3 P6 P8 T1: discovery, pending, approved once, used."""
    async with hub(tmp_path) as h:
        device = Device(h)
        grant = await device.begin()
        said = device.instance
        assert not checks.against_link("discovery", said)
        host = h.base.split("//")[1]
        assert said["link"].startswith(f"ws://{host}/") and said["models"].startswith(f"{h.base}/")
        assert said["models"].endswith("/v1")
        assert re.fullmatch("[A-Za-z0-9._-]{1,64}", said["instance"])
        for name in ("device_authorization_endpoint", "token_endpoint", "revocation_endpoint"):
            assert device.oauth[name].startswith(f"{h.base}/")
        assert device.oauth["issuer"] == h.base
        assert grant["expires_in"] == 600 and grant["interval"] == 5
        assert re.fullmatch("[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", grant["user_code"])
        assert grant["verification_uri"] == f"{h.base}/link"
        assert grant["verification_uri_complete"] == f"{h.base}/link?code={grant['user_code']}"
        status, pending = await device.poll()
        assert (status, pending["error"]) == (400, "authorization_pending")
        shown = await h.call("POST", "/link/lookup", {"code": grant["user_code"].lower().replace("-", " ")})
        assert shown["device"]["name"] == "zephyr" and shown["device"]["address"]
        result = await device.pair()  # a second request: P4
        assert not checks.against_link("grant", result)
        assert re.fullmatch("[A-Za-z0-9_-]{43}", result["access_token"])
        assert result["instance"] == said["instance"] and result["device_id"] == device.id
        assert result["scope"].split() == ["link", "memory", "models"]
        status, used = await device.poll()
        assert status == 400 and used["error"] in ("invalid_grant", "expired_token")


async def test_denied_and_replaced(tmp_path):
    """P4 P6: a second request ends the first code; a no is access_denied."""
    async with hub(tmp_path) as h:
        device = Device(h)
        first = await device.begin()
        await device.begin()
        status, _ = await h.call("POST", "/link/approve", {"code": first["user_code"]}, ok=False)
        assert status >= 400
        await h.call("POST", "/link/deny", {"code": device.grant["user_code"]})
        status, said = await device.poll()
        assert (status, said["error"]) == (400, "access_denied")


async def test_wrong_codes(tmp_path):
    """P4: five wrong codes within ten minutes, then 429."""
    async with hub(tmp_path) as h:
        seen = [(await h.call("POST", "/link/lookup", {"code": "BBBB-BBBB"}, ok=False))[0] for _ in range(6)]
        assert 429 not in seen[:5] and seen[5] == 429, seen


async def test_dial(tmp_path):
    """L2 H1 H2 H3: the subprotocol, no extension, `initialize` as the first message."""
    async with linked(tmp_path) as (h, device):
        assert device.rpc.socket.subprotocol == "lembas.link.3"
        assert "Sec-WebSocket-Extensions" not in device.rpc.socket.response.headers
        first = device.rpc.received()[0]
        assert first["method"] == "initialize" and first["params"]["protocolVersion"] == 1
        meta = first["params"]["clientCapabilities"]["_meta"]["lembas"]
        assert meta["instance"] == device.instance["instance"] and meta["protocol"] == 3
        assert {"resume", "asks"} <= set(meta["capabilities"])
        assert "epoch" not in meta and "head" not in meta

        async def online():
            found = (await h.call("GET", "/devices"))
            found = found.get("devices", found) if isinstance(found, dict) else found
            return [d for d in found if d["id"] == device.id and d["state"] == "online"]
        assert await h.until(online)


async def test_dial_refusals(tmp_path):
    """L4: 401, 403, 426 and 400, each as the table says."""
    async with linked(tmp_path, dial=False) as (h, device):
        refused = await dial_refused(device, Authorization="Bearer " + secrets.token_urlsafe(32))
        assert refused.status == 401
        assert 'error="invalid_token"' in refused.headers["WWW-Authenticate"]
        assert not checks.against_link("refusal", refused.body) and refused.body["reason"] == "unknown"
        refused = await dial_refused(device, Lembas_Device=secrets.token_hex(16))
        assert (refused.status, refused.body["reason"]) == (403, "device")
        for protocols in (("lembas.link.2",), ()):
            refused = await dial_refused(device, protocols=protocols)
            assert (refused.status, refused.body["protocol"], refused.body["product"]) == (426, 3, "llembas")


@pytest.mark.parametrize("missing", ["Authorization", "Lembas_Device", "Lembas_Boot"])
async def test_missing_header(tmp_path, missing):
    """L4: 400 for a header that is missing; without a token also a 401 that is not about it."""
    async with linked(tmp_path, dial=False) as (h, device):
        refused = await dial_refused(device, **{missing: None})
        if missing != "Authorization" or refused.status != 401:
            assert refused.status == 400
        assert "invalid_token" not in refused.headers.get("WWW-Authenticate", "")


async def test_revoked(tmp_path):
    """4003 and 401 revoked: the person takes the computer away on the page; P11 from the device."""
    async with linked(tmp_path) as (h, device):
        await h.call("DELETE", f"/devices/{device.id}")
        gone = await device.rpc.gone()
        assert (gone.code, gone.text) == (4003, "revoked")
        refused = await dial_refused(device)
        assert (refused.status, refused.body["reason"]) == (401, "revoked") and refused.body["since"]
        again = Device(h)
        h.devices.append(again)
        await again.pair()
        for token in (again.token, "nothing"):
            status, _, _ = await h.get(again.oauth["revocation_endpoint"], data={"token": token, "client_id": "lembas"})
            assert status == 200
        assert (await dial_refused(again)).status == 401


async def test_one_socket(tmp_path):
    """L6: the same boot takes over; another gets 409 while the holder answers; `Lembas-Take` takes it."""
    async with linked(tmp_path) as (h, device):
        first = device.rpc
        second = await device.dial()
        gone = await first.gone()
        assert (gone.code, gone.text) == (4001, "boot")
        refused = await dial_refused(device, Lembas_Boot=secrets.token_hex(16))
        assert (refused.status, refused.body["reason"]) == (409, "held")
        assert not checks.against_link("refusal", refused.body) and refused.body["holder"]["since"]
        await device.dial(take=True, Lembas_Boot=secrets.token_hex(16))
        gone = await second.gone()
        assert (gone.code, gone.text) == (4001, "taken")


async def test_a_holder_that_does_not_answer(tmp_path):
    """L6: a holder that answers no ping within 5 s loses the link to another boot; 4001 taken."""
    async with linked(tmp_path) as (h, device):
        first = device.rpc
        first.socket.transport.pause_reading()
        device.boot = secrets.token_hex(16)
        await device.dial()
        first.socket.transport.resume_reading()
        gone = await first.gone()
        assert (gone.code, gone.text) == (4001, "taken")


async def test_frames(tmp_path):
    """F1 F5 F6 F4: the hub answers what is no request, and lives on."""
    async with linked(tmp_path) as (h, device):
        rpc = device.rpc
        for text, code in (("[]", -32600), ('[{"jsonrpc":"2.0","id":900,"method":"x"}]', -32600), ("{", -32700)):
            place = len(rpc.frames)
            await rpc.raw(text)
            got = await rpc.seen(lambda m: "error" in m and m.get("id") is None, since=place)
            assert got["error"]["code"] == code
        try:
            await rpc.request("_lembas/nothing", {})
            raise AssertionError("it was answered")
        except Exception as error:
            assert error.code == -32601
        await rpc.notify("no/such", {})
        await rpc.raw('{"jsonrpc":"2.0","id":12345,"result":{}}')
        await rpc.socket.ping()
        assert not rpc.ended


@pytest.mark.parametrize("greeted,size", [(True, 4_194_305), (False, 65_537)])
async def test_frame_too_long(tmp_path, greeted, size):
    """F2 F3: past the limit of its time: 1009, and the device may come back."""
    async with linked(tmp_path, dial=False) as (h, device):
        rpc = await device.dial(greeted=False)
        await rpc.until(lambda: rpc.greeted)
        if not greeted:  # a device that has not answered yet
            await rpc.socket.close()
            device._serve = lambda end: end.serve.__setitem__("initialize", never) or setattr(end, "greeted", False)
            rpc = await device.dial(greeted=False)
            await rpc.seen(lambda m: m.get("method") == "initialize")
        head = '{"jsonrpc":"2.0","id":"big","method":"_lembas/nothing","params":{"x":"'
        await rpc.raw(head + "x" * (size - len(head) - 3) + '"}}')
        assert (await rpc.gone()).code == 1009


async def never(_params):
    await asyncio.Event().wait()


async def test_initialize_not_answered(tmp_path):
    """H1: without an answer the hub closes with 4002."""
    async with linked(tmp_path, dial=False) as (h, device):
        device._serve = lambda end: end.serve.__setitem__("initialize", never) or setattr(end, "greeted", False)
        rpc = await device.dial(greeted=False)
        assert (await rpc.gone()).code == 4002


async def test_wrong_protocol(tmp_path):
    """4004: a device that says another protocol in its handshake is not served."""
    async with linked(tmp_path, dial=False) as (h, device):
        device.protocol = 4
        rpc = await device.dial(greeted=False)
        gone = await rpc.gone()
        assert (gone.code, gone.text) == (4004, "protocol")


async def test_models(tmp_path):
    """V1 V3 V4 V6 and the token: the model API for a device."""
    async with linked(tmp_path, dial=False) as (h, device):
        base = device.instance["models"]
        status, _, text = await h.get(f"{base}/models", device.token)
        listed = json.loads(text)
        assert status == 200 and listed["object"] == "list"
        schema = json.loads((checks.SPEC / "models" / "schema.json").read_text())
        for entry in listed["data"]:
            assert entry["object"] == "model"
            assert not list(checks.Draft202012Validator(schema).iter_errors(entry["lembas"])), entry
        for token in (None, "x" * 43):
            status, _, text = await h.get(f"{base}/models", token)
            assert status == 401 and json.loads(text)["error"]["code"]
        ask = {"model": listed["data"][0]["id"], "stream": True, "stream_options": {"include_usage": True},
               "messages": [{"role": "user", "content": "Say hello."}]}
        status, headers, text = await h.get(f"{base}/chat/completions", device.token, json=ask)
        assert status == 200 and headers["Content-Type"].startswith("text/event-stream")
        events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        assert events[-1] == "[DONE]"
        assert json.loads(events[-2])["usage"]["prompt_tokens"] > 0
        status, _, text = await h.get(f"{base}/chat/completions", device.token, json=ask | {"model": Model.name})
        assert status == 404 and json.loads(text)["error"]["code"] == "model_not_found"
        status, _, text = await h.get(f"{base}/usage", device.token)
        assert status == 200 and "month" in json.loads(text)
