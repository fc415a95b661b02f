"""A model that says what a script says, streamed as OpenAI's chat completions are (V1 to V5).

A script belongs to the text of a prompt: the request whose last known user text is that prompt gets
the step whose number is the count of assistant messages after it. So a request that is tried again
gets the same answer, and two sessions do not disturb each other.
"""

import asyncio
import json

from aiohttp import web


class Step:
    """One answer: text, calls `(name, arguments)`, and gates after the thought and in the middle of the text."""

    def __init__(self, text="", calls=(), thought="", gate=None, pieces=7, before=(), usage=(1200, 900, 80),
                 thought_gate=None):
        self.text, self.calls, self.thought = text, list(calls), thought
        self.gate, self.pieces, self.before, self.usage = gate, pieces, list(before), usage
        self.thought_gate = thought_gate
        self.reached = asyncio.Event()  # set when the gate is reached


def _cut(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


class Model:
    """The scripted model behind `/v1`; `requests` are the bodies it was asked with."""

    name = "scripted"

    def __init__(self):
        self.scripts, self.requests = {}, []
        self.served = [self.name]
        self.refuse = None  # status and headers of the next answer, once

    def script(self, prompt, *steps):
        self.scripts[prompt] = list(steps)
        return steps

    def asked(self, prompt):
        """The requests that belong to one prompt."""
        return [r for r in self.requests if self._place(r)[0] == prompt]

    def _place(self, body):
        messages = body.get("messages", [])
        for i in range(len(messages) - 1, -1, -1):
            content = messages[i].get("content")
            if messages[i].get("role") != "user":
                continue
            if isinstance(content, list):
                content = "\n".join(p.get("text", "") for p in content)
            for prompt in self.scripts:
                if prompt in (content or "").splitlines():  # a line of its own: notes stand beside it
                    return prompt, sum(m.get("role") == "assistant" for m in messages[i:])
        return None, 0

    async def models(self, _request):
        data = [{"id": i, "object": "model", "lembas": {"name": i.title(), "context": 131072, "output": 8192,
                                                       "tools": True, "default": n == 0}}
                for n, i in enumerate(self.served)]
        return web.json_response({"object": "list", "data": data})

    async def complete(self, request):
        body = await request.json()
        self.requests.append(body)
        if body.get("model") not in self.served:
            error = {"code": "model_not_found", "message": "not served"}
            return web.json_response({"error": error}, status=404)
        if self.refuse:
            (status, headers), self.refuse = self.refuse, None
            return web.json_response({"error": {"message": "slow down"}}, status=status, headers=headers)
        prompt, number = self._place(body)
        steps = self.scripts.get(prompt, [])
        # A request outside of the scripts (a title, a summary) gets a short text.
        step = steps[number] if number < len(steps) else Step("Done." if prompt else "A title")
        if not body.get("stream"):
            return web.json_response({"id": "x", "object": "chat.completion", "model": body["model"], "choices": [
                {"index": 0, "message": {"role": "assistant", "content": step.text}, "finish_reason": "stop"}]})
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await answer.prepare(request)
        try:
            await self._stream(answer, body, step)
        except (ConnectionError, asyncio.CancelledError):
            return answer  # the device gave the request up: a stop
        return answer

    async def _stream(self, answer, body, step):
        async def chunk(delta, finish=None):
            part = {"id": "x", "object": "chat.completion.chunk", "model": body["model"],
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            await answer.write(f"data: {json.dumps(part)}\n\n".encode())

        for note in step.before:  # V5; an event among them is waited for
            if isinstance(note, asyncio.Event):
                await note.wait()
                continue
            await answer.write(f": {json.dumps({'lembas': note})}\n\n".encode())
        await chunk({"role": "assistant"})
        for piece in _cut(step.thought, step.pieces):
            await chunk({"reasoning_content": piece})
        if step.thought_gate:
            await step.thought_gate.wait()
        pieces = _cut(step.text, step.pieces)
        for i, piece in enumerate(pieces):
            if step.gate and i == len(pieces) // 2:
                step.reached.set()
                await step.gate.wait()
            await chunk({"content": piece})
        if step.gate and not pieces:
            step.reached.set()
            await step.gate.wait()
        for i, (name, arguments) in enumerate(step.calls):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            place = f"call-{len(self.requests)}-{i}"
            await chunk({"tool_calls": [{"index": i, "id": place, "type": "function",
                                         "function": {"name": name, "arguments": ""}}]})
            for piece in _cut(text, 11):
                await chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
        await chunk({}, "tool_calls" if step.calls else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            inp, cached, out = step.usage
            usage = {"prompt_tokens": inp, "completion_tokens": out, "total_tokens": inp + out,
                     "prompt_tokens_details": {"cached_tokens": cached}}
            part = {"id": "x", "object": "chat.completion.chunk", "model": body["model"], "choices": [], "usage": usage}
            await answer.write(f"data: {json.dumps(part)}\n\n".encode())
        await answer.write(b"data: [DONE]\n\n")
        await answer.write_eof()
