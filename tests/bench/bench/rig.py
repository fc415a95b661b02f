"""What the rows share: the built programs, computers that are set up once, figures and their table."""

import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from .acp import Agent
from .home import Daemon, Home, Hub, Model

SESSIONS, LONG = 1000, 500  # chats in the warm store; turns of the long one


class Skip(Exception):
    """A row that cannot be measured here; its text says why."""


class Figure:
    """One measured thing: its runs, its unit, what it should be at most (or at least)."""

    def __init__(self, what, runs, unit, most=None, least=None, note=""):
        self.what, self.runs, self.unit, self.note = what, list(runs), unit, note
        self.most, self.least = most, least
        self.load = os.getloadavg()[0]

    @property
    def median(self):
        return statistics.median(self.runs)

    @property
    def good(self):
        """Whether the median is as it should be; none where nothing is asked."""
        if self.most is not None:
            return self.median <= self.most
        return self.median >= self.least if self.least is not None else None

    def object(self):
        return {"what": self.what, "median": self.median, "min": min(self.runs), "max": max(self.runs),
                "runs": self.runs, "unit": self.unit, "most": self.most, "least": self.least, "good": self.good,
                "load": round(self.load, 2), "note": self.note}


class Rig:
    """Made once; everything it starts is ended with it."""

    def __init__(self, program, rig, base):
        base.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="run-", dir=base))
        # Copies of the program: memory is not flattered by pages that two processes share.
        self.program, self.other = self.folder / "lembas", self.folder / "lembas-hub"
        shutil.copy2(program, self.program)
        shutil.copy2(program, self.other)
        self.rig, self._count, self._ends, self._made, self._daemons = str(rig), 0, [], {}, []

    def end(self):
        for end in [*(d.end for d in self._daemons), *reversed(self._ends)]:
            try:
                end()
            except Exception as error:  # the rest must be ended too
                print(f"at the end: {error!r}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _once(self, name, make):
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def place(self):
        self._count += 1
        return self.folder / f"c{self._count}"

    @property
    def model(self):
        def make():
            model = Model(self.rig, self.folder)
            self._ends.append(model.end)
            return model
        return self._once("model", make)

    def editor(self, home, command=None):
        """`lembas acp` on a computer, or another agent in its place."""
        return Agent(command or [home.program, "acp"], home.env, str(home.work))

    def fresh(self):
        """A computer with no chats, whose models are the rig's."""
        home = Home(self.program, self.place())
        home.models_from(self.model)
        with self.editor(home) as editor:  # the store is made, the box was tried
            editor.initialize()
            editor.session()
        return home

    @property
    def full(self):
        """A computer with a store of chats; the id of the long one is `full.long`."""
        def make():
            home = Home(self.program, self.place())
            home.models_from(self.model)
            with self.editor(home) as editor:
                editor.initialize()
                home.long = editor.session()
                for _ in range(LONG):
                    editor.prompt(home.long, chunks=3)
            left = SESSIONS - 1
            while left:
                with self.editor(home) as editor:  # one connection holds at most 512
                    editor.initialize()
                    for _ in range(min(left, 400)):
                        editor.prompt(editor.session(), chunks=3)
                        left -= 1
            self.model.answers(LONG + SESSIONS - 1)
            return home
        return self._once("full", make)

    def _hub(self, tls):
        def make():
            hub = Hub(Home(self.other, self.place()), tls)
            self._ends.append(hub.end)
            hub.home.run("hub", "model", "add", "bench", "--url", self.model.url)
            return hub
        return self._once(f"hub {tls}", make)

    def linked(self, tls=False):
        """A computer with the full store, linked to a hub that runs; and the hub."""
        def make():
            hub, home = self._hub(tls), self.full.copy(self.place())
            (home.data / "config" / "instance.json").unlink()
            (home.data / "config" / "device").unlink(missing_ok=True)
            ca = f'[link]\nca_file = "{hub.cert}"\n' if tls else ""
            home.settings(f'[remote]\nroots = ["{home.work}"]\nmax_mode = "edit"\n{ca}')
            hub.adopt(home)
            return home, hub
        return self._once(f"linked {tls}", make)

    def daemon(self, home):
        """A daemon on a computer, where none is left running by a row that failed."""
        for other in self._daemons:
            other.end()
        daemon = Daemon(home)
        self._daemons = [daemon]
        return daemon


def spawn_ms(command, runs=9):
    """Milliseconds that a command takes by itself, started from here."""
    import time
    times = []
    for _ in range(runs):
        began = time.monotonic_ns()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        times.append((time.monotonic_ns() - began) / 1e6)
    return statistics.median(times)
