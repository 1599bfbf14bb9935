"""The plan, made of all open tasks and written: docs/tasks.md#the-plan says by which rules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ralf.project import Project, find
from ralf.storage import durable, files, locks, users_files
from ralf.tasks import folders, planfile, store
from ralf.tasks.model import TaskState
from ralf.tasks.sequence import GUESS, SETTLED, Plan, make_plan, tokens_of


def serialize(
    *,
    every: int | None = None,
    budget: int | None = None,
    anew: bool = False,
    dry_run: bool = False,
    states: Sequence[TaskState] | None = None,
    damaged: Sequence[Path] = (),
    root: str | os.PathLike[str] | None = None,
) -> Plan:
    """Put all open tasks in an order, in chains with checkpoints, and write the plan.

    every, budget  tasks, and tokens, between two checkpoints. Neither: as in the plan in force, else a checkpoint after
                   every task
    anew           forget the plan in force, with what a person did to it
    dry_run        change nothing
    states         all tasks of the project, where they are known already, and the files that cannot be read as one

    Errors: Cycle, UnknownDependency, UsageError, DamagedPlan, Busy, OSError; nothing was changed then.
    """
    project = find(root)
    if states is None:
        known = store.Tasks(project).list()
        states, damaged = known.tasks, [path for path, _ in known.damaged]
    path = planfile.path_of(project)
    content = planfile.content_at(path)
    before = None if content is None or anew else planfile.parse(content, path)
    if every is None and budget is None:
        every, budget = (before.every, before.budget) if before is not None else (1, None)
    tasks, tokens = [state.task for state in states], tokens_of(states)
    plan = make_plan(
        tasks,
        every=every,
        budget=budget,
        tokens=tokens,
        before=before,
        running={state.task.id for state in states if state.claim is not None},
        without={state.task.id for state in states if state.is_foreign},
    )
    notes = [f"no history says how many tokens a task takes: {GUESS:,} is a guess"] if budget and not tokens else []
    if foreign := sum(state.is_foreign and state.task.status not in SETTLED for state in states):
        what = f"left out, as they came with the repository: {foreign} of the tasks"
        notes.append(f"{what}; to accept them: ralf trust")
    plan = replace(plan, notes=(*notes, *(f"left out, as it cannot be read: {path}" for path in damaged)))
    if not dry_run and before != plan and (plan.chains or content is not None):
        _write(project, content, planfile.render(plan, tasks))
    return plan


def _write(project: Project, before: bytes | None, content: bytes) -> None:
    """Write the plan. Busy where somebody has saved it meanwhile; UsageError for a link."""
    path = planfile.path_of(project)
    folders.check_inside(path, Path(project.root))
    project.prepare()
    with locks.locked(project.folder / "locks" / "plan.lock", str(path)):
        for left in durable.temporaries_of(path):
            left.unlink()
        if not path.parent.is_dir():
            files.make(path.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
            durable.sync_folder(path.parent.parent)
        users_files.replace(path, before, content, 0o644 if before is None else None)
