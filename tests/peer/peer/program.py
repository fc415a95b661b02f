"""Drives the built lembas as a person would, each test in a home of its own."""

import asyncio
import json
import os
import signal

from .rpc import WAIT


class Done:
    """What a run of a command gave."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines() if line.strip()]


class Process:
    """A program that goes on: its output line by line, ended by its process id."""

    def __init__(self, child, log):
        self.child, self._log, self.lines = child, log, asyncio.Queue()
        self._readers = [asyncio.ensure_future(self._read(child.stdout, True)),
                         asyncio.ensure_future(self._read(child.stderr, False))]

    async def _read(self, stream, keep):
        while line := await stream.readline():
            text = line.decode("utf-8", "replace").rstrip("\n")
            self._log.append(text)
            if keep:
                self.lines.put_nowait(text)
        if keep:
            self.lines.put_nowait(None)

    async def line(self, test=lambda _: True):
        """The next line of stdout that passes, or an error when the program ends first."""
        async with asyncio.timeout(WAIT):
            while True:
                text = await self.lines.get()
                if text is None:
                    raise AssertionError(f"it ended: {self._log[-10:]}")
                if test(text):
                    return text

    async def end(self, how=signal.SIGTERM):
        """Ends it and waits; after ten seconds without mercy."""
        if self.child.returncode is None:
            self.child.send_signal(how)
            try:
                await asyncio.wait_for(self.child.wait(), 10)
            except TimeoutError:
                self.child.kill()
                await self.child.wait()
        await asyncio.gather(*self._readers)
        return self.child.returncode


class Program:
    """One computer: a home, a data folder and the processes started there."""

    def __init__(self, folder):
        self.path = os.environ["LEMBAS"]
        self.home, self.data = folder / "home", folder / "data"
        self.home.mkdir(parents=True)
        self.env = {"HOME": str(self.home), "LEMBAS_DATA": str(self.data), "PATH": os.environ["PATH"],
                    "LANG": "C.UTF-8", "TMPDIR": str(folder), "LEAK": "what no watch command may see (M5)"}
        self.log, self._running = [], []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for process in self._running:
            await process.end()

    async def run(self, *words, feed=None):
        child = await asyncio.create_subprocess_exec(
            self.path, *map(str, words), env=self.env, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        try:
            out, err = await asyncio.wait_for(child.communicate((feed or "").encode()), WAIT)
        except TimeoutError:
            child.kill()
            await child.wait()
            raise AssertionError(f"lembas {words} did not end") from None
        self.log += [f"$ lembas {' '.join(map(str, words))}", out.decode(), err.decode()]
        return Done(child.returncode, out.decode(), err.decode())

    async def ok(self, *words, feed=None):
        done = await self.run(*words, feed=feed)
        assert done.code == 0, f"lembas {words}: {done.code}\n{done.out}\n{done.err}"
        return done

    async def until(self, command, test):
        """Asks `lembas COMMAND --json` again until its answer passes; gives it."""
        async with asyncio.timeout(WAIT):
            while True:
                (said,) = (await self.run(command, "--json")).lines
                if test(said):
                    return said

    async def start(self, *words):
        child = await asyncio.create_subprocess_exec(
            self.path, *map(str, words), env=self.env, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        process = Process(child, self.log)
        self._running.append(process)
        return process
