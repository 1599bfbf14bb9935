"""Three NATS servers whose leader is killed or stopped while writers append: what was acknowledged is there, once.

Writers in processes of their own append by compare-and-swap to the same streams, over and over; the records of half of
the streams are replaced all the while. An append that ends as Busy is done again with the same id, as the contract
says. At the end every acknowledged id is in its stream once, at the place that was answered.

A kill or a pause follows the one before as soon as an append that was begun after it is acknowledged: this takes as
long as an election, four to nine seconds. Half of the pauses last until another server leads, so that the old leader
wakes up beside a new one.

    python -m tests.faults.nats                         200 kills and pauses in turn
    python -m tests.faults.nats --kills 4
"""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import natskit
from tests.faults import rig

from ralf.errors import Busy, Conflict, RalfError, UnknownToken

Moment = Any
"""A `multiprocessing.Value` of seconds of the monotonic clock, which is the same for all processes."""

_FORKED = multiprocessing.get_context("fork")
KEPT, REPLACED = "runs/kept", "runs/replaced"
_BEGUN_ANEW = 20.0  # seconds after which all go on to other streams: the cost of a look stays the same
PROJECT = "faults"
_SHORT_PAUSE = 3.0  # seconds that a leader is stopped at most without another one taking over
PATIENCE = 120.0  # seconds in which appends have to go on after a kill or a pause
_SIZE = 2_000  # characters of a record, about
_END = 90.0  # seconds that a writer has for its last append


@dataclass(frozen=True)
class Size:
    """What is done: kills and pauses, a mean of `every` seconds from the end of one to the next, so many writers."""

    kills: int = 200
    every: float = 1.5
    writers: int = 4


def _store(servers: natskit.Servers):  # type: ignore[no-untyped-def]  # of a package that may not be there
    from ralf_integrations.stores.nats_store import NatsStore

    return NatsStore(servers.address, PROJECT, replicas=servers.count, key=natskit.KEY)


def _now(kind: str) -> str:
    """The stream of a kind that is written to now."""
    return f"{kind}-{int(time.time() / _BEGUN_ANEW)}"


def write(servers: natskit.Servers, name: str, told_in: Path, done: Path, begun: Moment) -> None:
    """Append until told to end; a line for each acknowledged record.

    begun  when the newest record that is acknowledged was asked for
    """
    store = _store(servers)
    dice = random.Random(name)
    heads: dict[str, str | None] = {}
    with told_in.open("w") as file:
        number = 0
        while not done.exists():
            number += 1
            stream, id_ = _now(dice.choice((KEPT, REPLACED))), f"{name}-{number}"
            record = json.dumps({"id": id_, "version": 0, "text": "x" * dice.randrange(_SIZE)}).encode()
            asked, end = time.monotonic(), 0.0
            while True:
                try:
                    token = store.append(stream, record, id=id_, after=heads.get(stream), is_new=True)
                except Conflict as conflict:
                    heads[stream] = conflict.head
                except Busy:
                    end = end or (time.monotonic() + _END if done.exists() else 0)
                    if end and time.monotonic() > end:
                        return
                else:
                    heads[stream] = token
                    answer = {"stream": stream, "id": id_, "token": token}
                    file.write(json.dumps(answer) + "\n")
                    file.flush()
                    with begun.get_lock():
                        begun.value = max(begun.value, asked)
                    break


def replace(servers: natskit.Servers, told_in: Path, done: Path) -> None:
    """Give all records of a stream a new version, over and over, and look whether all have one."""
    store, version = _store(servers), 0
    with told_in.open("w") as file:
        while not done.exists():
            version, stream = version + 1, _now(REPLACED)

            def changed(entry, version=version):  # type: ignore[no-untyped-def]
                return json.dumps({**json.loads(entry.record), "version": version}).encode()

            try:
                store.replace(stream, changed, wipe=version % 2 == 0)
                versions = [json.loads(entry.record)["version"] for entry in store.read(stream)]
                replaced = [each for each in versions if each]
                if len(set(replaced)) > 1 or versions[: len(replaced)] != replaced:
                    file.write(json.dumps({"torn": sorted(set(versions))}) + "\n")
            except Busy:
                continue
            time.sleep(0.2)


def moment() -> Moment:
    """One at the beginning of time."""
    return _FORKED.Value("d", 0.0)


@contextmanager
def working(
    works: Iterable[Callable[[], None]], done: Path, found: rig.Found, *, kills: bool = False
) -> Iterator[None]:
    """Have processes work for a block; then `done` is there, by which they end, or they are killed."""
    workers = [_FORKED.Process(target=work) for work in works]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        done.touch()
        for worker in workers:
            if kills:  # what it waits for may be lost
                worker.kill()
            worker.join(4 * _END)
            if worker.exitcode != 0 and not kills:
                found.note("failed", f"a process ended with {worker.exitcode}")
                worker.kill()


@contextmanager
def appending(
    servers: natskit.Servers, folder: Path, writers: int, found: rig.Found, *, kills: bool = False
) -> Iterator[Moment]:
    """Have processes append, and one replace, for a block; then look at what is there, and stop the servers."""
    done, begun = folder / "done", moment()
    names = [f"w{number}" for number in range(writers)]
    works = [partial(write, servers, name, folder / name, done, begun) for name in names]
    with working([*works, partial(replace, servers, folder / "replacing", done)], done, found, kills=kills):
        yield begun
    answers = [json.loads(line) for name in names for line in (folder / name).read_text().splitlines()]
    for line in (folder / "replacing").read_text().splitlines():
        found.note("torn", f"a reader saw records of several replacements: {line}")
    judge(servers, answers, found)
    servers.stop()


def run(given: Size, seed: int, _: Sequence[str]) -> rig.Found:
    """Kill and stop leaders while writers append, and look at what is there at the end."""
    found = rig.Found()
    with rig.store() as folder:
        servers = natskit.Servers(3, folder / "servers")
        servers.ready()
        with appending(servers, folder, given.writers, found) as begun:
            disturb(given, seed, servers, begun, found)
    return found


def disturb(given: Size, seed: int, servers: natskit.Servers, begun: Moment, found: rig.Found) -> None:
    """Kill and stop the leader of a stream in turn, and see that appends go on each time."""
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    gaps: list[float] = []
    led = time.monotonic()
    while sum(counts.values()) < given.kills:
        time.sleep(dice.uniform(0.0, 2.0) * given.every)
        leader = servers.leader(PROJECT)
        if leader is None:
            if time.monotonic() - led > PATIENCE:
                found.note("blocked", f"no server led the stream for {PATIENCE:.0f} s: is anybody at work?")
                return
            continue
        led = time.monotonic()
        at = time.monotonic()
        if sum(counts.values()) % 2:
            counts["pauses"] += 1
            servers.signal(leader, signal.SIGSTOP)
            try:
                if dice.random() < 0.5:
                    time.sleep(dice.uniform(0.2, _SHORT_PAUSE))
                else:
                    goes_on(begun, at)
            finally:
                servers.signal(leader, signal.SIGCONT)
        else:
            counts["kills"] += 1
            servers.signal(leader, signal.SIGKILL)
            time.sleep(dice.uniform(0, 2))
            servers.start(leader)
        if not goes_on(begun, at):
            found.note("blocked", f"no append within {PATIENCE:.0f} s after {dict(counts)}")
        gaps.append(time.monotonic() - at)
    servers.ready()
    gaps.sort()
    found.figures["leaders killed and stopped"] = f"{counts['kills']} and {counts['pauses']}"
    found.figures["appends go on, half and all within"] = f"{gaps[len(gaps) // 2]:.1f} s and {gaps[-1]:.1f} s"


def goes_on(begun: Moment, at: float, patience: float = PATIENCE) -> bool:
    """Wait until an append that was asked for after a moment is acknowledged; whether one was."""
    end = time.monotonic() + patience
    while begun.value <= at:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def judge(servers: natskit.Servers, answers: Sequence[dict[str, object]], found: rig.Found) -> None:
    """Look for what was acknowledged: each record is there, once, at the place that was answered."""
    store = _store(servers)
    found.acknowledged += len(answers)
    for stream in sorted({str(each["stream"]) for each in answers}):
        is_kept = stream.startswith(KEPT)
        acknowledged = {str(each["id"]): str(each["token"]) for each in answers if each["stream"] == stream}
        try:
            entries = list(store.read(stream))
        except RalfError as error:
            found.note("damaged", f"{stream}: {error}")
            continue
        counts = Counter(entry.id for entry in entries)
        for id_ in acknowledged:
            if counts[id_] != 1:
                found.note("lost" if not counts[id_] else "doubled", f"{stream}: {id_} stands {counts[id_]} times")
        if is_kept:
            places = {entry.id: entry.token for entry in entries}
            for id_, token in acknowledged.items():
                if places.get(id_, token) != token:
                    found.note("moved", f"{id_} was answered as {token} and is at {places[id_]}")
        for id_, token in acknowledged.items():  # again, long after any window for duplicates of the server's
            if not counts[id_]:
                continue
            try:
                again = store.append(stream, b'{"doubled":1}', id=id_, after=token)
            except (Conflict, UnknownToken) as error:
                found.note("doubled", f"{stream}: {id_} is not known any more: {error}")
                continue
            if is_kept and again != token:
                found.note("doubled", f"{id_} was answered as {token}, then as {again}")
        if len(list(store.read(stream))) != len(entries):
            found.note("doubled", f"{stream}: records that are there were appended again")


BROKEN = {"no compare and swap": lambda: patch("ralf_integrations.stores.nats_log._EXPECTED", "Ralf-Expected")}


if __name__ == "__main__":
    sys.exit(rig.command("nats", Size(), run, broken=BROKEN, why_not=natskit.absent))
