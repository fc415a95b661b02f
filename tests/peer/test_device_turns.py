"""Sessions, prompts and their updates (sections 8 to 11), our instance and their device."""

import asyncio
import pathlib
import secrets

from bench import linked, refused
from peer.model import Step
from peer.rpc import WAIT

# Text that shows a cut between bytes, in JSON or at a chunk's end.
HARD = "Grüße, 你好 🙂 — \"quoted\\\" \t tab\n\n```rust\nlet a = 'é';\n```\n" * 40 + "end"


async def test_a_turn(tmp_path):
    """R1 R3 R8 U1 to U6: text, read, bash, edit; the whole text byte for byte; usage."""
    async with linked(tmp_path) as b:
        path = b.write("hello.txt", "one\ntwo\n")
        b.model.script(
            "change the file",
            Step("I read it first.", [("read", {"path": "hello.txt"})], thought="Let me think: é."),
            Step("", [("edit", {"path": "hello.txt", "old": "two", "new": "zwei"})]),
            Step("", [("bash", {"command": "echo x > made; printf 'a\\nb\\n'; exit 3"})]),
            Step(HARD))
        session = await b.open()
        result = await b.turn(session, "change the file", key="m-1")
        assert result["stopReason"] == "end_turn"
        meta = result["_meta"]["lembas"]
        assert meta["tokens"] == {"input": 4800, "cached_input": 3600, "output": 320}
        got = b.reader[session]
        assert got.text() == ["I read it first.", HARD]
        assert got.text("agent_thought_chunk") == ["Let me think: é."]
        assert path.read_text() == "one\nzwei\n"
        end = got.events("turn_end")  # R8: before the answer
        assert len(end) == 1 and end[0]["stop"] == "end_turn" and end[0]["turn"] == meta["turn"]
        assert end[0]["tokens"] == meta["tokens"]
        assert len(got.events("step")) == len(got.events("usage")) == 4
        assert [u["finish"] for u in got.events("usage")] == ["tool_calls"] * 3 + ["stop"]
        prompt = got.of("user_message_chunk")[0].parts[0]
        assert prompt["update"]["content"]["text"] == "change the file"
        assert prompt["_meta"]["lembas"]["key"] == "m-1" and prompt["_meta"]["lembas"]["source"] == "person"
        calls = got.updates("tool_call")
        assert [c["kind"] for c in calls] == ["read", "edit", "execute"]
        assert all(c["status"] == "pending" for c in calls)
        assert calls[0]["rawInput"]["path"] == "hello.txt"
        assert calls[0]["locations"] == [{"path": str(path)}] == calls[1]["locations"]
        (_, read), (edited, edit), (_, bash) = got.results()
        assert read["status"] == edit["status"] == "ok"
        assert edited["content"][0]["type"] == "diff"  # U6: a diff block first
        assert edited["content"][0]["newText"] == "one\nzwei\n"
        assert edited["content"][-1]["content"]["type"] == "text"
        assert bash["exit"] == 3
        assert "".join(got.text("output")) == "a\nb\n"
        started = [p["_meta"]["lembas"]["allowed"] for i in got.of("tool_call_update") for p in i.parts
                   if p["update"].get("status") == "in_progress"]
        assert [s["source"] for s in started] == ["read", "mode", "mode"]
        status = await b.link.rpc.request("_lembas/status", {"sessionId": session})
        assert status["status"] == "idle" and not status["running"] and status["turn"] == meta["turn"]
        assert status["seq"] == got.position[0]


async def test_phases_of_a_turn(tmp_path):
    """E1, progress.md: each phase of a turn, held until it was heard: only the newest counts."""
    async with linked(tmp_path) as b:
        asked, thought, written = asyncio.Event(), asyncio.Event(), asyncio.Event()
        b.model.script(
            "work",
            Step("Here I go.", [("bash", {"command": "until [ -e go ]; do sleep 0.02; done"})], thought="Hm.",
                 before=[asked], thought_gate=thought, gate=written))
        session = await b.open()
        done = await b.link.prompt(session, "work")
        held = [("waiting_for_model", asked.set), ("thinking", thought.set), ("writing", written.set),
                ("running_tool", lambda: b.write("go", ""))]
        for phase, go in held:
            await b.link.rpc.until(lambda: phase in [p["phase"] for p in b.reader[session].phases])
            go()
        await done
        by = {p["phase"]: p for p in b.reader[session].phases}
        assert by["waiting_for_model"]["model"] == "scripted"
        assert by["running_tool"]["tool"] == "bash" and by["running_tool"]["call"]


async def test_phases_of_the_server(tmp_path):
    """V5, progress.md: what the model's server says becomes phases."""
    async with linked(tmp_path) as b:
        notes = [{"phase": "queued", "position": 2}, {"phase": "loading_model", "percent": 40},
                 {"phase": "reading_prompt", "tokens": 10, "total": 20}]
        gates = [asyncio.Event() for _ in notes]
        # Each waits until the one before was heard: only the newest phase counts (E1).
        b.model.script("slow", Step("ok", before=[x for pair in zip(notes, gates) for x in pair]))
        session = await b.open()
        done = await b.link.prompt(session, "slow")
        for note, gate in zip(notes, gates):
            await b.link.rpc.until(lambda: note["phase"] in [p["phase"] for p in b.reader[session].phases])
            gate.set()
        await done
        by = {p["phase"]: p for p in b.reader[session].phases}
        assert by["queued"]["position"] == 2
        assert by["loading_model"]["percent"] == 40 and by["loading_model"]["model"] == "scripted"
        assert by["reading_prompt"]["tokens"] == 10 and by["reading_prompt"]["total"] == 20


async def test_model_fails(tmp_path):
    """R4 V4: a model that is not served any more fails the turn: -32603 with reason failed."""
    async with linked(tmp_path) as b:
        session = await b.open()
        b.model.served = []
        error = await refused(await b.link.prompt(session, "anything"))
        assert error.code == -32603 and error.reason == "failed"
        assert error.data["text"] and isinstance(error.data["turn"], int)
        assert b.reader[session].events("turn_end")[-1]["stop"] == "failed"


async def test_same_key(tmp_path):
    """R5 N2: the same key answers how its turn ended and runs nothing; other params are refused."""
    async with linked(tmp_path) as b:
        b.model.script("once", Step("Once."))
        session = await b.open()
        first = await b.turn(session, "once", key="k-1")
        asked = len(b.model.asked("once"))
        assert await b.turn(session, "once", key="k-1") == first
        assert len(b.model.asked("once")) == asked
        assert b.reader[session].text() == ["Once."]
        error = await refused(b.turn(session, "other words", key="k-1"))
        assert error.code == -32602 and error.reason == "key"
        opened = await b.link.new(b.root, key="c-1")
        assert await b.link.new(b.root, key="c-1") == opened


async def test_one_turn_at_a_time(tmp_path):
    """R2 F8: another prompt meanwhile is -32052 turn; the same key joins."""
    async with linked(tmp_path) as b:
        gate = asyncio.Event()
        (step,) = b.model.script("hold", Step("some text here", gate=gate))
        session = await b.open()
        first = await b.link.prompt(session, "hold", key="k-1")
        await step.reached.wait()
        joined = await b.link.prompt(session, "hold", key="k-1")
        error = await refused(await b.link.prompt(session, "another", key="k-2"))
        assert error.code == -32052 and error.reason == "turn"
        gate.set()
        assert await first == await joined
        assert b.reader[session].text() == ["some text here"]


def alive(mark):
    """Whether a process whose command line holds `mark` runs on this computer."""
    for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in line.read_bytes():
                return True
        except OSError:
            continue
    return False


async def begun(mark):
    """Waits until such a process is there: its output tells only of the command before it."""
    async with asyncio.timeout(WAIT):
        while not alive(mark):
            await asyncio.sleep(0.02)


async def test_stop(tmp_path):
    """R6 R7: the prompt answers cancelled, and every process of the turn is gone."""
    async with linked(tmp_path) as b:
        mark = f"77{secrets.randbelow(10**6):06}"
        b.model.script("sleep", Step("", [("bash", {"command": f"echo up; sleep {mark}"})]), Step("never"))
        session = await b.open()
        done = await b.link.prompt(session, "sleep")
        await b.link.rpc.until(lambda: b.reader[session].text("output"))
        await begun(f"sleep\0{mark}")
        stopped = await b.link.rpc.request("_lembas/stop", {"sessionId": session, "key": "s-1"})
        assert not alive(f"sleep\0{mark}")
        assert stopped["outcome"] == "stopped" and stopped["commands"] >= 1 and stopped["ms"] <= 10_000
        result = await done
        assert result["stopReason"] == "cancelled"
        assert b.reader[session].results()[-1][1]["status"] == "cancelled"
        assert b.reader[session].events("turn_end")[-1]["stop"] == "cancelled"
        again = await b.link.rpc.request("_lembas/stop", {"sessionId": session, "key": "s-1"})
        assert again["outcome"] == "stopped"  # N2: the same key, the same outcome
        other = await b.link.rpc.request("_lembas/stop", {"sessionId": session, "key": "s-2"})
        assert other["outcome"] == "gone"


async def test_cancel(tmp_path):
    """R6: session/cancel ends the turn that runs; a later prompt is answered as ever."""
    async with linked(tmp_path) as b:
        (step, _) = b.model.script("talk", Step("a long text " * 20, gate=asyncio.Event()), Step("x"))
        b.model.script("then", Step("Fine."))
        session = await b.open()
        done = await b.link.prompt(session, "talk")
        await step.reached.wait()
        await b.link.rpc.notify("session/cancel", {"sessionId": session})
        assert (await done)["stopReason"] == "cancelled"
        assert (await b.turn(session, "then"))["stopReason"] == "end_turn"
        assert b.reader[session].text()[-1] == "Fine."


async def test_only_followed_sessions_stream(tmp_path):
    """K1 Y3 Y4: nothing before follow or after unfollow."""
    async with linked(tmp_path) as b:
        b.model.script("quiet", Step("Quiet."))
        session = await b.link.new(b.root)
        await b.turn(session, "quiet")
        assert not b.reader[session].items
        await b.link.follow(session)
        await b.link.rpc.until(lambda: b.reader[session].events("turn_end"))
        assert b.reader[session].text() == ["Quiet."]
        await b.link.rpc.request("_lembas/unfollow", {"sessionId": session})
        place = b.reader[session].position
        await b.turn(session, "quiet")
        assert b.reader[session].position == place


async def test_back_to_before_a_message(tmp_path):
    """J4 N1: what is taken back stays, says so, and is sent to the model no more."""
    async with linked(tmp_path) as b:
        b.model.script("say it first", Step("First."))
        b.model.script("say it wrongly", Step("Wrong."))
        b.model.script("say it thirdly", Step("Third."))
        session = await b.open()
        await b.turn(session, "say it first")
        await b.turn(session, "say it wrongly")
        prompt = b.reader[session].of("user_message_chunk")[-1].seq
        back = {"sessionId": session, "seq": prompt, "key": "back-1"}
        answer = await b.link.rpc.request("_lembas/rewind", back)
        said = b.reader[session].events("rewound")  # heard before the answer
        assert [e["to"] for e in said] == [prompt] and said[0]["by"]
        assert b.reader[session].position[0] >= answer["seq"]
        assert await b.link.rpc.request("_lembas/rewind", back) == answer  # N2: done once
        assert len(b.reader[session].events("rewound")) == 1
        wrong = b.link.rpc.request("_lembas/rewind", {"sessionId": session, "seq": prompt, "key": "back-2"})
        assert (await refused(wrong)).code == -32602
        assert b.reader[session].text() == ["First.", "Wrong."]
        await b.turn(session, "say it thirdly")
        sent = str(b.model.asked("say it thirdly")[0]["messages"])
        assert "First." in sent and "Wrong." not in sent and "say it wrongly" not in sent


async def test_retry(tmp_path):
    """R11: the wait for the next try ends at a word, once."""
    async with linked(tmp_path) as b:
        b.model.script("work", Step("At last."))
        b.model.refuse = [429, {"Retry-After": "1800"}]
        session = await b.open()
        gone = await b.link.rpc.request("_lembas/retry", {"sessionId": session})
        assert gone == {"outcome": "gone"}
        done = await b.link.prompt(session, "work")
        await b.link.rpc.until(lambda: "retrying" in [p["phase"] for p in b.reader[session].phases])
        waits = [p for p in b.reader[session].phases if p["phase"] == "retrying"][-1]
        assert waits["attempt"] == 2 and waits["at"] and waits["quota"] and waits["model"] == "scripted"
        assert await b.link.rpc.request("_lembas/retry", {"sessionId": session}) == {"outcome": "retried"}
        assert (await done)["stopReason"] == "end_turn"
        assert b.reader[session].text() == ["At last."]
