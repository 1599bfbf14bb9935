"""How large a memory is, the ways back to what it was, and tidying: what proved of no use goes.

Preferences and relationships stay as they are, and so does what a person said; every item that went is in the journal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ralf.errors import NotFound
from ralf.memory import writing
from ralf.memory.fold import Delta
from ralf.memory.model import Item, Memory, check_agent, tree_of
from ralf.memory.records import delta
from ralf.project import Project

_EVERY = timedelta(days=7)

_LARGEST = 50 * 1024  # bytes of the file above which it is tidied before a week is over

_LEAST_CONFIDENCE, _LEAST_USES = 0.3, 3  # a tidying keeps what has more of either


def status(project: Project, agent: str) -> dict[str, Any]:
    """How large a memory is, and when it was last written and tidied, "" for never. Errors: `writing.load`.

    memory_size_kb  kilobytes (1,024 bytes) of its file; entry_count: items; offers: those that wait for the user
    outcomes_count  outcomes of items that were handed over
    """
    memory = writing.load(project, agent)
    return {
        "agent": agent,
        "memory_size_kb": round(_size(project, agent) / 1024, 1),
        "entry_count": len(memory.items),
        "last_compacted": memory.last_compacted,
        "last_written": memory.last_written,
        "patterns_count": len(memory.of_kind("pattern")),
        "outcomes_count": memory.outcomes,
        "offers": len(memory.offers),
        "snapshots": dict(memory.snapshots),
        "revision": memory.revision,
        "warnings": memory.warnings,
    }


def _size(project: Project, agent: str) -> int:
    try:
        return writing.path_of(project, agent).stat().st_size
    except OSError:
        return 0


# ---- the way back ----


def snapshot(project: Project, agent: str, name: str) -> Memory:
    """Give what the memory is now a name. Errors: `writing.record`."""
    return writing.record(project, agent, [delta("snapshot", name=name)])


def restore(project: Project, agent: str, to: str) -> Memory:
    """Bring back what the memory was at a snapshot or a revision (`r12`), as a change that can itself be undone.

    NotFound for one that there is not; other errors: `writing.record`.
    """
    check_agent(agent)

    def deltas(now: Memory) -> Sequence[Delta]:
        said = re.fullmatch(r"r?(\d{1,9})", to)
        number = now.snapshots.get(to, int(said[1]) if said else 0)
        then = writing.load_at(project, agent, number) if number else None
        if then is None:
            named = ", ".join(now.snapshots) or "none"
            raise NotFound(agent, f"has no snapshot {to[:80]!r}; there are: {named}", "ralf memory status")
        entries = {label: tree_of(item) for label, item in then.entries.items()}
        return [delta("restore", to=number, name=to, entries=entries, notes=dict(then.notes))]

    return writing.write(project, agent, deltas)


# ---- tidying ----


def is_due(memory: Memory, size: int, now: datetime) -> bool:
    """Whether a memory is to be tidied: a week after the last time, or since its first item, or above 50 KB.

    size  bytes of the file
    """
    if memory.items and size > _LARGEST:
        return True
    try:
        since = datetime.fromisoformat(memory.last_compacted or min(item.added for item in memory.items))
    except ValueError:  # without an item, or with a time that a person wrote
        return False
    return now - (since if since.tzinfo else since.replace(tzinfo=UTC)) >= _EVERY


def is_kept(item: Item) -> bool:
    """Whether a tidying keeps an item: confidence above 0.3, or more than three uses; whatever a person said, or is."""
    is_used = item.confidence > _LEAST_CONFIDENCE or item.uses > _LEAST_USES
    return is_used or item.origin == "person" or item.kind in ("preference", "relationship")


def tidy(project: Project, agent: str, *, force: bool = False) -> Memory | None:
    """Drop what proved of no use, where that is due; None where it is not. Errors: `writing.record`.

    force  whether to do it in any case
    """
    if not force and not is_due(writing.load(project, agent), _size(project, agent), datetime.now(UTC)):
        return None

    def made(memory: Memory) -> Sequence[Delta]:
        gone = [item for item in memory.items if not is_kept(item)]
        why = "confidence {0.confidence:.2f} with {0.uses} uses"
        drops = [delta("drop", item.id, reason=why.format(item), origin="mechanical") for item in gone]
        return [*drops, delta("compact")]

    return writing.write(project, agent, made)
