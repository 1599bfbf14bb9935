"""Leases on three NATS servers whose leader is killed or stopped: nobody takes one that its holder still has.

Each lease has several processes that try to take it all the time. Who has it renews it as a holder does, and then
either releases it or falls silent. Every call is noted with the times at which it was begun and answered. A take-over
is false where it was answered before the end of the lease, counted from the beginning of its last renewal that was
answered.

    python -m tests.faults.nats_leases                     60 kills and pauses
    python -m tests.faults.nats_leases --kills 2 --broken "a lease for everybody"
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import natskit
from tests.faults import nats, rig
from tests.faults.figures import told

from ralf.errors import Busy, Claimed, Fenced

PREFIX = "RALF_LEASES-"
SECONDS = 15
_RENEWS = SECONDS / 5
_NAMES = 4
_EARLY = 0.25  # seconds by which a server may end a lease too early: two clocks are compared
_LONGEST = 40.0  # seconds for which somebody has a lease at most


def _contend(servers: natskit.Servers, name: str, who: str, told_in: Path, done: Path, begun: nats.Moment) -> None:
    """Take a lease whenever it can be taken; a line for each call that succeeded."""
    from ralf_integrations.stores.nats_store import NatsStore

    leases: Any = NatsStore(servers.address, nats.PROJECT, replicas=servers.count, key=natskit.KEY).properties.leases
    dice = random.Random(who)
    with told_in.open("w") as file:

        def noted(what: str, since: float) -> None:
            line = {"what": what, "name": name, "who": who, "begun": since, "answered": time.monotonic()}
            file.write(json.dumps(line) + "\n")
            file.flush()
            with begun.get_lock():
                begun.value = max(begun.value, since)

        while not done.exists():
            since = time.monotonic()
            try:
                token = leases.take(f"runs/{name}", who)
            except (Claimed, Fenced, Busy):
                time.sleep(dice.uniform(0.1, 0.5))
                continue
            noted("took", since)
            end = time.monotonic() + dice.uniform(1.0, _LONGEST)
            lost = False
            while time.monotonic() < end and not lost and not done.exists():
                time.sleep(_RENEWS)
                since = time.monotonic()
                try:
                    token = leases.renew(f"runs/{name}", token)
                except Fenced as error:
                    lost = error.lost
                except Busy:
                    continue
                else:
                    noted("renewed", since)
            if not lost and dice.random() < 0.5:
                since = time.monotonic()
                file.write(json.dumps({"what": "released", "name": name, "who": who, "begun": since}) + "\n")
                file.flush()
                with suppress(Fenced, Busy):
                    leases.release(f"runs/{name}", token)
            else:
                time.sleep(dice.uniform(0.0, SECONDS))


def false_take_overs(notes: Sequence[dict[str, Any]], seconds: float = SECONDS) -> Iterator[tuple[str, str]]:
    """Leases that somebody took while somebody else still had them."""
    last: dict[str, dict[str, Any]] = {}
    for note in sorted(notes, key=lambda note: note.get("answered", note["begun"])):
        before = last.get(note["name"])
        if before is not None and before["who"] != note["who"] and note["what"] != "released":
            early = before["begun"] + seconds - _EARLY - note["answered"]
            if before["what"] != "released" and early > 0:
                what = (
                    f"{note['name']}: {note['who']} {note['what']} it {early:.1f} s before the end of {before['who']}'s"
                )
                yield "false take-over", what
        if (
            before is None
            or before["who"] != note["who"]
            or note["what"] == "released"
            or note["begun"] > before["begun"]
        ):
            last[note["name"]] = note


def run(given: nats.Run, folder: Path) -> rig.Found:
    """Kill and stop the leader of the leases while processes contend for them."""
    found = rig.Found()
    servers = natskit.Servers(3, folder / "servers")
    servers.ready()
    done = folder / "done"
    forked = multiprocessing.get_context("fork")
    begun: nats.Moment = forked.Value("d", 0.0)
    names = [(f"lease-{name}", f"p{name}-{number}") for name in range(_NAMES) for number in range(given.writers)]
    processes = [
        forked.Process(target=_contend, args=(servers, name, who, folder / who, done, begun)) for name, who in names
    ]
    for process in processes:
        process.start()
    try:
        nats.goes_on(begun, time.monotonic() - 60)
        nats.disturb(given, servers, begun, found, PREFIX)
    finally:
        done.touch()
        for process in processes:
            process.join(90)
            if process.exitcode != 0:
                found.note("failed", f"a process ended with {process.exitcode}")
                process.kill()
    servers.stop()
    notes = [json.loads(line) for _, who in names for line in (folder / who).read_text().splitlines()]
    found.acknowledged = sum(note["what"] != "released" for note in notes)
    for fault, example in false_take_overs(notes):
        found.note(fault, example)
    found.figures["taken, renewed, released"] = ", ".join(
        str(sum(note["what"] == what for note in notes)) for what in ("took", "renewed", "released")
    )
    return found


def _take_from_anybody(self: Any, name: str, holder: str, *, seconds: float = 0.0) -> str:
    if (known := self.holder(name)) is not None:
        with suppress(Fenced, Busy):
            self.release(name, self.resume(name, known))
    return str(_as_it_is[0](self, name, holder, seconds=seconds))


_as_it_is: list[Any] = []

BROKEN = {"a lease for everybody": _take_from_anybody}


def main(args: Sequence[str] | None = None) -> int:
    """Run it, and print a line a figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.nats_leases")
    parser.add_argument("--kills", type=int, default=60, help="kills and pauses; default: 60")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two, about; default: 4")
    parser.add_argument("--contenders", type=int, default=3, help="for each lease")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", choices=sorted(BROKEN), help="break the leases: it has to be found")
    given = parser.parse_args(args)
    if natskit.absent():
        print(natskit.absent(), file=sys.stderr)
        return rig.SKIPPED
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ralf-nats-leases-"))
        if given.broken:
            from ralf_integrations.stores.nats_leases import NatsLeases

            _as_it_is.append(NatsLeases.take)
            stack.enter_context(patch.object(NatsLeases, "take", BROKEN[given.broken]))
        found = run(nats.Run(given.kills, given.every, given.contenders, given.seed), Path(folder))
    kinds = dict.fromkeys(("false take-over", "blocked", *found.faults))
    figures: list[tuple[str, object, str]] = [
        (f"leases: {kind}", f"{found.faults[kind]} of {found.acknowledged:,} acknowledged", "0") for kind in kinds
    ]
    figures += [(f"leases: {name}", value, "") for name, value in found.figures.items()]
    figures.append(("leases: time", f"{time.monotonic() - begun:.0f} s", ""))
    return told(figures, [f"{kind}: {example}" for kind, example in found.examples.items()])


if __name__ == "__main__":
    sys.exit(main())
