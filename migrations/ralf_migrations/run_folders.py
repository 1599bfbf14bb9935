"""Reads run folders that are over, each as the transcript that a live one is: `runfolder` of BlackBox5."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from ralf.errors import RalfError
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes
from ralf_integrations.blackbox5.runs import runfolder
from ralf_integrations.blackbox5.runs.folder import GIVEN, RECORDS, RunFolder, time_of
from ralf_migrations.reading import Part, Reading, Unreadable, agent_of_run, beginning, route_of, task_of_run

_NAME = regex(r"run-(?P<number>\d)?.+")
_HOLDS_RUNS = (".autonomous", ".git", "runs")
_DOCUMENTS = frozenset(("thoughts.md", "results.md", "decisions.md", ".ralf-metadata", "run.yaml"))
_MARKS = _DOCUMENTS | {"metadata.yaml", "context.yaml", "status.txt", "tracking.json", "learnings.md", "assumptions.md"}
_TIMED = ("metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "THOUGHTS.md", "DECISIONS.md")
_COUNTERS = ("context_budget.json", ".subagent_spawned")


def find(folders: Iterable[tuple[Path, list[str]]]) -> list[Path]:
    """The run folders among folders, given with the names of their files: by a name with a number, or by their
    documents. What lies within a run is one only by its name, and what runs lie in is none.
    """
    runs: dict[Path, None] = {}
    for folder, names in folders:
        here = {name.lower() for name in names}
        found = _NAME.match(folder.name)
        is_run = found is not None and (found["number"] or not _MARKS.isdisjoint(here))
        within = any(parent in runs for parent in folder.parents)
        holds_runs = any((folder / name).is_dir() for name in _HOLDS_RUNS)
        if is_run or not (within or holds_runs or _DOCUMENTS.isdisjoint(here)):
            runs[folder] = None
    return list(runs)


def order(path: Path) -> tuple[str, str]:
    """The older runs first: by the time in the name, else by the one that the files at its head tell."""
    told = (time_of(beginning(path / name, 4_096)) for name in _TIMED)
    return RunFolder(path).started or next(filter(None, told), ""), path.as_posix()


def read(project: Project, path: Path) -> Reading:
    """What a run folder comes to; nothing where nobody wrote anything into it."""
    try:
        notes = runfolder.reader(path, project.root, origin="import")
        events = [_with_hash(path, event) if "decision" in event.input else event for event in notes.events()]
        left = tuple(_left(RunFolder(path)))
        for name, what in notes.problems.items():
            try:
                content_of(path / Path(name).name)  # what can be opened only holds what is none of its kind
            except OSError:
                raise Unreadable(f"{name}: {what}") from None
    except RalfError as error:
        raise Unreadable(error.what) from None
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    brought = Notes(path, notes.session, events, format=notes.format, origin="import", attempt=notes.attempt)
    brought.agent_type, brought.skipped = notes.agent_type, notes.skipped
    route = route_of(task_of_run(path), agent_of_run(path))
    parts = [Part(route, brought)] if events or notes.attempt is not None else []
    if not events:
        return Reading("nothing", parts, "nothing was written", left)
    return Reading("imported", parts, left=left)


def _with_hash(path: Path, event: Event) -> Event:
    """A decision with the hash of its document."""
    digest = hashlib.sha256(content_of(path / Path(str(event.input["path"])).name)).hexdigest()
    return replace(event, input={**event.input, "file_sha256": digest})


def _left(run: RunFolder) -> Iterator[str]:
    """What of a folder is not taken, and why."""
    known = {*run.documents, *RECORDS, runfolder.REGISTRY, *run.outputs}
    for name in run.files:
        if name in _COUNTERS:
            yield f"{name}: counters of the context budget, which tell nothing of the work"
        elif GIVEN.match(name):
            yield f"{name}: what the run was given"
        elif name not in known:
            yield f"{name}: {'a mark of the loop' if name.startswith('.') else 'no document of a run'}"
    with os.scandir(run.path) as entries:
        others = sorted((one.name, one.is_symlink()) for one in entries if not one.is_file(follow_symlinks=False))
    for name, is_link in others:
        yield f"{name}: {'a link' if is_link else 'a folder within the run'}"
