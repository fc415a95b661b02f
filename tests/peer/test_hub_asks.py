"""Asks of the peer's device, answered by a person at the hub's page (section 12)."""

import asyncio

from hub_bench import linked, said


async def asks_of(h, state="open", count=1):
    async def found():
        asks = (await h.call("GET", "/state"))["asks"]
        asks = [a for a in asks if a["state"] == state]
        return asks if len(asks) >= count else None
    return await h.until(found)


def asking(device, **more):
    """A turn that asks and says what was answered."""
    async def turn(session, _text):
        ask, request = await device.raise_ask(session, **more)
        answer = await device.answers.get()
        how = {"allow": "allowed", "refuse": "refused"}[answer["outcome"]]
        await session.event("ask_settled", {"ask": ask["_meta"]["lembas"]["ask"], "how": how,
                                            "by": answer.get("by", "")})
        await device.tell("$/cancel_request", {"requestId": request.rpc_id})
        device.answered, device.given_up = answer, request
        await session.grow(f"It was {how}.")
        return await session.end()
    return turn


async def test_ask(tmp_path):
    """Q5 Q7: the page's answer comes as `_lembas/answer`; the request is given up with -32800 or cancelled."""
    async with linked(tmp_path) as (h, device):
        device.on_prompt = asking(device)
        chat = await h.chat(device.id, "push it")
        (ask,) = await asks_of(h)
        assert ask["command"] == "git push" and ask["chat"] == chat
        await h.call("POST", f"/asks/{ask['ask']}", {"digest": ask["digest"], "outcome": "allow", "scope": "session"})
        assert await said(h, chat) == ["It was allowed."]
        got = device.answered
        assert got["digest"] == ask["digest"] and got["scope"] == "session" and "ana" in got["by"]
        try:
            result = await device.given_up
            assert result["outcome"]["outcome"] == "cancelled"
        except Exception as error:
            assert error.code == -32800


async def test_ask_refused_with_a_note(tmp_path):
    """Q5 Q7: refuse and the person's words."""
    async with linked(tmp_path) as (h, device):
        device.on_prompt = asking(device)
        chat = await h.chat(device.id, "push it")
        (ask,) = await asks_of(h)
        await h.call("POST", f"/asks/{ask['ask']}", {
            "digest": ask["digest"], "outcome": "refuse", "note": "Später – 🙂"})
        assert await said(h, chat) == ["It was refused."]
        assert device.answered["outcome"] == "refuse" and device.answered["note"] == "Später – 🙂"


async def test_two_asks(tmp_path):
    """Q1 Q2: two open asks of two chats; each answer reaches its own."""
    async with linked(tmp_path) as (h, device):
        waiting = {}

        async def turn(session, text):
            ask, request = await device.raise_ask(session, command=text)
            number = ask["_meta"]["lembas"]["ask"]
            waiting[number] = asyncio.get_running_loop().create_future()
            answer = await waiting[number]
            await session.event("ask_settled", {"ask": number, "how": "allowed", "by": answer["by"]})
            await device.tell("$/cancel_request", {"requestId": request.rpc_id})
            await session.grow(f"{text}: {answer['outcome']}")
            return await session.end()

        async def route():
            while True:
                answer = await device.answers.get()
                waiting[answer["ask"]].set_result(answer)

        device.on_prompt = turn
        router = asyncio.ensure_future(route())
        chats = [await h.chat(device.id, "first"), await h.chat(device.id, "second")]
        asks = {a["chat"]: a for a in await asks_of(h, count=2)}
        for chat, outcome in ((chats[1], "refuse"), (chats[0], "allow")):
            ask = asks[chat]
            await h.call("POST", f"/asks/{ask['ask']}", {"digest": ask["digest"], "outcome": outcome})
        assert await said(h, chats[0]) == ["first: allow"]
        assert await said(h, chats[1]) == ["second: refuse"]
        router.cancel()


async def test_ask_settled_elsewhere(tmp_path):
    """Q6 Q8: settled on the computer: the page says how, and an answer is told so."""
    async with linked(tmp_path) as (h, device):
        go = asyncio.Event()

        async def turn(session, _text):
            ask, request = await device.raise_ask(session)
            device.asks.clear()
            await go.wait()
            await session.event("ask_settled", {"ask": ask["_meta"]["lembas"]["ask"], "how": "refused",
                                                "by": "you, on this computer"})
            await device.tell("$/cancel_request", {"requestId": request.rpc_id})
            await session.grow("No.")
            return await session.end()

        device.on_prompt = turn
        chat = await h.chat(device.id, "push it")
        (ask,) = await asks_of(h)
        go.set()
        assert await said(h, chat) == ["No."]
        status, answer = await h.call("POST", f"/asks/{ask['ask']}", {
            "digest": ask["digest"], "outcome": "allow"}, ok=False)
        assert status == 409 and "refused" in str(answer)


async def test_ask_answered_while_away(tmp_path):
    """Q2 Q5: the answer waits for the device and reaches it once it is back."""
    async with linked(tmp_path) as (h, device):
        device.on_prompt = asking(device)
        chat = await h.chat(device.id, "push it")
        (ask,) = await asks_of(h)
        device.drop()
        await device.rpc.gone()
        posted = asyncio.ensure_future(h.call("POST", f"/asks/{ask['ask']}", {
            "digest": ask["digest"], "outcome": "allow"}, ok=False))
        await device.dial()
        for params in list(device.asks.values()):  # Y7: open asks first
            request = await device.rpc.start("session/request_permission", params)
        status, _ = await posted
        assert status < 300
        assert await said(h, chat) == ["It was allowed."]
        assert request.rpc_id


async def test_question(tmp_path):
    """Q13: a question is shown with its choices; what was chosen comes as `selected`, own words as `note`."""
    async with linked(tmp_path) as (h, device):
        device.on_prompt = asking(device, question={
            "header": "Port", "text": "Which port?", "multiple": False, "custom": True,
            "options": [{"id": "1", "label": "8080"}, {"id": "2", "label": "3000", "description": "as before"}]})
        chat = await h.chat(device.id, "serve it")
        (ask,) = await asks_of(h)
        assert ask["kind"] == "question" and ask["text"] == "Which port?" and ask["header"] == "Port"
        assert [o["label"] for o in ask["options"]] == ["8080", "3000"] and ask["custom"] and not ask["multiple"]
        wrong = ({"selected": ["3"]}, {"selected": ["1", "2"]}, {"selected": []}, {})
        for more in wrong:
            status, _ = await h.call("POST", f"/asks/{ask['ask']}", {
                "digest": ask["digest"], "outcome": "allow"} | more, ok=False)
            assert status == 400, more
        await h.call("POST", f"/asks/{ask['ask']}", {
            "digest": ask["digest"], "outcome": "allow", "selected": ["2"], "note": "as it was"})
        assert await said(h, chat) == ["It was allowed."]
        got = device.answered
        assert (got["outcome"], got["selected"], got["note"]) == ("allow", ["2"], "as it was")
