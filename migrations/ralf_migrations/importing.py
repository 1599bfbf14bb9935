"""Takes over what other tools and clients have kept of a project: finds it, reads it, and writes it as checkpoints and
tasks. Sources are only read, and what was taken before is not taken again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from ralf.checkpointing.flow import checkpoint, record_runs
from ralf.checkpointing.section import Extractive
from ralf.errors import Damaged, NotFound, UsageError
from ralf.project import Project
from ralf.routing import known
from ralf.transcripts.reader import Transcript
from ralf_migrations import memories, pages, registries, run_folders, task_import, task_lists
from ralf_migrations.reading import Outcome, Reading, Unreadable, beginning, name_of

# ---- what is found, and what reads it ----


class Kind(NamedTuple):
    """A kind of file, or of folder, that history is taken from.

    place  where it is found, for people; other files with its suffix may be one
    names  patterns of the names of such files, case aside
    looks  matches in the beginning of one
    read   what one comes to
    order  which is taken first: where two tell of the same, the later one is believed
    """

    place: str
    names: tuple[str, ...]
    looks: str
    read: Callable[[Project, Path], Reading]
    order: Callable[[Path], Any] = Path.as_posix


_MEMORY = r"^timeline_memory:|^ {0,3}#{1,6}[ \t]+Work (?:History|Queue)\b"
_MEMORIES, _REGISTRIES = ("*timeline-memory.md", "timeline-memory-*.md"), ("*decision_registry*.y*ml",)
RUNS, TASKS = "run-folders", "tasks"
SOURCES = {
    RUNS: Kind("run-…/ with THOUGHTS.md and the like", (), "", run_folders.read, run_folders.by_time),
    "decisions-md": Kind(
        "DECISIONS.md", ("*decisions.md", "decisions-*.md"), r"^#+ .*\bdecisions?\b", pages.read_decisions
    ),
    "decision-registry": Kind("decision_registry.yaml", _REGISTRIES, r"^decisions:", registries.read),
    "timeline-memory": Kind("timeline-memory.md", _MEMORIES, _MEMORY, memories.read, memories.by_worker),
    "ralf-context": Kind(
        "RALF-CONTEXT.md", ("ralf-context*.md",), r"^# RALF.{0,20}context", pages.read_context, pages.by_time
    ),
}
"""Sources of history by name, in the order in which they are taken."""


def sources_of(path: Path, names: Collection[str], *, by_content: bool = True) -> list[str]:
    """The source of these that knows a file, if any: by its name, else by what it begins with."""
    known_by = [name for name in names if any(fnmatchcase(path.name.lower(), each) for each in SOURCES[name].names)]
    if known_by or not by_content:
        return known_by[:1]
    kinds = [name for name in names if SOURCES[name].names and Path(SOURCES[name].place).suffix == path.suffix.lower()]
    begins = beginning(path) if kinds else ""
    # of two the later one: decisions may stand in any page
    return [name for name in kinds if re.search(f"(?im){SOURCES[name].looks}", begins)][-1:]


def client_names() -> tuple[str, ...]:
    """The clients whose sessions can be imported."""
    from ralf_integrations.client import CLIENTS

    return tuple(client.name for client in CLIENTS.values() if client.sessions is not None)


_PASSED_OVER = frozenset(
    ".git .templates templates _templates .hg .svn node_modules .venv venv __pycache__ .mypy_cache"
    " .pytest_cache .tox".split()
)
"""Folders that hold no source: those of programs, and of templates."""

_BACKUPS = ("*.backup", "*.backup.*", "*.bak", "*~", "*.orig")


def find(project: Project, report: Report, base: Path, names: Sequence[str], *, named: bool) -> list[tuple[str, Path]]:
    """What of these sources lies below a folder, or a file itself, in the order in which it is taken. Links are not
    followed; backups, and folders that cannot be looked into, are reported. Among all sources a run's own documents go
    with it.

    named  whether somebody named the base: then files that lie directly in it may have other names
    """
    found: list[tuple[str, Path]] = []
    if not base.is_dir():
        return [(name, base) for name in (names if len(names) == 1 else sources_of(base, names))]

    def note(error: OSError) -> None:
        name = name_of(project, Path(error.filename))
        report.files.append(Reading("unreadable", path=name, why="cannot be looked into"))

    runs: set[Path] = set()
    for place, inner, files in os.walk(base, onerror=note):
        folder = Path(place)
        copies = {one for one in (*inner, *files) if any(fnmatchcase(one.lower(), each) for each in _BACKUPS)}
        report.backups += [name_of(project, folder / one) for one in copies]
        is_within = any(parent in runs for parent in folder.parents)
        if RUNS in names and run_folders.is_run(folder, inner, files, is_within=is_within):
            runs.add(folder)
            found.append((RUNS, folder))
        passed = _PASSED_OVER | copies
        inner[:] = sorted(one for one in inner if one not in passed and folder / one != project.folder)
        if folder in runs and len(names) > 1:
            continue
        for path in (folder / one for one in files if one not in copies):
            found += [(name, path) for name in sources_of(path, names, by_content=named and folder == base)]
    return sorted(found, key=lambda one: (names.index(one[0]), SOURCES[one[0]].order(one[1])))


# ---- what an import comes to ----


@dataclass(slots=True)
class Report:
    """What an import came to.

    files     every file and session that was looked at
    tasks     what came of task lists, a report for each place where some were
    backups   copies that were passed over, their paths
    looked    for what it looked, and where
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
        of = Counter(one.outcome for one in self.files)
        parts = [
            f"{_count(len(self.files), 'file')}: {of['imported']:,} {'would be ' * self.dry_run}taken",
            f"{of['nothing']:,} with nothing written, {of['left']:,} left out, {of['unreadable']:,} unreadable",
            f"{_count(len(self.backups), 'backup')} passed over, {_count(self.decisions, 'decision')}",
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

Progress = Callable[[int, int, str], None]
"""Told how many files are done, how many there are, and which one is next."""


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
    report, progress = Report(dry_run), progress or (lambda done, count, name: None)
    for base in bases:
        if names := [name for name in SOURCES if what in ("", name)]:
            report.looked += [f"{name}: {SOURCES[name].place}, below {base}" for name in names]
            _take_history(project, report, find(project, report, base, names, named=bool(paths)), progress)
        if what in ("", TASKS):
            report.looked.append(f"{TASKS}: {', '.join(task_lists.PLACES)}, below {base}")
            _take_tasks(project, report, base, is_asked=what == TASKS)
    if not paths and what in ("", *clients):
        report.looked.append(f"sessions: where {what or ', '.join(clients)} keep those of {project.root}")
        _take_sessions(project, report, what or None, since, progress)
    report.files.sort(key=lambda one: (one.outcome == "nothing", one.path))
    report.backups, report.warnings = sorted(set(report.backups)), list(dict.fromkeys(report.warnings))
    return report


def _take_history(project: Project, report: Report, found: Sequence[tuple[str, Path]], progress: Progress) -> None:
    """Take these files and runs. A run without a word only counts, and waits for that until one of its route has
    something to say: thousands of them are one record then.
    """
    empty: dict[str, list[Transcript]] = {}
    for number, (name, path) in enumerate(found):
        progress(number, len(found), name_of(project, path))
        try:
            reading = SOURCES[name].read(project, path)
        except Unreadable as error:
            reading = Reading("unreadable", why=str(error))
        if path.is_symlink():
            reading = Reading("left", why="a link: what it leads to is taken where it lies")
        parts = [(known(project, route) or route, transcript) for route, transcript in reading.parts]
        decisions = sum("decision" in event.input for _, transcript in parts for event in transcript.events())
        routes = tuple(dict.fromkeys(route for route, _ in parts))
        done = replace(reading, path=name_of(project, path), source=name, routes=routes, decisions=decisions, parts=())
        try:
            for route, transcript in () if report.dry_run else parts:
                done = replace(done, written=done.written or 0)
                if not transcript.size():
                    empty.setdefault(route, []).append(transcript)
                    continue
                report.warnings += record_runs(route, empty.pop(route, ()), root=project.root)
                told = checkpoint(route, transcript, root=project.root, summarizer=Extractive(), reason="import")
                report.warnings += [*told.warnings, *([told.damage] if told.damage else [])]
                done = replace(done, written=(done.written or 0) + len(told.checkpoints))
        except Damaged as error:  # a route's own files are: the other routes are taken
            done = replace(done, outcome="unreadable", why=str(error), written=0)
        report.files.append(done)
    for route, runs in empty.items():
        report.warnings += record_runs(route, runs, root=project.root)
    progress(len(found), len(found), "")


def _take_tasks(project: Project, report: Report, base: Path, *, is_asked: bool) -> None:
    """Take the task lists of a folder, or one; unless somebody asked for them, there need not be any."""
    is_history = base.is_file() and sources_of(base, SOURCES)
    if not is_asked and (is_history or (base.is_dir() and not task_lists.lists_of(base))):
        return
    try:
        report.tasks.append(task_import.import_tasks(base, dry_run=report.dry_run, root=project.root))
    except NotFound:
        if is_asked:
            raise


def _take_sessions(
    project: Project, report: Report, client: str | None, since: datetime | None, progress: Progress
) -> None:
    """Take a client's sessions of the project, or those of all, of which something is in no route yet."""
    from ralf_integrations import existing

    least = since.timestamp() if since is not None else 0.0
    found = [one for one in existing.found(project, client) if one.path.stat().st_mtime >= least]
    for number, one in enumerate(found):
        progress(number, len(found), one.path.name)
        entry = Reading("imported", path=str(one.path), source=one.client, routes=(one.route,))
        for came in () if report.dry_run else existing.take(project, [one]):
            if came.report is not None:
                entry = replace(entry, written=len(came.report.checkpoints))
            else:
                entry = replace(entry, outcome="unreadable", why=came.problem, written=0)
        report.files.append(entry)
