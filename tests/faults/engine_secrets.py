"""Secrets in everything that a project with `store: nats` keeps, and what the servers' disks then hold of them.

So many secrets, some of a form that redaction knows and some of none, stand in transcripts, decisions, states, answers,
inputs, signals and their ids, output, stored results, conversations and tasks; some are forgotten afterwards. The
servers log everything that they are sent. Then all of their files but their configuration are searched for any 12
characters in a row of a secret: as it is, in hexadecimal, in base64 at each of its three offsets, and in what base64
and zlib stand for.

    python -m tests.faults.engine_secrets
    python -m tests.faults.engine_secrets --servers 3 --secrets 5000
    python -m tests.faults.engine_secrets --broken "not encrypted"
"""

from __future__ import annotations

import base64
import binascii
import json
import random
import re
import string
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
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
_NAME = "planted"

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


# ---- breaking it ----


def _as_it_is(_: object, content: bytes, *__: str) -> bytes:
    return content


def _readable(_: object, *parts: str) -> str:
    return parts[-1].encode().hex().ljust(64, "0")[:64]


_CIPHER = "ralf_integrations.stores.encryption.Cipher"

BROKEN: dict[str, tuple[tuple[str, object], ...]] = {
    "not encrypted": ((f"{_CIPHER}.encrypt", _as_it_is), (f"{_CIPHER}.decrypt", _as_it_is)),
    "readable names": ((f"{_CIPHER}.name", _readable),),
}


@dataclass(frozen=True)
class Size:
    """How many secrets, on how many servers: one or three."""

    secrets: int = 1_000
    servers: int = 1


def main() -> int:
    """Run it, and print a line a figure."""
    given, _ = size_options("engine_secrets", Size, (), BROKEN)
    if natskit.absent():
        print(natskit.absent(), file=sys.stderr)
        return rig.SKIPPED
    begun, found = time.monotonic(), rig.Found()
    with ExitStack() as stack:
        folder = stack.enter_context(rig.store())
        for name, value in BROKEN[given.broken] if given.broken else ():
            stack.enter_context(patch(name, value))
        plant(given.secrets, given.servers, given.seed, folder, found)
    kinds = dict.fromkeys(("a secret is at rest on a server", *found.faults))
    figures: list[tuple[str, object, str]] = [
        (kind, f"{found.faults[kind]}" + (f" of {found.acknowledged:,}" if "secret" in kind else ""), "0")
        for kind in kinds
    ]
    figures += [(name, value, "") for name, value in found.figures.items()]
    figures.append(("time", f"{time.monotonic() - begun:.0f} s", ""))
    return told(figures, [f"{kind}: {example}" for kind, example in found.examples.items()])


if __name__ == "__main__":
    sys.exit(main())
