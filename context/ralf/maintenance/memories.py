"""The memories of agents, for who checks, repairs and purges a store: each is a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ralf.document.access import Look
from ralf.document.judging import DAMAGED, EDITED, HALF, NEW
from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.memory import writing
from ralf.memory.writing import path_of
from ralf.project import Project
from ralf.storage.check import Finding

_ANEW = "keep it under another name, and write it anew from the journal"


def findings(project: Project) -> Iterator[Finding]:
    """What is to be said of the memories' files against their records. Writes nothing."""
    for agent in writing.agents(project):
        path = path_of(project, agent)
        try:
            yield from writing.look_of(project, agent, partial(_of_file, path))
        except DamagedJournal as error:
            yield Finding(path, f"its records make no memory: {error.what}", MEND_JOURNAL)


def _of_file(path: Path, look: Look) -> list[Finding]:
    return [*_findings(path, look)]


def _findings(path: Path, look: Look) -> Iterator[Finding]:
    what = look.file.what.removeprefix(f"{path}: ")
    if look.unread:
        yield Finding(path, f"cannot be read: {look.unread}", _ANEW)
    elif look.file.status == DAMAGED:
        theirs = "conflict" in what or not look.state.revision
        yield Finding(path, what, "" if theirs else _ANEW)
    elif look.file.status in (NEW, HALF):
        yield Finding(path, what, damage=False)
    elif look.file.status == EDITED:
        yield Finding(path, "was edited: the next write absorbs it", damage=False)
    elif not path.exists():
        yield Finding(path, "is missing", "write it anew from the journal", damage=False)
    elif look.content != look.state.shown():
        what = f"does not show revision {look.state.revision}"
        yield Finding(path, what, "write it anew from the journal", damage=False)


def repaired(project: Project, aside: Callable[[Path], object], note: Callable[[Path, str], None]) -> None:
    """Write files anew that `findings` finds missing, behind or damaged; what a person edited is absorbed.

    aside  moves a file to where it is kept; note: is told of each file that was written
    """
    for finding in list(findings(project)):
        if not finding.repair or finding.repair == MEND_JOURNAL:
            continue
        path = finding.path
        if finding.damage and path.exists():
            aside(path)
        writing.record(project, path.stem, [])
        note(path, "written anew from the journal")
