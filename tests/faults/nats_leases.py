"""Leases on three NATS servers whose leader is killed or stopped: nobody takes one that its holder still has.

Each lease has several processes that try to take it all the time. Who has it renews it as a holder does, and then
either releases it or falls silent. Every call is noted with the times at which it was begun and answered. A take-over
is false where it was answered before the end of the lease, counted from the beginning of its last renewal that was
answered.

    python -m tests.faults.nats_leases                     60 kills and pauses
    python -m tests.faults.nats_leases --kills 2 --broken "a lease for everybody"
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests import natskit
from tests.faults import nats, rig

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

    leases: Any = NatsStore(servers.address, nats.PROJECT, replicas=servers.count, key=natskit.KEY).leases
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


@dataclass(frozen=True)
class Run(nats.Run):
    """As many writers contend for each lease."""

    kills: int = 60
    every: float = 4.0
    writers: int = 3


def run(given: nats.Run) -> rig.Found:
    """Kill and stop the leader of the leases while processes contend for them."""
    found = rig.Found()
    names = [(f"lease-{name}", f"p{name}-{number}") for name in range(_NAMES) for number in range(given.writers)]
    with rig.store() as folder:
        servers = natskit.Servers(3, folder / "servers")
        servers.ready()
        done, begun = folder / "done", nats.moment()
        works = [partial(_contend, servers, name, who, folder / who, done, begun) for name, who in names]
        with nats.working(works, done, found):
            nats.goes_on(begun, time.monotonic() - 60)
            nats.disturb(given, servers, begun, found, PREFIX)
        servers.stop()
        notes = [json.loads(line) for _, who in names for line in (folder / who).read_text().splitlines()]
    found.acknowledged = sum(note["what"] != "released" for note in notes)
    for fault, example in false_take_overs(notes):
        found.note(fault, example)
    found.figures["taken, renewed, released"] = ", ".join(
        str(sum(note["what"] == what for note in notes)) for what in ("took", "renewed", "released")
    )
    return found


def _for_everybody() -> AbstractContextManager[object]:
    from ralf_integrations.stores.nats_leases import NatsLeases

    take = NatsLeases.take

    def take_from_anybody(self: Any, name: str, holder: str, *, seconds: float = 0.0) -> str:
        if (known := self.holder(name)) is not None:
            with suppress(Fenced, Busy):
                self.release(name, self.resume(name, known))
        return str(take(self, name, holder, seconds=seconds))

    return patch.object(NatsLeases, "take", take_from_anybody)


BROKEN = {"a lease for everybody": _for_everybody}

if __name__ == "__main__":
    status = rig.command(
        "nats_leases",
        Run,
        lambda how, _: run(how),
        title="leases",
        of="acknowledged",
        faults=("false take-over", "blocked"),
        broken=BROKEN,
        why_not=natskit.absent,
    )
    sys.exit(status)
