"""Two machines that share nothing but a NATS server: a run killed on one goes on at the other, and a partition heals.

Each machine is a network namespace with a folder of its own for the project and for the user, and a cable (a pair of
veth devices) to the server, which is in a third one. They reach it over TLS, with a certificate made for the run.
Whatever a machine does is done by a process in its namespace. Linux and root only.

    python -m tests.faults.nats_machines                       take-overs and a partition
    python -m tests.faults.nats_machines --only take-overs --runs 20
    python -m tests.faults.nats_machines --only take-overs --broken "a lease for everybody"
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import natskit, storekit
from tests.certificates import Authority
from tests.clocks import slower
from tests.faults import power, rig, run_work
from tests.faults.rig import Notes
from tests.faults.run_work import repeated, went_back

from ralf import project as projects
from ralf.agent import AgentRun
from ralf.agent.records import stream_of
from ralf.errors import Busy, Claimed, Fenced, StaleLease
from ralf.maintenance import ownership
from ralf.storage import registry

LEASE = 15.0  # seconds
LATEST = LEASE + 2.0  # after a death, until the run goes on; on a slower machine more than two seconds
_POLL = 0.2  # seconds between two attempts to claim a run
_PATIENCE = 120.0
_KEY = "5e" * 32
_PASSWORD = "sea-9d41-harness"  # noqa: S105  # of a server that lives for minutes
_TURNS = 40
_CLONE_NEWNET, _CLONE_NEWNS, _PR_SET_PDEATHSIG = 0x40000000, 0x00020000, 1


@dataclass(frozen=True)
class Size:
    """How much is done: runs that are killed, rounds of a partition."""

    runs: int = 6
    partitions: int = 1


# ---- the network ----


@dataclass
class Machine:
    """A machine: its namespace, which the process `keeper` keeps, its folders, its end of the cable."""

    number: int
    folder: Path
    keeper: int = 0
    fingers: list[int] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.folder / "project"

    @property
    def home(self) -> Path:
        """The user's folder."""
        return self.folder / "home"

    @property
    def server(self) -> str:
        """The address at which it reaches the server."""
        return f"10.77.{self.number}.1"

    def attach(self) -> None:
        """Make the namespace and lay the cable."""
        read, write = os.pipe()
        self.keeper = os.fork()
        if not self.keeper:
            _dies_with_its_parent()
            _libc().unshare(_CLONE_NEWNET)
            os.write(write, b".")
            signal.pause()
        os.read(read, 1)
        ours, theirs = f"cable{self.number}", "cable"
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", str(self.keeper))
        _ip("addr", "add", f"{self.server}/30", "dev", ours)
        _ip("link", "set", ours, "up")
        self.wait(self.forked(self._raise))

    def _raise(self) -> None:
        _ip("addr", "add", f"10.77.{self.number}.2/30", "dev", "cable")
        _ip("link", "set", "cable", "up")
        _ip("link", "set", "lo", "up")

    def plug(self, *, in_: bool) -> None:
        """Put the cable in or pull it."""
        _ip("link", "set", f"cable{self.number}", "up" if in_ else "down")

    def forked(self, work: Callable[[], object]) -> int:
        """Do work on this machine, in a process of its own; its id."""

        def there() -> None:
            _dies_with_its_parent()
            descriptor = os.open(f"/proc/{self.keeper}/ns/net", os.O_RDONLY)
            if _libc().setns(descriptor, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "cannot enter the namespace")
            os.close(descriptor)
            os.environ.update(storekit.environment(self.home))
            os.chdir(self.root)
            work()

        return rig.forked(there)

    @staticmethod
    def wait(process: int) -> int:
        """Wait for a process of `forked`; its exit status."""
        return os.waitpid(process, 0)[1]

    def settle(self, ca: Path) -> None:
        """Opt in, and name the server; done on the machine."""
        ownership.init(projects.Project(self.root), share=False)
        registry.update(self.root, key=_KEY)
        path = storekit.context_of(self.root) / "config.local.yaml"
        path.write_text(
            "store: nats\n"
            f'nats_servers: ["tls://{self.server}:4222"]\nnats_project: harness\nnats_replicas: 1\n'
            f'nats_user: ralf\nnats_password: "{_PASSWORD}"\nnats_ca: "{ca}"\n'
        )
        storekit.allow(path)


def _ip(*words: str) -> None:
    power.call("ip", *words)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _dies_with_its_parent() -> None:
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A NATS server that asks for TLS and a password."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        folder.mkdir()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        authority = Authority(folder)
        self.ca, (certificate, key) = authority.path, authority.certificate(*hosts)
        (folder / "server.conf").write_text(
            f'listen: "0.0.0.0:4222"\nlog_file: "{folder}/log"\n'
            f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}\n'
            f'authorization {{ user: ralf, password: "{_PASSWORD}" }}\n'
            f'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'
        )

    def start(self) -> None:
        """Start it."""
        command = [str(natskit.BINARY), "-c", str(self._folder / "server.conf")]
        self._process = subprocess.Popen(command, preexec_fn=_dies_with_its_parent)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def why_not() -> str:
    """Why this cannot be done here, "" where it can."""
    missing = [name for name in ("ip",) if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    return natskit.absent() or (f"needs {', '.join(missing)}" if missing else "needs root" if os.geteuid() else "")


# ---- take-overs ----


def _latest() -> float:
    return LEASE + (LATEST - LEASE) * slower(time.monotonic)


def take_overs(size: Size, one: Machine, two: Machine, folder: Path, found: rig.Found) -> None:
    """Kill runs on one machine, while the other one tries to claim them all the time."""
    dice = random.Random(size.runs)
    notes = {f"run-{number}": Notes(folder / f"notes-{number}") for number in range(size.runs)}
    first = {run: one.forked(partial(_converse, one.root, run, notes[run])) for run in notes}
    second: dict[str, int] = {}
    killed: dict[str, float] = {}
    waiting = {run: dice.randrange(2, _TURNS // 2) for run in notes}
    end = time.monotonic() + _PATIENCE
    while waiting and time.monotonic() < end:
        for run, turns in list(waiting.items()):
            decided = len(notes[run].read("decided"))
            if decided and run not in second:
                second[run] = two.forked(partial(_take, two.root, run, notes[run]))
            if notes[run].read("claimed"):
                found.note("false take-over", f"{run} was claimed while its holder lived")
                os.kill(first[run], signal.SIGKILL)
                one.wait(first[run])
                del waiting[run]
            elif run in second and decided >= turns and notes[run].read("tries"):
                os.kill(first[run], signal.SIGKILL)
                killed[run] = time.time()
                notes[run]("killed", run=run)
                one.wait(first[run])
                del waiting[run]
        time.sleep(0.02)
    for run in waiting:
        found.note("stuck", f"{run}: {len(notes[run].read('decided'))} turns within {_PATIENCE:.0f} s")
        os.kill(first[run], signal.SIGKILL)
    took = []
    for run, process in second.items():
        if two.wait(process):
            found.note("failed", f"{run}: the second machine's process failed")
            continue
        claimed = notes[run].read("claimed")
        if run not in killed or not claimed:
            found.note("stuck", f"{run} was not taken over")
            continue
        took.append(claimed[0]["at"] - killed[run])
        found.acknowledged += 1
        if took[-1] < 0:
            found.note("false take-over", f"{run} was claimed {-took[-1]:.1f} s before its holder died")
        if took[-1] > LATEST and took[-1] > _latest():
            found.note("late", f"{run} went on after {took[-1]:.1f} s")
        for fault, example in (*repeated(notes[run].read()), *went_back(notes[run].read())):
            found.note(fault, example)
        expected = run_work.conversation(_TURNS)
        if notes[run].read("ended")[-1:] != [] and notes[run].read("ended")[-1]["state"] != expected:
            found.note("older", f"{run}: the state is not that of {_TURNS} turns")
    if took:
        found.figures[f"take-overs: {len(took)}, from the death until the run goes on"] = (
            f"{min(took):.1f} to {max(took):.1f} s"
        )


def _converse(root: Path, run: str, notes: Notes) -> None:
    run_work.converse(root, run, notes, _TURNS)


def _take(root: Path, run: str, notes: Notes) -> None:
    """Claim a run as soon as it can be claimed, and finish it."""
    while True:
        try:
            with AgentRun(run, root=root) as held:
                is_open = held.is_open
                notes("claimed", run=run, open=is_open)
            break
        except Claimed:
            if not notes.read("tries"):
                notes("tries", run=run)
            time.sleep(_POLL)
    _converse(root, run, notes)
    notes("ended", run=run, state=json.loads(AgentRun(run, root=root).peek() or b"{}"))


# ---- a partition ----


def partition(size: Size, one: Machine, two: Machine, folder: Path, found: rig.Found) -> None:
    """Pull the cable of the machine that has a run; the other takes it over; put the cable in again."""
    for number in range(size.partitions):
        run, notes = f"cut-{number}", Notes(folder / f"cut-{number}")
        zombie = one.forked(partial(_insist, one.root, run, notes))
        rig.until(lambda notes=notes: notes.read("saved"), _PATIENCE)  # type: ignore[misc]
        one.plug(in_=False)
        cut = time.time()
        heir = two.forked(partial(_inherit, two.root, run, notes))
        if two.wait(heir):
            found.note("failed", "the second machine's process failed")
        time.sleep(5.0)
        one.plug(in_=True)
        if one.wait(zombie):
            found.note("failed", "the first machine's process failed")
        claimed = notes.read("claimed")
        if claimed:
            after = claimed[0]["at"] - cut
            found.figures["partition: from the cut until the run goes on at the other machine"] = f"{after:.1f} s"
            if after < LEASE - 5.0:
                found.note("false take-over", f"{run}: {after:.1f} s after the cut")
            if after > LATEST and after > _latest():
                found.note("late", f"{run}: {after:.1f} s after the cut")
        if not notes.read("fenced") or not notes.read("refused"):
            found.note("unfenced", f"{run}: the holder that was cut off was told {[n['what'] for n in notes.read()]}")
        late = [note for note in notes.read("saved") if note["at"] > cut + 1.0 and note["by"] == "first"]
        if late:
            found.note("unfenced", f"{run}: what the first machine saved after the cut was acknowledged: {late[0]}")
        _judge_run(one, two, run, found)


def _insist(root: Path, run: str, notes: Notes) -> None:
    """Save, over and over, until somebody else has the run."""
    with AgentRun(run, root=root) as held:
        number = 0
        while True:
            number += 1
            try:
                held.save(f"first {number}".encode())
                notes("saved", by="first", number=number)
            except Fenced:
                notes("fenced")
            except StaleLease as error:
                notes("refused", error=str(error))
                return
            time.sleep(0.1)


def _inherit(root: Path, run: str, notes: Notes) -> None:
    while True:
        try:
            with AgentRun(run, root=root) as held:
                kept = (held.load() or b"").decode()
                notes("claimed", kept=kept)
                held.save(f"second after {kept}".encode())
                notes("saved", by="second", number=0)
        except Claimed:
            time.sleep(_POLL)
        else:
            return


def _judge_run(one: Machine, two: Machine, run: str, found: rig.Found) -> None:
    """Both machines see one history, which ends with what the second one saved."""
    seen = [_read_there(machine, run) for machine in (one, two)]
    if seen[0] != seen[1] or not seen[0]:
        found.note("forked", f"{run}: the machines see different histories")
    trees = [json.loads(line) for line in json.loads(seen[0] or "[]")]
    numbers = [tree["number"] for tree in trees if tree["kind"] == "saved"]
    terms = [tree["term"] for tree in trees if tree["kind"] == "claimed"]
    texts = [tree["state"].get("text", "") for tree in trees if tree["kind"] == "saved"]
    if numbers != list(range(1, len(numbers) + 1)) or terms != [1, 2]:
        found.note("forked", f"{run}: states {numbers}, terms {terms}")
    if not texts or texts[-1] != f"second after {texts[-2]}":
        found.note("older", f"{run}: ends with {texts[-2:]}")
    found.acknowledged += len(numbers)


def _read_there(machine: Machine, run: str) -> str:
    """The records of a run, as a machine reads them, as JSON."""
    pipe = rig.Pipe()

    def read() -> None:
        entries = projects.find(machine.root).store.read(stream_of(run, "main"))
        pipe.acknowledge(json.dumps([entry.record.decode() for entry in entries]))

    process = machine.forked(read)
    text = pipe.text().strip()
    machine.wait(process)
    return text


KINDS = {"take-overs": take_overs, "partition": partition}


def for_everybody() -> AbstractContextManager[object]:
    from ralf_integrations.stores.nats_leases import NatsLeases

    take = NatsLeases.take

    def take_from_anybody(self: Any, name: str, holder: str, *, seconds: float = 0.0) -> str:
        if (known := self.holder(name)) is not None:
            with suppress(Fenced, Busy):
                self.release(name, self.resume(name, known))
        return str(take(self, name, holder, seconds=seconds))

    return patch.object(NatsLeases, "take", take_from_anybody)


BROKEN = {"a lease for everybody": for_everybody}


def run(size: Size, kinds: Sequence[str], folder: Path) -> rig.Found:
    """Do it; in a process of its own, with whose end its namespaces go."""
    _dies_with_its_parent()
    _libc().unshare(_CLONE_NEWNET)
    _ip("link", "set", "lo", "up")
    machines = [Machine(number, folder / f"machine-{number}") for number in (1, 2)]
    server = Server(folder / "server", [each.server for each in machines])
    found = rig.Found()
    with ExitStack() as stack:
        for each in machines:
            each.root.mkdir(parents=True)
            each.home.mkdir()
            each.attach()
            stack.callback(os.kill, each.keeper, signal.SIGKILL)
            if each.wait(each.forked(partial(each.settle, server.ca))):
                raise RuntimeError("a machine cannot be made")
        server.start()
        stack.callback(server.stop)
        for kind in kinds:
            KINDS[kind](size, *machines, folder, found)
    return found


def _apart(size: Size, _: int, only: Sequence[str]) -> rig.Found:
    with rig.store() as folder:
        return rig.apart(lambda: run(size, only, folder))


if __name__ == "__main__":
    sys.exit(rig.command("nats_machines", Size(), _apart, kinds=KINDS, broken=BROKEN, why_not=why_not))
