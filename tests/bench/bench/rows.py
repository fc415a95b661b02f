"""The rows: each measures one thing on the rig and gives its figures."""

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from . import proc
from .rig import SESSIONS, LONG, Figure, Skip, spawn_ms

MS = 1e6
GIB = 1 << 30


def start(rig):
    """An editor starts `lembas acp` and is answered."""
    home, times, cpu, floor = rig.fresh(), [], [], []
    for _ in range(15):
        with rig.editor(home) as editor:
            times.append(editor.initialize() / MS)
            cpu.append(proc.cpu(editor.pid) * 1e3)
        with rig.editor(home, [rig.rig, "floor", rig.model.address]) as least:
            floor.append(least.initialize() / MS)
    yield Figure("acp: start → initialize answered", times, "ms", most=10,
                 note=f"CPU {statistics.median(cpu):.1f} ms; the floor agent {statistics.median(floor):.1f} ms")


def link(rig):
    """The daemon starts with a warm store and is linked."""
    for tls, most in ((False, 15), (True, 40)):
        home, _ = rig.linked(tls)
        times = []
        for _ in range(9):
            daemon = rig.daemon(home)
            times.append((daemon.linked() - daemon.began) / MS)
            daemon.end()
        way = "TLS" if tls else "plain"
        yield Figure(f"daemon: start → linked, {SESSIONS} chats, {way}", times, "ms", most=most)


def idle(rig):
    """The daemon is linked over TLS, trust loaded, and nothing happens."""
    home, _ = rig.linked(True)
    daemon = rig.daemon(home)
    daemon.linked()
    time.sleep(15)
    before, slept, memory, window = proc.cpu(daemon.pid), proc.wakes(daemon.pid), [], 8
    cpu, wakes = [], []
    for _ in range(6):
        time.sleep(window)
        memory.append(proc.pss(daemon.pid))
        now, woken = proc.cpu(daemon.pid), proc.wakes(daemon.pid)
        cpu.append((now - before) * 1e3)
        wakes.append(woken - slept)
        before, slept = now, woken
    seconds = window * len(cpu)
    parts = proc.parts(daemon.pid)
    kinds = ", ".join(f"{name.lower()} {size:.1f}" for name, size in parts.items())
    threads = proc.threads(daemon.pid)
    daemon.end()
    yield Figure("daemon idle: memory (PSS)", memory, "MiB", most=12, note=f"{kinds}; {threads} threads")
    # Both are over the whole window: pings come every 20 s, so a part of it says little.
    yield Figure("daemon idle: CPU in 10 minutes", [sum(cpu) * 600 / seconds], "ms", most=20,
                 note=f"one window of {seconds} s, scaled")
    yield Figure("daemon idle: wake-ups a minute", [sum(wakes) * 60 / seconds], "", most=20,
                 note=f"one window of {seconds} s, scaled")


def prompt(rig):
    """What a prompt costs beyond the model's own time."""
    home, before, after, cpu = rig.fresh(), [], [], []
    with rig.editor(home) as editor:
        editor.initialize()
        session = editor.session()
        editor.prompt(session, chunks=20, rate=200)
        rig.model.answers(1)
        for _ in range(15):
            turn = editor.prompt(session, chunks=20, rate=200)
            model = rig.model.answers(1)[0]
            before.append((model["came"] - turn.sent) / MS)
            after.append((turn.first - model["first"]) / MS)
        for _ in range(15):
            used = proc.cpu(editor.pid)
            editor.prompt(session, chunks=1)
            cpu.append((proc.cpu(editor.pid) - used) * 1e3)
            rig.model.answers(1)
    overhead = [a + b for a, b in zip(before, after)]
    yield Figure("prompt: to the model and back to the first text", overhead, "ms",
                 note=f"before the model {statistics.median(before):.2f}, after {statistics.median(after):.2f}")
    yield Figure("prompt: CPU of a whole turn with one piece of text", cpu, "ms", most=2)
    yield from _before_model(rig, home)


def _before_model(rig, home):
    """Flushes until the model has the request, counted with strace."""
    if not shutil.which("strace"):
        raise Skip("strace is not here: flushes before the model request are not counted")
    log, flushes = home.folder / "flushes", []
    with rig.editor(home) as editor:
        editor.initialize()
        session = editor.session()
        editor.prompt(session, chunks=1)
        rig.model.answers(1)
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-ttt", "-e", "trace=fsync,fdatasync", "-o", log,
                                   "-p", str(editor.pid)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        ahead = time.time() - time.monotonic()
        for _ in range(5):
            turn = editor.prompt(session, chunks=1)
            came = rig.model.answers(1)[0]["came"]
            time.sleep(0.05)
            span = (turn.sent / 1e9 + ahead, came / 1e9 + ahead)
            stamps = [float(line.split()[1]) for line in log.read_text().splitlines() if "sync(" in line]
            flushes.append(sum(span[0] <= stamp <= span[1] for stamp in stamps))
        tracer.terminate()
        tracer.wait()
    yield Figure("prompt: flushes to disk before the model request", flushes, "", most=1, note="counted with strace")


def turn(rig):
    """A turn with one command, in the box and outside of it."""
    home = rig.fresh()
    plain, box = ["bash", "-c", "true"], []
    if shutil.which("bwrap"):
        box = ["bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-net",
               "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--"]
    for open_, most in ((False, 8), (True, 5)):
        alone = spawn_ms(plain if open_ else box + plain)
        arguments = {"command": "true", **({"open": True, "why": "measured"} if open_ else {})}
        times, asked = [], 0
        with rig.editor(home) as editor:
            editor.initialize()
            session = editor.session("auto" if open_ else "edit")
            for n in range(12):
                done = editor.prompt(session, chunks=1, call=["bash", arguments])
                model = rig.model.answers(2)
                if len(model) != 2:
                    raise RuntimeError(f"the model was asked {len(model)} times")
                spent = sum(m["over"] - m["came"] for m in model)
                if n:
                    times.append((done.over - done.sent - spent) / MS - alone)
                    asked += done.asked
        how = "unboxed" if open_ else "boxed"
        yield Figure(f"turn with one command, {how}", times, "ms", most=most,
                     note=f"above the model's time and the {alone:.1f} ms of {'' if open_ else 'bwrap … '}bash -c true"
                          + (f"; asked {asked} times, answered at once" if asked else ""))


def chunks(rig):
    """Ten thousand pieces from the model to an editor."""
    home, ours, floor, cpu, updates = rig.fresh(), [], [], [], []
    for _ in range(5):
        for command, times in ((None, ours), ([rig.rig, "floor", rig.model.address], floor)):
            with rig.editor(home, command) as editor:
                editor.initialize()
                session = editor.session()
                editor.prompt(session, chunks=20)
                rig.model.answers(1)
                used = proc.cpu(editor.pid)
                done = editor.prompt(session, chunks=10_000)
                used = proc.cpu(editor.pid) - used
                model = rig.model.answers(1)[0]
                if not done.whole or done.chunks != 10_000:
                    raise RuntimeError(f"{done.chunks} of 10,000 pieces came, in order: {done.whole}")
                times.append((done.last - model["first"]) / MS)
                if command is None:
                    cpu.append(used)
                    updates.append(done.updates)
    yield Figure("10,000 pieces, model → editor: times the floor agent", [a / b for a, b in zip(ours, floor)], "×",
                 most=1.5, note=f"{statistics.median(ours):.0f} ms, the floor {statistics.median(floor):.0f} ms; "
                                f"{statistics.median(updates):.0f} updates")
    yield Figure("10,000 pieces: CPU", cpu, "s", most=0.08)


def relay(rig):
    """From the model over the hub to the device, back to the hub and to the page."""
    home, hub = rig.linked(False)
    daemon = rig.daemon(home)
    daemon.linked()
    device = hub.call("GET", "/devices")
    device = (device.get("devices", device) if isinstance(device, dict) else device)[0]["id"]
    model = hub.call("GET", "/models")
    model = (model.get("models", model) if isinstance(model, dict) else model)
    model = next(m["id"] for m in model if m["name"] == "bench")

    def one(count, rate):
        head = hub.call("GET", "/state")["head"]
        events = hub.events(head)
        text = f"bench {json.dumps({'chunks': count, 'rate': rate})}"
        key, began = os.urandom(8).hex(), time.monotonic_ns()
        hub.call("POST", "/chats", {"device": device, "cwd": str(home.work), "model": model, "mode": "edit",
                                    "text": text, "key": f"bench-{key}"})
        late, newest, pieces, first, now = [], -1, 0, 0, 0
        for now, data in events:
            # An item that is whole has its text twice: as it was written and as it is shown.
            found = sorted({(int(n), int(at)) for n, at in re.findall(rb"w(\d+)@(\d+)\b", data)})
            # What is older belongs to the chat before.
            fresh = [(n, at) for n, at in found if n > newest and at > began]
            if fresh:
                numbers = [n for n, _ in fresh]
                if numbers != list(range(newest + 1, newest + 1 + len(numbers))):
                    raise RuntimeError(f"lost or out of order after {newest}: {numbers[:5]}")
                newest, pieces = numbers[-1], pieces + 1
                first = first or fresh[0][1]
                late += [(now - at) / MS for _, at in fresh]
            if newest == count - 1:
                break
        rig.model.answers(1)
        return late, pieces, (now - first) / MS

    late, pieces, _ = one(400, 50)
    late.sort()
    parts = [sorted(late[at::5])[int(len(late[at::5]) * 0.95)] for at in range(5)]
    yield Figure("model → hub → device → hub → page, 50 pieces a second: p95", parts, "ms", most=30,
                 note=f"median {statistics.median(late):.1f} ms; {pieces} events; five parts of 400 pieces")
    # Long enough for fifty paints: a page is not painted more often than a screen is.
    count, whole, bare = 40_000, [], []
    for _ in range(5):
        whole.append(one(count, 0))
        with rig.editor(home, [rig.rig, "floor", rig.model.address]) as editor:
            editor.initialize()
            done = editor.prompt(editor.session(), chunks=count)
            bare.append((done.last - rig.model.answers(1)[0]["first"]) / MS)
    yield Figure(f"the same at full speed, {count:,} pieces: times one bare hop",
                 [ms / other for (_, _, ms), other in zip(whole, bare)], "×", most=3,
                 note=f"{statistics.median(ms for _, _, ms in whole):.0f} ms, the floor agent "
                      f"{statistics.median(bare):.0f} ms; none lost or out of order")
    yield Figure("the same: events to the page", [n for _, n, _ in whole], "", least=50)
    daemon.end()


def monitor(rig):
    """A watch command that writes 4 GiB, against the shell and openssl."""
    home, _ = rig.linked(False)
    tool = home.work / "much"
    shutil.copy2(rig.rig, tool)
    daemon = rig.daemon(home)
    daemon.linked()

    def ours(size):
        home_run = lambda: json.loads(home.run(
            "monitor", "--json", "--cwd", home.work, "--mode", "edit", "--timeout", "300", "--",
            f"{tool} write {size}"))
        try:
            return home_run()
        except RuntimeError:
            pending = json.loads(home.run("rules", "pending", "--json").splitlines()[0])
            number = pending.get("n") or pending.get("number") or pending["pending"][0]["n"]
            home.run("allow", "--pending", number)
            return home_run()

    ours(1024)
    proc.forget_peak(daemon.pid)
    before = proc.peak(daemon.pid)
    walls, cpus, hashes = [], [], set()
    for _ in range(5):
        used = [proc.cpu(daemon.pid), _children_of(daemon.pid)]
        began = time.monotonic()
        seen = ours(4 * GIB)
        wall = time.monotonic() - began
        used = proc.cpu(daemon.pid) - used[0] + _children_of(daemon.pid) - used[1]
        hashes.add(seen["hash"].removeprefix("sha256:"))
        was = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        # A watch command's hash is over its exit status, a line feed and the bytes.
        line = f"{{ printf '0\\n'; {tool} write {4 * GIB}; }} | openssl dgst -sha256"
        other = subprocess.run(["sh", "-c", line], capture_output=True)
        theirs = time.monotonic() - began
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        hashes.add(other.stdout.decode().split()[-1])
        walls.append(theirs / wall)
        cpus.append((now.ru_utime + now.ru_stime - was.ru_utime - was.ru_stime) / used)
    grown = proc.peak(daemon.pid) - before
    daemon.end()
    note = "the two hashes are the same" if len(hashes) == 1 else f"HASHES DIFFER: {sorted(hashes)}"
    yield Figure("watch command of 4 GiB: speed against sh | openssl", walls, "×", least=0.9, note=note)
    yield Figure("the same: CPU of theirs to ours", cpus, "×", least=0.9)
    yield Figure("the same: memory growth of the daemon", [grown], "MiB", most=1)


def _children_of(pid):
    """CPU seconds of the children that a process has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def sessions(rig):
    """One chat more, and opening a long one."""
    home, count = rig.fresh(), 100
    with rig.editor(home) as editor:
        editor.initialize()
        for _ in range(5):
            editor.session()
        time.sleep(1)
        grown = []
        for _ in range(5):
            before = proc.pss(editor.pid)
            for _ in range(count):
                editor.session()
            time.sleep(0.5)
            grown.append((proc.pss(editor.pid) - before) / count)
    yield Figure("one chat more, idle", grown, "MiB", most=0.05, note=f"{count} new chats at a time")
    home, times = rig.full, []
    for _ in range(5):
        with rig.editor(home) as editor:
            editor.initialize()
            began = time.monotonic_ns()
            editor.call("session/load", {"sessionId": home.long, "cwd": str(home.work), "mcpServers": []}, None)
            times.append((time.monotonic_ns() - began) / MS)
    yield Figure(f"opening a chat of {LONG} turns, all of it replayed", times, "ms", most=10,
                 note="session/load until its answer, which comes after the replay")


def search(rig):
    """grep and glob over many files, against ripgrep."""
    if not shutil.which("rg"):
        raise Skip("ripgrep is not here to be compared with")
    home = rig.fresh()
    for folder in range(330):
        place = home.work / f"d{folder % 30}" / f"e{folder}"
        place.mkdir(parents=True)
        for file in range(100):
            (place / f"f{file}.rs").write_text(f"fn f{file}() {{ let x = {folder}; }}\n// a line of text\n" * 20)
    (home.work / "d7" / "e7" / "f7.rs").write_text("here is the needle\n")
    pairs = (("grep", {"pattern": "the ne+dle"}, ["rg", "-n", "the ne+dle", str(home.work)]),
             ("glob", {"pattern": "**/f77.rs"}, ["rg", "--files", "-g", "**/f77.rs", str(home.work)]))
    with rig.editor(home) as editor:
        editor.initialize()
        session = editor.session()
        for tool, arguments, command in pairs:
            ratios, ours, theirs = [], [], []
            for n in range(6):
                editor.prompt(session, chunks=1, call=[tool, arguments])
                asked = rig.model.answers(2)
                took = (asked[1]["came"] - asked[0]["over"]) / MS
                began = time.monotonic_ns()
                subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
                other = (time.monotonic_ns() - began) / MS
                if n:
                    ours.append(took), theirs.append(other), ratios.append(took / other)
            yield Figure(f"{tool} over 33,000 files: times rg", ratios, "×", most=1.1,
                         note=f"{statistics.median(ours):.0f} ms between two model requests, rg "
                              f"{statistics.median(theirs):.0f} ms")


def verdicts(rig):
    """The judge by itself."""
    commands = Path(__file__).parents[2] / "data" / "permission" / "shell-ordinary.tsv"
    folder = rig.place()
    folder.mkdir()
    said = [json.loads(subprocess.run([rig.rig, "verdicts", commands, folder], check=True, text=True,
                                      stdout=subprocess.PIPE).stdout) for _ in range(5)]
    yield Figure("verdict on a command, 100 ordinary ones: p99", [s["p99_ms"] for s in said], "ms", most=0.5,
                 note=f"median {statistics.median(s['p50_ms'] for s in said):.3f} ms; 5,000 judgements a run")
    shapes = {shape["piece"]: statistics.median(one["ms"] for s in said for one in s["long"]
                                                if one["piece"] == shape["piece"]) for shape in said[0]["long"]}
    slowest = max(shapes, key=shapes.get)
    worst = [next(one["ms"] for one in s["long"] if one["piece"] == slowest) for s in said]
    yield Figure("verdict on 64 KiB of command", worst, "ms", most=5,
                 note=f"the slowest of {len(shapes)} shapes, {json.dumps(slowest)}; median of the shapes "
                      f"{statistics.median(shapes.values()):.1f} ms")


def reconnect(rig):
    """The hub is killed and comes back two seconds later."""
    home, hub = rig.linked(False)
    times = []
    for _ in range(9):
        # A daemon that has just begun waits as one whose link was up for long: a link that breaks
        # again and again within 30 s is dialled more and more slowly.
        daemon = rig.daemon(home)
        daemon.linked()
        hub.end(9)
        time.sleep(2)
        hub.start()
        times.append((daemon.linked() - hub.started) / 1e9)
        daemon.end()
    yield Figure("linked again after an outage of 2 s", times, "s", most=1, note="the hub is killed and started again")


def binary(rig):
    """The program's size."""
    yield Figure("release binary, stripped", [os.path.getsize(rig.program) / 1e6], "MB", most=20)


ROWS = {f.__name__: f for f in (start, link, idle, prompt, turn, chunks, relay, monitor, sessions, search, verdicts,
                                reconnect, binary)}
