"""Scheduled work and the monitor (section 14), our instance and their device."""

import asyncio
import hashlib
import secrets

import pytest

from bench import linked, refused
from peer import checks
from peer.model import Step

OFF = checks.LOOP["scheduled"]["texts"]["off"]


def of(output, status=0):
    """M2, by hashlib."""
    return "sha256:" + hashlib.sha256(f"{status}\n".encode() + output).hexdigest()


def run(mode="edit", **more):
    return {"schedule": "w-1", "run": "r-" + secrets.token_hex(4), "mode": mode} | more


async def monitor(b, command, **more):
    params = {"schedule": "w-" + secrets.token_hex(4), "run": "r-1", "cwd": str(b.root), "command": command} | more
    return await b.link.rpc.request("_lembas/monitor", params, 60)


async def test_off(tmp_path):
    """Z1: off unless turned on: -32050 off and -32051 off, with loop.json's text."""
    async with linked(tmp_path) as b:
        assert b.meta["limits"]["scheduled"] is False
        error = await refused(b.link.new(b.root, mode=None, scheduled=run()))
        assert (error.code, error.reason, error.data["text"]) == (-32050, "off", OFF)
        error = await refused(monitor(b, "ls"))
        assert (error.code, error.reason, error.data["text"]) == (-32051, "off", OFF)


async def test_turned_off_later(tmp_path):
    """Z1: the setting is judged at every request: prompt, load, set_mode of a scheduled session."""
    async with linked(tmp_path, scheduled=True) as b:
        session = await b.link.new(b.root, mode=None, scheduled=run())
        await b.pc.ok("service", "scheduled", "off")
        await b.link.rpc.gone()
        await b.connect()
        for method, more in [("session/prompt", {"prompt": [{"type": "text", "text": "x"}],
                                                 "_meta": {"lembas": {"key": "k"}}}),
                             ("session/load", {"cwd": str(b.root), "mcpServers": []}),
                             ("session/resume", {"cwd": str(b.root), "mcpServers": []}),
                             ("session/set_mode", {"modeId": "manual"})]:
            error = await refused(b.link.rpc.request(method, {"sessionId": session} | more))
            assert (error.code, error.reason) == (-32050, "off"), method


async def test_runs_once(tmp_path):
    """Z2 Z3 N4: the same run again, on a later connection, answers how it ended and runs nothing."""
    async with linked(tmp_path, scheduled=True) as b:
        assert b.meta["limits"]["scheduled"] is True
        b.model.script("watch it", Step("", [("bash", {"command": "echo ran >> runs.txt"})]), Step("  All is well.\n"))
        what = run()
        session = await b.link.new(b.root, mode=None, key="new-1", scheduled=what)
        assert b.link.opened["_meta"]["lembas"]["mode"] == "edit"
        await b.link.follow(session)
        result = await b.turn(session, "watch it", key=what["run"])
        said = result["_meta"]["lembas"]["run"]
        assert said == {"schedule": "w-1", "run": what["run"], "status": "ok", "reply": "All is well."}
        prompt = b.reader[session].of("user_message_chunk")[0].parts[0]
        assert prompt["_meta"]["lembas"]["source"] == "scheduled"
        assert b.reader[session].events("turn_end")[0]["run"] == said
        b.link.drop()
        await b.connect()
        assert await b.link.new(b.root, mode=None, key="new-1", scheduled=what) == session
        assert await b.turn(session, "watch it", key=what["run"]) == result
        assert (b.root / "runs.txt").read_text() == "ran\n"


@pytest.mark.parametrize("text,status,reply", [
    ("[SILENT]", "silent", ""), ("\n[SILENT]\nNothing new.\n", "silent", "Nothing new."),
    ("Nothing.\n[SILENT]\n\n", "silent", "Nothing."), ("It is [SILENT] here.", "ok", "It is [SILENT] here."),
    ("one\n[SILENT]\nthree", "ok", "one\n[SILENT]\nthree"), ("", "failed", "")])
async def test_reply(tmp_path, text, status, reply):
    """Z3: the sentinel alone on the first or last line that is not blank; no text is failed."""
    async with linked(tmp_path, scheduled=True) as b:
        b.model.script("look", *[Step(text)] * 4)
        what = run()
        session = await b.link.new(b.root, mode=None, scheduled=what)
        try:
            result = await b.turn(session, "look", key=what["run"])
            said = result["_meta"]["lembas"]["run"]
        except Exception as error:
            said = error.data["run"]
            assert error.code == -32603 and error.data["turn"]
        assert (said["status"], said["reply"]) == (status, reply)


async def test_refusals(tmp_path):
    """Z2: plan, a folder outside the roots, an unknown model."""
    async with linked(tmp_path, scheduled=True) as b:
        error = await refused(b.link.new(b.root, mode=None, scheduled=run("plan")))
        assert (error.code, error.reason) == (-32050, "plan")
        error = await refused(b.link.new("/etc", mode=None, scheduled=run()))
        assert (error.code, error.reason) == (-32050, "root")
        error = await refused(b.link.new(b.root, mode=None, model="other", scheduled=run()))
        assert (error.code, error.reason) == (-32050, "model")
        await b.link.new(b.root, mode=None, scheduled=run("auto"))
        meta = b.link.opened["_meta"]["lembas"]
        assert meta["mode"] == "edit" and meta["lowered"] == "max_mode"


async def test_ask_of_a_run(tmp_path):
    """Z4 Q2 Q10: it says the run and waits approval_wait; it can be extended and answered."""
    async with linked(tmp_path, scheduled=True) as b:
        b.model.script("open it", Step("", [("bash", {"command": "echo 1 > x", "open": True, "why": "a test"})]),
                       Step("Done."))
        what = run(approval_wait=120)
        session = await b.link.new(b.root, mode=None, scheduled=what)
        done = await b.link.prompt(session, "open it", key=what["run"])
        ask, _ = await b.ask()
        meta = ask["_meta"]["lembas"]
        assert meta["scheduled"] == {"schedule": "w-1", "run": what["run"]}
        assert meta["box"] == "open"
        assert 0 < meta["expires_in"] <= 120_000
        said = await b.link.rpc.request("_lembas/extend", {"ask": meta["ask"], "seconds": 600})
        assert 590_000 <= said["expires_in"] <= 600_000
        said = await b.link.rpc.request("_lembas/extend", {"ask": meta["ask"], "seconds": 1})
        assert said["expires_in"] > 580_000  # never less than it would have
        said = await b.link.rpc.request("_lembas/extend", {"ask": meta["ask"], "seconds": 10_000_000})
        most = b.meta["limits"]["approval_max"] * 1000
        assert most - 60_000 <= said["expires_in"] <= most
        await b.link.answer(ask, "refuse")
        result = await done
        assert result["_meta"]["lembas"]["run"]["status"] == "ok"
        assert not (b.root / "x").exists()


async def test_question_of_a_run(tmp_path):
    """Z4: nobody is here: the question is refused at once, makes no ask, and the turn goes on."""
    async with linked(tmp_path, scheduled=True) as b:
        question = {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}
        b.model.script("decide", Step("", [("ask_user", question)]), Step("Took a."))
        what = run()
        session = await b.link.new(b.root, mode=None, scheduled=what)
        result = await b.turn(session, "decide", key=what["run"])
        assert result["_meta"]["lembas"]["run"]["reply"] == "Took a."
        assert b.link.asks.empty()
        heard = [str(m["content"]) for m in b.model.asked("decide")[-1]["messages"] if m["role"] == "tool"]
        assert "Nobody is here" in heard[0]


@pytest.mark.parametrize("command,output,status", [
    ("printf 'a\\nb'", b"a\nb", 0), ("ls", b"one\n", 0), ("cat nothing; exit 3", None, 3), ("true", b"", 0),
    ("printf '\\377\\000x'", b"\xff\x00x", 0), ("python3 -c 'import os; os.kill(os.getpid(), 9)'", b"", 137),
    ("seq 1 50000", "".join(f"{n}\n" for n in range(1, 50_001)).encode(), 0)])
async def test_hash(tmp_path, command, output, status):
    """M2: the status in decimal, one line feed, every byte of the one pipe."""
    async with linked(tmp_path, scheduled=True) as b:
        b.write("one", "x")
        said = await monitor(b, command)
        if output is None:
            output = said["excerpt"].encode()
            assert b"nothing" in output
        assert said["exit"] == status and said["bytes"] == len(output)
        assert said["hash"] == of(output, status)
        again = await monitor(b, command)
        assert again["hash"] == said["hash"]
        assert len(said["excerpt"]) <= 4000
        assert not set(said["excerpt"]) & {chr(n) for n in range(32) if n not in (9, 10)}


async def test_monitor_environment(tmp_path):
    """M5: stdin empty, the fixed environment, umask 022, a disk that cannot be written."""
    async with linked(tmp_path, scheduled=True) as b:
        said = await monitor(b, "cat; umask; printf '%s\\n' $TZ $TERM $NO_COLOR $COLUMNS $GIT_OPTIONAL_LOCKS")
        assert said["excerpt"].split() == ["0022", "UTC", "dumb", "1", "80", "0"]
        said = await monitor(b, "printf '%s ' ${LEMBAS_DATA-none} ${LEAK-none} ${HOME:+home} ${PATH:+path} $LC_ALL$LANG")
        assert said["excerpt"].split()[:4] == ["none", "none", "home", "path"]
        assert said["excerpt"].split()[4].upper().startswith("C.UTF")
        said = await refused_or(monitor(b, "echo x > made; cat made"))
        assert not (b.root / "made").exists(), said


async def refused_or(awaitable):
    try:
        return await awaitable
    except Exception as error:
        return error


async def test_monitor_errors(tmp_path):
    """M4 M6: ask, timeout, background and root are errors, never a hash; fail_on says failed."""
    async with linked(tmp_path, scheduled=True) as b:
        async def reason(command, **more):
            error = await refused(monitor(b, command, **more))
            assert error.code == -32051, error
            return error.reason

        assert await reason("sleep 60", timeout=1) == "timeout"
        assert await reason("ls", cwd="/etc") == "root"
        assert await reason("ls", mode="plan") == "plan"
        assert await reason("echo x > made.txt", mode="manual") == "ask"
        assert b.link.asks.empty()
        assert await reason("sleep 30 & echo started") == "background"
        said = await monitor(b, "exit 4", fail_on="nonzero")
        assert said["exit"] == 4 and said["failed"] is True
        assert not (await monitor(b, "exit 0", fail_on="nonzero")).get("failed")
        assert (await monitor(b, "echo secret", excerpt="none"))["excerpt"] == ""
        error = await refused(monitor(b, "ls", timeout=601))
        assert error.code == -32602
        error = await refused(monitor(b, "#" * 65_537))
        assert error.code == -32602


async def test_confirm(tmp_path):
    """M7: with `last` a hash that does not come again is unstable; one that does is not."""
    async with linked(tmp_path, scheduled=True) as b:
        last = of(b"before\n")
        stable, changing = await asyncio.gather(
            monitor(b, "echo now", last=last, confirm=1), monitor(b, "date +%N", last=last, confirm=1))
        assert stable["hash"] == of(b"now\n") and not stable.get("unstable")
        assert changing["unstable"] is True
        assert stable["duration_ms"] >= 0


async def test_one_check_a_schedule(tmp_path):
    """M9: one check a schedule at a time; the further one waits and then gives the same hash."""
    async with linked(tmp_path, scheduled=True) as b:
        both = await asyncio.gather(*[monitor(b, "sleep 1; echo x", schedule="w-same") for _ in range(2)])
        assert both[0]["hash"] == both[1]["hash"] == of(b"x\n")
