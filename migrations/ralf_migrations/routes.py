"""Which route a source goes to: its task's, else its agent's; never one that `routes.yaml` names: those are paths."""

from __future__ import annotations

import re
from pathlib import Path

from ralf import names
from ralf.runs import documents, metadata, registry
from ralf.runs.folder import RunFolder, task_id
from ralf.transcripts import runfolder
from ralf.yamltext import BadYaml

TASK, AGENT, NEITHER = "the task", "the agent's name", "neither a task nor an agent is told"
"""Why a route was chosen."""

FALLBACK = "default"
_TASK_ID = re.compile(r"\b(?:TASK|RALF|BUG|FEAT|PLAN|CORE|DOCS|IMP)-[A-Za-z0-9][\w-]*")
AGENTS = (
    "planner",
    "executor",
    "architect",
    "scout",
    "analyst",
    "verifier",
    "validator",
    "auditor",
    "fixer",
    "research",
)
_RUN = re.compile(r"run-.*|\d{8}[-_]\d{6}.*")
_PLACES = frozenset(
    "runs runs.migrated archived completed research unknown agents active working tasks memory .autonomous".split()
)


def of_task(task: str) -> tuple[str, str]:
    """A task's route, and the rule."""
    return names.slug(task), TASK


def of_agent(agent: str) -> tuple[str, str]:
    """An agent's route, and the rule."""
    return names.slug("-".join(agent.lower().split())), AGENT


def of_run(folder: Path) -> tuple[str, str]:
    """The route of a run folder, and the rule; the folder need not be there any more."""
    run = RunFolder(folder)
    if task := run.task or _told_in(run) or task_above(folder):
        return of_task(task)
    agent = run.agent or agent_in(folder)
    return of_agent(agent) if agent else (FALLBACK, NEITHER)


def _told_in(run: RunFolder) -> str:
    """The task that a run's records tell, else its documents, at their tops."""
    try:
        return metadata.read(run).task or documents.task_in(run) or _registered(run)
    except OSError:
        return ""


def _registered(run: RunFolder) -> str:
    """The task that a run's registry of decisions names."""
    if runfolder.REGISTRY not in run.files:
        return ""
    try:
        return task_id(registry.read(run.text(runfolder.REGISTRY)).task)
    except BadYaml:
        return ""


def task_above(path: Path) -> str:
    """The task in whose folder a path lies, "" for none."""
    return next((part for part in reversed(path.parts) if _TASK_ID.fullmatch(part) and task_in(part)), "")


def task_in(text: str) -> str:
    """The first id of a task that a text names, "" for none."""
    found = _TASK_ID.search(text)
    return found[0].rstrip("-") if found and any(map(str.isdigit, found[0])) else ""


def agent_in(path: Path) -> str:
    """The agent that a path names, "" for none: `agents/NAME/…`, or one that is known."""
    parts = path.parts
    for part in reversed(parts):
        head = part.lower().partition("__")[0]
        if head in AGENTS:
            return head
    for place, part in enumerate(parts[:-1]):
        if part == "agents" and parts[place + 1] not in _PLACES and not _RUN.match(parts[place + 1]):
            return parts[place + 1]
    return ""
