"""Secrets in everything that a project with `store: nats` keeps, and what the servers' disks then hold of them.

So many secrets, some of a form that redaction knows and some of none, stand in transcripts, decisions, states, answers,
inputs, signals and their ids, output, stored results, conversations and tasks; some are forgotten afterwards. The
servers log everything that they are sent. Then all of their files but their configuration are searched for any 12
characters in a row of a secret: as it is, in hexadecimal, in base64 at each of its three offsets, and in what base64
and zlib stand for.

Then commands of ralf meet servers that refuse, do not answer, or are not to be trusted, and configurations with a
password in the wrong place; and their output, the files that they leave, and the command line and environment of every
process that they start are searched for the password.

    python -m tests.faults.engine_secrets
    python -m tests.faults.engine_secrets --servers 3 --secrets 5000
    python -m tests.faults.engine_secrets --broken "not encrypted"
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import random
import re
import socket
import string
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import natskit, storekit
from tests.faults import rig
from tests.faults.figures import size_options, told
from tests.faults.planted_secrets import TOKENS

import ralf
from ralf.agent import AgentRun, send_signal
from ralf.maintenance import forget, ownership
from ralf.project import Project
from ralf.tasks import editing

RUN = 12  # so many characters in a row are a find
_ROUNDS = 3  # times that each place is planted in
_LARGE = 1_200_000  # bytes that no message holds
_DEEPEST = 3  # base64 in zlib in base64
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{24,}={0,2}")
_WORD = re.compile(rb"[!-~]{%d,}" % RUN)  # no form of a secret has anything else
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_PATIENCE = 120  # seconds that a command may take
_NAME = "planted"
KINDS = ("at rest", "passwords")

# ---- the secrets ----


def secrets(dice: random.Random, count: int) -> list[tuple[str, str]]:
    """So many secrets, each as it is written and the part of it that nobody may find: every other one has the form of a
    vendor's token, the rest no form at all.
    """
    kinds = sorted(TOKENS)
    alphabet = string.ascii_letters + string.digits
    made = []
    for number in range(count):
        if number % 2:
            secret = "".join(dice.choices(alphabet, k=dice.randrange(16, 40)))
            made.append((secret, secret))
        else:
            made.append(TOKENS[kinds[number // 2 % len(kinds)]](dice))
    return made


class Planter:
    """Plants secrets in all that a project keeps; `places` has how many in each."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self._root = root
        self._dice = dice
        self.places: Counter[str] = Counter()

    def plant(self, found: Sequence[str]) -> None:
        """Plant them, in each place in turn, and forget one; what is large comes last, or a forget reads all of it."""
        places: tuple[Callable[[Sequence[str]], None], ...] = (
            *(self.transcript, self.decision, self.run, self.signals, self.output, self.conversation, self.task)
            * _ROUNDS,
            self.large,
        )
        size = -(-len(found) // len(places))
        for number, place in enumerate(places):
            if place == self.large:
                forget.forget("tide", text=found[size + 1], root=self._root)  # of a decision
            batch = found[number * size : (number + 1) * size]
            place(batch)
            self.places[place.__name__] += len(batch)

    def _text(self, batch: Iterable[str]) -> str:
        return "\n".join(f"We looked at {secret} and went on." for secret in batch)

    def transcript(self, batch: Sequence[str]) -> None:
        """What a session said."""
        path = self._root.with_suffix(".jsonl")
        message = {"role": "user", "content": self._text(batch)}
        record = {"type": "user", "sessionId": "s", "timestamp": "2026-03-01T08:00:00.000Z", "message": message}
        with path.open("a") as file:
            for each in (record, *storekit.turn(self._dice.randrange(10**6), "s")):
                file.write(json.dumps(each) + "\n")
        ralf.checkpoint("tide", path, root=self._root)

    def decision(self, batch: Sequence[str]) -> None:
        """Decisions, and the reasons for them."""
        for one in batch:
            ralf.record_decision("tide", f"Deploy with {one}", rationale=f"{one} works", root=self._root)

    def run(self, batch: Sequence[str]) -> None:
        """The input, the state, an answer and the output of a run."""
        name = f"run-{self._dice.randrange(10**9)}"
        parts = [self._text(batch[start::4]).encode() for start in range(4)]
        with AgentRun(name, root=self._root, input=parts[0]) as run:
            run.once("model", lambda _: parts[1])
            run.save(zlib.compress(parts[2]))
            run.complete(parts[3])

    def signals(self, batch: Sequence[str]) -> None:
        """Signals, and ids of them."""
        name = f"run-{self._dice.randrange(10**9)}"
        for one, other in zip(batch[::2], batch[1::2], strict=False):
            send_signal(name, "wish", f"use {one}", id=other, root=self._root)

    def output(self, batch: Sequence[str]) -> None:
        """What a run shows."""
        with AgentRun(f"run-{self._dice.randrange(10**9)}", root=self._root) as run:
            for one in batch:
                run.stream(f"now {one}\n".encode())
            run.complete()

    def large(self, batch: Sequence[str]) -> None:
        """Results and states that no message holds."""
        filling = self._dice.randbytes(_LARGE)
        with AgentRun(f"run-{self._dice.randrange(10**9)}", root=self._root) as run:
            run.external("page", self._text(batch[::2]).encode() + filling)
            run.save(self._text(batch[1::2]).encode() + filling)
            run.complete()

    def conversation(self, batch: Sequence[str]) -> None:
        """The entries of a client's session, short ones and long ones."""
        from ralf_integrations.doors.entries import EntryStream

        for start, more in ((0, ""), (1, "x" * 300_000)):
            stream = EntryStream(Project(self._root), f"sessions/s-{self._dice.randrange(10**9)}")
            made = {"at": "2026-03-01T08:00:00.000Z"}, [{"text": self._text(batch[start::2]) + more}]
            stream.append(lambda _, made=made: made)

    def task(self, batch: Sequence[str]) -> None:
        """Titles and texts of tasks."""
        for one, other in zip(batch[::2], batch[1::2], strict=False):
            editing.add(f"Deploy with {one}", text=f"Then use {other}.", root=self._root)


# ---- the judge ----


def views(content: bytes, depth: int = 0) -> Iterator[bytes]:
    """Bytes as they are, and what base64 and zlib in them stand for."""
    yield content
    if depth == _DEEPEST:
        return
    for found in _BASE64.finditer(content):
        with suppress(binascii.Error):
            whole = found[0].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
            yield from views(base64.b64decode(whole[: len(whole) // 4 * 4]), depth + 1)
    for found in _ZLIB.finditer(content):
        unpacker = zlib.decompressobj()
        with suppress(zlib.error):
            unpacked = unpacker.decompress(content[found.start() : found.start() + (4 << 20)], 16 << 20)
            if len(unpacked) >= RUN:
                yield from views(unpacked, depth + 1)


def runs(secret: str) -> Iterator[bytes]:
    """Every run of a secret that is a find, in each of its forms."""
    plain = secret.encode()
    forms = [plain, plain.hex().encode(), plain.hex().upper().encode()]
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + plain)[4 if offset else 0 : -4]  # what is the secret's alone
        forms += [encoded, encoded.replace(b"+", b"-").replace(b"/", b"_")]
    for form in forms:
        for start in range(len(form) - RUN + 1):
            yield form[start : start + RUN]


def left(planted: Sequence[str], contents: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """The secrets of which contents hold something, and the name of the first content that does."""
    known = {run: secret for secret in planted for run in runs(secret)}
    found: dict[str, str] = {}
    for name, content in contents:
        for view in views(content):
            for word in map(re.Match.group, _WORD.finditer(view)):
                for start in range(len(word) - RUN + 1):
                    if word[start : start + RUN] in known:
                        found.setdefault(known[word[start : start + RUN]], name)
    return found


def at_rest(servers: natskit.Servers) -> Iterator[tuple[str, bytes]]:
    """The files of servers, but for the configuration that somebody wrote for them."""
    for path in sorted(servers.folder.rglob("*")):
        if path.is_file() and path.name != "server.conf":
            yield str(path.relative_to(servers.folder)), path.read_bytes()


# ---- a project on servers ----


def configure(root: Path, servers: Sequence[str], **more: object) -> Path:
    """A project whose user names servers in their own file."""
    ownership.init(Project(root), share=False)
    path = storekit.context_of(root) / "config.local.yaml"
    lines = {"store": "nats", "nats_servers": list(servers), "nats_project": _NAME}
    tree = {name: value for name, value in {**lines, **more}.items() if value != ""}
    path.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in tree.items()))
    return storekit.allow(path)


def plant(count: int, servers: int, seed: int, folder: Path, found: rig.Found) -> None:
    """Plant so many secrets, and look for them."""
    dice = random.Random(seed)
    password = "".join(dice.choices(string.ascii_letters, k=24))
    running = natskit.Servers(servers, folder / "servers", password=password, more=["debug: true", "trace: true"])
    running.ready()
    root = folder / "project"
    root.mkdir()
    login = {"nats_user": "ralf", "nats_password": password}
    configure(root, running.urls(), nats_replicas=servers, **login)
    planted, planter = secrets(dice, count), Planter(root, dice)
    planter.plant([text for text, _ in planted])
    files = list(at_rest(running))
    running.stop()
    size = sum(len(content) for _, content in files)
    found.acknowledged = len(planted)
    for secret, name in left([*(secret for _, secret in planted), password], files).items():
        found.note("a secret is at rest on a server", f"{secret} in {name}")
    found.figures["planted in"] = ", ".join(f"{place} {each}" for place, each in sorted(planter.places.items()))
    found.figures["searched"] = (
        f"{len(files)} files of {size / 1e6:.0f} MB, logs with a trace of all messages among them"
    )


# ---- passwords ----

_LEAKING = """\
import base64, os, subprocess, sys
password = os.environ["RALF_NATS_PASSWORD"].encode()
print(base64.b64encode(b"x" + password).decode())
open("leaked", "w").write(password.hex())
subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)", password], env={})
"""
"""In the place of `ralf`: a program that lets a password out in each way that is looked for."""

_MODEL = "import sys, time; sys.stdin.read(); time.sleep(1); print('{}')"


class Watch:
    """Looks at all processes below this one until it is told to end: what their lists show of a password."""

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.given: set[int] = set()
        """Those to which the harness itself has given the password in their environment."""
        self.found: dict[str, str] = {}
        self.seen: set[int] = set()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.01):
            for pid in _below(os.getpid()):
                self.seen.add(pid)
                for name in ("cmdline", "environ"):
                    with suppress(OSError):
                        content = Path(f"/proc/{pid}/{name}").read_bytes()
                        if self._password in content and not (name == "environ" and pid in self.given):
                            self.found.setdefault(name, f"{name} of {content[:200]!r}")


def _below(root: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


@contextmanager
def _silent() -> Iterator[str]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"nats://127.0.0.1:{server.getsockname()[1]}"


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("doctor",),
    ("status",),
    ("list",),
    ("show", "tide"),
    ("decide", "tide", "Keep it", "--because", "It works"),
    ("checkpoint", "tide", "--transcript", "TRANSCRIPT"),
    ("doctor", "--store"),
    ("run", "show"),
    ("task", "list"),
    ("status", "--all"),
)

_FEW = [COMMANDS[number] for number in (0, 2, 5)]
"""Commands for what none of them gets past."""

_ALL = ("all is well", "from the environment", "another password")
"""What every command is tried with."""

_SILENT = ("no answer",)
"""Servers that do not answer: each command takes as long as a call may."""


def passwords(seed: int, folder: Path, found: rig.Found, *, leaks: bool = False) -> None:
    """Run commands against servers and configurations of each kind, and look for the password.

    leaks  whether a program that lets it out runs in their place
    """
    from tests import certificates

    dice = random.Random(f"passwords {seed}")
    password = "pw-" + "".join(dice.choices(string.ascii_letters + string.digits, k=20))
    ours = certificates.Authority(folder)
    certificate, key = ours.certificate("127.0.0.1")
    encrypts = [f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}']
    with ExitStack() as stack:

        def started(name: str, **more: Any) -> natskit.Servers:
            made = natskit.Servers(1, folder / f"servers-{name}", **more)
            made.ready()
            stack.callback(made.stop)
            return made

        plain = started("plain", password=password)
        other = started("other", password=f"not-{seed}")
        encrypted = started("encrypted", password=password, more=encrypts, scheme="tls")
        silent = stack.enter_context(_silent())
        login: dict[str, object] = {"nats_user": "ralf", "nats_password": password}
        port = plain.urls()[0].rpartition(":")[2]
        cases: dict[str, tuple[Sequence[str], Mapping[str, object]]] = {
            "all is well": (plain.urls(), login),
            "from the environment": (plain.urls(), {}),
            "another password": (other.urls(), login),
            "nobody there": (["nats://127.0.0.1:1"], login),
            "an unknown authority": (encrypted.urls(), login),
            "not encrypted": ([f"tls://127.0.0.1:{port}"], login),
            "no answer": ([silent], login),
            "password in the address": ([f"nats://ralf:{password}@127.0.0.1:{port}"], {}),
            "password in a list of one": (f"nats://ralf:{password}@127.0.0.1:{port}", {}),  # type: ignore[dict-item]
            "password in the monitoring address": (
                plain.urls(),
                {**login, "nats_monitoring": [f"http://ralf:{password}@127.0.0.1:1"]},
            ),
            "password under a wrong name": (plain.urls(), {**login, "nats_pasword": password}),
            "password in a list": (plain.urls(), {"nats_user": "ralf", "nats_password": [password]}),
        }
        watch = stack.enter_context(Watch(password))
        count = 0
        for name in ["from the environment"] if leaks else cases:
            servers, more = cases[name]
            root = folder / name.replace(" ", "-")
            root.mkdir()
            local = configure(
                root, servers, nats_project=root.name, nats_replicas=1, summarizer="command", **{"command": [], **more}
            )
            model = json.dumps([sys.executable, "-c", _MODEL])
            local.write_text(local.read_text().replace("command: []", f"command: {model}"))
            if isinstance(servers, str):
                local.write_text(local.read_text().replace(json.dumps(list(servers)), json.dumps(servers)))
            storekit.allow(local)
            transcript = root.with_suffix(".jsonl")
            transcript.write_text("".join(f"{json.dumps(line)}\n" for line in storekit.turn(1, "s")))
            env = storekit.environment(root, PYTHONASYNCIODEBUG="1", XDG_CONFIG_HOME=os.environ["XDG_CONFIG_HOME"])
            if name == "from the environment":
                env |= {"RALF_NATS_USER": "ralf", "RALF_NATS_PASSWORD": password}
            for words in _FEW[1:2] if name in _SILENT else COMMANDS if name in _ALL else _FEW:
                arguments = [word.replace("TRANSCRIPT", str(transcript)) for word in words]
                command = [sys.executable, "-c", _LEAKING] if leaks else storekit.command("--root", root, *arguments)
                out, status = _said(command, root, env, watch)
                count += 1
                for form in runs(password):
                    if form in out:
                        found.note("a password is in the output", f"{name}: {' '.join(words)}: {out[:300]!r}")
                        break
                if b"Traceback" in out:
                    found.note("a command broke off", f"{name}: {' '.join(words)}: {out[-300:]!r}")
                is_well = name in ("all is well", "from the environment")
                if words == ("list",) and (status == 0) != is_well and "monitoring" not in name:
                    found.note("a case is not what it is to be", f"{name}: {status}: {out[-300:]!r}")
            files = [
                (str(path.relative_to(root)), path.read_bytes())
                for path in sorted(root.rglob("*"))
                if path.is_file() and path != local
            ]
            for where in left([password], files).values():
                found.note("a password is in a file", f"{name}: {where}")
        time.sleep(2)  # what goes on without the last command
        found.figures["commands and processes looked at"] = f"{count} and {len(watch.seen)}"
        servers_files = [each for one in (plain, encrypted, other) for each in at_rest(one)]
        for where in left([password], servers_files).values():
            found.note("a password is in a server's log", where)
    for example in watch.found.values():
        found.note("a password is in a list of processes", example)


def _said(command: Sequence[str], root: Path, env: Mapping[str, str], watch: Watch) -> tuple[bytes, int]:
    """What a command prints in a folder, and its exit status."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=root, env=dict(env), stdin=null, stdout=pipe, stderr=subprocess.STDOUT
    ) as process:
        if "RALF_NATS_PASSWORD" in env:
            watch.given.add(process.pid)
        out, _ = process.communicate(timeout=_PATIENCE)
        return out, process.returncode


# ---- breaking it ----


def _as_it_is(_: object, content: bytes, *__: str) -> bytes:
    return content


def _readable(_: object, *parts: str) -> str:
    return parts[-1].encode().hex().ljust(64, "0")[:64]


_CIPHER = "ralf_integrations.stores.encryption.Cipher"

BROKEN: dict[str, tuple[tuple[str, object], ...]] = {
    "not encrypted": ((f"{_CIPHER}.encrypt", _as_it_is), (f"{_CIPHER}.decrypt", _as_it_is)),
    "readable names": ((f"{_CIPHER}.name", _readable),),
    "leaking": (),
}


@dataclass(frozen=True)
class Size:
    """How many secrets, on how many servers: one or three."""

    secrets: int = 1_000
    servers: int = 1


def main() -> int:
    """Run it, and print a line a figure."""
    given, _ = size_options("engine_secrets", Size, KINDS, BROKEN)
    if natskit.absent():
        print(natskit.absent(), file=sys.stderr)
        return rig.SKIPPED
    begun, found = time.monotonic(), rig.Found()
    with ExitStack() as stack:
        folder = stack.enter_context(rig.store())
        for name, value in BROKEN[given.broken] if given.broken else ():
            stack.enter_context(patch(name, value))
        if "at rest" in (given.only or KINDS):
            plant(given.secrets, given.servers, given.seed, folder, found)
        if "passwords" in (given.only or KINDS):
            passwords(given.seed, folder, found, leaks=given.broken == "leaking")
    kinds = dict.fromkeys(
        (
            "a secret is at rest on a server",
            "a password is in the output",
            "a password is in a file",
            "a password is in a list of processes",
            "a password is in a server's log",
            *found.faults,
        )
    )
    figures: list[tuple[str, object, str]] = [
        (kind, f"{found.faults[kind]}" + (f" of {found.acknowledged:,}" if "secret" in kind else ""), "0")
        for kind in kinds
    ]
    figures += [(name, value, "") for name, value in found.figures.items()]
    figures.append(("time", f"{time.monotonic() - begun:.0f} s", ""))
    return told(figures, [f"{kind}: {example}" for kind, example in found.examples.items()])


if __name__ == "__main__":
    sys.exit(main())
