"""BlackBox5 as a client like any other: what its entry points name. The reader of its run folders is `read`, the rule
for the route `route`, and this module is the environment of its runs.

It is imported wherever no route is named: what reads documents is imported within a run only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ralf_integrations import environment

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.transcripts.lines import Head
    from ralf.transcripts.reader import Transcript

RUN_FOLDER, RUN_METADATA, CLAIM = "run folder", "metadata.yaml of the run", "claim in the queue"
"""The rules by which the run of which we are part has a route: the task that it works on."""

variable_prefixes = ("BB5_",)


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

    from ralf_integrations.blackbox5.runs import current as runs

    rules = ((RUN_FOLDER, runs.named_task), (RUN_METADATA, runs.noted_task), (CLAIM, runs.claimed_task))
    return next(((task, rule) for rule, find in rules if (task := find(root))), None)


def current_run(root: Path) -> str:
    """The name of the run that we are part of; "" for none."""
    if not environment.in_a_run():
        return ""
    from ralf_integrations.blackbox5.runs import current as runs

    return runs.current_run(root)


def current_folder(root: Path) -> Path | None:
    """The folder of the run that we are part of; None where it has none, and where git has brought its documents: a
    repository that has a folder of the run's name would speak by them.
    """
    if not environment.in_a_run():
        return None
    from ralf_integrations.blackbox5.runs import current as runs
    from ralf_integrations.blackbox5.runs.folder import is_brought

    folder = runs.current_folder(root)
    with suppress(OSError):
        return folder.path if folder is not None and not is_brought(folder) else None
    return None


def earlier_folders(project: Project, route: str) -> Sequence[Path]:
    """The folders of earlier runs of a route that may hold what it does not have, the oldest first."""
    if not environment.in_a_run():
        return ()
    from ralf_integrations.blackbox5.runs import current as runs

    with suppress(OSError):
        return [folder.path for folder in runs.earlier_runs(project, route)]
    return ()
