"""Computers to measure: data folders, the model, a hub and daemons linked to it."""

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from pathlib import Path


class Model:
    """The rig's model server; `answers()` are the requests since it was last asked for them."""

    def __init__(self, rig, folder):
        self._path = folder / "model.log"
        self.process = subprocess.Popen([rig, "model", self._path], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.url, self._seen = f"http://{self.address}/v1", 0

    def answers(self, count):
        """Waits until so many more scripted requests were answered, and gives what is known of them."""
        until = time.monotonic() + 10
        while True:
            with open(self._path) as log:
                log.seek(self._seen)
                lines = [json.loads(line) for line in log.read().splitlines(True) if line.endswith("\n")]
                at = log.tell()
            found = [line for line in lines if line["scripted"]]
            if len(found) >= count or time.monotonic() > until:
                self._seen = at
                return found
            time.sleep(0.002)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Home:
    """One computer: a home folder and a data folder."""

    def __init__(self, program, folder):
        self.program, self.folder = str(program), folder
        self.home, self.data, self.work = folder / "home", folder / "data", folder / "work"
        for path in (self.home, self.data, self.work):
            path.mkdir(parents=True, exist_ok=True)
        self.env = {"HOME": str(self.home), "LEMBAS_DATA": str(self.data), "PATH": os.environ["PATH"],
                    "LANG": "C.UTF-8", "TMPDIR": str(folder)}

    def run(self, *words, feed=None):
        done = subprocess.run([self.program, *map(str, words)], env=self.env, input=feed, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        if done.returncode:
            raise RuntimeError(f"lembas {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def settings(self, text):
        path = self.data / "config" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def copy(self, folder):
        """The same computer once more, with the same chats."""
        shutil.copytree(self.data, folder / "data", ignore=lambda *_: {"run"})
        return Home(self.program, folder)

    def models_from(self, model):
        """As if it had been linked to an instance whose models are these."""
        path = self.data / "config" / "instance.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        base = f"http://{model.address}"
        path.write_text(json.dumps({
            "url": base, "instance": "bench", "name": "bench", "link": f"ws://{model.address}/link",
            "models": model.url, "account": {"id": "a", "name": "ana"}, "device": "d" * 32, "paired_at": 1,
            "token": "t" * 40}))
        path.chmod(0o600)


class Daemon:
    """A running daemon that tells this process how its link stands, as it tells a service manager."""

    def __init__(self, home, program=None):
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._place = Path(tempfile.mkdtemp(prefix="lembas-bench-"))  # a socket's path must be short
        self._notify.bind(str(self._place / "notify"))
        env = {**home.env, "NOTIFY_SOCKET": str(self._place / "notify")}
        self.began = time.monotonic_ns()
        self.process = subprocess.Popen([program or home.program, "daemon"], env=env, cwd=home.work,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(home.folder / "daemon.log", "ab"))
        self.pid = self.process.pid

    def told(self, words, within=60):
        """Waits until it says a line that begins with `words`; when that was, in nanoseconds."""
        self._notify.settimeout(within)
        while True:
            said = self._notify.recv(4096)
            now = time.monotonic_ns()
            if any(line.startswith(words.encode()) for line in said.split(b"\n")):
                return now

    def linked(self, within=60):
        return self.told("STATUS=linked", within)

    def end(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(25)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._notify.close()
        shutil.rmtree(self._place, ignore_errors=True)


class Hub:
    """A running hub with one account that is signed in."""

    def __init__(self, home, tls=False):
        self.home, self._tls, self._cookie, self.port = home, tls, None, 0
        self._trust = None
        if tls:
            self._certificate()
        said = self.start()
        self.call("POST", "/setup", {"token": said["token"], "name": "ana", "password": "long enough words 7"})

    def _certificate(self):
        """A certificate for 127.0.0.1 that signs itself."""
        folder = self.home.folder
        self.cert, key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=lembas bench", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-addext", "basicConstraints=critical,CA:FALSE",
                        "-keyout", key, "-out", self.cert], check=True, capture_output=True)
        self._more = ["--tls-cert", str(self.cert), "--tls-key", str(key)]
        self._trust = ssl.create_default_context(cafile=self.cert)

    def start(self):
        more = self._more if self._tls else []
        self.process = subprocess.Popen(
            [self.home.program, "hub", "--listen", f"127.0.0.1:{self.port}", "--json", *more], env=self.home.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.home.folder / "hub.log", "ab"), text=True)
        said = json.loads(self.process.stdout.readline())
        self.started = time.monotonic_ns()
        self.url, self.port = said["url"], int(said["url"].rsplit(":", 1)[1].strip("/"))
        return said

    def connection(self):
        if self._tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self._trust)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def headers(self):
        headers = {"X-Lembas": "1", "Origin": self.url.rstrip("/"), "Content-Type": "application/json"}
        if self._cookie:
            headers["Cookie"] = self._cookie
        return headers

    def call(self, method, path, body=None):
        link = self.connection()
        link.request(method, f"/api/v2{path}", json.dumps(body) if body is not None else None, self.headers())
        answer = link.getresponse()
        text = answer.read().decode()
        cookie = answer.getheader("Set-Cookie")
        if cookie:
            self._cookie = cookie.split(";")[0]
        link.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text) if text else {}

    def adopt(self, computer):
        """Links a computer as its person would, and says yes to it."""
        linking = subprocess.Popen([computer.program, "link", self.url, "--json"], env=computer.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = []
        for line in linking.stdout:
            said.append(line)
            code = json.loads(line).get("code") if line.startswith("{") else None
            if isinstance(code, str) and json.loads(line).get("state") != "linked":
                self.call("POST", "/link/approve", {"code": code})
        if linking.wait():
            raise RuntimeError("".join(said))
        linking.stdout.close()
        return self.call("GET", "/devices")

    def events(self, after):
        """The page's events as they come: `(nanoseconds, bytes of one event)`."""
        link = self.connection()
        link.request("GET", f"/api/v2/events?after={after}", headers=self.headers())
        answer, data = link.getresponse(), b""
        while line := answer.readline():
            if line.startswith(b"data:"):
                data += line[5:]
            elif not line.strip() and data:
                yield time.monotonic_ns(), data
                data = b""

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()


def filesystem(path):
    """What disk a folder is on: its device and its kind."""
    path, best = str(Path(path).resolve()), ("", "?", "?")
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            device, place, kind = line.split()[:3]
            inside = path == place or path.startswith(place.rstrip("/") + "/")
            if inside and len(place) >= len(best[0]):
                best = (place, device, kind)
    return f"{best[2]} on {best[1]}"
