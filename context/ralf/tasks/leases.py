"""Signs of life of who holds a task: a file whose time of change hooks move, and, where the store has leases, the
engine's lease, which alone counts there.

A claim is a record, and its lease has the claim's number in its holder's name. A command that claims a task ends, so
its lease lasts as long as the claim says, and later commands and hooks of the agent renew it. A process that stays, as
`ralf loop` does, keeps the engine's short lease instead, and the task is free soon after it dies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import environment
from ralf.errors import Claimed, Fenced, RalfError, StaleLease, UsageError
from ralf.project import Project
from ralf.storage import files
from ralf.storage.journal import Leases
from ralf.tasks.model import Claim
from ralf.text import cleaning

if TYPE_CHECKING:
    from ralf.storage.kept_lease import KeptLease  # which only claims on an engine need

FOLDER = "tasks/"
"""What the names of leases of tasks begin with."""

_PATIENCE = 1.0  # seconds that a lease may last after the record that ends its claim

_SHARE = 5  # of a lease: a later command renews one when so much of it is over

_LATER = 30.0  # seconds after which a renewal that failed is tried again

_kept: dict[tuple[Leases, str], KeptLease] = {}  # that this process keeps, by engine and task


def of(project: Project) -> Leases | None:
    """The leases of a project's store, None where it has none."""
    return project.store.leases


@contextmanager
def taken(project: Project, task: str, claim: Claim, *, is_free: bool, keep: bool) -> Iterator[None]:
    """Take the lease of a task for a block that records the claim; it is given back where that fails.

    is_free  whether the records name no holder: who has the lease all the same is about to release it
    keep     whether this process renews it from then on; else it lasts as long as the claim says

    Claimed where somebody has it, Fenced.
    """
    if (leases := of(project)) is None:
        yield
        return
    kept = _lease(leases, task, claim)
    try:
        kept.take_within(_PATIENCE if is_free else 0.0)
    except Claimed as error:
        raise Claimed(task, _by(error), error.since, until=error.until) from None
    try:
        yield
    except BaseException:
        kept.end()
        raise
    if not keep:
        with suppress(RalfError, OSError):  # the claim is recorded: the next sign of life finds out
            kept.leave(claim.seconds)
    _note_kept(project, kept if keep else None, task, claim)


def renew(project: Project, task: str, claim: Claim, *, keep: bool = False) -> None:
    """Show a sign of life of a claim's holder; its lease is taken anew where it has ended and nobody has it.

    keep  whether this process renews it from now on

    StaleLease where somebody else has it: they are about to record their claim; Fenced.
    """
    leases, lease = of(project), claim.lease(task)
    if leases is None:
        show_life(project, lease)
    elif (leases, task) not in _kept or not _kept[leases, task].is_held:
        kept, name, holder = _lease(leases, task, claim), FOLDER + task, _named(task, claim)
        try:
            try:
                kept.resume() if keep else leases.renew(name, leases.resume(name, holder))
            except Fenced as error:
                if not error.lost:
                    raise
                kept.take() if keep else leases.take(name, holder, seconds=claim.seconds)
        except Claimed as error:
            what = f"lease {lease} has ended: no sign of life reached the engine in time; {_by(error)} has the task now"
            raise StaleLease(task, what, _by(error), f"ralf task show {task}") from None
        _note_kept(project, kept if keep else None, task, claim)


def until(project: Project, task: str) -> str:
    """When the lease of a task ends that is not renewed, "" where the store has no leases or nobody has it. Fenced."""
    leases = of(project)
    return leases.until(FOLDER + task) if leases is not None else ""


def end(project: Project, task: str, number: int) -> None:
    """End the lease of a claim whose end is recorded. What the engine does not hear ends by itself."""
    lease, leases = f"{task}:{number}", of(project)
    end_file(project, lease)
    if leases is None:
        return
    with suppress(RalfError, OSError):
        if (kept := _kept.pop((leases, task), None)) is not None:
            kept.end()
        elif (holder := leases.holder(FOLDER + task) or "").endswith(f" {lease}"):
            leases.release(FOLDER + task, leases.resume(FOLDER + task, holder))


def _lease(leases: Leases, task: str, claim: Claim) -> KeptLease:
    from ralf.storage.kept_lease import KeptLease

    return KeptLease(leases, FOLDER + task, _named(task, claim), float("inf"))


def _named(task: str, claim: Claim) -> str:
    return f"{claim.by} {claim.lease(task)}"


def _note_kept(project: Project, kept: KeptLease | None, task: str, claim: Claim) -> None:
    """Keep a lease that this process renews; None: note when later commands of its holder have to."""
    if kept is not None:
        _kept[kept.leases, task] = kept
    else:
        _note(project, claim.lease(task), claim.seconds)


def _by(error: Claimed) -> str:
    return error.by.rpartition(" ")[0]


# ---- the file ----


def parsed(lease: str) -> tuple[str, int]:
    """Task and number of a lease; UsageError."""
    id_, _, number = lease.rpartition(":")
    if not cleaning.is_valid(id_) or not (number.isascii() and number.isdigit()) or len(number) > 15:
        raise UsageError(
            ascii(lease)[:80],
            "not a lease; `ralf task claim` prints one, such as TASK-7k3q:17",
            "if RALF_LEASE holds it: unset RALF_LEASE",
        )
    return id_, int(number)


def file_of(project: Project, lease: str) -> Path:
    """The file whose time of change is a sign of life of the lease's holder."""
    return project.cache / "leases" / lease.replace(":", "-")


def begin_file(project: Project, lease: str) -> None:
    """Make the file of a lease. An agent's `RALF_LEASE` stays that of the first task that it had, so both names are
    links to one file: a sign of life under either counts for the claim that is held now.
    """
    path = file_of(project, lease)
    with suppress(OSError):
        files.make(path.parent)
        files.touch(path)
        with suppress(UsageError):  # the environment names none
            first = file_of(project, "{}:{}".format(*parsed(environment.lease())))
            path.unlink()
            files.touch(first)
            os.link(first, path)
        show_life(project, lease)


def show_life(project: Project, lease: str) -> None:
    """Move the time of change of a lease's file, where there is one."""
    with suppress(OSError, ValueError):
        os.utime(file_of(project, lease))


def end_file(project: Project, lease: str) -> None:
    """Remove the files of a lease."""
    for path in (file_of(project, lease), _due(project, lease)):
        path.unlink(missing_ok=True)


# ---- when the next sign of life is due ----


def is_due(project: Project, lease: str) -> bool:
    """Whether a lease that nobody keeps is to be renewed by now, and not by others for a while: where the engine is
    away only one command waits for it. No request is made to find that out.
    """
    with suppress(OSError):
        if _due(project, lease).stat().st_mtime <= time.time():
            _note(project, lease, _SHARE * _LATER)
            return True
    return False


def _note(project: Project, lease: str, seconds: float) -> None:
    """Note when a lease is to be renewed: the time of change of a file, which a hook can look at."""
    path, due = _due(project, lease), time.time() + seconds / _SHARE
    with suppress(OSError):
        files.make(path.parent)
        files.touch(path)
        os.utime(path, (due, due))


def _due(project: Project, lease: str) -> Path:
    path = file_of(project, lease)
    return path.with_name(f"{path.name}.due")  # hooks and short commands have the same
