"""Reads run folders that are over, each as the transcript that a live one is: `runfolder` of BlackBox5."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ralf.document.tree import load as load_json
from ralf.errors import RalfError
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes
from ralf_integrations.blackbox5.runs import folder, handwritten, registry, runfolder
from ralf_integrations.blackbox5.runs.folder import RunFolder
from ralf_migrations import reading
from ralf_migrations.reading import Found, Part, Reading, Source, Unreadable, accounted, beginning
from ralf_migrations.report import Fate, Field

_NAME = regex(r"run-(?P<number>\d)?.+")
_HOLDS_RUNS = (".autonomous", ".git", "runs")
_DOCUMENTS = frozenset(("thoughts.md", "results.md", "decisions.md", ".ralf-metadata", "run.yaml"))
_MARKS = _DOCUMENTS | {"metadata.yaml", "context.yaml", "status.txt", "tracking.json", "learnings.md", "assumptions.md"}
_TIME = regex(
    r"(?:timestamp_start|timestamp|started(?:_at)?|\*\*(?:Started|Date|Timestamp):\*\*)\W*(\d{4}-\d\d-\d\d[T\d:.]*)"
)
_TIMED = ("metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "THOUGHTS.md", "DECISIONS.md")
_LEFT: tuple[tuple[str, str], ...] = (
    (r"context_budget\.json|\.subagent_spawned", "counters of the context budget, which tell nothing of the work"),
    (r"\.gate_\w+_passed", "a mark of the loop's gates"),
    (r"(?i).*prompt\.md|(?:AGENT_CONTEXT|TASK-CONTEXT|ACTIVE-CONTEXT|README|task)\.md", "what the run was given"),
    (r"\..+", "a mark of the loop"),
)


def find(base: Path, named: bool, store: Path) -> Found:
    """The run folders below a folder, it included."""
    if not base.is_dir():
        return Found(strange=[base])
    return reading.find_folders(base, _is_run, store=store)


def _is_run(folder: Path, names: list[str], within: bool) -> bool:
    """Whether a folder is a run's: by a name with a number, or by its documents. What lies within a run is one only by
    its name, and what runs lie in is none.
    """
    named = _NAME.match(folder.name)
    here = {name.lower() for name in names}
    if named and (named["number"] or not _MARKS.isdisjoint(here)):
        return True
    return not (within or _DOCUMENTS.isdisjoint(here) or any((folder / name).is_dir() for name in _HOLDS_RUNS))


def order(path: Path) -> tuple[str, str]:
    """The older runs first: by the time in the name, else by the one that the files at its head tell."""
    told = (found[1] for name in _TIMED if (found := _TIME.search(beginning(path / name))))
    return RunFolder(path).started or next(told, ""), path.as_posix()


def read(project: Project, path: Path) -> tuple[Source | None, Reading]:
    """What a run folder comes to; nothing where nobody wrote anything into it."""
    try:
        notes = runfolder.reader(path, project.root, origin="import")
        size, digests = _fingerprints(RunFolder(path))
        events = [_with_hash(event, digests) for event in notes.events()]
    except RalfError as error:
        raise Unreadable(error.what) from None
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    if problem := next((f"{name}: {what}" for name, what in notes.problems.items() if _is_unreadable(path, name)), ""):
        raise Unreadable(problem)
    route, rule = reading.route_of_run(path)
    brought = Notes(
        *(notes.path, notes.session, events),
        format=notes.format,
        origin=notes.origin,
        skipped=notes.skipped,
        attempt=notes.attempt,
    )
    decisions = sum("decision" in event.input for event in events)
    fields = list(_fields(RunFolder(path), written=bool(events)))
    fields += [Field("decisions", "carried", "decisions", decisions)] if decisions else []
    return None, Reading(
        "imported" if events else "nothing",
        "run folder",
        (Part(route, brought),) if events or notes.attempt is not None else (),
        rule,
        tuple(fields),
        decisions=decisions,
        notes=len(events),
        why="" if events else "nothing was written",
        sha256=hashlib.sha256(
            "\n".join(f"{name} {digests[name]}" for name in sorted(digests)).encode("utf-8", "replace")
        ).hexdigest(),
        size=size,
    )


def _is_unreadable(path: Path, name: str) -> bool:
    """Whether a file that makes problems cannot be opened, rather than holding what is none of its kind."""
    try:
        content_of(path / Path(name).name)
    except OSError:
        return True
    return False


def _fingerprints(run: RunFolder) -> tuple[int, dict[str, str]]:
    """The size of a folder's files together, and the sha256 of each."""
    size, digests = 0, {}
    for name in run.files:
        try:
            content = content_of(run.path / name)
        except OSError:
            continue  # said by who reads it
        size += len(content)
        digests[name] = hashlib.sha256(content).hexdigest()
    return size, digests


def _with_hash(event: Event, digests: Mapping[str, str]) -> Event:
    """A note that names its document, with that one's hash."""
    digest = digests.get(Path(str(event.input.get("path", ""))).name)
    return replace(event, input={**event.input, "file_sha256": digest}) if digest else event


def _fields(run: RunFolder, *, written: bool) -> Iterator[Field]:
    """What became of each file: of a document by its parts, of a record by its keys."""
    for name in run.files:
        if name in run.documents:
            yield from _of_document(run, name)
        elif name in folder.RECORDS or name == runfolder.REGISTRY:
            yield from _of_record(run, name, written=written)
        elif name in run.outputs:
            yield Field(name, "evidence", "the end of what was printed, and the promise in it")
        else:
            why = next((why for pattern, why in _LEFT if re.fullmatch(pattern, name)), "no document of a run")
            yield Field(name, "left", why)
    with os.scandir(run.path) as entries:
        others = sorted(
            (entry.name, entry.is_symlink()) for entry in entries if not entry.is_file(follow_symlinks=False)
        )
    for name, is_link in others:
        yield Field(name, "left", "a link" if is_link else "a folder within the run's: none of its documents")


def _of_document(run: RunFolder, name: str) -> Iterator[Field]:
    try:
        parts = runfolder.parts_of(name, run.text(name))
    except OSError as error:
        yield Field(name, "left", error.strerror or str(error))
        return
    if not parts:
        yield Field(name, "left", "empty")
    for part in parts:
        fate: Fate = "evidence" if part.is_written else "left"
        where = "its words, decisions of it as decisions" if part.is_written else "a skeleton: nobody wrote there"
        yield Field(f"{name}: {part.heading or 'above the first heading'}", fate, where)


def _of_record(run: RunFolder, name: str, *, written: bool) -> Iterator[Field]:
    fate: tuple[str, str] = (
        "carried",
        "how the run ended" if not written else "active_work, facts, attempts; evidence",
    )
    try:
        text = run.text(name)
        tree, broken = _tree(name, text)
    except (OSError, ValueError) as error:
        why = f"not of its kind: {getattr(error, 'what', '') or error}"
        yield Field(name, "evidence" if written else "left", f"its words; {why}" if written else why)
        return
    if not isinstance(tree, Mapping) or not tree:
        yield Field(name, "carried", fate[1]) if text.strip() else Field(name, "left", "empty")
        return
    for field in accounted(tree, {}, fate):
        yield Field(f"{name}: {field.name}", field.fate, field.where, field.count)
    for first, last, what in broken:
        yield Field(f"{name}: lines {first} to {last}", "evidence", f"no YAML that is taken: {what}")


def _tree(name: str, text: str) -> tuple[object, Sequence[tuple[int, int, str]]]:
    """What a record holds, and the lines of it that cannot be read."""
    if name.endswith(".json"):
        return load_json(text), ()
    if name == "status.txt":
        return {}, ()
    if name == runfolder.REGISTRY:
        found = registry.read(text)
        return {**found.header, "decisions": list(found.entries)}, found.broken
    record = handwritten.salvage(text)
    return record.tree, record.broken
