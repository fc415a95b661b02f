"""An editor: drives an agent over its standard input and output by the Agent Client Protocol."""

import json
import os
import re
import subprocess
import time

_STAMP = re.compile(rb"w(\d+)@(\d+)[ \\]")


class Turn:
    """One prompt, with the times of CLOCK_MONOTONIC in nanoseconds."""

    def __init__(self):
        self.sent = self.first = self.last = self.over = 0
        self.updates, self.chunks, self.asked, self.stop = 0, 0, 0, None
        self.numbers = []


class Agent:
    """A running agent; `with` ends it."""

    def __init__(self, command, env, cwd):
        self.began, self._id = time.monotonic_ns(), 0
        self.process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=0)
        self._out = os.fdopen(os.dup(self.process.stdout.fileno()), "rb", buffering=1 << 16)
        self.pid, self.cwd = self.process.pid, cwd

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()
        self.process.stdout.close()

    def _send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _line(self):
        line = self._out.readline()
        if not line:
            raise RuntimeError(f"the agent ended: {self.process.wait()}")
        return line

    def call(self, method, params, turn=None):
        """The result of a request; what comes before it is counted into `turn`."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            line = self._line()
            if turn is not None and b'"agent_message_chunk"' in line:
                self._chunk(turn, line)
                continue
            if b'"session/update"' in line[:120]:  # not understood: the driver's own time is no figure
                if turn is not None:
                    turn.updates += 1
                continue
            message = json.loads(line)
            if message.get("id") == self._id and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._other(message, turn)

    @staticmethod
    def _chunk(turn, line):
        now = time.monotonic_ns()
        turn.first = turn.first or now
        turn.updates += 1
        turn.numbers.append(line)
        turn.last = now

    def _other(self, message, turn):
        if turn is not None:
            turn.updates += 1
        if message.get("method") == "session/request_permission":
            if turn is not None:
                turn.asked += 1
            options = message["params"]["options"]
            chosen = next(o for o in options if o["kind"] == "allow_once")
            outcome = {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}
            self._send({"id": message["id"], "result": outcome})
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})

    def initialize(self):
        """Nanoseconds from the start of the process to the answer."""
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return time.monotonic_ns() - self.began

    def session(self, mode=None):
        opened = self.call("session/new", {"cwd": self.cwd, "mcpServers": []})["sessionId"]
        if mode:
            self.call("session/set_mode", {"sessionId": opened, "modeId": mode})
        return opened

    def prompt(self, session, **script):
        turn, text = Turn(), f"bench {json.dumps(script)}"
        turn.sent = time.monotonic_ns()
        result = self.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]}, turn)
        turn.over, turn.stop = time.monotonic_ns(), result["stopReason"]
        stamps = [int(number) for line in turn.numbers for number, _ in _STAMP.findall(line)]
        turn.chunks, turn.whole = len(stamps), stamps == list(range(len(stamps)))
        return turn
