"""Exchanges records with NATS servers beside the work of a command, a worker or a tool: nothing runs by itself for it.

For a project with another store than files+nats each function costs a look at one file. None of them raises anything or
takes long: what cannot be exchanged now waits, and `ralf status` says so.
"""

from __future__ import annotations

import os
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
    return b"files+nats" in _configuration(project)


def names_servers(project: Project) -> bool:
    """Whether the store of a project may be one with NATS servers."""
    return b"nats" in _configuration(project)


def _configuration(project: Project) -> bytes:
    try:
        return content_of(project.local_config_file, most=_MOST)
    except OSError:
        return b""


def place_file(root: str | os.PathLike[str] | None, route: str) -> None:
    """Make the file of a route anew that was recorded on another machine, for a project that has its journal on NATS
    servers alone: here it is missing, or shows less. What stands in the way is for the next write to say.
    """
    from ralf import project as projects

    project = projects.find(root)
    if not names_servers(project) or is_wanted(project):
        return
    from ralf.route.load import load_state
    from ralf.route.write import open_route

    with suppress(RalfError, OSError):
        found = load_state(project, route)
        if found is not None and found.token is not None and found.status in ("missing", "stale"):
            with open_route(project, route, leave=False) as writer:
                writer.absorb_edits()
                writer.render_file()


def before(project: Project, *, seconds: float = 10.0, insist: bool = False) -> None:
    """Take in what other machines have recorded, before something is read.

    seconds  what takes longer is left to the next time
    insist   ask the servers though they were away a moment ago
    """
    if is_wanted(project):
        from ralf_integrations.stores import exchange

        with suppress(RalfError, OSError):
            exchange.exchange(project, seconds=seconds, insist=insist)


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
