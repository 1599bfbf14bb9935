"""The plan of a project's tasks: made of all that are open, read, undone and drawn. Format: docs/sequence.md."""

from __future__ import annotations

import os
from dataclasses import replace

from ralf.project import find
from ralf.tasks import store
from ralf.tasks.drawing import draw as draw
from ralf.tasks.planfile import (
    load as load,
    parse as parse,
    path_of as path_of,
    render as render,
    serialize_states as serialize_states,
    undo as undo,
)
from ralf.tasks.sequence import Plan as Plan


def serialize(
    *,
    every: int | None = None,
    budget: int | None = None,
    anew: bool = False,
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Plan:
    """Put all open tasks in an order, in chains with checkpoints, and write the plan.

    every, budget  tasks, and tokens, between two checkpoints. Neither: as in the plan in force, else as many tokens as
                   the configuration's `pressure` allows
    anew           forget the plan in force, with what a person did to it
    dry_run        change nothing

    Errors: Cycle, UnknownDependency, UsageError, DamagedPlan, Busy, OSError; nothing was changed then.
    """
    project = find(root)
    known = store.Tasks(project).list()
    plan = serialize_states(project, known.tasks, every=every, budget=budget, anew=anew, dry_run=dry_run)
    damaged = (f"left out, as it cannot be read: {path}" for path, _ in known.damaged)
    return replace(plan, notes=(*plan.notes, *damaged))
