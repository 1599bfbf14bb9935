"""NATS servers that lose their power while writers append: what was acknowledged is there, once.

Each server keeps its store on a disk of its own that logs every block and every flush (`blocklog`). A power loss kills
the server and lays its disk out again: what was safe, and any blocks of what was not. Then the server starts on it.
One server of three loses its power while the others go on, and the leader is killed as soon as it is back, so that
its store decides; or all servers lose it at once. Linux and root only.

    python -m tests.faults.nats_power                     three servers, `sync_interval: always`: 30 power losses
    python -m tests.faults.nats_power --servers 1
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests import natskit
from tests.faults import blocklog, nats, power, rig

IMAGE_BYTES = 128 << 20
_LOAD = 1.5  # seconds of appends between two losses, about
_DEFAULT_PATIENCE = 15.0  # seconds in which appends go on where servers may have lost what they go on from


@dataclass(frozen=True)
class Size:
    """What is done: how many servers lose their power how often, with so many writers."""

    servers: int = 3
    losses: int = 30
    writers: int = 3


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


_IS_DEFAULT = False  # without `sync_interval`, which has to be found


def run(given: Size, seed: int, folder: Path) -> rig.Found:
    """Cut the power while writers append, and look at what is there at the end. In a process of its own."""
    natskit.dies_with_parent()
    blocklog.own_mounts()
    found = rig.Found()
    servers = natskit.Servers(given.servers, folder / "servers", always=not _IS_DEFAULT)
    disks = Disks(folder, servers)
    servers.ready()
    with nats.appending(servers, folder, given.writers, found, kills=_IS_DEFAULT) as begun:
        _lose(given, random.Random(seed), servers, disks, begun, found)
    disks.close()
    return found


def _lose(
    given: Size, dice: random.Random, servers: natskit.Servers, disks: Disks, begun: nats.Moment, found: rig.Found
) -> None:
    """Cut the power of one server and of all in turn, and see that appends go on each time."""
    patience = _DEFAULT_PATIENCE if _IS_DEFAULT else nats.PATIENCE
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


BROKEN = {"servers that sync by themselves": lambda: patch.dict(globals(), _IS_DEFAULT=True)}


def _apart(given: Size, seed: int, _: Sequence[str]) -> rig.Found:
    with rig.store() as folder:
        return rig.apart(lambda: run(given, seed, folder))


if __name__ == "__main__":
    sys.exit(rig.command("nats_power", Size(), _apart, broken=BROKEN, why_not=why_not))
