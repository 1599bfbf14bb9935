"""Which run of a loop we are part of, as the loop's variables say; and its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ralf import environment, yamltext
from ralf.files.opening import content_of
from ralf.runs import metadata
from ralf.runs.folder import MAX_DOCUMENT, RunFolder, task_id
from ralf.transcripts.notes import session_of

_QUEUES = (
    ".autonomous/agents/communications/queue.yaml",
    ".autonomous/communications/queue.yaml",
    "agents/communications/queue.yaml",
)
_PLACES = (".autonomous/runs", "runs", "runs/{agent}", ".autonomous/agents/{agent}/runs")


def folder(root: Path) -> RunFolder | None:
    """The folder of the run that we are part of; None where we are of none, or it has none.

    root  the project's directory
    """
    named, run, agent = environment.run()
    if named:
        path = Path(named)
        return RunFolder(path) if path.is_dir() else None
    return next((RunFolder(path) for path in _places(root, run, agent) if path.is_dir()), None) if run else None


def name(root: Path) -> str:
    """The name of the run that we are part of, as a run folder's session has it, else its id; "" for none."""
    named, run, _ = environment.run()
    if not named and not run:
        return ""
    found = folder(root)
    if found is not None:
        return session_of(found.path, root)
    return session_of(Path(named), root) if named else run


def named_task(root: Path) -> str:
    """The task that the name of our run's folder tells, `run-20260209_163419-TASK-7`; "" for none."""
    named, run, _ = environment.run()
    found = folder(root)
    return (found or RunFolder(Path(named or run))).task


def noted_task(root: Path) -> str:
    """The task that the metadata of our run says it has claimed; "" for none."""
    found = folder(root)
    try:
        return metadata.read(found).task if found is not None else ""
    except OSError:
        return ""


def claimed(root: Path) -> str:
    """The task of the queue's entry that our run has claimed; "" for none, and where there is no queue to be read."""
    named, run, _ = environment.run()
    runs = {run, Path(named).name} - {""}
    runs |= {f"run-{one}" for one in runs} | {one.removeprefix("run-") for one in runs}
    for place in _QUEUES:
        try:
            queue = yamltext.load(content_of(root / place, most=MAX_DOCUMENT).decode("utf-8", "replace"))
        except (OSError, yamltext.BadYaml):
            continue
        for entry in (queue.get(key) for key in ("tasks", "queue")):
            for task in entry if isinstance(entry, list) else ():
                if isinstance(task, dict) and str(task.get("claimed_by", "")) in runs:
                    return task_id(str(task.get("id") or task.get("task_id") or ""))
    return ""


def _places(root: Path, run: str, agent: str) -> Iterator[Path]:
    if "/" in run or run in (".", ".."):
        return
    names = dict.fromkeys((run, run if run.startswith("run-") else f"run-{run}"))
    for place in _PLACES:
        if agent or "{agent}" not in place:
            yield from (root / place.format(agent=agent) / name for name in names)
