"""Takes over what other tools and clients have kept of a project: finds it, reads it, and writes it as checkpoints and
tasks. Sources are only read, and what was taken before is not taken again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ralf.checkpointing.flow import checkpoint, record_runs
from ralf.checkpointing.section import Extractive
from ralf.errors import Damaged, NotFound, UsageError
from ralf.project import Project
from ralf.routing import known
from ralf.transcripts.reader import Transcript
from ralf_migrations import memories, pages, registries, run_folders, task_import, task_lists
from ralf_migrations.reading import Kind, Outcome, Reading, Unreadable, name_of, opened

TASKS = "tasks"
"""What task lists are called beside the names of `SOURCES` and of clients."""

Progress = Callable[[int, int, str], None]
"""Told how many files are done, how many there are, and which one is next."""


SOURCES: dict[str, Kind | None] = {
    "run-folders": None,
    "decisions-md": pages.DECISIONS,
    "decision-registry": registries.KIND,
    "timeline-memory": memories.KIND,
    "ralf-context": pages.CONTEXT,
}
"""Sources of history by name, in the order in which they are taken, and the kind of their files; None: folders."""


def read(project: Project, what: str, path: Path) -> Reading:
    """What a file, or a run's folder, comes to; `Unreadable` where nobody can tell."""
    kind = SOURCES[what]
    return run_folders.read(project, path) if kind is None else kind.read(opened(project, path))


def client_names() -> tuple[str, ...]:
    """The clients whose sessions can be imported."""
    from ralf_integrations.client import CLIENTS

    return tuple(client.name for client in CLIENTS.values() if client.sessions is not None)


# ---- finding ----

_PASSED_OVER = frozenset(
    ".git .templates templates _templates .hg .svn node_modules .venv venv __pycache__ .mypy_cache"
    " .pytest_cache .tox".split()
)
"""Folders that hold no source: those of programs, and of templates."""

_BACKUPS = ("*.backup", "*.backup.*", "*.bak", "*~", "*.orig")


class Tree:
    """The folders below one, itself included, and the names of their files; links are not followed.

    unreadable  folders that cannot be looked into
    backups     copies, and folders of copies
    """

    def __init__(self, project: Project, base: Path) -> None:
        self.base = base
        self.folders: list[tuple[Path, list[str]]] = []
        self.unreadable: list[Path] = []
        self.backups: list[Path] = []
        walked = os.walk(base, onerror=lambda error: self.unreadable.append(Path(error.filename)))
        for place, inner, names in walked if base.is_dir() else ():
            folder = Path(place)
            inner[:] = sorted(one for one in inner if one not in _PASSED_OVER and folder / one != project.folder)
            copies = {one for one in (*inner, *names) if any(fnmatchcase(one.lower(), each) for each in _BACKUPS)}
            inner[:] = [one for one in inner if one not in copies]
            self.backups += [folder / one for one in copies]
            self.folders.append((folder, sorted(one for one in names if one not in copies)))

    def find(self, what: str, *, named: bool) -> list[Path]:
        """What of a source is in it, or its base itself where that is a file.

        named  whether somebody named the base: then files that lie directly in it may have other names
        """
        kind = SOURCES[what]
        if kind is None:
            return sorted(run_folders.find(self.folders), key=run_folders.order)
        files = ((folder, folder / name) for folder, names in self.folders for name in names)
        found = [
            path
            for folder, path in files
            if kind.is_named(path.name) or (named and folder == self.base and kind.is_one(path))
        ]
        return sorted(sorted(found), key=kind.order) if self.folders else [self.base]


# ---- what an import comes to ----


@dataclass(slots=True)
class Report:
    """What an import came to.

    files     every file and session that was looked at, by path
    tasks     what came of task lists, a report for each place where some were
    backups   copies that were passed over, their paths
    looked    where it looked, and for what, a line each
    warnings  what the reader should know
    """

    dry_run: bool = False
    files: list[Reading] = field(default_factory=list)
    tasks: list[task_import.ImportReport] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def those(self, outcome: Outcome) -> list[Reading]:
        """The files with this outcome."""
        return [one for one in self.files if one.outcome == outcome]

    @property
    def decisions(self) -> int:
        """Decisions of all files."""
        return sum(one.decisions for one in self.files)

    @property
    def written(self) -> int:
        """Checkpoints that this call has written."""
        return sum(one.written or 0 for one in self.files)

    @property
    def routes(self) -> list[str]:
        """The routes that something went to."""
        return sorted({route for one in self.files for route in one.routes})

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
        parts = [
            f"{_count(len(self.files), 'file')}: {len(self.those('imported')):,} {'would be ' * self.dry_run}taken",
            f"{len(self.those('nothing')):,} with nothing written, {len(self.those('left')):,} left out",
            f"{len(self.those('unreadable')):,} unreadable, {_count(len(self.backups), 'backup')} passed over",
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
        return "would be taken"
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
    call = _Call(project, Report(dry_run), named=bool(paths), progress=progress or (lambda done, count, name: None))
    for base in bases:
        if what in ("", *SOURCES):
            call.take_history(base, [what] if what else list(SOURCES))
        if what in ("", TASKS):
            call.take_tasks(base, is_asked=what == TASKS)
    if not paths and what in ("", *clients):
        call.take_sessions(what or None, since)
    unused = {one.path: one for one in call.report.files if one.outcome == "nothing"}
    used = [one for one in call.report.files if one.outcome != "nothing"]
    for one in used:  # a file at which several sources looked counts once
        unused.pop(one.path, None)
    call.report.files = sorted([*used, *unused.values()], key=lambda one: one.path)
    call.report.backups = sorted(set(call.report.backups))
    call.report.warnings = list(dict.fromkeys(call.report.warnings))
    return call.report


class _Call:
    """One call of `import_all`."""

    def __init__(self, project: Project, report: Report, *, named: bool, progress: Progress) -> None:
        self.report = report
        self._project = project
        self._named = named
        self._progress = progress
        self._empty: dict[str, list[Transcript]] = {}  # by route, runs that wrote nothing, oldest first

    def take_history(self, base: Path, names: Sequence[str]) -> None:
        """Take what lies below a folder, or a file, of these sources. Among all of them a run's own documents go with
        the run, and a file goes to the source that knows it.
        """
        tree, project = Tree(self._project, base), self._project
        wanted: list[tuple[str, Path]] = []
        runs: set[Path] = set()
        for name in names:
            kind = SOURCES[name]
            place = kind.names[0] if kind is not None else "run-…/ with THOUGHTS.md and the like"
            self.report.looked.append(f"{name}: {place}, below {base}" if tree.folders else f"{name}: {base}")
            if tree.folders or len(names) == 1 or (kind is not None and kind.is_one(base)):
                found = tree.find(name, named=self._named)
                wanted += [(name, path) for path in found if kind is None or path.parent not in runs]
                runs |= set(found) if kind is None and len(names) > 1 else set()
            for one in tree.backups:
                if one.is_dir() or (kind is not None and Path(kind.names[0]).stem.lower() in one.name.lower()):
                    self.report.backups.append(name_of(project, one))
        for path in tree.unreadable:
            self.report.files.append(Reading("unreadable", path=name_of(project, path), why="cannot be looked into"))
        for number, (name, path) in enumerate(wanted):
            self._progress(number, len(wanted), name_of(project, path))
            self.report.files.append(replace(self._taken(name, path), path=name_of(project, path), source=name))
        self._count_runs(list(self._empty))
        self._progress(len(wanted), len(wanted), "")

    def _taken(self, source: str, path: Path) -> Reading:
        """What one file comes to, which is written."""
        if path.is_symlink():
            return Reading("left", why="a link: what it leads to is taken where it lies")
        try:
            found = read(self._project, source, path)
        except Unreadable as error:
            return Reading("unreadable", why=str(error))
        parts = [(known(self._project, part.route) or part.route, part.transcript) for part in found.parts]
        decisions = sum("decision" in event.input for _, transcript in parts for event in transcript.events())
        routes = tuple(dict.fromkeys(route for route, _ in parts))
        found = replace(found, parts=(), routes=routes, decisions=decisions)
        if self.report.dry_run:
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
        self.report.warnings += [*told.warnings, *([told.damage] if told.damage else [])]
        return len(told.checkpoints)

    def _count_runs(self, routes: Iterable[str]) -> None:
        for route in routes:
            if runs := self._empty.pop(route, None):
                self.report.warnings += record_runs(route, runs, root=self._project.root)

    def take_tasks(self, base: Path, *, is_asked: bool) -> None:
        """Take the task lists of a folder, or one; a folder need not hold any."""
        where = f", below {base}" if base.is_dir() else ""
        self.report.looked.append(f"{TASKS}: {', '.join(task_lists.PLACES) if where else base}{where}")
        is_history = not where and any(kind is not None and kind.is_one(base) for kind in SOURCES.values())
        if not is_asked and (is_history or (where and not self._named and not task_lists.lists_of(base))):
            return
        try:
            tasks = task_import.import_tasks(base, dry_run=self.report.dry_run, root=self._project.root)
        except NotFound:
            if is_asked:
                raise
        else:
            self.report.tasks.append(tasks)

    def take_sessions(self, client: str | None, since: datetime | None) -> None:
        """Take a client's sessions of the project, or those of all, of which something is in no route yet."""
        from ralf_integrations import existing

        where = f"where {client or ', '.join(client_names())} keep those of {self._project.root}"
        self.report.looked.append(f"sessions: {where}")
        found = list(existing.found(self._project, client))
        if since is not None:
            found = [one for one in found if one.path.stat().st_mtime >= since.timestamp()]

        def told(one: existing.Existing, done: int, whole: int) -> None:
            self._progress(found.index(one), len(found), one.path.name)

        dry_run = self.report.dry_run
        taken = [None] * len(found) if dry_run else existing.take(self._project, found, progress=told)
        for one, came in zip(found, taken, strict=True):
            entry = Reading("imported", path=str(one.path), source=one.client, routes=(one.route,))
            if came is not None and came.report is not None:
                entry = replace(entry, written=len(came.report.checkpoints))
            elif came is not None:
                entry = replace(entry, outcome="unreadable", why=came.problem, written=0)
            self.report.files.append(entry)
