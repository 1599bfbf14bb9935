"""Keeps a claim alive without a record: what hooks, commands and loops do while an agent works at a task."""

from __future__ import annotations

import os
from contextlib import suppress

from ralf import environment
from ralf.errors import RalfError, StaleLease
from ralf.tasks import leases, store

Root = str | os.PathLike[str] | None


def touch(lease: str = "", *, root: Root = None) -> None:
    """Show that a lease's holder lives: for hooks and commands that run with `RALF_LEASE`. One system call, no record;
    nothing where the lease holds no longer. Where the store has leases, its engine is told each fifth of one; what
    fails is tried by the next sign of life.

    lease  "": what the environment says
    """
    lease = lease or environment.lease()
    with suppress(RalfError, OSError):
        leases.parsed(lease)
        project = store.at(root).project
        leases.show_life(project, lease)
        if leases.is_due(project, lease):
            adopt(lease, keep=False, root=root)


def adopt(lease: str, *, keep: bool = True, root: Root = None) -> None:
    """Have this process keep the engine's lease of a claim, as `claim` with `keep` does, after the process died that
    did so before. Nothing where the store has no leases. StaleLease where the claim has ended; Fenced.
    """
    tasks = store.at(root)
    id_, number = leases.parsed(lease)
    state = tasks.read(lambda book: book.state_of(id_, recorded=True))
    if state is None or state.claim is None or state.claim.number != number:
        raise StaleLease(id_, f"lease {lease} has ended", "", f"ralf task show {id_}")
    leases.renew(tasks.project, id_, state.claim, keep=keep)
