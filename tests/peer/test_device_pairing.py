"""Discovery, the grant and the dial, with our instance and their `lembas link` and `lembas daemon`."""

import json
import re

import pytest
from aiohttp import web

from bench import linked, unlinked
from peer import checks


async def test_pairs(tmp_path):
    """D2 D5 P1 P5 P8 L1 L2 H1 H6 H7 F2."""
    async with linked(tmp_path) as b:
        start, *polls = b.inst.forms
        assert start["client_id"] == "lembas"
        assert start["scope"].split(" ") == ["link", "memory", "models"]
        assert re.fullmatch("[0-9a-f]{32}", start["device_id"])
        assert 1 <= len(start["device_name"]) <= 64
        assert start["device_os"] and start["device_arch"] and start["device_version"]
        assert len(polls) == 2  # pending, then approved
        head = b.link.headers
        assert head["Authorization"] == f"Bearer {b.inst.tokens[-1]}"
        assert head["Sec-WebSocket-Protocol"] == "lembas.link.3"
        assert head["Lembas-Device"] == start["device_id"]
        assert re.fullmatch("[0-9a-f]{32}", head["Lembas-Boot"])
        assert "Lembas-Take" not in head
        assert re.match("lembas/[0-9]", head["User-Agent"])
        assert b.meta["device"]["id"] == start["device_id"]
        assert b.meta["protocol"] == 3
        limits = b.meta["limits"]
        assert limits["roots"] == [str(b.root)]
        assert limits["max_mode"] == "edit" and limits["remote"] and not limits["scheduled"]
        said = b.link.result
        assert said["protocolVersion"] == 1 and said["authMethods"] == []
        assert said["agentInfo"]["name"] == "lembas"
        able = said["agentCapabilities"]
        assert able["loadSession"] is True
        assert able["promptCapabilities"]["image"] and able["promptCapabilities"]["embeddedContext"]
        assert {k: able["sessionCapabilities"].get(k) for k in ("list", "resume", "close", "delete")} == {
            "list": {}, "resume": {}, "close": {}, "delete": {}}


async def test_limits_at_pairing(tmp_path):
    """P1: `device_limits` is the object `limits` of H6, the one the handshake says too."""
    async with linked(tmp_path) as b:
        limits = json.loads(b.inst.forms[0]["device_limits"])
        assert not checks.against_link("limits", limits)
        assert limits == b.meta["limits"]


async def test_json_lines(tmp_path):
    """What `lembas link --json` prints: found, code, linked."""
    async with unlinked(tmp_path) as b:
        lines = await b.pair()
        text = json.dumps(lines)
        for word in ("found", "code", "linked"):
            assert word in text, text
        assert "BCDF-GHJK" in text
        assert b.inst.tokens[-1] not in text + "\n".join(b.pc.log)  # T5


@pytest.mark.parametrize("how", ["deny", "expire"])
async def test_grant_ends(tmp_path, how):
    """P6: access_denied and expired_token end pairing; nothing is dialled with."""
    async with unlinked(tmp_path) as b:
        b.inst.grants = ["pending", how]
        done = await b.pc.run("link", b.inst.base, "--json")
        assert done.code != 0, done.out
        assert len(b.inst.forms) == 3
        status = await b.pc.run("status", "--json")
        assert b.inst.id not in status.out


async def test_grant_slow_down(tmp_path):
    """P5: slow_down adds five seconds, and pairing goes on."""
    async with unlinked(tmp_path) as b:
        b.inst.grants = ["slow", "approve"]
        await b.pair()
        assert len(b.inst.forms) == 3


async def test_token_of_another_instance(tmp_path):
    """P9: the token is thrown away when `instance` is not the one of discovery."""
    async with unlinked(tmp_path) as b:
        b.inst.grants = ["i-other"]
        done = await b.pc.run("link", b.inst.base, "--json")
        assert done.code != 0, done.out
        kept = [p for p in b.pc.data.rglob("*") if p.is_file() and b.inst.tokens[-1].encode() in p.read_bytes()]
        assert not kept


@pytest.mark.parametrize("theirs,words", [
    (2, "update the instance to LLeMbas 2.0 or later."), (4, "update lembas on this computer.")])
async def test_discovery_of_another_protocol(tmp_path, theirs, words):
    """D6, with its texts."""
    async with unlinked(tmp_path, protocol=theirs) as b:
        done = await b.pc.run("link", b.inst.base)
        assert done.code != 0
        text = f"This instance speaks link protocol {theirs} and this computer 3: {words}"
        assert text in " ".join((done.out + done.err).split())
        assert not b.inst.forms


@pytest.mark.parametrize("changes", [
    {"product": "other"}, {"link": "ws://127.0.0.1:9/link"}, {"link": "wss://127.0.0.1:9/link"},
    {"models": "http://localhost:9/v1"}, {"instance": "no spaces"}, {"instance": "x" * 65}])
async def test_discovery_is_refused(tmp_path, changes):
    """D2 D4: a product, link, models or instance that may not be ends discovery before the grant."""
    async with unlinked(tmp_path, **changes) as b:
        done = await b.pc.run("link", b.inst.base)
        assert done.code != 0, done.out
        assert not b.inst.forms


async def test_discovery_too_long(tmp_path):
    """D2: at most 64 KiB."""
    async with unlinked(tmp_path, name="x" * 70_000) as b:
        assert (await b.pc.run("link", b.inst.base)).code != 0
        assert not b.inst.forms


async def test_redirect_elsewhere(tmp_path):
    """D3: a redirect to another origin ends discovery with an error that names it."""
    there = "http://127.0.0.1:9"
    answer = web.Response(status=302, headers={"Location": f"{there}/.well-known/lembas"})
    async with unlinked(tmp_path, answer=answer) as b:
        done = await b.pc.run("link", b.inst.base)
        assert done.code != 0
        assert "127.0.0.1:9" in done.out + done.err
        assert not b.inst.forms


async def test_plain_http_is_refused(tmp_path):
    """D7: a base of plain http that is not loopback is refused before anything is sent."""
    async with unlinked(tmp_path) as b:
        done = await b.pc.run("link", "http://192.0.2.1:8787")
        assert done.code != 0
        assert "http" in done.out + done.err
        assert not b.inst.seen


async def test_scope_without_models(tmp_path):
    """P1: `models` is asked for only when discovery names it (null is read as left out)."""
    async with unlinked(tmp_path, models=None) as b:
        await b.pair()
        assert b.inst.forms[0]["scope"] == "link memory"


async def test_paired_again(tmp_path):
    """P1 P10: the device id is made once and kept."""
    async with unlinked(tmp_path) as b:
        await b.pair()
        first = b.inst.forms[0]["device_id"]
        b.inst.forms.clear()
        b.inst.grants = ["approve"]
        done = await b.pc.run("link", b.inst.base, "--json")
        if done.code == 0:
            assert b.inst.forms[0]["device_id"] == first
        else:  # it may ask to unlink first
            await b.pc.ok("unlink")
            await b.pair()
            assert b.inst.forms[0]["device_id"] == first
