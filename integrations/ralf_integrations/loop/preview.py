"""What a loop would start, without starting it."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from ralf.project import Project
from ralf_integrations.loop.launch import Agent
from ralf_integrations.loop.options import Options
from ralf_integrations.loop.work import Work

_MOST_LISTED = 10_000  # tasks


def dry_run(project: Project, options: Options, command: Callable[[Agent], list[str]]) -> list[tuple[str, str, str]]:
    """What would be started now, in order: each ready task's id, its title and the command for it."""
    work = Work(project)
    found = []
    for state in work.ready_for((), _MOST_LISTED, others=True, without=()):
        agent = options.agent_for(state.task.role)
        told = shlex.join(command(agent)) if agent is not None else f"no agent for the role {state.task.role}"
        found.append((state.task.id, state.task.title, told))
    return found
