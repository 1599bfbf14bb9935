"""Which run is ours, which task it is at, and which runs came before it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ralf.document import guarded_yaml
from ralf.project import Project
from ralf.route import offsets
from ralf.route.load import load_state
from ralf.storage.files import content_of
from ralf.transcripts.notes import session_of
from ralf_integrations import environment
from ralf_integrations.blackbox5.runs import records
from ralf_integrations.blackbox5.runs.folder import MAX_DOCUMENT, NAME, RunFolder, is_brought, is_run, task_id


def task_of_run(folder: RunFolder) -> str:
    """The task that a run worked on, by its folder's name or its metadata; "" where neither tells."""
    with suppress(OSError):
        return folder.task or records.read(folder).task
    return folder.task


# ---- the current run ----

_QUEUES = (
    ".autonomous/agents/communications/queue.yaml",
    ".autonomous/communications/queue.yaml",
    "agents/communications/queue.yaml",
)
_PLACES = (".autonomous/runs", "runs", "runs/{agent}", ".autonomous/agents/{agent}/runs")


def current_folder(root: Path) -> RunFolder | None:
    """The folder of the run that we are part of, in a project; None where we are of none, or it has none."""
    named, run, agent = environment.run()
    places = [Path(named)] if named else []
    if not named and run and "/" not in run and run not in (".", ".."):
        bases = [root / place.format(agent=agent) for place in _PLACES if agent or "{agent}" not in place]
        places = [base / name for base in bases for name in dict.fromkeys((run, f"run-{run.removeprefix('run-')}"))]
    return next((RunFolder(path) for path in places if path.is_dir()), None)


def current_run(root: Path) -> str:
    """The name of the run that we are part of, as a run folder's session has it, else its id; "" for none."""
    named, run, _ = environment.run()
    found = current_folder(root)
    path = found.path if found is not None else Path(named) if named else None
    return session_of(path, root) if path is not None else run


def named_task(root: Path) -> str:
    """The task that the name of our run's folder tells, `run-20260209_163419-TASK-7`; "" for none."""
    named, run, _ = environment.run()
    return (current_folder(root) or RunFolder(Path(named or run))).task


def noted_task(root: Path) -> str:
    """The task that the metadata of our run says it has claimed; "" for none."""
    found = current_folder(root)
    with suppress(OSError):
        return records.read(found).task if found is not None else ""
    return ""


def claimed_task(root: Path) -> str:
    """The task of the queue's entry that our run has claimed; "" for none, and where there is no queue to be read."""
    named, run, _ = environment.run()
    runs = {run, Path(named).name} - {""}
    runs |= {f"run-{one}" for one in runs} | {one.removeprefix("run-") for one in runs}
    for place in _QUEUES:
        try:
            queue = guarded_yaml.load(content_of(root / place, most=MAX_DOCUMENT).decode("utf-8", "replace"))
        except (OSError, guarded_yaml.BadYaml):
            continue
        entries = [one for key in ("tasks", "queue") if isinstance(listed := queue.get(key), list) for one in listed]
        for task in entries:
            if isinstance(task, dict) and str(task.get("claimed_by", "")) in runs:
                return task_id(str(task.get("id") or task.get("task_id") or ""))
    return ""


# ---- earlier runs ----

_MOST_SIBLINGS = 20  # newest folders that are looked at


def siblings(folder: RunFolder) -> Iterator[RunFolder]:
    """The other run folders beside one, the newest first, by their names."""
    try:
        with os.scandir(folder.path.parent) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False) and one.name != folder.name]
    except OSError:
        return
    found = [RunFolder(folder.path.parent / name) for name in names if NAME.match(name)]
    yield from sorted(found, key=lambda run: (run.started, run.name), reverse=True)


def earlier_runs(project: Project, route: str) -> list[RunFolder]:
    """Run folders of a route that may hold what it does not have, the oldest first: of the twenty newest beside ours
    those of its task of which it has no record, and those of its last runs that it knows no end of. Not ours itself,
    and none that began elsewhere and came with git.
    """
    ours = current_folder(project.root)
    if ours is None:
        return []
    found: list[RunFolder] = []
    for folder in islice(siblings(ours), _MOST_SIBLINGS):
        [(known, _)] = offsets.known_runs(project, route, [{"run": session_of(folder.path, project.root)}])
        if not known and task_of_run(folder).casefold() == route.casefold() and not is_brought(folder):
            found.insert(0, folder)
    state = load_state(project, route)
    for run in state.context.active_work.last_runs if state is not None else ():
        path = project.root / run.run
        if not run.outcome and ".." not in path.parts and is_run(path):
            found.append(RunFolder(path))
    made = {folder.path.resolve(): folder for folder in found}
    made.pop(ours.path.resolve(), None)
    return list(made.values())
