"""What is known of a task when it is said to be done: evidence, and more words where the summary has few."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ralf.errors import RalfError
from ralf.project import Project
from ralf.tasks.model import Evidence, Task, TaskState
from ralf.tasks.routes import route_of
from ralf.text.cleaning import one_line, trimmed

if TYPE_CHECKING:
    from ralf.model import RouteContext

_THIN = 12  # words; a summary with fewer is filled up

_MOST_STEPS, _MOST_FILES = 5, 8

_LONGEST = 300  # characters of a piece


def context_of(project: Project, task: Task) -> RouteContext | None:
    """The context of a task's route; None where nothing was recorded for it, and for one that is not this user's."""
    try:
        route = route_of(project, task.context_route)
        if route is None:
            return None
        from ralf.finding.reader import get_context  # loaded where there is one

        found = get_context(route, root=project.root)
    except (RalfError, OSError):
        return None
    return None if found.wholly_foreign else found


def proof_of(project: Project, state: TaskState, context: RouteContext | None) -> Evidence | None:
    """What says that a task is done; None for nothing. May take as long as its `verify:` command does."""
    task = state.task
    if not task.verify.strip() and context is None:
        return None
    with suppress(RalfError, OSError):
        from ralf.tasks import evidence

        return evidence.verify(project, task, context, is_foreign=state.is_foreign)
    return None


def fuller(summary: str, context: RouteContext | None) -> str:
    """A summary, filled up with what the checkpoint knows where it has few words."""
    if context is None or len(summary.split()) >= _THIN:
        return summary
    work = context.active_work
    done = work.completed_steps
    steps = [f"{step.description} ({step.result})" if step.result else step.description for step in done]
    edited = [fact.path for fact in context.facts.paths if set(fact.did) - {"read"}]
    lines = [
        *(f"- {trimmed(one_line(step), _LONGEST)}" for step in steps[-_MOST_STEPS:]),
        *([f"- last said: {trimmed(one_line(work.last_statement), _LONGEST)}"] if work.last_statement else []),
        *([f"- files: {', '.join(edited[-_MOST_FILES:])}"] if edited else []),
    ]
    return "\n".join([summary, "", "From the checkpoint:", *lines]) if lines else summary
