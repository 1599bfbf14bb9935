"""What tests of tasks share: projects of theirs, and a stand-in for the store of tasks, for what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import storekit
from ralf.errors import NotFound
from ralf.maintenance import ownership
from ralf.tasks import store, trust
from ralf.tasks.model import TaskState


def opted_in(folder: Path) -> Path:
    """A project in a folder, that its user has opted in."""
    made = folder / "project"
    made.mkdir()
    ownership.init(store.at(made).project, share=False)
    return made


def allow(root: Path) -> None:
    """Let `verify:` commands run in a project."""
    path = store.at(root).project.local_config_file
    path.write_text("verify_commands: true\n")
    storekit.allow(path)


def accept_tasks(root: Path, *ids: str) -> None:
    """Accept the foreign tasks of a project, or those of some ids."""
    project = store.at(root).project
    found = trust.files_of(project)
    trust.accept(project, {id_: found[id_] for id_ in ids or found})


def without_index(root: Path) -> None:
    """Delete the index of a project."""
    for path in store.at(root).project.cache.glob("index.db*"):
        path.unlink(missing_ok=True)


def of(state: TaskState) -> Path:
    """The file of a task."""
    assert state.path is not None
    return state.path


@dataclass
class Kept:
    """Tasks in memory, in place of a book; `asked`: the ids of which the state was asked for."""

    all: dict[str, TaskState] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    segments: Sequence[Sequence[str]] = ()
    plan: tuple[str, str] = ("", "")

    def resolve(self, name: str) -> str:
        """The id of a task."""
        if name not in self.all:
            raise NotFound(name, "no such task")
        return name

    def get(self, id_: str) -> TaskState:
        """The task of an id."""
        self.asked.append(id_)
        return self.all[id_]

    def states(self, ids: Sequence[str]) -> Mapping[str, TaskState]:
        """Those that there are."""
        self.asked += ids
        return {one: self.all[one] for one in ids if one in self.all}

    def claimed(self) -> Sequence[str]:
        """Those that somebody has claimed."""
        return [id_ for id_, state in self.all.items() if state.claim is not None]

    def around(self, id_: str, before: int, after: int) -> Mapping[str, int]:
        """Those beside one in the only chain of the plan, by their segments."""
        row = [(one, number) for number, ids in enumerate(self.segments) for one in ids]
        place = next((place for place, (one, _) in enumerate(row) if one == id_), -after - 1)
        return dict(row[max(0, place - before) : max(0, place + after + 1)])
