"""Runs of agents that are killed: at every call that touches the disk; a holder that wakes up when
another has taken over; signals of many senders. What was noted is judged: no call again after its answer, no state
older than one that was acknowledged.

    python -m tests.faults.runs                      every boundary, 10,000 signals
    python -m tests.faults.runs --step 9 --only boundaries
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults import rig, run_work
from tests.faults.rig import Notes
from tests.faults.run_work import MANY, PATIENT, disordered, repeated, went_back

from ralf import project
from ralf.agent import AgentRun, Retry, get_run, send_signal, tail
from ralf.agent.records import inbox_of
from ralf.agent.runner import run_agent
from ralf.agent.signals import Inbox
from ralf.document.index import files_in
from ralf.errors import Claimed, StaleLease
from ralf.storage.filestore import FileStore

TURNS = 4


@dataclass(frozen=True)
class Size:
    """How much is done of each kind.

    step      between two calls at which a process is killed: 1 for every call
    signals   of `senders` together
    """

    step: int = 1
    signals: int = 10_000
    senders: int = 8
    zombies: int = 5


# ---- kills ----


def _finished(root: Path, run: str, notes: Notes, turns: int, found: rig.Found) -> None:
    """Judge a run that should have completed."""
    for fault, example in (*repeated(notes.read()), *went_back(notes.read())):
        found.note(fault, example)
    state = get_run(run, root=root)
    expected = run_work.conversation(turns)
    agent = AgentRun(run, root=root)
    kept = json.loads(agent.peek() or b"{}")
    if state.status != "completed" or state.iteration != turns:
        found.note("unfinished", f"{run}: {state.status} in iteration {state.iteration}")
    if kept != expected or agent.result() != expected[str(turns)][1].encode():
        found.note("older", f"{run}: the state is not that of {turns} turns: {str(kept)[:200]}")
    streamed = set(b"".join(tail(run, root=root)).decode().splitlines())
    if lines := {f"{number}: {said[1]}" for number, said in expected.items()} - streamed:
        found.note("output", f"{run}: lacks {sorted(lines)[:2]}")


def _boundaries(step: int, found: rig.Found, name: str, work: Callable[..., None], *, honours: bool) -> None:
    """Kill at each call, every second time the successor at another one, then let one finish."""
    dice = random.Random(f"{name} {step}")
    number, lived, calls, repeats = 0, False, 0, 0
    with rig.store() as root:
        work(root, f"{name}-warm", Notes(root / "warm"), 1)
        while not lived:
            run, notes = f"{name}-{number}", Notes(root / f"notes-{number}")
            do = partial(work, root, run, notes, TURNS, honours=honours)
            lived = not rig.killed_at(number, do)
            if not lived:
                notes("killed", run=run)
                if dice.random() < 0.3:
                    _lose_the_index(root)
                if dice.random() < 0.5 and rig.killed_at(dice.randrange(number + 40), do):
                    notes("killed", run=run)
                    found.acknowledged += 1
                rig.killed_at(MANY, do)
                found.acknowledged += 1
            _finished(root, run, notes, TURNS, found)
            made = notes.read("call")
            calls, repeats = calls + len(made), repeats + len(made) - 2 * TURNS
            twice = sum(line["worked"] for line in made) - 2 * TURNS
            if honours and twice:
                found.note("repeated", f"{run}: {twice} calls did their work twice for one key")
            number += step
    found.figures[f"{name}: calls, of them repeated before an answer"] = f"{calls:,}, {repeats:,}"


def _lose_the_index(root: Path) -> None:
    """As who deletes the cache does, at any time."""
    for path in files_in(project.find(root).cache):
        path.unlink(missing_ok=True)


def boundaries(size: Size, _: random.Random, found: rig.Found) -> None:
    """A kill before and after every call that touches the disk; the same, in part, with a model that does its work once
    for each idempotency key, and with coroutines, two calls of a turn at once.
    """
    _boundaries(size.step, found, "boundaries", run_work.converse, honours=False)
    _boundaries(3 * size.step, found, "honouring", run_work.converse, honours=True)
    _boundaries(3 * size.step, found, "async", run_work.converse_async, honours=False)


# ---- signals ----


def signals(size: Size, dice: random.Random, found: rig.Found) -> None:
    """Many senders, some of which send twice with the same id, and a receiver that is killed now and then."""
    each = size.signals // size.senders
    begun = time.monotonic()
    with rig.store() as root:
        children = [rig.forked(partial(_send, root, sender, each)) for sender in range(size.senders)]
        deaths = 0
        while rig.killed_after(
            dice.uniform(0.1, 2.0) if deaths < 12 else 600.0, partial(_receive, root, each * size.senders)
        ):
            deaths += 1
        for child in children:
            _, status = os.waitpid(child, 0)
            if status:
                found.note("failed", f"a sender ended with {status}")
        received = json.loads(AgentRun("inbox", root=root).peek() or b"[]")
        for fault, example in disordered(received, size.senders, each):
            found.note(fault, example)
        inbox = [json.loads(entry.record) for entry in project.find(root).store.read(inbox_of("inbox"))]
        if len(inbox) != len(received):
            found.note("doubled", f"{len(inbox)} records for {len(received)} signals")
    took = time.monotonic() - begun
    found.acknowledged += len(received)
    found.figures[f"{len(received):,} signals of {size.senders} senders, receiver killed {deaths} times"] = (
        f"{took:.0f} s"
    )


def _send(root: Path, sender: int, count: int) -> None:
    for number in range(count):
        name = f"{sender}:{number}"
        send_signal("inbox", "word", name, id=f"s{sender}-{number}", root=root)
        if number % 50 == 0:
            send_signal("inbox", "word", name, id=f"s{sender}-{number}", root=root)


def _receive(root: Path, count: int) -> None:
    def handler(run: AgentRun) -> None:
        received = json.loads(run.load() or b"[]")
        for _ in range(100):
            if len(received) == count:
                break
            if (word := run.wait_signal("word", 1.0)) is not None:
                received.append(word.text)
        state = json.dumps(received).encode()
        if len(received) == count:
            run.complete(state=state)
        else:
            run.continue_with(state=state)

    run_agent(handler, "inbox", retry=PATIENT, max_iterations=None, max_losses=MANY, root=root)


# ---- a holder that wakes up too late ----


def zombies(size: Size, dice: random.Random, found: rig.Found) -> None:
    """A holder is stopped until its lease is over, another takes the run; the first wakes up and saves."""
    with rig.store() as root:
        for number in range(size.zombies):
            run, pipe = f"zombie-{number}", rig.Pipe()
            has_saved, may_save = root / f"{run}-saved", root / f"{run}-go"
            child = rig.forked(partial(_hold, root, run, pipe, has_saved, may_save))
            try:
                rig.until(has_saved.exists)  # not before: who is stopped in a write has its lock
                os.kill(child, signal.SIGSTOP)
                with _patiently(root, run) as second:
                    second.save(b"newer")
                    may_save.touch()
                    os.kill(child, signal.SIGCONT)
                    os.waitpid(child, 0)
                    if dice.random() < 0.5:
                        second.save(b"newest")
                    kept = second.load()
            except BaseException:
                os.kill(child, signal.SIGKILL)
                raise
            said = pipe.markers()
            if said != ["refused"]:
                found.note("unfenced", f"{run}: the first holder was told {said}")
            if kept not in (b"newer", b"newest"):
                found.note("older", f"{run}: the state is {kept!r}, of the holder that had lost it")
            found.acknowledged += 1


def _hold(root: Path, run: str, pipe: rig.Pipe, has_saved: Path, may_save: Path) -> None:
    with AgentRun(run, lease=1.0, root=root) as held:
        held.save(b"first")
        has_saved.touch()
        rig.until(may_save.exists)  # nothing tells it that it has lost the run
        try:
            held.save(b"old")
            pipe.acknowledge("saved")
        except StaleLease:
            pipe.acknowledge("refused")


@contextmanager
def _patiently(root: Path, run: str) -> Iterator[AgentRun]:
    """Claim a run as soon as it can be claimed."""
    with AgentRun(run, root=root) as held:
        deadline = time.monotonic() + 60.0
        while True:
            try:
                held.load()
                break
            except Claimed:
                assert time.monotonic() < deadline, "the lease does not end"
                time.sleep(0.05)
        yield held


# ---- dead letters ----


def letters(size: Size, dice: random.Random, found: rig.Found) -> None:
    """What always fails, and what always kills its process, ends as a dead letter, and asks the model once."""
    retry = Retry(kind="fixed", attempts=4, initial=0.01)
    with rig.store() as root:
        for how in ("raises", "dies"):
            notes = Notes(root / f"notes-{how}")
            work = partial(_poisoned, root, how, notes, retry)
            deaths = 0
            while rig.killed_after(60.0, work) and deaths < 20:
                deaths += 1
            state = get_run(how, root=root)
            tried, asked = len(notes.read("began")), len(notes.read("call"))
            if state.status != "dead" or tried != 4 or asked != 1:
                found.note("letters", f"{how}: {state.status} after {tried} attempts, {asked} calls: {state.reason}")
            found.acknowledged += tried


def _poisoned(root: Path, how: str, notes: Notes, retry: Retry) -> None:
    def handler(held: AgentRun) -> None:
        notes("began")
        held.once("model", lambda key: notes("call") or "poison")
        if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("poison")

    logging.getLogger("ralf.agent").disabled = True
    run_agent(handler, how, retry=retry, max_losses=4, root=root)


KINDS: dict[str, Callable[[Size, random.Random, rig.Found], None]] = {
    "boundaries": boundaries,
    "signals": signals,
    "zombies": zombies,
    "letters": letters,
}


def run(size: Size, seed: int, only: Sequence[str]) -> rig.Found:
    """All kinds, or only some."""
    found = rig.Found()
    for kind in only:
        KINDS[kind](size, random.Random(f"{seed} {kind}"), found)
    return found


# ---- broken on purpose ----


@contextmanager
def _without_phases() -> Iterator[None]:
    """Each attempt makes its calls anew, as where only the state is kept."""

    def once(self: AgentRun, key: str, call: Callable[[str], Any], **_: object) -> Any:
        return call(f"{self.run}/{self.iteration}/{key}")

    with patch.object(AgentRun, "once", once):
        yield


@contextmanager
def _without_swap() -> Iterator[None]:
    """The last one wins."""
    append = FileStore.append

    def any_append(self: FileStore, stream: str, record: bytes, **said: Any) -> str:
        return append(self, stream, record, **said | {"after": self.head(stream)})

    with patch.object(FileStore, "append", any_append):
        yield


@contextmanager
def _without_a_cursor() -> Iterator[None]:
    """What was received of the inbox is known to the process alone."""
    with patch.object(Inbox, "received", lambda self: {}):
        yield


BROKEN = {
    "no phases": _without_phases,
    "no compare and swap": _without_swap,
    "no cursor": _without_a_cursor,
}


if __name__ == "__main__":
    sys.exit(rig.command("runs", Size(), run, kinds=KINDS, broken=BROKEN))
