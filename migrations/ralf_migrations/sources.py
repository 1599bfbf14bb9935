"""The sources that can be taken over: how each is found, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ralf.project import Project
from ralf_migrations import (
    decision_registry,
    decisions_md,
    pilot_checkpoint,
    places,
    ralf_context,
    run_folders,
    timeline_memory,
)
from ralf_migrations.places import Found, Kind
from ralf_migrations.reading import Reading, Source, opened


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
        return places.files(base, kind, named=named, store=store)

    def read_one(project: Project, path: Path) -> tuple[Source | None, Reading]:
        source = opened(project, path)
        return source, read(source)

    return Origin(find, read_one, order)


def _workers_last(path: Path) -> tuple[bool, Path]:
    """A worker and its validator may share a task's route: the worker knows where the work stands."""
    return "validator" not in path.as_posix(), path


SOURCES = {
    "timeline-memory": _of_files(timeline_memory.KIND, timeline_memory.read, _workers_last),
    "decision-registry": _of_files(decision_registry.KIND, decision_registry.read),
    "decisions-md": _of_files(decisions_md.KIND, decisions_md.read),
    "ralf-context": _of_files(ralf_context.KIND, ralf_context.read, ralf_context.order),
    "run-folders": Origin(run_folders.find, run_folders.read, run_folders.order),
    "pilot-checkpoint": _of_files(pilot_checkpoint.KIND, pilot_checkpoint.read, pilot_checkpoint.order),
}
"""By name; what clients keep of their own sessions is `ralf_integrations.existing`."""
