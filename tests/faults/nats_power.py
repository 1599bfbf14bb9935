"""NATS servers that lose their power while writers append: what was acknowledged is there, once.

Each server keeps its store on a disk of its own that logs every block and every flush (`blocklog`). A power loss kills
the server and lays its disk out again: what was safe, and any blocks of what was not. Then the server starts on it.
One server of three loses its power while the others go on, and the leader is killed as soon as it is back, so that
its store decides; or all servers lose it at once. Linux and root only.

    python -m tests.faults.nats_power                     three servers, `sync_interval: always`: 30 power losses
    python -m tests.faults.nats_power --servers 1
    python -m tests.faults.nats_power --losses 2 --default     the server's own default loses records
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests import natskit
from tests.faults import blocklog, nats, power, rig
from tests.faults.figures import told

IMAGE_BYTES = 128 << 20
_LOAD = 1.5  # seconds of appends between two losses, about
_DEFAULT_PATIENCE = 15.0  # seconds in which appends go on where servers may have lost what they go on from
_END = 90.0  # seconds that a writer has for its last append


@dataclass(frozen=True)
class Run:
    """What is done: how many servers lose their power how often, with so many writers, and whether they sync always."""

    servers: int
    losses: int
    writers: int
    seed: int
    always: bool


class Disks:
    """The logged disks of servers, each mounted where one keeps its store. To be used in a namespace of its own."""

    def __init__(self, folder: Path, servers: natskit.Servers) -> None:
        self._folder = folder
        self._servers = servers
        self._disks: list[tuple[ExitStack, blocklog.Disk]] = []
        self._made = 0
        blank = folder / "blank"
        with blank.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        options = ("-b", str(blocklog.BLOCK), "-J", "size=4", "-O", "^resize_inode")
        power.call("mkfs.ext4", "-q", "-F", *options, str(blank))
        (mounted := folder / "mounted").mkdir()
        power.mount(blank, mounted, "ordered")
        (mounted / "lost+found").rmdir()  # a server takes it for an account
        power.call("umount", str(mounted))
        for number in range(servers.count):
            self._store(number).mkdir(parents=True)
            self._disks.append(self._mounted(number, blank.read_bytes()))

    def _store(self, number: int) -> Path:
        return self._servers.folder / f"n{number}" / "jetstream"

    def _mounted(self, number: int, image: bytes) -> tuple[ExitStack, blocklog.Disk]:
        self._made += 1
        stack = ExitStack()
        path = self._folder / f"disk-{self._made}"
        disk = stack.enter_context(blocklog.logged(image, path, []))
        power.mount(disk.path, self._store(number), "ordered")
        stack.callback(power.call, "umount", str(self._store(number)))
        return stack, disk

    def lose_power(self, numbers: Sequence[int], dice: random.Random) -> None:
        """Kill servers at once, and lay out their disks as they may be found afterwards."""
        for number in numbers:
            process = self._servers.processes[number]
            if process is not None:
                process.kill()
        for number in numbers:
            self._servers.signal(number, signal.SIGKILL)
            stack, disk = self._disks[number]
            left = self._folder / "left"
            disk.cut(left, dice.randrange(1 << 30))
            stack.close()
            self._disks[number] = self._mounted(number, left.read_bytes())
            left.unlink()

    def close(self) -> None:
        """Unmount them."""
        for stack, _ in self._disks:
            stack.close()


def why_not() -> str:
    """Why no power can be cut here, "" where it can."""
    return natskit.absent() or power.why_not()


def run(given: Run, folder: Path) -> rig.Found:
    """Cut the power while writers append, and look at what is there at the end. In a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(read)
            natskit.dies_with_parent()
            blocklog.own_mounts()
            found = _run(given, folder)
            with os.fdopen(write, "w") as file:
                json.dump([found.acknowledged, found.faults, found.examples, found.figures], file)
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the harness itself failed; see above")
    acknowledged, faults, examples, figures = json.loads(text)
    return rig.Found(given.losses, acknowledged, Counter(faults), examples, figures)


def _run(given: Run, folder: Path) -> rig.Found:
    found = rig.Found()
    servers = natskit.Servers(given.servers, folder / "servers", always=given.always)
    disks = Disks(folder, servers)
    servers.ready()
    done = folder / "done"
    forked = multiprocessing.get_context("fork")
    begun: nats.Moment = forked.Value("d", 0.0)
    names = [f"w{number}" for number in range(given.writers)]
    workers = [forked.Process(target=nats.write, args=(servers, name, folder / name, done, begun)) for name in names]
    workers.append(forked.Process(target=nats.replace, args=(servers, folder / "replacing", done)))
    for worker in workers:
        worker.start()
    try:
        _lose(given, servers, disks, begun, found)
    finally:
        done.touch()
        for worker in workers:
            if not given.always:  # what it waits for may be lost
                worker.kill()
            worker.join(_END + 60)
            if worker.exitcode is None:
                found.note("blocked", "a worker does not end")
                worker.kill()
                worker.join()
    answers = [json.loads(line) for name in names for line in (folder / name).read_text().splitlines()]
    for line in (folder / "replacing").read_text().splitlines():
        found.note("torn", f"a reader saw records of several replacements: {line}")
    nats.judge(servers, answers, found)
    servers.stop()
    disks.close()
    return found


def _lose(given: Run, servers: natskit.Servers, disks: Disks, begun: nats.Moment, found: rig.Found) -> None:
    """Cut the power of one server and of all in turn, and see that appends go on each time."""
    dice = random.Random(given.seed)
    patience = nats.PATIENCE if given.always else _DEFAULT_PATIENCE
    nats.goes_on(begun, time.monotonic())
    counts: Counter[str] = Counter()
    longest = 0.0
    for number in range(given.losses):
        time.sleep(dice.uniform(0, 2 * _LOAD))
        kind = "one" if given.servers > 1 and number % 2 else "all"
        counts[kind] += 1
        try:
            at = _lose_of(kind, servers, disks, dice, patience)
        except AssertionError:
            found.note("blocked", f"servers do not come back within {patience:.0f} s after {dict(counts)}")
            return
        if not nats.goes_on(begun, at, patience):
            found.note("blocked", f"no append within {patience:.0f} s after {dict(counts)}")
            return
        longest = max(longest, time.monotonic() - at)
        if number % 10 == 9:
            print(f"  {dict(counts)}, the longest gap {longest:.1f} s", file=sys.stderr, flush=True)
    found.figures["power losses of one and of all"] = f"{counts['one']} and {counts['all']}"
    found.figures["appends go on within"] = f"{longest:.1f} s"


def _lose_of(kind: str, servers: natskit.Servers, disks: Disks, dice: random.Random, patience: float) -> float:
    """Cut the power of one server or of all, and start them; when the last one was killed. AssertionError where they do
    not come back.
    """
    at = time.monotonic()
    if kind == "all":
        disks.lose_power(range(servers.count), dice)
        servers.ready(patience)
        return at
    leader = servers.leader(nats.PROJECT)
    others = [each for each in range(servers.count) if each != leader]
    victim = dice.choice(others) if leader is None or dice.random() < 0.5 else leader
    disks.lose_power([victim], dice)
    servers.ready(patience)
    leader = servers.leader(nats.PROJECT)  # the one that has everything; from now on the victim has to
    if leader is not None and leader != victim:
        at = time.monotonic()
        servers.signal(leader, signal.SIGKILL)
        servers.start(leader)
    return at


def main(args: Sequence[str] | None = None) -> int:
    """Run it, and print a line a figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.nats_power")
    parser.add_argument("--servers", type=int, choices=(1, 3), default=3, help="default: 3")
    parser.add_argument("--losses", type=int, default=30, help="power losses; default: 30")
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--default", action="store_true", help="servers without sync_interval: it has to be found")
    given = parser.parse_args(args)
    if why_not():
        print(why_not(), file=sys.stderr)
        return rig.SKIPPED
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ralf-nats-power-") as folder:
        how = Run(given.servers, given.losses, given.writers, given.seed, not given.default)
        found = run(how, Path(folder))
    title = f"{given.servers} NATS servers, sync_interval {'default' if given.default else 'always'}"
    kinds = dict.fromkeys(("lost", "doubled", "moved", "torn", "damaged", "blocked", *found.faults))
    figures: list[tuple[str, object, str]] = [
        (f"{title}: {kind}", f"{found.faults[kind]} of {found.acknowledged:,} acknowledged", "0") for kind in kinds
    ]
    figures += [(f"{title}: {name}", value, "") for name, value in found.figures.items()]
    figures.append((f"{title}: time", f"{time.monotonic() - begun:.0f} s", ""))
    return told(figures, [f"{kind}: {example}" for kind, example in found.examples.items()])


if __name__ == "__main__":
    sys.exit(main())
