"""Asks (section 12): answered by `_lembas/answer`, by ACP's own answer, refused, settled, extended."""

import asyncio

from bench import linked, refused
from peer.instance import ALL
from peer.model import Step

# In mode manual a command that changes something asks, and so does an edit.
WRITES = "echo {0} > {0}.txt"


def call(name):
    return [("bash", {"command": WRITES.format(name)})]


async def settled(b, session, count=1):
    return await b.link.rpc.until(
        lambda: len(b.reader[session].events("ask_settled")) >= count and b.reader[session].events("ask_settled"))


async def test_allow(tmp_path):
    """Q1 Q2 Q3 Q5 Q6 Q8 Q9: allowed once; the open request is given up; a second answer is told how it ended."""
    async with linked(tmp_path, mode="edit") as b:
        b.model.script("write", Step("", call("a")), Step("Written."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "write")
        ask, _ = await b.ask()
        meta = ask["_meta"]["lembas"]
        assert ask["toolCall"]["kind"] == "execute" and ask["toolCall"]["status"] == "pending"
        assert ask["toolCall"]["content"]
        assert meta["kind"] == "execute" and meta["command"] == WRITES.format("a") and meta["cwd"] == str(b.root)
        assert meta["digest"].startswith("sha256:") and meta["reason"]
        assert meta["scopes"][0] == "once" and "always" not in meta["scopes"]  # Q12
        kinds = {"once": ("Allow once", "allow_once"), "session": ("Allow for this session", "allow_always"),
                 "refuse": ("Refuse", "reject_once")}
        assert [o["optionId"] for o in ask["options"]] == meta["scopes"] + ["refuse"]
        assert all((o["name"], o["kind"]) == kinds[o["optionId"]] for o in ask["options"])
        events = await b.link.rpc.until(lambda: b.reader[session].events("ask"))
        assert events[0]["ask"] == meta["ask"] and events[0]["state"] == "open"
        status = await b.link.rpc.request("_lembas/status", {"sessionId": session})
        assert [a["ask"] for a in status["asks"]] == [meta["ask"]]
        assert status["progress"]["phase"] == "waiting_for_person" and status["status"].startswith("waits for you")
        assert not (b.root / "a.txt").exists()

        bad = dict(ask, digest="sha256:" + "0" * 64)
        error = await refused(b.link.answer(bad))
        assert (error.code, error.reason) == (-32004, "changed")
        error = await refused(b.link.answer(ask, scope="always"))
        assert (error.code, error.reason) == (-32602, "params")
        error = await refused(b.link.rpc.request("_lembas/answer", {
            "ask": "nobody", "digest": meta["digest"], "outcome": "allow"}))
        assert (error.code, error.reason) == (-32004, "unknown")

        taken = await b.link.answer(ask, by="ana, on the page")
        assert taken["taken"] is True and taken["at"] >= meta["made"]
        number = next(m["id"] for m in b.link.rpc.received("session/request_permission"))
        await b.link.rpc.seen(lambda m: m.get("method") == "$/cancel_request" and m["params"]["requestId"] == number)
        assert (await done)["stopReason"] == "end_turn"
        assert (b.root / "a.txt").read_text() == "a\n"
        (how,) = await settled(b, session)
        assert how["how"] == "allowed" and how["scope"] == "once" and how["by"].startswith("ana, on the page")
        allowed = [p["_meta"]["lembas"]["allowed"] for i in b.reader[session].of("tool_call_update") for p in i.parts
                   if "allowed" in p["_meta"]["lembas"]]
        assert allowed[0]["source"] == "once"
        error = await refused(b.link.answer(ask, "refuse"))
        assert (error.code, error.reason, error.data["how"]) == (-32004, "settled", "allowed")
        assert error.data["by"] and error.data["at"]


async def test_refuse_with_a_note(tmp_path):
    """Q7: the note reaches the model; the call did not run; the turn goes on."""
    async with linked(tmp_path) as b:
        b.model.script("write", Step("", call("a")), Step("As you wish."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "write")
        ask, _ = await b.ask()
        await b.link.answer(ask, "refuse", note="Nicht so, bitte – 🙂")
        assert (await done)["stopReason"] == "end_turn"
        assert not (b.root / "a.txt").exists()
        update, meta = b.reader[session].results()[-1]
        assert meta["status"] == "refused" and update["status"] == "failed"
        heard = [m for m in b.model.asked("write")[-1]["messages"] if m["role"] == "tool"][-1]["content"]
        assert "Nicht so, bitte – 🙂" in str(heard)
        (how,) = await settled(b, session)
        assert how["how"] == "refused" and how["note"] == "Nicht so, bitte – 🙂"


async def test_scope_session(tmp_path):
    """Q2 Q3: a yes for the session covers the same command again."""
    async with linked(tmp_path) as b:
        same = [("bash", {"command": "echo more >> log.txt"})]
        b.model.script("twice", Step("", same), Step("", same), Step("Done."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "twice")
        ask, _ = await b.ask()
        assert "session" in ask["_meta"]["lembas"]["scopes"]
        await b.link.answer(ask, scope="session")
        assert (await done)["stopReason"] == "end_turn"
        assert (b.root / "log.txt").read_text() == "more\nmore\n"
        assert b.link.asks.empty()
        assert [p["_meta"]["lembas"]["allowed"]["source"] for i in b.reader[session].of("tool_call_update")
                for p in i.parts if "allowed" in p["_meta"]["lembas"]] == ["session", "session"]


async def test_two_asks(tmp_path):
    """Q1 Q2: asks of two sessions are open side by side and answered in the other order."""
    async with linked(tmp_path) as b:
        b.model.script("first", Step("", call("a")), Step("One."))
        b.model.script("second", Step("", call("b")), Step("Two."))
        one, two = await b.open("manual"), await b.open("manual")
        ends = [await b.link.prompt(one, "first"), await b.link.prompt(two, "second")]
        asks = {a["sessionId"]: a for a in [(await b.ask())[0], (await b.ask())[0]]}
        assert asks[one]["_meta"]["lembas"]["ask"] != asks[two]["_meta"]["lembas"]["ask"]
        await b.link.answer(asks[two])
        assert (await ends[1])["stopReason"] == "end_turn"
        assert not (b.root / "a.txt").exists() and (b.root / "b.txt").exists()
        await b.link.answer(asks[one], "refuse")
        assert (await ends[0])["stopReason"] == "end_turn"
        assert not (b.root / "a.txt").exists()


async def test_two_calls_of_one_step(tmp_path):
    """Q1: two calls of one answer ask each for itself; one allowed, one refused."""
    async with linked(tmp_path) as b:
        b.model.script("both", Step("", call("a") + call("b")), Step("Done."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "both")
        for _ in range(2):
            ask, _ = await b.ask()
            yes = ask["_meta"]["lembas"]["command"] == WRITES.format("a")
            await b.link.answer(ask, "allow" if yes else "refuse")
        assert (await done)["stopReason"] == "end_turn"
        assert (b.root / "a.txt").exists() and not (b.root / "b.txt").exists()


async def test_edit_asks_with_its_diff(tmp_path):
    """Q2: kind write, the path as command, a unified diff."""
    async with linked(tmp_path) as b:
        path = b.write("f.txt", "old line\n")
        b.model.script("edit", Step("", [("read", {"path": "f.txt"})]),
                       Step("", [("edit", {"path": "f.txt", "old": "old", "new": "new"})]), Step("Done."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "edit")
        ask, _ = await b.ask()
        meta = ask["_meta"]["lembas"]
        assert meta["kind"] == "write" and meta["command"] == str(path)
        assert "-old line" in meta["diff"] and "+new line" in meta["diff"]
        await b.link.answer(ask)
        await done
        assert path.read_text() == "new line\n"


async def test_stop_cancels_the_ask(tmp_path):
    """Q1 Q8: a stop ends the ask as cancelled; nothing runs; the request is given up."""
    async with linked(tmp_path) as b:
        b.model.script("write", Step("", call("a")), Step("Never."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "write")
        ask, _ = await b.ask()
        stopped = await b.link.rpc.request("_lembas/stop", {"sessionId": session, "key": "s"})
        assert stopped["outcome"] == "stopped"
        assert (await done)["stopReason"] == "cancelled"
        (how,) = await settled(b, session)
        assert how["how"] == "cancelled"
        await b.link.rpc.seen(lambda m: m.get("method") == "$/cancel_request")
        error = await refused(b.link.answer(ask))
        assert (error.code, error.reason, error.data["how"]) == (-32004, "settled", "cancelled")
        assert not (b.root / "a.txt").exists()


async def test_three_refusals_end_the_turn(tmp_path):
    """Q11: after three refusals in one turn the next ends the turn and says why."""
    async with linked(tmp_path) as b:
        b.model.script("try", *[Step("", call(n)) for n in "abcdef"])
        session = await b.open("manual")
        done = await b.link.prompt(session, "try")
        count = 0
        while not done.done() and count < 5:
            async def refuse():
                ask, _ = await b.ask()
                await b.link.answer(ask, "refuse")
            task = asyncio.ensure_future(refuse())
            await asyncio.wait([task, done], return_when=asyncio.FIRST_COMPLETED)
            if done.done() and not task.done():
                task.cancel()
            else:
                await task
                count += 1
        assert count in (3, 4), count
        result = await done
        assert result["_meta"]["lembas"]["reason"]


async def test_extend(tmp_path):
    """Q10: an ask without a deadline keeps having none; one that ended is -32004 settled."""
    async with linked(tmp_path) as b:
        b.model.script("write", Step("", call("a")), Step("Ok."))
        session = await b.open("manual")
        done = await b.link.prompt(session, "write")
        ask, _ = await b.ask()
        number = ask["_meta"]["lembas"]["ask"]
        assert "expires_in" not in ask["_meta"]["lembas"] and "approval_timeout" not in b.meta["limits"]
        said = await b.link.rpc.request("_lembas/extend", {"ask": number, "seconds": 1800})
        assert set(said) == {"now"}
        await b.link.answer(ask)
        await done
        error = await refused(b.link.rpc.request("_lembas/extend", {"ask": number, "seconds": 60}))
        assert (error.code, error.reason) == (-32004, "settled")
        error = await refused(b.link.rpc.request("_lembas/extend", {"ask": "nobody", "seconds": 60}))
        assert (error.code, error.reason) == (-32004, "unknown")


async def test_answered_by_acp(tmp_path):
    """Q4 K1: without `asks` the request's own answer counts; refuse, allow and cancelled; no `_lembas/answer`."""
    async with linked(tmp_path, [c for c in ALL if c != "asks"]) as b:
        session = await b.open("manual")
        outcomes = [{"outcome": "selected", "optionId": "once"}, {"outcome": "selected", "optionId": "refuse"},
                    {"outcome": "cancelled"}]
        for name, outcome in zip("abc", outcomes):
            b.model.script(f"write {name}", Step("", call(name)), Step("Then."))
            done = await b.link.prompt(session, f"write {name}")
            ask, answer = await b.ask()
            if name == "a":
                error = await refused(b.link.answer(ask))
                assert error.code == -32601
            answer.set_result({"outcome": outcome})
            await done
        assert [(b.root / f"{n}.txt").exists() for n in "abc"] == [True, False, False]
        assert [e["how"] for e in await settled(b, session, 3)] == ["allowed", "refused", "cancelled"]


async def test_question(tmp_path):
    """Q13: ask_user goes as `_lembas/ask`; a selection and the person's own words reach the model."""
    async with linked(tmp_path) as b:
        question = {"question": "Which port?", "header": "Port", "options": [
            {"label": "8080"}, {"label": "3000", "description": "as before"}]}
        b.model.script("which", Step("", [("ask_user", question)]), Step("", [("ask_user", question)]), Step("Ok."))
        session = await b.open()
        done = await b.link.prompt(session, "which")
        ask, _ = await b.ask()
        assert ask["kind"] == "question" and ask["text"] == "Which port?" and ask["header"] == "Port"
        assert [o["label"] for o in ask["options"]] == ["8080", "3000"] and ask["multiple"] is False
        await b.link.answer(ask, selected=[ask["options"][1]["id"]])
        ask, _ = await b.ask()
        assert ask["custom"] is True
        await b.link.answer(ask, selected=[], note="4711, please")
        await done
        heard = [str(m["content"]) for m in b.model.asked("which")[-1]["messages"] if m["role"] == "tool"]
        assert "3000" in heard[0] and "4711, please" in heard[1]


async def test_question_refusals(tmp_path):
    """Q13: what names no choice is -32602 and ends nothing; declined, the words reach the model; several choices."""
    async with linked(tmp_path) as b:
        question = {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}, {"label": "c"}], "multiple": True}
        b.model.script("which", Step("", [("ask_user", question | {"multiple": False})]),
                       Step("", [("ask_user", question)]), Step("Ok."))
        session = await b.open()
        done = await b.link.prompt(session, "which")
        ask, _ = await b.ask()
        for wrong in ({"selected": ["nothing"]}, {"selected": ["1", "2"]}, {"selected": ["1", "1"]}, {"selected": []}, {}):
            error = await refused(b.link.answer(ask, **wrong))
            assert (error.code, error.reason) == (-32602, "params"), wrong
        status = await b.link.rpc.request("_lembas/status", {"sessionId": session})
        assert [a["text"] for a in status["asks"]] == ["Which?"]
        await b.link.answer(ask, "refuse", note="Not now.")
        ask, _ = await b.ask()
        await b.link.answer(ask, selected=["1", "3"])
        await done
        heard = [str(m["content"]) for m in b.model.asked("which")[-1]["messages"] if m["role"] == "tool"]
        assert "Not now." in heard[0] and "a; c" in heard[1]
        first, second = await settled(b, session, 2)
        assert (first["how"], first["note"]) == ("refused", "Not now.")
        assert (second["how"], second["selected"]) == ("allowed", ["1", "3"])


async def test_question_after_a_drop(tmp_path):
    """Q1 Q2 Q13: an open question comes again as `_lembas/ask` with the same `ask`; a stop cancels it."""
    async with linked(tmp_path) as b:
        question = {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}
        b.model.script("which", Step("", [("ask_user", question)]), Step("Never."))
        session = await b.open()
        await b.link.prompt(session, "which", key="m-1")
        ask, _ = await b.ask()
        b.link.drop()
        await b.connect()
        again, _ = await b.ask()
        assert again["ask"] == ask["ask"] and again["digest"] == ask["digest"]
        await b.link.follow(session)
        stopped = await b.link.rpc.request("_lembas/stop", {"sessionId": session, "key": "s"})
        assert stopped["outcome"] == "stopped"
        (how,) = await settled(b, session)
        assert how["how"] == "cancelled"
        await b.link.rpc.seen(lambda m: m.get("method") == "$/cancel_request")


async def test_question_to_a_plain_client(tmp_path):
    """Q14: without `asks` a question is one option a choice, and refuse."""
    async with linked(tmp_path, ["resume"]) as b:
        question = {"question": "Which port?", "options": [{"label": "8080"}, {"label": "3000"}]}
        b.model.script("which", Step("", [("ask_user", question)]), Step("Ok."))
        session = await b.open()
        done = await b.link.prompt(session, "which")
        ask, answer = await b.ask()
        assert [(o["name"], o["kind"]) for o in ask["options"][:-1]] == [("8080", "allow_once"), ("3000", "allow_once")]
        assert ask["options"][-1]["optionId"] == "refuse"
        answer.set_result({"outcome": {"outcome": "selected", "optionId": ask["options"][0]["optionId"]}})
        await done
        heard = [str(m["content"]) for m in b.model.asked("which")[-1]["messages"] if m["role"] == "tool"]
        assert "8080" in heard[0]


async def test_plain_client(tmp_path):
    """H5 U8 K2: no `_meta.lembas`: ACP alone, updates without follow, no events, its prompt not said back."""
    async with linked(tmp_path, None) as b:
        b.model.script("plain", Step("Reading. ", call("a")), Step("Done."))
        opened = await b.link.rpc.request("session/new", {"cwd": str(b.root), "mcpServers": []})
        session = opened["sessionId"]
        done = await b.link.rpc.start("session/prompt", {
            "sessionId": session, "prompt": [{"type": "text", "text": "plain"}]})
        ask, answer = await b.link.ask()
        answer.set_result({"outcome": {"outcome": "selected", "optionId": "once"}})
        assert (await done)["stopReason"] == "end_turn"
        updates = [m["params"]["update"] for m in b.link.rpc.received("session/update")]
        text = "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == "agent_message_chunk")
        assert text == "Reading. Done."
        assert not [u for u in updates if u["sessionUpdate"] == "user_message_chunk"]
        assert not b.link.rpc.received("_lembas/event")
        error = await refused(b.link.rpc.request("_lembas/sync", {}))
        assert error.code == -32601
