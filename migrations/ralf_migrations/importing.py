"""Takes over what other tools and clients have kept of a project: finds it, reads it, and writes it as checkpoints and
tasks. Sources are only read, and what was taken before is not taken again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf.checkpointing.flow import checkpoint, record_runs
from ralf.checkpointing.section import Extractive
from ralf.errors import Damaged, NotFound, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.routing import known
from ralf.transcripts.reader import Transcript
from ralf_migrations import decision_files, loop_pages, memories, reading, run_folders, task_import, task_lists
from ralf_migrations.reading import Kind, Outcome, Reading, Source, Tree, Unreadable, name_of, opened

if TYPE_CHECKING:
    from ralf_integrations.existing import Existing
    from ralf_migrations.task_import import ImportReport

TASKS = "tasks"
"""What task lists are called beside the names of `SOURCES` and of clients."""

Progress = Callable[[int, int, str], None]
"""Told how many files are done, how many there are, and which one is next."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A source of history.

    place  what of it is looked for, for a person
    find   what of it lies in a tree; the second argument says whether somebody named that
    read   what a file or folder of it comes to; `reading.Unreadable` where nobody can tell
    order  which is taken first: where two tell of the same, the later one is believed
    kind   of its files; None for folders
    """

    place: str
    find: Callable[[Tree, bool], list[Path]]
    read: Callable[[Project, Path], Reading]
    order: Callable[[Path], Any]
    kind: Kind | None = None


def _of_files(
    kind: Kind, read: Callable[[Source], Reading], order: Callable[[Path], Any] = lambda path: path
) -> Origin:
    def read_one(project: Project, path: Path) -> Reading:
        source = opened(project, path)
        return replace(read(source), sha256=source.sha256, size=source.size)

    return Origin(kind.names[0], lambda tree, named: reading.find_files(tree, kind, named=named), read_one, order, kind)


SOURCES = {
    "run-folders": Origin(
        "run-…/ with THOUGHTS.md and the like", run_folders.find, run_folders.read, run_folders.order
    ),
    "decisions-md": _of_files(decision_files.MARKDOWN, decision_files.read_markdown),
    "decision-registry": _of_files(decision_files.REGISTRY, decision_files.read_registry),
    # a worker and its validator may share a task's route: the worker knows where the work stands
    "timeline-memory": _of_files(memories.KIND, memories.read, lambda path: ("validator" not in path.as_posix(), path)),
    "ralf-context": _of_files(loop_pages.KIND, loop_pages.read, loop_pages.order),
}
"""Sources of history by name, in the order in which they are taken."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an import came to.

    files     every file and session that was looked at, by path
    tasks     what came of task lists, a report for each place where some were
    backups   copies that were passed over, their paths
    looked    where it looked, and for what, a line each
    warnings  what the reader should know
    """

    files: tuple[Reading, ...] = ()
    tasks: tuple[ImportReport, ...] = ()
    backups: tuple[str, ...] = ()
    looked: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    dry_run: bool = False

    def those(self, outcome: Outcome) -> tuple[Reading, ...]:
        """The files with this outcome."""
        return tuple(one for one in self.files if one.outcome == outcome)

    @property
    def is_whole(self) -> bool:
        """Whether everything that was found could be read."""
        return not self.those("unreadable")

    @property
    def decisions(self) -> int:
        """Decisions of all files."""
        return sum(one.decisions for one in self.files)

    @property
    def written(self) -> int:
        """Checkpoints that this call has written."""
        return sum(one.written or 0 for one in self.files)

    @property
    def routes(self) -> tuple[str, ...]:
        """The routes that something went to."""
        return tuple(sorted({route for one in self.files for route in one.routes}))

    def lines(self) -> list[str]:
        """All of it as lines for a person; files in which nothing was written are only counted. Where nothing was
        found, they say where it was looked.
        """
        if not (self.files or self.tasks):
            return ["nothing to import was found; looked for:", *(f"  {line}" for line in self.looked)]
        shown = (one for one in self.files if one.outcome != "nothing")
        told = [f"{one.path} → {', '.join(one.routes) or '-'}: {_became(one)}" for one in shown]
        told += [line for tasks in self.tasks for line in tasks.lines()]
        told += [f"warning: {one}" for one in self.warnings]
        taken = f"{_count(len(self.files), 'file')}: {len(self.those('imported')):,} {'would be ' * self.dry_run}taken"
        parts = [
            *(taken, f"{len(self.those('nothing')):,} with nothing written", f"{len(self.those('left')):,} left out"),
            *(f"{len(self.those('unreadable')):,} unreadable", f"{_count(len(self.backups), 'backup')} passed over"),
            _count(self.decisions, "decision"),
            *([] if self.dry_run else [f"{_count(self.written, 'checkpoint')} written"]),
        ]
        return [*told, ", ".join(parts)] if self.files else told

    def tree(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        names = ("decisions", "written", "routes", "backups", "looked", "warnings", "dry_run")
        files = [{name: getattr(one, name) for name in Reading.__slots__ if name != "parts"} for one in self.files]
        told = {name: getattr(self, name) for name in names}
        return {"files": files, "tasks": [one.tree() for one in self.tasks], **told}


def _became(one: Reading) -> str:
    """What became of a file, in a few words."""
    if one.outcome != "imported":
        return f"{one.outcome}: {one.why}"
    if one.written is None:
        return f"would be taken, by {one.rule}"
    return _count(one.written, "checkpoint") if one.written else "nothing new"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


# ---- the import ----


def import_all(
    project: Project,
    what: str = "",
    paths: Sequence[str | os.PathLike[str]] = (),
    *,
    dry_run: bool = False,
    since: datetime | None = None,
    progress: Progress | None = None,
) -> Report:
    """Take over what other tools and clients have kept: as checkpoints of the routes that it is of, and as tasks.

    what     only this: one of `SOURCES`, `TASKS`, or a client's name; "": all of it
    paths    files and folders that are looked at; (): the project, and where clients keep its sessions
    dry_run  only say what would go where
    since    only sessions of clients that were written to since then

    A file that cannot be read is listed, and the others are taken; a task list that is damaged is refused as a whole.
    Raises UsageError (an unknown source, a client with a path), NotFound (no such path), and what writing raises.
    """
    clients = client_names()
    if what and what not in (*SOURCES, TASKS, *clients):
        raise UsageError(what, "no source that is known", f"one of {', '.join((*SOURCES, TASKS, *clients))}")
    if what in clients and paths:
        raise UsageError(what, "a client's sessions are found where the client keeps them", f"ralf import {what}")
    bases = [Path(path).expanduser().resolve() for path in paths] or [project.root]
    for base in bases:
        if not base.exists():
            raise NotFound(base, "no such file or folder", "ralf import --help")
    call = _Call(project, dry_run=dry_run, named=bool(paths), progress=progress)
    for base in bases:
        if what in ("", *SOURCES):
            call.take_history(base, [what] if what else list(SOURCES))
        if what in ("", TASKS):
            call.take_tasks(base, is_asked=what == TASKS)
    if not paths and what in ("", *clients):
        call.take_sessions(what or None, since)
    return call.report()


def client_names() -> tuple[str, ...]:
    """The clients whose sessions can be imported."""
    from ralf_integrations.client import CLIENTS

    return tuple(client.name for client in CLIENTS.values() if client.sessions is not None)


class _Call:
    """One call of `import_all`."""

    def __init__(self, project: Project, *, dry_run: bool, named: bool, progress: Progress | None) -> None:
        self._project = project
        self._dry_run = dry_run
        self._named = named
        self._progress: Progress = progress or (lambda done, count, name: None)
        self._empty: dict[str, list[Transcript]] = {}  # by route, runs that wrote nothing, oldest first
        self._files: list[Reading] = []
        self._tasks: list[ImportReport] = []
        self._backups: set[Path] = set()
        self._looked: list[str] = []
        self._warnings: list[str] = []

    def report(self) -> Report:
        redact = redactor_for(self._project).text if self._project.owner.key else str
        files = (replace(one, left=tuple(map(redact, one.left))) for one in self._files)
        return Report(
            tuple(sorted(files, key=lambda one: one.path)),
            tuple(self._tasks),
            tuple(name_of(self._project, one) for one in sorted(self._backups)),
            tuple(self._looked),
            tuple(dict.fromkeys(self._warnings)),
            self._dry_run,
        )

    def take_history(self, base: Path, names: Sequence[str]) -> None:
        """Take what lies below a folder, or a file, of these sources. Among all of them a run's own documents go with
        the run, and a file goes to the source that knows it.
        """
        tree = Tree(base, self._project.folder)
        wanted: list[tuple[str, Path]] = []
        runs: set[Path] = set()
        for name in names:
            origin = SOURCES[name]
            self._looked.append(f"{name}: {origin.place}, below {base}" if tree.folders else f"{name}: {base}")
            if len(names) > 1 and not tree.folders and (origin.kind is None or not origin.kind.is_one(base)):
                continue
            found = sorted(sorted(origin.find(tree, self._named)), key=origin.order)
            wanted += [(name, path) for path in found if path.parent not in runs or origin.kind is None]
            runs |= set(found) if origin.kind is None and len(names) > 1 else set()
        stems = [Path(origin.kind.names[0]).stem for name in names if (origin := SOURCES[name]).kind is not None]
        self._backups |= {
            one for one in tree.backups if one.is_dir() or any(stem in one.name.lower() for stem in stems)
        }
        self._files += [
            Reading("unreadable", path=name_of(self._project, path), why="cannot be looked into")
            for path in tree.unreadable
        ]
        for number, (name, path) in enumerate(wanted):
            self._progress(number, len(wanted), name_of(self._project, path))
            self._files.append(replace(self._taken(name, path), path=name_of(self._project, path), source=name))
        self._count_runs(list(self._empty))
        self._progress(len(wanted), len(wanted), "")

    def _taken(self, source: str, path: Path) -> Reading:
        """What one file comes to, which is written."""
        if path.is_symlink():
            return Reading("left", why="a link: what it leads to is taken where it lies")
        try:
            found = SOURCES[source].read(self._project, path)
        except Unreadable as error:
            return Reading("unreadable", why=str(error))
        parts = [(known(self._project, part.route) or part.route, part.transcript) for part in found.parts]
        found = replace(found, parts=(), routes=tuple(dict.fromkeys(route for route, _ in parts)))
        if self._dry_run:
            return found
        try:
            return replace(found, written=sum(self._write(route, transcript) for route, transcript in parts))
        except Damaged as error:  # a route's own files are: the other routes are taken
            return replace(found, outcome="unreadable", why=str(error), written=0)

    def _write(self, route: str, transcript: Transcript) -> int:
        """Write a transcript's checkpoints; how many there were. A run without a word only counts, and waits for that
        until one of its route has something to say: thousands of them are one record then.
        """
        if not transcript.size():
            self._empty.setdefault(route, []).append(transcript)
            return 0
        self._count_runs([route])
        told = checkpoint(route, transcript, root=self._project.root, summarizer=Extractive(), reason="import")
        self._warnings += [*told.warnings, *([told.damage] if told.damage else [])]
        return len(told.checkpoints)

    def _count_runs(self, routes: Iterable[str]) -> None:
        for route in routes:
            if runs := self._empty.pop(route, None):
                self._warnings += record_runs(route, runs, root=self._project.root)

    def take_tasks(self, base: Path, *, is_asked: bool) -> None:
        """Take the task lists of a folder, or one; a folder need not hold any."""
        where = f", below {base}" if base.is_dir() else ""
        self._looked.append(f"{TASKS}: {', '.join(task_lists.PLACES) if where else base}{where}")
        kinds = [origin.kind for origin in SOURCES.values() if origin.kind is not None]
        is_known = not where and any(kind.is_one(base) for kind in kinds)
        if not is_asked and (is_known or (where and not self._named and not task_lists.lists_of(base))):
            return
        try:
            self._tasks.append(task_import.import_tasks(base, dry_run=self._dry_run, root=self._project.root))
        except NotFound:
            if is_asked:
                raise

    def take_sessions(self, client: str | None, since: datetime | None) -> None:
        """Take a client's sessions of the project, or those of all, of which something is in no route yet."""
        from ralf_integrations import existing

        self._looked.append(f"sessions: where {client or ', '.join(client_names())} keep those of {self._project.root}")
        found = [one for one in existing.found(self._project, client) if _is_since(one.path, since)]

        def told(one: Existing, done: int, whole: int) -> None:
            self._progress(found.index(one), len(found), one.path.name)

        taken = [None] * len(found) if self._dry_run else existing.take(self._project, found, progress=told)
        for one, came in zip(found, taken, strict=True):
            entry = Reading(
                *("imported", "session"), rule=one.rule, size=one.size, path=str(one.path), source=one.client
            )
            entry = replace(entry, routes=(one.route,))
            if came is not None and came.report is None:
                entry = replace(entry, outcome="unreadable", why=came.problem, written=0)
            elif came is not None and came.report is not None:
                entry = replace(entry, written=len(came.report.checkpoints))
            self._files.append(entry)


def _is_since(path: Path, since: datetime | None) -> bool:
    with suppress(OSError):
        return since is None or path.stat().st_mtime >= since.timestamp()
    return False
