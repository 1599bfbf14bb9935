"""An older or cut journal beside a newer route file and cache, as a restore, a sync or half a copy leaves them: what
the file still shows of the lost records is absorbed, and nothing is lost or doubled.

A history of a dozen records is written; then journal, file and cache of different moments of it are laid together, and
the next agent reads, verifies and writes.

    python -m tests.faults.cuts --rounds 10000
"""

from __future__ import annotations

import itertools
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests import storekit
from tests.faults import rig
from tests.faults.kept import Kept

import ralf
from ralf import project
from ralf.errors import RalfError
from ralf.maintenance import ownership
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.route import routefile
from ralf.route.corrections import drop
from ralf.route.taking_back import revert

KINDS = ("with the newer cache", "with the older cache", "with any cache", "without a cache")
_RECORDS = 12
_A_HISTORY = 200  # stores that are laid together of one


class Moment(NamedTuple):
    """The journal, the route file and the cache of a store, as they were after a record."""

    journal: bytes
    file: bytes
    cache: Kept


def run(size: rig.Rounds, seed: int, only: Sequence[str]) -> rig.Found:
    """So many stores that are laid together, of histories written at random."""
    found = rig.Found()
    random_ = random.Random(seed)
    while found.rounds < size.rounds:
        with rig.store() as root:
            moments = _history(root, random_)
            cases = [case for kind in only for case in _cases(kind, len(moments))]
            for case in random_.sample(cases, min(len(cases), size.rounds - found.rounds, _A_HISTORY)):
                _one(root, moments, *case, found)
                found.rounds += 1
    return found


def _cases(kind: str, count: int) -> list[tuple[int, int, int | None]]:
    """Journal, file and cache, each by the number of its moment; None: no cache."""
    pairs = list(itertools.product(range(count), repeat=2))
    if kind == "with the newer cache":
        return [(old, new, new) for old, new in pairs if old < new]
    if kind == "with the older cache":
        return [(old, new, old) for old, new in pairs if old < new]
    if kind == "without a cache":
        return [(one, other, None) for one, other in pairs]
    return [(one, other, cache) for one, other in pairs for cache in range(count)]


# ---- a history ----


def _history(root: Path, random_: random.Random) -> list[Moment]:
    ownership.init(project.find(root), share=False)
    moments: list[Moment] = []
    works: list[Callable[[Path, str], None]] = [_decide] * 3 + [_replace, _edit, _drop, _checkpoint, _revert]
    number = 0
    while len(moments) < _RECORDS:
        number += 1
        work = _decide if number < 3 else random_.choice(works)
        work(root, f"{number:02d}")
        moments.append(_moment(root))
    return moments


def _moment(root: Path) -> Moment:
    paths = (storekit.journal_file(root, rig.ROUTE), storekit.route_file(root, rig.ROUTE))
    return Moment(*(path.read_bytes() for path in paths), Kept(storekit.cache_of(root)))


def _decide(root: Path, marker: str) -> None:
    rig.decide(root, marker, lambda _: None)


def _active(root: Path) -> list[str]:
    return [item.id for item in ralf.get_context(rig.ROUTE, root=root).decisions if item.status == "active"]


def _replace(root: Path, marker: str) -> None:
    ralf.record_decision(rig.ROUTE, f"Choose d-{marker}", supersedes=next(iter(_active(root)), None), root=root)


def _drop(root: Path, marker: str) -> None:
    for label in _active(root)[:1]:
        drop(rig.ROUTE, label, root=root)


def _edit(root: Path, marker: str) -> None:
    rig.take_in(root, marker, lambda _: None)


def _checkpoint(root: Path, marker: str) -> None:
    rig.checkpoint(root, marker, lambda _: None)


def _revert(root: Path, marker: str) -> None:
    revision = ralf.get_context(rig.ROUTE, root=root).revision
    revert(rig.ROUTE, f"r{max(2, revision - 1)}", root=root)


# ---- what has to hold ----


def _one(root: Path, moments: Sequence[Moment], old: int, new: int, cache: int | None, found: rig.Found) -> None:
    when = f"the journal of {old}, the file of {new}, the cache of {cache}"
    _lay(root, moments[old].journal, moments[new].file, moments[cache].cache if cache is not None else None)
    said = {item.id: item for item in routefile.parse(moments[new].file, "file").decisions}
    ralf.get_context(rig.ROUTE, root=root)
    known = {item.decision for item in rig.folded(root).decisions}
    more = {item.decision for item in said.values()} - known if new > old else set()
    path = storekit.route_file(root, rig.ROUTE)
    warnings: list[str] = []
    try:
        if found.rounds % 5 == 4:
            repair(root=root)
        ralf.record_decision(rig.ROUTE, "Choose d-after", root=root, warn=warnings.append)
        context = ralf.get_context(rig.ROUTE, root=root)
        report = verify(root=root)
    except (RalfError, OSError) as error:
        found.note("failed", f"{when}: {error!r}")
        return
    found.acknowledged += len(more)
    is_left = path.read_bytes() == moments[new].file and bool(warnings)  # whose it is nobody can tell: it stays
    texts = [item.decision for item in context.decisions]
    lost = {*more, *known, "Choose d-after"} - set(texts)
    if not (is_left and lost <= more):
        found.note("lost", f"{when}: {sorted(lost)[:3]}", len(lost))
    found.note("doubled", f"{when}: {texts}", len(texts) - len(set(texts)))
    labels = [item.id for item in context.decisions]
    found.note("doubled", f"{when}: {labels}", len(labels) - len(set(labels)))
    if damage := [finding for finding in report.findings if finding.damage]:
        found.note("torn", f"{when}: {damage[0]}")


def _lay(root: Path, journal_: bytes, file: bytes, cache: Kept | None) -> None:
    """A store of which each part is of another moment."""
    shutil.rmtree(storekit.context_of(root) / "cache")
    (storekit.context_of(root) / "cache").mkdir(mode=0o700)
    if cache is not None:
        cache.lay(storekit.cache_of(root))
    storekit.journal_file(root, rig.ROUTE).write_bytes(journal_)
    path = storekit.route_file(root, rig.ROUTE)
    for beside in path.parent.glob(".ralf-*"):
        beside.unlink()
    path.write_bytes(file)


if __name__ == "__main__":
    sys.exit(rig.command("cuts", rig.Rounds(), run, kinds=KINDS))
