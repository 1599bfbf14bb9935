"""BlackBox5 as a client like any other: what its entry points name. The reader of its run folders is `read`, the rule
for the route `route`, and this module is the environment of its runs: which is ours, which task it is at, and which
runs came before it.

It is imported wherever no route is named: what reads documents is imported within a run only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf_integrations import environment

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.transcripts.lines import Head
    from ralf.transcripts.reader import Transcript
    from ralf_integrations.blackbox5.runs.folder import RunFolder

RUN_FOLDER, RUN_METADATA, CLAIM = "run folder", "metadata.yaml of the run", "claim in the queue"
"""The rules by which the run of which we are part has a route: the task that it works on."""

variable_prefixes = ("BB5_",)

_QUEUES = (
    ".autonomous/agents/communications/queue.yaml",
    ".autonomous/communications/queue.yaml",
    "agents/communications/queue.yaml",
)
_PLACES = (".autonomous/runs", "runs", "runs/{agent}", ".autonomous/agents/{agent}/runs")
_MOST_SIBLINGS = 50  # newest folders that are looked at


def read(path: Path, head: Head | None, *, root: Path, logged: bool) -> Transcript | None:
    """The transcript of a run folder; see `ralf.transcripts.reader.TranscriptReader`."""
    if head is not None:
        return None
    from ralf_integrations.blackbox5.runs import runfolder

    return runfolder.reader(path, root, logged=logged)


def route(root: Path) -> tuple[str, str] | None:
    """The route that a variable names, else the task of our run: in its folder's name, in its metadata, or claimed."""
    value, variable = environment.route()
    if value:
        return value, f"${variable}"
    if not environment.in_a_run():
        return None
    from ralf_integrations.blackbox5.runs.folder import RunFolder

    named, run, _ = environment.run()
    ours = run_of(root)
    if task := (ours or RunFolder(Path(named or run))).task:
        return task, RUN_FOLDER
    if ours is not None and (task := task_of_run(ours)):
        return task, RUN_METADATA
    task = _claimed_task(root, {run, Path(named).name} - {""})
    return (task, CLAIM) if task else None


def current_run(root: Path) -> str:
    """The name of the run that we are part of, as a run folder's session has it, else its id; "" for none."""
    named, run, _ = environment.run()
    if not (named or run):
        return ""
    from ralf.transcripts.notes import session_of

    found = run_of(root)
    path = found.path if found is not None else Path(named) if named else None
    return session_of(path, root) if path is not None else run


def current_folder(root: Path) -> Path | None:
    """The folder of the run that we are part of; None where it has none, and where git has brought its documents: a
    repository that has a folder of the run's name would speak by them.
    """
    if not environment.in_a_run():
        return None
    from ralf_integrations.blackbox5.runs.folder import is_brought

    folder = run_of(root)
    with suppress(OSError):
        return folder.path if folder is not None and not is_brought(folder) else None
    return None


def earlier_folders(project: Project, route: str, ours: RunFolder | None = None) -> Sequence[Path]:
    """The folders of earlier runs of a route that may hold what it does not have, the oldest first: of the newest
    beside ours those of its task of which it has no record, and those of its last runs that it knows no end of.
    Not ours itself, and none that began elsewhere and came with git.
    """
    ours = ours or (run_of(project.root) if environment.in_a_run() else None)
    if ours is None:
        return ()
    from ralf.route import offsets
    from ralf.route.load import load_state
    from ralf.transcripts.notes import session_of
    from ralf_integrations.blackbox5.runs.folder import NAME, RunFolder, is_brought, is_run

    found: list[RunFolder] = []
    with suppress(OSError):
        with os.scandir(ours.path.absolute().parent) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False) and NAME.match(one.name)]
        beside = (RunFolder(ours.path.absolute().parent / name) for name in names if name != ours.name)
        for folder in sorted(beside, key=lambda run: (run.started, run.name), reverse=True)[:_MOST_SIBLINGS]:
            [(known, _)] = offsets.known_runs(project, route, [{"run": session_of(folder.path, project.root)}])
            if not known and task_of_run(folder).casefold() == route.casefold() and not is_brought(folder):
                found.insert(0, folder)
    state = load_state(project, route)
    for run in state.context.active_work.last_runs if state is not None else ():
        path = project.root / run.run
        if not run.outcome and ".." not in path.parts and is_run(path):
            found.append(RunFolder(path))
    made = {folder.path.resolve(): folder.path for folder in found}
    made.pop(ours.path.resolve(), None)
    return list(made.values())


def run_of(root: Path) -> RunFolder | None:
    """The folder of the run that we are part of, in a project; None where we are of none, or it has none."""
    from ralf_integrations.blackbox5.runs.folder import RunFolder

    named, run, agent = environment.run()
    places = [Path(named)] if named else []
    if not named and run and "/" not in run and run not in (".", ".."):
        bases = [root / place.format(agent=agent) for place in _PLACES if agent or "{agent}" not in place]
        places = [base / name for base in bases for name in dict.fromkeys((run, f"run-{run.removeprefix('run-')}"))]
    return next((RunFolder(path) for path in places if path.is_dir()), None)


def task_of_run(folder: RunFolder) -> str:
    """The task that a run worked on, by its folder's name or its metadata; "" where neither tells."""
    from ralf_integrations.blackbox5.runs import records

    with suppress(OSError):
        return folder.task or records.read(folder).task
    return folder.task


def _claimed_task(root: Path, runs: set[str]) -> str:
    """The task of the queue's entry that our run has claimed; "" for none, and where there is no queue to be read."""
    from ralf.document import guarded_yaml
    from ralf.storage.files import content_of
    from ralf_integrations.blackbox5.runs.folder import MAX_DOCUMENT, task_id

    runs |= {f"run-{one}" for one in runs} | {one.removeprefix("run-") for one in runs}
    for place in _QUEUES:
        with suppress(OSError, guarded_yaml.BadYaml):
            queue = guarded_yaml.load(content_of(root / place, most=MAX_DOCUMENT).decode("utf-8", "replace"))
            entries = [one for key in ("tasks", "queue") if isinstance(some := queue.get(key), list) for one in some]
            for task in entries:
                if isinstance(task, dict) and str(task.get("claimed_by", "")) in runs:
                    return task_id(str(task.get("id") or task.get("task_id") or ""))
    return ""
