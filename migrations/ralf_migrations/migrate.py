"""Takes over what another tool has kept: finds, reads, accounts for every field, and writes it as checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ralf import project as projects
from ralf.checkpointing.flow import checkpoint, record_runs
from ralf.checkpointing.section import Extractive
from ralf.errors import Damaged, NotFound, UsageError
from ralf.project import Project
from ralf.routing import known
from ralf.transcripts.reader import Transcript
from ralf_migrations import (
    decisions,
    pilot_checkpoint,
    ralf_context,
    reading,
    report as reports,
    run_folders,
    timeline_memory,
)
from ralf_migrations.reading import Found, Kind, Reading, Source, Unreadable, name_of, opened
from ralf_migrations.report import Field, FileReport, MigrationReport

# ---- sources ----


@dataclass(frozen=True, slots=True)
class Origin:
    """A source.

    find   what of it lies below a folder; the second argument says whether somebody named that folder
    read   what a file or folder of it comes to; `reading.Unreadable` where nobody can tell
    order  which is taken first: where two tell of the same, the later one is believed
    """

    find: Callable[[Path, bool, Path], Found]
    read: Callable[[Project, Path], tuple[Source | None, Reading]]
    order: Callable[[Path], object]


def _of_files(
    kind: Kind, read: Callable[[Source], Reading], order: Callable[[Path], object] = lambda path: path
) -> Origin:
    def find(base: Path, named: bool, store: Path) -> Found:
        return reading.find_files(base, kind, named=named, store=store)

    def read_one(project: Project, path: Path) -> tuple[Source | None, Reading]:
        source = opened(project, path)
        return source, read(source)

    return Origin(find, read_one, order)


def _workers_last(path: Path) -> tuple[bool, Path]:
    """A worker and its validator may share a task's route: the worker knows where the work stands."""
    return "validator" not in path.as_posix(), path


SOURCES = {
    "timeline-memory": _of_files(timeline_memory.KIND, timeline_memory.read, _workers_last),
    "decision-registry": _of_files(decisions.REGISTRY, decisions.read_registry),
    "decisions-md": _of_files(decisions.MARKDOWN, decisions.read_markdown),
    "ralf-context": _of_files(ralf_context.KIND, ralf_context.read, ralf_context.order),
    "run-folders": Origin(run_folders.find, run_folders.read, run_folders.order),
    "pilot-checkpoint": _of_files(pilot_checkpoint.KIND, pilot_checkpoint.read, pilot_checkpoint.order),
}
"""By name; what clients keep of their own sessions is `ralf_integrations.existing`."""


# ---- migration ----


Progress = Callable[[int, int, str], None]
"""Told how many files are done, how many there are, and which one is next."""


def migrate(
    source: str,
    path: str | os.PathLike[str] | None = None,
    *,
    root: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> MigrationReport:
    """Take over what a source has kept, as checkpoints of the routes that it is of.

    source   one of `ralf_migrations.migrate.SOURCES`
    path     the file, or the folder below which to look; None: the project
    root     the project that takes it; see `ralf.project.find`
    dry_run  only say what would go where

    Sources are only read. What was taken before is not taken again: then nothing is written. The account of every
    field goes to `.autonomous/context/migrations/SOURCE.json`. A file that cannot be read is listed, and the others are
    taken. Raises UsageError (an unknown source), NotFound (no such path), and what writing raises.
    """
    if source not in SOURCES:
        raise UsageError(source, "no source that is known", f"one of {', '.join(SOURCES)}")
    project = projects.find(root)
    base = Path(path).resolve() if path is not None else project.root
    if not base.exists():
        raise NotFound(base, "no such file or folder", "ralf import --help")
    origin = SOURCES[source]
    found = origin.find(base, path is not None, project.folder)
    wanted = sorted(sorted(found.paths), key=origin.order)  # type: ignore[arg-type]
    call = _Call(project, source, dry_run=dry_run)
    for number, one in enumerate(wanted):
        if progress is not None:
            progress(number, len(wanted), name_of(project, one))
        call.take(one)
    call.count_runs()
    if progress is not None:
        progress(len(wanted), len(wanted), "")
    made = MigrationReport(
        source,
        tuple(sorted([*call.files, *_strange(project, found)], key=lambda one: one.path)),
        tuple(name_of(project, one) for one in sorted(found.backups)),
        dry_run,
        warnings=tuple(dict.fromkeys(call.warnings)),
    )
    if dry_run or not (made.files or made.backups):
        return made
    project.prepare()
    return replace(made, path=reports.keep(project, made))


class _Call:
    """One call of `migrate`.

    files     what became of those that were taken
    warnings  what the reader should know
    """

    def __init__(self, project: Project, source: str, *, dry_run: bool) -> None:
        self._project = project
        self._source = source
        self._dry_run = dry_run
        self._empty: dict[str, list[Transcript]] = {}  # by route, runs that wrote nothing, oldest first
        self._same: dict[Field, Field] = {}  # skeletons by the thousand have the same fields
        self.files: list[FileReport] = []
        self.warnings: list[str] = []

    def take(self, path: Path) -> None:
        """Read one file, and write what it comes to."""
        name = name_of(self._project, path)
        if path.is_symlink():
            self.files.append(FileReport(name, "left", why="a link: what it leads to is taken where it lies"))
            return
        try:
            opened, reading = SOURCES[self._source].read(self._project, path)
        except Unreadable as error:
            self.files.append(FileReport(name, "unreadable", why=str(error)))
            return
        parts = [(known(self._project, part.route) or part.route, part.transcript) for part in reading.parts]
        made = FileReport(
            name,
            reading.outcome,
            reading.shape,
            opened.sha256 if opened is not None else reading.sha256,
            opened.size if opened is not None else reading.size,
            tuple(dict.fromkeys(route for route, _ in parts)),
            reading.rule,
            reading.decisions,
            reading.notes,
            reading.why,
            tuple(self._same.setdefault(field, field) for field in reading.fields),
        )
        written = 0
        try:
            for route, transcript in parts if not self._dry_run else ():
                written += self._write(route, transcript)
        except Damaged as error:  # a route's own files are: the other routes are taken
            made = replace(made, outcome="unreadable", why=str(error))
        self.files.append(replace(made, written=None if self._dry_run else written))

    def _write(self, route: str, transcript: Transcript) -> int:
        """Write a transcript's checkpoints; how many there were. A run without a word only counts, and waits for that
        until one of its route has something to say: thousands of them are one record then.
        """
        if not transcript.size():
            self._empty.setdefault(route, []).append(transcript)
            return 0
        self.count_runs(route)
        told = checkpoint(route, transcript, root=self._project.root, summarizer=Extractive(), reason="import")
        self.warnings += [*told.warnings, *([told.damage] if told.damage else [])]
        return len(told.checkpoints)

    def count_runs(self, route: str | None = None) -> None:
        """Count the runs of a route, or of all, that wrote nothing."""
        for one in [route] if route is not None else list(self._empty):
            if runs := self._empty.pop(one, None):
                self.warnings += record_runs(one, runs, root=self._project.root)


def _strange(project: Project, found: Found) -> list[FileReport]:
    """Files beside those of the source, and folders that cannot be looked into."""
    return [
        FileReport(name_of(project, path), "unreadable", why="cannot be looked into")
        if path.is_dir()
        else FileReport(name_of(project, path), "left", why="is none of this source")
        for path in found.strange
    ]


def is_done(report: MigrationReport) -> bool:
    """Whether every file is accounted for: none was unreadable."""
    return not report.those("unreadable")
