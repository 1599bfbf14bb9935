"""A stand-in for the store of tasks, for what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ralf.errors import NotFound
from ralf.tasks.model import TaskState


@dataclass
class Kept:
    """Tasks in memory; `asked`: the ids of which the state was asked for."""

    all: dict[str, TaskState] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get(self, name: str) -> TaskState:
        """The task of an id."""
        self.asked.append(name)
        if name not in self.all:
            raise NotFound(name, "no such task")
        return self.all[name]

    def states(self, ids: Sequence[str]) -> Mapping[str, TaskState]:
        """Those that there are."""
        self.asked += ids
        return {one: self.all[one] for one in ids if one in self.all}

    def held(self, by: str) -> Sequence[TaskState]:
        """Those that somebody has claimed."""
        return [state for state in self.all.values() if state.claim is not None and state.claim.by == by]

    def waiting(self, limit: int) -> tuple[int, Sequence[TaskState]]:
        """How many are pending, and the first that are ready."""
        pending = [state for state in self.all.values() if state.task.status == "pending"]
        ready = [state for state in pending if state.claim is None and not state.waits_for and not state.is_foreign]
        return len(pending), ready[:limit]
