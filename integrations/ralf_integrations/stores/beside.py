"""Exchanges records with NATS servers beside the work of a command, a worker or a tool: nothing runs by itself for it.

For a project with another store than files+nats each function costs a look at one file. None of them raises anything or
takes long: what cannot be exchanged now waits, and `ralf status` says so.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ralf.errors import RalfError
from ralf.storage.files import content_of

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf_integrations.stores.exchange import Exchanged

_MOST = 1 << 20  # bytes of a configuration


def is_wanted(project: Project) -> bool:
    """Whether a project may have such a store: its local configuration names one."""
    try:
        return b"files+nats" in content_of(project.local_config_file, most=_MOST)
    except OSError:
        return False


def before(project: Project, *, seconds: float = 10.0) -> None:
    """Take in what other machines have recorded, before something is read; what takes longer than so many seconds is
    left to the next time.
    """
    if is_wanted(project):
        from ralf_integrations.stores import exchange

        with suppress(RalfError, OSError):
            exchange.exchange(project, seconds=seconds)


def after(project: Project) -> Exchanged | None:
    """Deliver what was recorded; how things stand then, None for a project with another store."""
    if is_wanted(project):
        from ralf_integrations.stores import exchange

        with suppress(RalfError, OSError):
            found = exchange.standing(project)
            if found is not None and found.waiting:
                found = exchange.exchange(project)
            return found
    return None


def standing(project: Project) -> Exchanged | None:
    """How things stand, without asking a server; None for a project with another store."""
    if is_wanted(project):
        from ralf_integrations.stores import exchange

        with suppress(RalfError, OSError):
            return exchange.standing(project)
    return None


def told(found: Exchanged) -> str:
    """How things stand, in words."""
    if not found.waiting:
        words = "no record waits" if found.since else "nothing was exchanged yet"
    else:
        words = f"{found.waiting:,} record{'s wait' if found.waiting > 1 else ' waits'}"
    if found.since:
        reached = datetime.fromtimestamp(found.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        words += f"; the servers were reached last at {reached}"
    elif found.waiting:
        words += "; the servers were never reached"
    return f"{words} ({found.problem})" if found.problem else words
