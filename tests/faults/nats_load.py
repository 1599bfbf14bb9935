"""Runs of agents served by many workers on three NATS servers: what a save costs, and whether anything grows.

Each worker is a process. It takes a run that nobody has, does some turns of it (one call that is made once, a state of
20 KB, the decision to continue), releases it and takes another one. After each save it publishes the same bytes with
the client's own JetStream publish and an expected sequence, to a stream with as many replicas: what a save costs is
told beside that, by the same process at the same time. Memory, open files and bytes are looked at all the while.

The sizes by which old states are dropped are a thousandth of what they are, so that each run drops some within
minutes: it has grown by 18 states then, later by 11. Every second publish comes before its save: what comes second
finds the servers warm.

    python -m tests.faults.nats_load                        100 runs, 20 workers, ten minutes
    python -m tests.faults.nats_load --minutes 1 --runs 10 --workers 4
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import natskit
from tests.faults import rig

from ralf import project as projects
from ralf.agent import states
from ralf.agent.run import AgentRun
from ralf.agent.steplog import StepLog
from ralf.errors import Busy, Claimed

SIZE = 20_000  # bytes of a state
MOST_RATIO = 1.5  # of a save to a publish
_FLAT = 1.25  # of the last minute to the first one
_GROWN = 1.15  # of what is there at most in the last quarter to the same of the one before; till then runs grow
_PROJECT = "load"
_RAW = "RAW"
_RAW_BYTES = 32 << 20  # that the stream of the publishes has at most
_SMALLER = 1024  # times, than they are, are here the sizes by which old states are dropped
_TURNS = 3  # of a run before a worker takes another one
_LONG = 300.0  # seconds of a run that tells whether anything grows
_KEPT = 60  # states that a run holds at most: some 18 before the first are dropped, then 11
_LOOK = 5.0  # seconds between two looks at what is used


@dataclass(frozen=True)
class Run:
    """How many runs, workers and minutes, and how many seconds a turn thinks on average."""

    runs: int = 100
    workers: int = 20
    minutes: float = 10.0
    thinks: float = 2.0


_write = StepLog.write
BROKEN = {
    "old states stay": lambda: patch.object(states, "is_due", lambda _: False),
    "saved twice": lambda: patch.object(StepLog, "write", lambda *given: (_write(*given), _write(*given))[1]),
}
USED = (
    *("MB of the workers", "open files of the workers", "MB of the servers", "open files of the servers"),
    *("MB on a server's disk", "files on a server's disk"),
)
TARGETS = {
    "save to publish, medians": f"≤ {MOST_RATIO}",
    "save to publish, last minute to first": f"≤ {_FLAT}",
    **{f"{name}, third and last quarter, at most": f"≤ {_GROWN} of it" for name in USED},
}


def _state(number: int) -> bytes:
    """A conversation that was cut to a size, of other words in each turn: servers compress what they send each other,
    and one line again and again would cost them nothing.
    """
    dice = random.Random(number)
    return " ".join(dice.choices(_WORDS, k=SIZE // 4)).encode()[:SIZE]


_WORDS = [word for word in Path(__file__).read_text(encoding="utf-8").split() if word.isascii()]


class _Raw:
    """The client's own publish, with an expected sequence."""

    def __init__(self, servers: natskit.Servers, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers = servers
        self._subject = f"raw.{name}"
        self._seq = 0
        self._stream: Any = self._loop.run_until_complete(self._connected())

    async def _connected(self) -> Any:
        import nats
        from nats.js.api import StreamConfig

        client = await nats.connect(list(self._servers.urls()))
        stream = client.jetstream(timeout=20)
        config = StreamConfig(_RAW, subjects=["raw.>"], num_replicas=self._servers.count, max_bytes=_RAW_BYTES)
        await stream.add_stream(config)
        return stream

    def publish(self, content: bytes) -> None:
        """Publish once, durably."""
        headers = {"Nats-Expected-Last-Subject-Sequence": str(self._seq)}
        self._seq = self._loop.run_until_complete(self._stream.publish(self._subject, content, headers=headers)).seq


def _work(given: Run, servers: natskit.Servers, root: Path, name: str, end: float) -> None:
    """Serve runs until the end; a line for each save: when, what it took, and what a publish took."""
    from ralf_integrations.stores.nats_store import NatsStore

    dice = random.Random(name)
    with ExitStack() as stack:
        for size in ("LEAST", "ROOM", "_WEIGHT"):
            stack.enter_context(patch.object(states, size, getattr(states, size) // _SMALLER))
        store = NatsStore(servers.address, _PROJECT, replicas=3, key=natskit.KEY)
        stack.enter_context(patch.object(projects, "open_store", lambda *_, **__: store))
        raw = _Raw(servers, name)
        file = stack.enter_context((root / name).open("w"))
        while time.monotonic() < end:
            run = f"run-{dice.randrange(given.runs)}"
            try:
                for line in _turns(given, run, root, name, raw, dice):
                    file.write(json.dumps(line) + "\n")
                    file.flush()
            except Claimed:
                continue
            except Busy as error:
                file.write(json.dumps({"busy": str(error)}) + "\n")


def _turns(given: Run, name: str, root: Path, by: str, raw: _Raw, dice: random.Random) -> Iterator[dict[str, float]]:
    with AgentRun(name, root=root, by=by) as run:
        for _ in range(_TURNS):
            known = run.load() or b""
            assert len(known) in (0, SIZE)
            run.once("model", lambda _: time.sleep(dice.uniform(0, 2 * given.thinks)) or "answered")
            state = _state(run.iteration)
            took = {"at": time.monotonic()}
            calls: list[tuple[str, Callable[[bytes], object]]] = [("save", run.save), ("raw", raw.publish)]
            for what, call in calls if dice.random() < 0.5 else calls[::-1]:
                begin = time.monotonic()
                call(state)
                took[what] = time.monotonic() - begin
            yield took
            run.continue_with()


# ---- what is used ----


def _used(processes: Sequence[int]) -> tuple[float, int]:
    """Megabytes in memory and open files of processes."""
    pages = files = 0
    for process in processes:
        try:
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
            files += len(os.listdir(f"/proc/{process}/fd"))
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, files


def _kept(servers: natskit.Servers) -> tuple[float, int]:
    """Megabytes on the disk and the number of files of the first server's streams."""
    size = count = 0
    for folder, _, names in os.walk(servers.folder / "n0" / "jetstream"):
        for name in names:
            try:
                size += os.stat(os.path.join(folder, name)).st_blocks * 512
                count += 1
            except OSError:
                continue
    return size / 1e6, count


def run(given: Run) -> rig.Found:
    """Have workers serve runs, and judge what their saves took and what was used."""
    with rig.store() as folder:
        return _run(given, folder)


def _run(given: Run, folder: Path) -> rig.Found:
    servers = natskit.Servers(3, folder / "servers")
    servers.ready()
    root = folder / "project"
    root.mkdir()
    forked = multiprocessing.get_context("fork")
    begin = time.monotonic()
    end = begin + given.minutes * 60
    names = [f"w{number}" for number in range(given.workers)]
    workers = [forked.Process(target=_work, args=(given, servers, root, name, end)) for name in names]
    for worker in workers:
        worker.start()
    looks: list[dict[str, float]] = []
    while time.monotonic() < end:
        time.sleep(_LOOK)
        memory, files = _used([worker.pid or 0 for worker in workers])
        theirs, open_ = _used([process.pid for process in servers.processes if process is not None])
        size, count = _kept(servers)
        used = dict(zip(USED, (memory, files, theirs, open_, size, count), strict=True))
        looks.append({"at": time.monotonic() - begin, "load": os.getloadavg()[0], **used})
        if len(looks) % 12 == 0:
            print("  " + ", ".join(f"{name}: {value:.0f}" for name, value in looks[-1].items()), file=sys.stderr)
    found = rig.Found()
    for worker in workers:
        worker.join(120)
        if worker.exitcode != 0:
            found.note("failed", f"a worker ended with {worker.exitcode}")
            worker.kill()
    found.note("grown", *_states_beyond(servers, root, given.runs))
    servers.stop()
    lines = [json.loads(line) for name in names for line in (root / name).read_text().splitlines()]
    found.note("busy", str([line for line in lines if "busy" in line][:1]), sum("busy" in line for line in lines))
    saves = [{**line, "at": line["at"] - begin} for line in lines if "save" in line]
    found.acknowledged = len(saves)
    judged(given, saves, looks, found)
    return found


def _states_beyond(servers: natskit.Servers, root: Path, runs: int) -> tuple[str, int]:
    """The runs that hold more states than they may, and how many they are."""
    from ralf_integrations.stores.nats_store import NatsStore

    store = NatsStore(servers.address, _PROJECT, replicas=3, key=natskit.KEY)
    with patch.object(projects, "open_store", lambda *_, **__: store):
        project, names = projects.find(root), [f"run-{number}" for number in range(runs)]
        held = {name: StepLog(project, name, "main").look().held // SIZE for name in names}
    beyond = {name: count for name, count in held.items() if count > _KEPT}
    return f"states of a run: {beyond}", len(beyond)


def judged(given: Run, saves: Sequence[dict[str, float]], looks: Sequence[dict[str, float]], found: rig.Found) -> None:
    """Note what became slower or grew, and the figures."""

    def median(name: str, since: float, until: float) -> float:
        return statistics.median(one[name] for one in saves if since <= one["at"] < until) * 1e3

    whole = given.minutes * 60
    part = min(60.0, whole / 4)
    first, last = (part / 2, part * 1.5), (whole - part, whole)  # the connections are made before
    told = found.figures
    told["saves"] = f"{len(saves):,}"
    ratio = median("save", 0, whole) / median("raw", 0, whole)
    spread = statistics.quantiles([one["save"] / one["raw"] for one in saves], n=20)
    told[f"save of {SIZE:,} bytes"] = f"{median('save', 0, whole):.1f} ms"
    told["publish of as many"] = f"{median('raw', 0, whole):.1f} ms"
    told["save to publish, medians"] = f"{ratio:.2f}"
    told["save to publish, one in twenty below and above"] = f"{spread[0]:.2f} and {spread[-1]:.2f}"
    if ratio > MOST_RATIO:
        found.note("slow", f"a save takes {ratio:.2f} times what a publish takes")
    ratios = [median("save", *each) / median("raw", *each) for each in (first, last)]
    for name in ("save", "raw"):
        told[f"{name}, first and last minute, ms"] = " and ".join(
            f"{median(name, *each):.1f}" for each in (first, last)
        )
    told["save to publish, last minute to first"] = f"{ratios[1] / ratios[0]:.2f}"
    if ratios[1] / ratios[0] > _FLAT:
        found.note("slower", f"a save to a publish went from {ratios[0]:.2f} to {ratios[1]:.2f}")
    half, most = len(looks) // 2, len(looks) * 3 // 4
    for name in looks[0]:
        if name in ("at", "load"):
            continue
        if whole < _LONG:
            continue
        before, after = (max(one[name] for one in each) for each in (looks[half:most], looks[most:]))
        told[f"{name}, third and last quarter, at most"] = f"{before:.0f} and {after:.0f}"
        if after > _GROWN * before:
            found.note("grown", f"{name}: {before:.0f}, then {after:.0f}")
    told["load of the machine"] = f"{statistics.fmean(one['load'] for one in looks):.1f}"


if __name__ == "__main__":
    status = rig.command(
        "nats_load",
        Run,
        lambda how, _: run(how),
        title="{runs} runs, {workers} workers, {minutes:g} min",
        of="saves",
        faults=(),
        broken=BROKEN,
        targets=TARGETS,
        why_not=natskit.absent,
    )
    sys.exit(status)
