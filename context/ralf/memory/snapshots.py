"""Names for what a memory was, the way back to it, and how large it is now."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.errors import NotFound
from ralf.memory import fold, records, writing
from ralf.memory.model import Memory, check_agent
from ralf.memory.records import Delta
from ralf.project import Project
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

_REVISION = regex(r"r?(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Status:
    """The size of a memory.

    memory_size_kb  kilobytes (1,024 bytes) of its file; entry_count: items; offers: those that wait for the user
    last_compacted  when it was last tidied, "" for never; last_written: when anything was last recorded
    outcomes_count  outcomes of items that were handed over
    """

    agent: str
    memory_size_kb: float = 0.0
    entry_count: int = 0
    last_compacted: str = ""
    last_written: str = ""
    patterns_count: int = 0
    outcomes_count: int = 0
    offers: int = 0
    stale: int = 0
    snapshots: tuple[tuple[str, int], ...] = ()
    revision: int = 0
    warnings: tuple[str, ...] = ()


def status(project: Project, agent: str) -> Status:
    """How large a memory is, and when it was last written and tidied. Errors: `writing.load`."""
    memory = writing.load(project, agent)
    return Status(
        agent=agent,
        memory_size_kb=round(writing.size_of(project, agent) / 1024, 1),
        entry_count=len(memory.items),
        last_compacted=memory.last_compacted,
        last_written=memory.last_written,
        patterns_count=len(memory.of_kind("pattern")),
        outcomes_count=memory.outcomes,
        offers=len(memory.offers),
        stale=sum(bool(item.stale) for item in memory.items),
        snapshots=tuple(memory.snapshots.items()),
        revision=memory.revision,
        warnings=memory.warnings,
    )


def snapshot(project: Project, agent: str, name: str) -> Memory:
    """Give what the memory is now a name. Errors: `writing.record`."""
    return writing.record(project, agent, [records.Named(name)])


def restore(project: Project, agent: str, to: str) -> Memory:
    """Bring back what the memory was at a snapshot or a revision (`r12`), as a change that can itself be undone.

    NotFound for one that there is not; other errors: `writing.record`.
    """
    check_agent(agent)

    def deltas(now: Memory) -> Sequence[Delta]:
        number = now.snapshots.get(to, 0)
        if not number and (found := _REVISION.fullmatch(to)):
            number = int(found[1])
        then = writing.load_at(project, agent, number) if number else None
        if then is None:
            named = ", ".join(now.snapshots) or "none"
            raise NotFound(agent, f"has no snapshot {to[:80]!r}; there are: {named}", "ralf memory status")
        changes = fold.difference(now, then)
        return [*changes, records.Restored(number, to)] if changes else []

    return writing.write(project, agent, deltas)
