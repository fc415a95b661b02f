"""Sessions as ACP has them (section 8), and what a device refuses."""

from bench import linked, refused
from peer.model import Step


async def test_new(tmp_path):
    """S4 S5: modes, the lowered mode, the number."""
    async with linked(tmp_path) as b:
        await b.link.new(b.root, "auto")
        said = b.link.opened
        assert [m["id"] for m in said["modes"]["availableModes"]] == ["plan", "manual", "edit", "auto"]
        meta = said["_meta"]["lembas"]
        assert said["modes"]["currentModeId"] == meta["mode"] == "edit"
        assert meta["lowered"] == "max_mode" and meta["instance"] == b.inst.id
        assert meta["model"] == "scripted" and meta["level"] == "default"
        await b.link.new(b.root, "plan")
        assert b.link.opened["_meta"]["lembas"]["mode"] == "plan"
        assert "lowered" not in b.link.opened["_meta"]["lembas"]
        await b.link.new(b.root, mode=None)  # null is read as left out
        assert b.link.opened["_meta"]["lembas"]["mode"] == "manual"


async def test_new_refusals(tmp_path):
    """S2 S3 F10: mcpServers, outside, missing, system prompt, links out, an unknown model."""
    async with linked(tmp_path) as b:
        (b.root / "out").symlink_to(tmp_path)
        server = {"name": "x", "command": "/bin/true", "args": [], "env": []}

        async def new(cwd=b.root, servers=(), meta=None, **more):
            params = {"cwd": str(cwd), "mcpServers": list(servers), "_meta": {
                "lembas": {"model": "scripted", "key": f"k{len(b.link.rpc.frames)}"} | (meta or {})}} | more
            return await refused(b.link.rpc.request("session/new", params))

        error = await new(servers=[server])
        assert (error.code, error.reason) == (-32602, "mcp_servers")
        error = await new("/etc")
        assert (error.code, error.reason, error.data["path"]) == (-32602, "outside", "/etc")
        error = await new(b.root / "out")
        assert (error.code, error.reason) == (-32602, "outside")
        error = await new(b.root / ".." / "home")
        assert (error.code, error.reason) == (-32602, "outside")
        error = await new(b.root / "nowhere")
        assert (error.code, error.reason) == (-32602, "missing")
        assert error.data["path"] == str(b.root / "nowhere")
        error = await new("work")
        assert (error.code, error.reason) == (-32602, "params")
        error = await new(additionalDirectories=["/etc"])
        assert (error.code, error.reason) == (-32602, "outside")
        # As ACP's unstable schema has it: the stable one knows no system prompt.
        other = {"mode": "override", "content": [{"type": "text", "text": "Be another."}]}
        error = await new(systemPrompt=other)
        assert (error.code, error.reason) == (-32602, "system_prompt")
        error = await new(meta={"model": "other"})
        assert (error.code, error.reason) == (-32053, "model")
        error = await refused(b.link.rpc.request("session/new", {
            "cwd": str(b.root), "mcpServers": [], "_meta": {"lembas": {"key": "no-model"}}}))
        assert error.code in (-32602, -32053)


async def test_modes(tmp_path):
    """S6: the update before the answer; a mode above max_mode becomes max_mode."""
    async with linked(tmp_path) as b:
        session = await b.open("manual")
        await b.link.rpc.request("session/set_mode", {"sessionId": session, "modeId": "auto"})
        assert b.reader[session].updates("current_mode_update")[-1]["currentModeId"] == "edit"
        await b.link.rpc.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        assert b.reader[session].updates("current_mode_update")[-1]["currentModeId"] == "plan"
        error = await refused(b.link.rpc.request("session/set_mode", {"sessionId": session, "modeId": "none"}))
        assert error.code == -32602


async def test_options(tmp_path):
    """S3 S7: mode, model and level as options; a model that is not served and a level it has not are refused."""
    async with linked(tmp_path) as b:
        session = await b.open("manual")
        assert b.link.opened["_meta"]["lembas"]["level"] == "default"

        async def option(name, value):
            return await b.link.rpc.request("session/set_config_option", {
                "sessionId": session, "configId": name, "value": value})
        said = await option("mode", "auto")
        assert {o["id"]: o["currentValue"] for o in said["configOptions"]} == {"mode": "edit", "model": "scripted"}
        assert b.reader[session].updates("current_mode_update")[-1]["currentModeId"] == "edit"
        await option("level", "default")
        for name, value, code, reason in [("model", "other", -32053, "model"), ("level", "higher", -32602, "params"),
                                          ("colour", "red", -32602, "params")]:
            error = await refused(option(name, value))
            assert (error.code, error.reason) == (code, reason), name
        error = await refused(b.link.new(b.root, level="higher"))
        assert (error.code, error.reason) == (-32602, "params")
        status = await b.link.rpc.request("_lembas/status", {"sessionId": session})
        assert (status["mode"], status["model"], status["level"]) == ("edit", "scripted", "default")


async def test_load_list_close_delete(tmp_path):
    """S8 S9 S10 S1: the whole replay before the answer, the same bytes; list; delete twice."""
    async with linked(tmp_path) as b:
        b.model.script("tell", Step("Text é " * 500, [("bash", {"command": "echo out"})]), Step("Last."))
        session = await b.open()
        await b.turn(session, "tell", key="m-7")
        live = b.reader[session]
        loading = await b.link.rpc.start("session/load", {
            "sessionId": session, "cwd": str(b.root), "mcpServers": []})
        await loading
        replay = b.reader.replays[loading.rpc_id]
        # S9: everything came before the answer.
        frames = [m for way, m in b.link.rpc.frames if way == "<"]
        assert frames[-1].get("id") == loading.rpc_id
        texts = {}
        for method, params in replay:
            update = params.get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                seq = params["_meta"]["lembas"]["seq"]
                texts[seq] = texts.get(seq, "") + update["content"]["text"]
        assert [texts[k] for k in sorted(texts)] == live.text()
        kinds = [p["update"]["sessionUpdate"] for m, p in replay if m == "session/update"]
        assert kinds.count("user_message_chunk") == 1 and "tool_call" in kinds
        error = await refused(b.link.rpc.request("session/load", {
            "sessionId": session, "cwd": str(b.root.parent), "mcpServers": []}))
        assert error.code == -32602
        listed = await b.link.rpc.request("session/list", {})
        (mine,) = [s for s in listed["sessions"] if s["sessionId"] == session]
        meta = mine["_meta"]["lembas"]
        assert mine["cwd"] == str(b.root) and not meta["running"] and meta["asks"] == 0
        assert meta["mode"] == "edit" and meta["model"] == "scripted" and meta["seq"] == live.position[0]
        await b.link.rpc.request("session/resume", {"sessionId": session, "cwd": str(b.root), "mcpServers": []})
        await b.link.rpc.request("session/close", {"sessionId": session})
        await b.link.rpc.request("session/delete", {"sessionId": session})
        await b.link.rpc.request("session/delete", {"sessionId": session})
        error = await refused(b.link.rpc.request("session/load", {
            "sessionId": session, "cwd": str(b.root), "mcpServers": []}))
        assert error.code == -32002


async def test_directories(tmp_path):
    """S12: only folders, only inside of the roots, no links that lead out, git."""
    async with linked(tmp_path) as b:
        (b.root / "b" / ".git").mkdir(parents=True)
        (b.root / "a").mkdir()
        (b.root / "out").symlink_to("/etc")
        b.write("file", "x")
        top = await b.link.rpc.request("_lembas/directories", {})
        assert top["path"] == "" and top["roots"] == [str(b.root)]
        assert [f["path"] for f in top["folders"]] == [str(b.root)]
        said = await b.link.rpc.request("_lembas/directories", {"path": str(b.root)})
        assert "parent" not in said and not said["truncated"]
        assert said["folders"] == [{"name": "a", "path": str(b.root / "a"), "git": False},
                                   {"name": "b", "path": str(b.root / "b"), "git": True}]
        assert (await b.link.rpc.request("_lembas/directories", {"path": str(b.root / "a")}))["parent"] == str(b.root)
        error = await refused(b.link.rpc.request("_lembas/directories", {"path": "/etc"}))
        assert (error.code, error.reason) == (-32602, "outside")


async def test_no_such_session(tmp_path):
    """S1 F: -32002 with the session's id, whichever method asks."""
    async with linked(tmp_path) as b:
        for method, more in [("session/prompt", {"prompt": [{"type": "text", "text": "x"}], "_meta": {"lembas": {"key": "k"}}}),
                             ("session/load", {"cwd": str(b.root), "mcpServers": []}),
                             ("_lembas/follow", {"seq": 0, "at": 0}), ("_lembas/status", {}),
                             ("session/set_mode", {"modeId": "edit"}), ("_lembas/stop", {"key": "k"})]:
            error = await refused(b.link.rpc.request(method, {"sessionId": "nobody"} | more))
            assert error.code == -32002, (method, error)
            assert error.data.get("sessionId") == "nobody", method
