"""Takes over what another tool has kept: finds, reads, accounts for every field, and writes it as checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ralf import checkpoint, project as projects
from ralf.errors import NotFound, UsageError
from ralf.project import Project
from ralf.routing import known
from ralf.summarizers.extractive import Extractive
from ralf_migrations import report as reports
from ralf_migrations.places import Found
from ralf_migrations.reading import Reading, Unreadable, name_of
from ralf_migrations.report import FileReport, MigrationReport
from ralf_migrations.sources import SOURCES

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

    source   one of `ralf_migrations.sources.SOURCES`
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
    base = Path(path) if path is not None else project.root
    if not base.exists():
        raise NotFound(base, "no such file or folder", "ralf migrate --help")
    origin = SOURCES[source]
    found = origin.find(base, path is not None, project.folder)
    wanted = sorted(found.paths, key=origin.order)  # type: ignore[arg-type]
    files: list[FileReport] = []
    warnings: list[str] = []
    for number, one in enumerate(wanted):
        if progress is not None:
            progress(number, len(wanted), name_of(project, one))
        files.append(_taken(project, source, one, dry_run=dry_run, warnings=warnings))
    if progress is not None:
        progress(len(wanted), len(wanted), "")
    files += _strange(project, found)
    made = MigrationReport(
        source,
        tuple(sorted(files, key=lambda one: one.path)),
        tuple(name_of(project, one) for one in found.backups),
        dry_run,
        warnings=tuple(dict.fromkeys(warnings)),
    )
    if dry_run or not (made.files or made.backups):
        return made
    project.prepare()
    return replace(made, path=reports.keep(project, made))


def _taken(project: Project, source: str, path: Path, *, dry_run: bool, warnings: list[str]) -> FileReport:
    """What became of one file."""
    name = name_of(project, path)
    try:
        opened, reading = SOURCES[source].read(project, path)
    except Unreadable as error:
        return FileReport(name, "unreadable", why=str(error))
    made = FileReport(
        name,
        reading.outcome,
        reading.shape,
        opened.sha256 if opened is not None else reading.sha256,
        opened.size if opened is not None else reading.size,
        tuple(dict.fromkeys(known(project, part.route) or part.route for part in reading.parts)),
        reading.rule,
        reading.decisions,
        reading.notes,
        reading.why,
        reading.fields,
    )
    if dry_run:
        return made
    return replace(made, written=_written(project, reading, warnings))


def _written(project: Project, reading: Reading, warnings: list[str]) -> int:
    """Checkpoints of what a file comes to; how many there were."""
    count = 0
    for part in reading.parts:
        route = known(project, part.route) or part.route
        told = checkpoint(route, part.transcript, root=project.root, summarizer=Extractive(), reason="import")
        count += len(told.checkpoints)
        warnings += told.warnings
        if told.damage:
            warnings.append(told.damage)
    return count


def _strange(project: Project, found: Found) -> list[FileReport]:
    """Files beside those of the source, and folders that cannot be looked into."""
    made = []
    for path in found.strange:
        if path.is_dir():
            made.append(FileReport(name_of(project, path), "unreadable", why="cannot be looked into"))
        else:
            made.append(FileReport(name_of(project, path), "left", why="is none of this source"))
    return made


def is_done(report: MigrationReport) -> bool:
    """Whether every file is accounted for: none was unreadable."""
    return not report.those("unreadable")
