"""Reads run folders that are over, each as the transcript that a live one is: `runfolder` of BlackBox5."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
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
from ralf_migrations.reading import Reading, Unreadable, agent_of_run, beginning, route_of, task_of_run

_NAME = regex(r"run-(?P<number>\d)?.+")
_HOLDS_RUNS = {".autonomous", ".git", "runs"}
_DOCUMENTS = {"thoughts.md", "results.md", "decisions.md", ".ralf-metadata", "run.yaml"}
_MARKS = _DOCUMENTS | {"metadata.yaml", "context.yaml", "status.txt", "tracking.json", "learnings.md", "assumptions.md"}
_TIMED = ("metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "THOUGHTS.md", "DECISIONS.md")


def is_run(folder: Path, inner: Collection[str], names: Collection[str], *, is_within: bool) -> bool:
    """Whether a folder with these folders and files is a run's: by a name with a number, or by its documents. What lies
    within a run is one only by its name, and what runs lie in is none.
    """
    here = {name.lower() for name in names}
    found = _NAME.match(folder.name)
    if found is not None and (found["number"] or here & _MARKS):
        return True
    return not is_within and _HOLDS_RUNS.isdisjoint(inner) and bool(here & _DOCUMENTS)


def by_time(path: Path) -> tuple[str, str]:
    """The older runs first: by the time in the name, else by the one that the files at its head tell."""
    told = (time_of(beginning(path / name)) for name in _TIMED)
    return RunFolder(path).started or next(filter(None, told), ""), path.as_posix()


def read(project: Project, path: Path) -> Reading:
    """What a run folder comes to; nothing where nobody wrote anything into it."""
    try:
        notes = runfolder.reader(path, project.root, origin="import")
        events = [_with_hash(path, event) if "decision" in event.input else event for event in notes.events()]
        left = tuple(_left(RunFolder(path)))
        for name, what in notes.problems.items():
            if not os.access(path / Path(name).name, os.R_OK):  # else it only holds what is none of its kind
                raise Unreadable(f"{name}: {what}")
    except RalfError as error:
        raise Unreadable(error.what) from None
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    brought = Notes(path, notes.session, events, format=notes.format, origin="import", attempt=notes.attempt)
    brought.agent_type, brought.skipped = notes.agent_type, notes.skipped
    parts = [(route_of(task_of_run(path), agent_of_run(path)), brought)]
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
    with os.scandir(run.path) as entries:
        for one in sorted(entries, key=lambda entry: entry.name):
            if one.is_symlink() or not one.is_file():
                yield f"{one.name}: {'a link' if one.is_symlink() else 'a folder within the run'}"
            elif one.name not in known:
                yield f"{one.name}: {'what the run was given' if GIVEN.match(one.name) else 'no document of a run'}"
