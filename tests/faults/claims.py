"""Many who want one task at once: one gets it, the others are told who has it, and nobody keeps it beyond his death.

Warm processes behind a gate; workers that take a long list down among them; claimers that are killed at
random moments; holders that die, fall silent, or are busy. What was answered is judged by `tests.faults.tenure`.

    python -m tests.faults.claims                       1,000 rounds, and the rest
    python -m tests.faults.claims --rounds 100 --only "one winner"
"""

from __future__ import annotations

import json
import mmap
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.clocks import slower
from tests.faults import rig, tasked, tenure
from tests.faults.tenure import Answer, Span

from ralf.errors import Busy, RalfError
from ralf.storage import locks
from ralf.tasks import claims, editing, store

MOST_LATE = 2.0  # seconds after a lease, or a known holder's death, within which its task is claimed again
_MOST_WAITED = 2.0  # seconds that the last of 32 may wait for its answer, on a machine with nothing else to do
_A_STORE = 100  # rounds before a new store is begun, so that every round costs the same
_ANSWERS = 120.0  # seconds; who takes longer hangs
_IDLE = 30.0  # seconds without a task after which a worker ends though some are left
_LONGEST = 0.1  # seconds from the start of a claimer to its death, at most


@dataclass(frozen=True)
class Size:
    """How much is done of each kind."""

    rounds: int = 1_000
    racers: int = 32
    workers: int = 16
    tasks: int = 500
    kills: int = 100


# ---- one winner ----


def one_winner(size: Size, dice: random.Random, found: rig.Found) -> None:
    """Warm processes behind a gate: for one task, for a dead holder's, for any of a few."""
    waits: list[float] = []
    done = 0
    while done < size.rounds and not found.faults["silent"]:
        count = min(_A_STORE, size.rounds - done)
        with rig.store() as root:
            _rounds(root, count, size.racers, dice, found, waits)
        done += count
    found.acknowledged += done
    found.figures[f"{done:,} rounds of {size.racers}, first and last answer, p50"] = _figures(waits)
    if statistics.median(waits[1::2] or [0.0]) > _MOST_WAITED:
        found.note("slow", f"the last of {size.racers} has its answer after {_figures(waits).split(', ')[1]}")


def _figures(waits: Sequence[float]) -> str:
    halves = (waits[::2], waits[1::2])
    return ", ".join(f"{statistics.median(half or [0.0]) * 1e3:.0f} ms" for half in halves)


class _Board:
    """Memory that all racers see: what the round is about."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def write(self, task: str) -> None:
        self._memory[:64] = task.encode().ljust(64)

    def read(self) -> str:
        return bytes(self._memory[:64]).decode().strip()


def _rounds(root: Path, count: int, racers: int, dice: random.Random, found: rig.Found, waits: list[float]) -> None:
    gate, board, pipe = tasked.Gate(root), _Board(), rig.Pipe()
    names = [f"racer-{number}" for number in range(racers)]
    children = [rig.forked(partial(_race, root, name, count, gate, board, pipe)) for name in names]
    os.close(pipe.write)
    lines = _Lines(pipe)
    spare = tasked.added(root, 1, name="First")
    last: dict[str, int] = {}
    try:
        for number in range(count):
            kind = ("one", "one", "dead", "any")[number % 4]
            if kind == "any":
                spare += tasked.added(
                    root, dice.randint(0, max(0, min(4, racers - len(spare)))), name=f"Round {number}, table"
                )
            if kind == "dead":
                _die_with(root, spare[0])
            board.write("" if kind == "any" else spare[0])
            ready = spare if kind == "any" else spare[:1]
            begun = time.monotonic()
            gate.open(number)
            answers, times = lines.answers(racers)
            gate.shut(number)
            waits += (times[0] - begun, times[-1] - begun) if times else ()
            for fault, example in tenure.raced(answers, names, ready):
                found.note(fault, f"{kind}: {example}")
            if len(answers) < racers:
                break
            numbers = [(answer.task, answer.number) for answer in answers if answer.outcome == "won"]
            for fault, example in tenure.fenced([*last.items(), *numbers]):
                found.note(fault, example)
            last.update(numbers)
            given = {answer.task for answer in answers if answer.outcome == "won"}
            spare = [task for task in spare if task not in given] + _ended(root, answers, dice, found)
            spare = spare or tasked.added(root, 1, name=f"After round {number}")
    finally:
        gate.close()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    _look(root, found, "rounds")


def _race(root: Path, name: str, count: int, gate: tasked.Gate, board: _Board, pipe: rig.Pipe) -> None:
    for number in range(count):
        gate.wait(number)
        answer = tasked.asked(root, number, name, board.read() or None)
        pipe.acknowledge(json.dumps(answer))


class _Lines:
    """The answers, as they come."""

    def __init__(self, pipe: rig.Pipe) -> None:
        self._read = pipe._read
        self._rest = b""

    def answers(self, count: int) -> tuple[list[Answer], list[float]]:
        """So many, and when each came; fewer when somebody hangs."""
        found: list[Answer] = []
        times: list[float] = []
        while len(found) < count and select.select([self._read], [], [], _ANSWERS)[0]:
            data = os.read(self._read, 1 << 16)
            if not data:
                break
            *lines, self._rest = (self._rest + data).split(b"\n")
            found += [Answer(*json.loads(line)) for line in lines]
            times += [time.monotonic()] * len(lines)
        return found, times


def _die_with(root: Path, task: str) -> None:
    """Have somebody die who holds the task, and whose process the claim names."""

    def hold() -> None:
        assert tasked.asked(root, -1, "dead", task, known=True).outcome == "won"

    os.waitpid(rig.forked(hold), 0)


def _ended(root: Path, answers: Sequence[Answer], dice: random.Random, found: rig.Found) -> list[str]:
    """Have each winner give its task back or complete it; those that are ready again."""
    ready = []
    for answer in answers:
        if answer.outcome != "won":
            continue
        lease = f"{answer.task}:{answer.number}"
        try:
            if dice.random() < 0.7:
                claims.release(answer.task, lease=lease, by=answer.by, root=root)
                ready.append(answer.task)
            else:
                claims.done("The table is carried over.", task=answer.task, lease=lease, by=answer.by, root=root)
        except RalfError as error:
            found.note("failed", f"the winner could not end its claim: {error!r}")
    return ready


def _look(root: Path, found: rig.Found, when: str) -> None:
    """Look at a store at rest."""
    for fault, example in tenure.of_records(tenure.records(root)):
        found.note(fault, f"{when}: {example}")
    for task, status in tenure.statuses(root).items():
        if " and " in status:
            found.note("doubled", f"{when}: {task} has two files, {status}")


# ---- leases ----


def leases(size: Size, dice: random.Random, found: rig.Found) -> None:
    """Holders that die or fall silent, and those that do not: who takes the task, and when."""
    late: list[float] = []
    for _ in range(max(1, size.rounds // 200)):
        with rig.store() as root:
            _one_lease_each(root, found, late)
    found.figures["a dead holder's task is claimed again after its lease or death by, longest"] = (
        f"{max(late, default=0):.2f} s"
    )


_HOLDERS = {"silent": 1, "killed": 60, "unburied": 60, "busy": 1, "renewing": 2, "touching": 4}
"""How each holder is, and its lease in seconds: the last three live, and show it."""

_WATCHED = 6.0  # seconds: no longer lease runs out, that is renewed


def _one_lease_each(root: Path, found: rig.Found, late: list[float]) -> None:
    held = dict(zip(_HOLDERS, tasked.added(root, len(_HOLDERS)), strict=True))
    pipe = rig.Pipe()
    holders = {name: rig.forked(partial(_hold, root, name, task, pipe)) for name, task in held.items()}
    os.close(pipe.write)
    answers, _ = _Lines(pipe).answers(len(held))
    if len(answers) < len(held) or any(answer.outcome != "won" for answer in answers):
        found.note("failed", f"leases: {answers}")
    begun = {answer.by: float(answer.said) for answer in answers}
    for name in ("killed", "unburied"):
        os.kill(holders[name], signal.SIGKILL)
    died = time.monotonic()
    os.waitpid(holders["killed"], 0)  # the other one stays a zombie, which does nothing any more
    due = {"silent": begun.get("silent", died) + _HOLDERS["silent"], "killed": died, "unburied": died}
    taken: dict[str, float] = {}
    while time.monotonic() < died + (_WATCHED if due.keys() <= taken.keys() else _ANSWERS):
        for name, task in held.items():
            if name not in taken and tasked.asked(root, 0, f"heir-of-{name}", task).outcome == "won":
                taken[name] = time.monotonic()
        time.sleep(0.02)
    for name in held:
        after = taken.get(name, float("inf")) - due.get(name, 0.0)
        if name not in due:
            if name in taken:
                found.note("doubled", f"the {name} holder lives, and its task was claimed")
        elif name not in taken:
            found.note("kept", f"the {name} holder's task was never claimed again")
        elif after < 0:
            found.note("early", f"the {name} holder's task was claimed again {-after:.2f} s before its lease ran out")
        else:
            late.append(after)
            if after > MOST_LATE and after > MOST_LATE * slower(time.monotonic):
                found.note("slow", f"the {name} holder's task was claimed again after {after:.2f} s")
    _stale(root, answers, found)
    for name, holder in holders.items():
        if name != "killed":
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
    _look(root, found, "leases")


def _hold(root: Path, name: str, task: str, pipe: rig.Pipe) -> None:
    """Hold a task, and show as many signs of life as the name says."""
    begun, seconds = time.monotonic(), _HOLDERS[name]
    answer = tasked.asked(root, 0, name, task, seconds=seconds, known=name in ("killed", "unburied", "busy"))
    pipe.acknowledge(json.dumps(answer._replace(said=str(begun)) if answer.outcome == "won" else answer))
    lease = f"{task}:{answer.number}"
    while True:
        time.sleep(0.25)
        if name == "renewing":
            claims.renew(lease, root=root)
        elif name == "touching":
            subprocess.run(
                [*tasked.COMMAND, "task", "progress", "The table is half way."],
                cwd=root,
                env=tasked.environment(root.parent, name, RALF_LEASE=lease),
                capture_output=True,
                check=False,
            )


def _stale(root: Path, answers: Sequence[Answer], found: rig.Found) -> None:
    """Whoever has lost its claim is refused, and changes nothing."""
    for answer in answers:
        if answer.by not in ("silent", "killed"):
            continue
        try:
            claims.done("I am done.", task=answer.task, lease=f"{answer.task}:{answer.number}", by=answer.by, root=root)
        except Busy:
            pass
        except RalfError as error:
            found.note("failed", f"a stale holder's `done` was refused as {error!r}")
        else:
            found.note("stale", f"the {answer.by} holder had lost its claim, and completed the task")
        holder = store.get(answer.task, root=root).claim
        if holder is None or holder.by != f"heir-of-{answer.by}":
            found.note("stale", f"{answer.task} is no longer its new holder's, but {holder and holder.by}'s")


# ---- a long list ----


def long_list(size: Size, dice: random.Random, found: rig.Found) -> None:
    """Workers that take a list of tasks down among them, some of which wait for others."""
    with rig.store() as root:
        ids = _list_of(root, size.tasks, dice)
        begun = time.monotonic()
        gate, pipe = tasked.Gate(root), rig.Pipe()
        names = [f"worker-{number}" for number in range(size.workers)]
        children = [rig.forked(partial(_work_off, root, name, pipe, gate=gate)) for name in names]
        gate.open(0)
        said = _read(pipe)
        for child in children:
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                found.note("failed", "a worker ended with an error")
        gate.close()
        took = time.monotonic() - begun
        _judge_list(root, ids, said, found)
    found.acknowledged += size.tasks
    found.figures[f"{size.workers} workers, {size.tasks} tasks, each claimed and completed"] = f"{took:.1f} s"


def _list_of(root: Path, count: int, dice: random.Random) -> dict[str, tuple[str, ...]]:
    """Add so many tasks; a third of them wait for one or two before them. The ids, and what each waits for."""
    ids: dict[str, tuple[str, ...]] = {}
    for number in range(count):
        known = list(ids)[-20:]
        after = tuple(dice.sample(known, min(len(known), dice.randint(1, 2)))) if dice.random() < 1 / 3 else ()
        state = editing.add(f"Carry over table {number}", priority=dice.randint(1, 10), after=after, root=root)
        ids[state.task.id] = after
    return ids


def _work_off(
    root: Path, name: str, pipe: rig.Pipe, *, gate: tasked.Gate | None = None, known: bool = False, pause: float = 0.0
) -> None:
    """Claim and complete until nothing is left.

    gate   at which all begin
    known  whether the claim names its process
    pause  seconds that the work takes: time to be killed in
    """
    if gate is not None:
        gate.wait(0)
    idle = time.monotonic()
    while True:
        answer = tasked.asked(root, 0, name, None, known=known)
        if answer.outcome == "failed":
            pipe.acknowledge(f"{time.monotonic():.6f} failed {name} {answer.said}")
            return
        if answer.outcome == "lost":
            if not _is_pending(root) or time.monotonic() - idle > _IDLE:
                return
            time.sleep(0.01)
            continue
        idle = time.monotonic()
        pipe.acknowledge(f"{idle:.6f} claimed {name} {answer.task} {answer.number}")
        time.sleep(pause)
        lease = f"{answer.task}:{answer.number}"
        pipe.acknowledge(f"{time.monotonic():.6f} ending {name} {answer.task} {answer.number}")
        claims.done("The table is carried over.", task=answer.task, lease=lease, by=name, root=root)
        pipe.acknowledge(f"{time.monotonic():.6f} done {name} {answer.task} {answer.number}")


@dataclass(frozen=True)
class Said:
    """A line that a worker wrote: when, what, who, of which claim."""

    when: float
    what: str
    who: str
    task: str = ""
    number: int = 0

    @classmethod
    def of(cls, line: str) -> Said:
        """The line in its parts."""
        when, what, who, *rest = line.split(" ")
        if what in ("failed", "killed"):
            return cls(float(when), what, who, " ".join(rest))
        return cls(float(when), what, who, rest[0], int(rest[1]))


def _is_pending(root: Path) -> bool:
    return bool(store.list_tasks(status="pending", limit=1, root=root).tasks)


def _read(pipe: rig.Pipe) -> list[Said]:
    return [Said.of(line) for line in pipe.text().splitlines()]


def judged(ids: dict[str, tuple[str, ...]], said: Sequence[Said], completed: set[str]) -> Iterator[tenure.Fault]:
    """What is wrong with how a list was taken down: `said` in the order of its times, with deaths among it."""
    claimed: dict[tuple[str, int], Said] = {}
    done: dict[str, float] = {}
    spans: list[Span] = []
    of: dict[str, list[tuple[str, int]]] = {}
    for each in sorted(said, key=lambda one: one.when):
        claim = (each.task, each.number)
        if each.what == "failed":
            yield "failed", f"{each.who}: {each.task}"
        elif each.what == "killed":
            for held in of.pop(each.who, []):
                if held in claimed:
                    first = claimed.pop(held)
                    spans.append(Span(held[0], f"{first.who} (claim {held[1]})", first.when, each.when))
        elif each.what == "claimed":
            if claim not in claimed:  # else its holder was told of it once more
                claimed[claim] = each
                of.setdefault(each.who, []).append(claim)
            elif claimed[claim].who != each.who:
                yield "doubled", f"claim {each.number} of {each.task} is {claimed[claim].who}'s and {each.who}'s"
            for before in ids.get(each.task, ()):
                if before not in done:
                    yield "early", f"{each.task} was claimed before {before} was completed"
        elif each.what == "ending":
            done.setdefault(each.task, each.when)
            if claim in claimed:
                first = claimed.pop(claim)
                spans.append(Span(each.task, f"{first.who} (claim {each.number})", first.when, each.when))
    spans += [
        Span(task, f"{first.who} (claim {number})", first.when, float("inf"))
        for (task, number), first in claimed.items()
    ]
    yield from tenure.overlapping(spans)
    yield from tenure.lost((each.task for each in said if each.what == "done"), completed)
    yield from tenure.lost(ids, completed)


def _judge_list(root: Path, ids: dict[str, tuple[str, ...]], said: Sequence[Said], found: rig.Found) -> None:
    for fault, example in judged(ids, said, tenure.completed(root)):
        found.note(fault, example)
    claimed = [each.task for each in said if each.what == "claimed"]
    if not any(each.what == "killed" for each in said) and sorted(claimed) != sorted(ids):
        found.note("doubled", f"{len(ids)} tasks were claimed {len(claimed)} times")
    for fault, example in tenure.lost(ids, tenure.statuses(root)):
        found.note(fault, f"no file: {example}")
    _look(root, found, "a long list")


# ---- kills ----


def kills(size: Size, dice: random.Random, found: rig.Found) -> None:
    """Claimers that are killed at random moments and started again, under their old name or a new one."""
    left = size.kills
    while left > 0:
        count = min(25, left)
        with rig.store() as root:
            _killed(root, count, dice, found, known=dice.random() < 0.5)
        left -= count
    found.acknowledged += size.kills


def _killed(root: Path, count: int, dice: random.Random, found: rig.Found, *, known: bool) -> None:
    """One store: claims name their processes (then anybody takes a dead one's task), or their holders come back."""
    ids = _list_of(root, 3 * count, dice)
    pipe = rig.Pipe()
    workers = {f"worker-{number}": 0 for number in range(8)}
    more = 0

    def start(name: str) -> None:
        workers[name] = rig.forked(partial(_work_off, root, name, pipe, known=known, pause=0.003))

    for name in list(workers):
        start(name)
    for _ in range(count):
        time.sleep(dice.uniform(0, _LONGEST))
        name = dice.choice(list(workers))
        pid = workers.pop(name)
        pipe.acknowledge(f"{time.monotonic():.6f} killed {name}")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if known and dice.random() < 0.5:
            more += 1
            name = f"other-{more}"
        start(name)
    for pid in workers.values():
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            found.note("failed", "a worker ended with an error")
    said = _read(pipe)
    _judge_list(root, ids, said, found)


# ---- the command ----

KINDS: dict[str, Callable[[Size, random.Random, rig.Found], None]] = {
    "one winner": one_winner,
    "leases": leases,
    "long list": long_list,
    "kills": kills,
}


def run(size: Size, seed: int, only: Sequence[str] = ()) -> rig.Found:
    """Each kind, or those that are named."""
    found = rig.Found(rounds=size.rounds)
    warm()
    for kind in only or KINDS:
        KINDS[kind](size, random.Random(f"{seed} {kind}"), found)
    return found


def warm() -> None:
    """Do everything once, so that whoever is forked afterwards has imported and loaded what it takes."""
    with rig.store() as root:
        task = tasked.added(root, 2)[0]
        answer = tasked.asked(root, 0, "warm", task, known=True)
        tasked.asked(root, 0, "other", task)
        claims.done("Done.", task=task, lease=f"{task}:{answer.number}", by="warm", root=root)
        store.list_tasks(root=root)
        tenure.completed(root)


@contextmanager
def _without_swap() -> Iterator[None]:
    """A stream in which the last one wins, and no lock: what claims are where a read is followed by a write."""
    from unittest.mock import patch

    from ralf.storage.filestore import FileStore

    append, locked = FileStore.append, locks.locked

    def any_append(self: FileStore, stream: str, record: bytes, **said: Any) -> str:
        return append(self, stream, record, **said | {"after": self.head(stream)})

    @contextmanager
    def unlocked(path: Path, what: str, timeout: float = 30.0) -> Iterator[None]:
        if path.name == "tasks.lock":
            yield
        else:
            with locked(path, what, timeout):
                yield

    with patch.object(FileStore, "append", any_append), patch.object(locks, "locked", unlocked):
        yield


BROKEN = {"no compare and swap": _without_swap}


if __name__ == "__main__":
    status = rig.command(
        "claims",
        Size,
        lambda size, given: run(size, given.seed, given.only or ()),
        of="rounds and tasks",
        faults=("doubled", "lost", "untold", "kept", "stale", "nobody"),
        only=KINDS,
        broken=BROKEN,
    )
    sys.exit(status)
