"""The memories of agents, for who checks, repairs and purges a store: each has a stream, a file and an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from ralf.errors import MEND_JOURNAL, Busy, DamagedJournal
from ralf.memory import edits, writing
from ralf.memory.edits import path_of
from ralf.memory.index import Index
from ralf.memory.records import STREAMS
from ralf.project import Project
from ralf.storage import files
from ralf.storage.durable import hidden_beside, removed
from ralf.storage.health import Finding

_MOST_TRIES = 5  # at a file that is saved again and again

_ANEW = "move it to damaged/, and write it anew from the journal"


def file_paths(project: Project) -> list[Path]:
    """The files of all memories, and what was set aside beside them."""
    folder = path_of(project, "main").parent
    return sorted(path for path in folder.glob("*") if path.is_file() and not path.is_symlink())


def findings(project: Project) -> Iterator[Finding]:
    """What is to be said of the memories' files against their records. Writes nothing."""
    for agent in writing.agents(project):
        path = path_of(project, agent)
        with closing(Index(project, agent, None)) as index:  # one in memory: the kept one may be what is wrong
            try:
                index.keep_up()
                content = edits.read(project, agent)
            except DamagedJournal as error:
                yield Finding(path, f"its records make no memory: {error.what}", MEND_JOURNAL)
                continue
            except OSError as error:
                yield Finding(path, f"cannot be read: {error.strerror}", _ANEW)
                continue
            found = edits.look(project, index, content)
            revision = index.head.revision
        what = found.what.removeprefix(f"{path}: ")
        if found.status == "damaged":
            theirs = "conflict" in what or not revision
            yield Finding(path, what, "" if theirs else _ANEW)
        elif found.status == "foreign":
            yield Finding(path, what, damage=False)
        elif content is None:
            yield Finding(path, "is missing", "write it anew from the journal", damage=False)
        elif found.deltas:
            yield Finding(path, "was edited: the next write takes it in", damage=False)
        elif found.status == "behind":
            yield Finding(path, f"does not show revision {revision}", "write it anew from the journal", damage=False)


def repaired(project: Project, aside: Callable[[Path], object], note: Callable[[Path, str], None]) -> None:
    """Write files anew that `findings` finds missing, behind or damaged; what a person edited is taken in.

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


def holds_words(project: Project, stream: str, holds: Callable[[Path], bool]) -> bool:
    """Whether the file of a memory, or what was displaced beside it, holds the words of a forget."""
    if not stream.startswith(STREAMS):
        return False
    path = path_of(project, stream.removeprefix(STREAMS))
    return any(map(holds, (path, *hidden_beside(path))))


def rewritten(project: Project, stream: str, change: Callable[[], int]) -> int:
    """Change the records of a memory, and then its file; what `change` returns.

    What a person saved is taken in first. Then the file goes, for it shows the old words and would be taken for an edit
    of the new ones; who is broken off leaves a journal that makes it anew. Busy where it is saved again and again.
    """
    agent = stream.removeprefix(STREAMS)
    path = path_of(project, agent)
    for _ in range(_MOST_TRIES):
        writing.record(project, agent, [])
        with files.locked(writing.lock_of(project, agent), agent):
            content = edits.read(project, agent)
            with closing(Index(project, agent, None)) as index:
                index.keep_up()
                found = edits.look(project, index, content)
            # A file that is not ours is left: a forget purges it as it stands.
            is_left = found.is_left or f"memory/{path.name}" in project.git.tracked()
            if found.deltas and not is_left:
                continue
            removed([*hidden_beside(path), *([] if is_left else [path])])
            changed = change()
            removed(index_files(project, agent))
        writing.record(project, agent, [])
        return changed
    raise Busy(agent, "its file is saved faster than it can be purged", "close it in the editor, then try again")


def index_files(project: Project, agent: str) -> list[Path]:
    """The files of an index, which holds words in its own way."""
    return sorted((project.cache / "memory" / agent).glob("*"))


def is_memory(stream: str) -> bool:
    """Whether a stream is that of a memory."""
    return stream.startswith(STREAMS)
