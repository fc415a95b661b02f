"""Judges every frame that the other end sends.

Two sources, as the page says: ACP's published schema for what ACP knows, and spec/schema/link.json
for the link's own methods and for `_meta.lembas`. A frame that breaks one of them is a fault of its
sender, whatever the test was about.
"""

import functools
import json
import pathlib

import acp.schema as acp
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

SPEC = pathlib.Path(__file__).resolve().parents[3] / "spec"
LINK = json.loads((SPEC / "schema" / "link.json").read_text("utf-8"))
LOOP = json.loads((SPEC / "loop.json").read_text("utf-8"))

PARAMS = {
    "initialize": acp.InitializeRequest,
    "session/new": acp.NewSessionRequest,
    "session/load": acp.LoadSessionRequest,
    "session/list": acp.ListSessionsRequest,
    "session/resume": acp.ResumeSessionRequest,
    "session/close": acp.CloseSessionRequest,
    "session/delete": acp.DeleteSessionRequest,
    "session/set_mode": acp.SetSessionModeRequest,
    "session/set_config_option": acp.SetSessionConfigOptionSelectRequest,
    "session/prompt": acp.PromptRequest,
    "session/cancel": acp.CancelNotification,
    "session/update": acp.SessionNotification,
    "session/request_permission": acp.RequestPermissionRequest,
    "$/cancel_request": acp.CancelRequestNotification,
}
RESULTS = {
    "initialize": acp.InitializeResponse,
    "session/new": acp.NewSessionResponse,
    "session/load": acp.LoadSessionResponse,
    "session/list": acp.ListSessionsResponse,
    "session/resume": acp.ResumeSessionResponse,
    "session/close": acp.CloseSessionResponse,
    "session/delete": acp.DeleteSessionResponse,
    "session/set_mode": acp.SetSessionModeResponse,
    "session/set_config_option": acp.SetSessionConfigOptionResponse,
    "session/prompt": acp.PromptResponse,
    "session/request_permission": acp.RequestPermissionResponse,
}
# F10's table: the reasons an error may give, by its code.
REASONS = {
    -32602: "params missing outside key mcp_servers system_prompt mode prompt agents protocol instance epoch",
    -32004: "settled changed unknown gone",
    -32050: "off plan root model",
    -32051: "off plan root refused ask timeout spawn background busy interrupted",
    -32052: "turn full running",
    -32053: "remote_off paused roots max_sessions model deny refused",
}


@functools.cache
def _acp(model):
    return Draft202012Validator(model.model_json_schema(by_alias=True))


@functools.cache
def _link(name):
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": LINK["$defs"]})


def _first(validator, value, what):
    found = best_match(validator.iter_errors(value))
    return [] if found is None else [f"{what}: {found.json_path}: {found.message[:400]}"]


def against_link(name, value):
    """Faults of a value against one definition of link.json."""
    return _first(_link(name), value, f"link.json {name}")


def _meta_of(method, side, value):
    """The `_meta.lembas` of a message, where it lies, and its definition's name."""
    name = LINK["x-meta"].get(method, {}).get(side)
    if name is None:
        return []
    if method == "initialize":
        key = "clientCapabilities" if side == "params" else "agentCapabilities"
        value = value.get(key) or {}
    meta = (value.get("_meta") or {}).get("lembas")
    return [] if meta is None else against_link(name, meta)


def params(method, value):
    """Faults of a request's or notification's params."""
    if method in PARAMS:
        return _first(_acp(PARAMS[method]), value, f"ACP {method}") + _meta_of(method, "params", value)
    known = LINK["x-methods"].get(method)
    if known is None:
        return []
    faults = against_link(known["params"]["$ref"].split("/")[-1], value)
    if method == "_lembas/event" and not faults:
        name = f"event.{value['type']}"
        if name in LINK["$defs"]:
            faults += against_link(name, value["data"])
    return faults


def result(method, value):
    """Faults of an answer to a request of ours."""
    if method in RESULTS:
        return _first(_acp(RESULTS[method]), value, f"ACP {method} result") + _meta_of(method, "result", value)
    known = LINK["x-methods"].get(method, {}).get("result")
    return [] if known is None else against_link(known["$ref"].split("/")[-1], value)


def error(value):
    """Faults of an error object: its shape, and reason and text where the code is the link's."""
    if not isinstance(value.get("code"), int) or not isinstance(value.get("message"), str):
        return [f"JSON-RPC: an error needs code and message: {value}"]
    data = value.get("data") or {}
    allowed = REASONS.get(value["code"])
    if allowed is None:
        return []
    if data.get("reason") not in allowed.split():
        return [f"section 5: {value['code']} with reason {data.get('reason')!r}"]
    return [] if isinstance(data.get("text"), str) else [f"section 5: {value['code']} without text: {value}"]
