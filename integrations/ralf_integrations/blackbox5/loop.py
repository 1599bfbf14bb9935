"""What the loop and its agents call, by `context-checkpoint.sh`: at the start of a run, at its end, and in between.

    python -m ralf_integrations.blackbox5.loop start        take in runs that died; what earlier runs came to
    python -m ralf_integrations.blackbox5.loop end [FILE]   take in this run, and the promise tag in FILE, its output
    python -m ralf_integrations.blackbox5.loop checkpoint   a checkpoint of this run's session, else of its folder

A run is named by `RALF_RUN_DIR`, its task by `RALF_TASK_ID` and the rest of the rules of `ralf route`. Exit status: 0,
also where something went wrong, which is said on stderr: a loop goes on. 1 for wrong usage.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import ralf
from ralf import config, environment as clients, routing
from ralf.checkpointing.flow import CheckpointReport
from ralf.errors import Claimed, RalfError, RouteNotFound
from ralf.project import Project
from ralf.storage.files import without_waiting
from ralf.tasks import claims, origin, store
from ralf.tasks.model import TaskState
from ralf.text.cleaning import clean, fenced, outside, shown, trimmed
from ralf.text.sentences import promised
from ralf.transcripts.notes import session_of
from ralf_integrations import environment
from ralf_integrations.blackbox5 import client
from ralf_integrations.blackbox5.checkpointing import Checkpointing, say, track, typed
from ralf_integrations.blackbox5.runs import markdown, runfolder
from ralf_integrations.blackbox5.runs.folder import RunFolder
from ralf_integrations.hooks import handover, previous_sessions, session_registry

_END = 1 << 20  # bytes of an output in which its promise is looked for
_OBJECTIVE = 1_200  # characters of a task's objective that a run is handed
_DONE, _FAILED = ("COMPLETE", "COMPLETED", "SUCCESS"), ("FAILED",)

# ---- the task that a run holds, as any agent does ----


def _task(project: Project, task: str) -> TaskState | None:
    """The state of a task that has a file, and nobody's else; None: such a run claims nothing."""
    with suppress(RalfError, OSError):
        state = store.at(project.root).get(task)
        return None if state.is_foreign else state
    return None


def _claim(project: Project, run: Path, task: str) -> str:
    """Claim the task of a run that begins, as long as the loop's process runs. Returns what the run is to be told where
    it does not have the task, "" where it has. What an earlier run of this loop has left claimed is ours: it is over.
    """
    loop, root = os.getpgrp(), project.root
    claim = partial(claims.claim, task, by=session_of(run, root), process=loop, born=origin.born(loop), root=root)
    try:
        try:
            claim()
        except Claimed:
            left = store.at(root).get(task).claim
            if left is None or (left.process, left.born, left.machine) != (loop, origin.born(loop), origin.machine()):
                raise
            note = "its run never ended"
            claims.release(task, lease=left.lease(task), by=left.by, outcome="unfinished", note=note, root=root)
            claim()
    except Claimed as error:
        return f"{error}: another agent is at this task; take another one, or it is done twice"
    except (RalfError, OSError) as error:
        return f"{error}: this run does not hold the task"
    return ""


def _close(project: Project, run: Path, task: str, promise: str, words: str) -> None:
    """Say what became of the task of a run that is over, by its promise."""
    state, by, root = _task(project, task), session_of(run, project.root), project.root
    try:
        if state is not None and promise in _DONE:
            claims.done(words or "The run promised that it is complete.", task=task, lease="", by=by, root=root)
        elif state is not None and promise in _FAILED:
            claims.fail(words or "The run said that it failed.", task=task, lease="", by=by, root=root)
        elif state is not None and state.claim is not None and state.claim.by == by:
            note = f"it promised {promise or 'nothing'}"
            claims.release(task, lease="", by=by, outcome="unfinished", note=note, root=root)
    except (RalfError, OSError) as error:
        say(f"{error}: what this run came to says nothing of the task")


def _described(state: TaskState) -> str:
    """A task's title and objective, as a run is handed them."""
    task = state.task
    sections = markdown.sections_of(markdown.lines_of(task.text))
    own = next((one.own for one in sections if re.match(r"(?i)objectives?\b", one.heading)), None)
    text = markdown.text_of(own) if own is not None else task.text.partition("\n#")[0].strip()
    return "\n\n".join(filter(None, (f"Task {task.id}: {task.title}", trimmed(text, _OBJECTIVE), "")))


# ---- commands ----


def start(project: Project, run_dir: Path | None, route: str) -> str:
    """Take in what earlier runs of a route left, and what is handed to this one: its task, and what they came to,
    within the usual budget.
    """
    task = _task(project, route)
    told = []
    if run_dir is not None:
        if task is not None and (held := _claim(project, run_dir, route)):
            told.append(handover.words(held))
        previous_sessions.catch_up(project, route, clients.session())
        state = _task(project, route)
        holder = state.claim.by if state is not None and state.claim is not None else ""
        for folder in client.earlier_folders(project, route, RunFolder(run_dir)):
            if session_of(folder, project.root) != holder:  # another loop's: it is under way
                _take(project, folder, route)
    if task is not None:
        told.append(fenced(shown(_described(task)), short=True))
    told.append(_context(project, route))
    if run_dir is not None and run_dir.is_dir():
        try:  # so that it counts even where it is killed before it says a word
            ralf.checkpoint(route, run_dir, root=project.root, reason="run-begun")
        except (RalfError, OSError) as error:
            say(f"{run_dir}: is not counted yet: {error}")
    return "\n".join(told)


def _context(project: Project, route: str) -> str:
    """What a route tells; no agent is handed what is foreign without asking for it."""
    with suppress(RouteNotFound):
        context = ralf.get_context(route, root=project.root)
        if route in session_registry.load(project, clients.session()).briefed:
            again = f"`ralf show {route} --brief` prints it again"
            known = f"Your window holds the context of {route} already: {again}."
            return handover.words(config.typed(known, project.command))
        if not context.wholly_foreign:
            return context.without_foreign().render(config.of(project).brief_tokens, section="brief")
    return fenced(shown(handover.nothing(route)), short=True)


def end(project: Project, run_dir: Path, route: str, output: Path | None) -> None:
    """Take in a run that ends. Raises as `ralf.checkpoint`."""
    report = _take(project, run_dir, route, output=output)
    if report is not None:
        track(run_dir, report)
        outcome = report.run.outcome if report.run is not None else ""
        summary = report.checkpoints[-1].summary_ref.partition(": ")[2] if report.checkpoints else ""
        _close(project, run_dir, route, outcome, summary)


def _take(project: Project, folder: Path, route: str, *, output: Path | None = None) -> CheckpointReport | None:
    """Take a run's folder into its route; what goes wrong with one of them is said, and None."""
    try:
        logged = session_registry.worked_in(project, route, session_of(folder, project.root))
        source = runfolder.reader(folder, project.root, logged=logged)
        if output is not None and source.attempt is not None and (promise := _promised(output)):
            source.attempt = replace(source.attempt, outcome=promise)
        report = ralf.checkpoint(route, source, root=project.root, reason="session-end")
    except (RalfError, OSError) as error:
        say(f"{folder}: not taken in: {error}")
        return None
    if made := ", ".join(entry.checkpoint_id for entry in report.checkpoints):
        say(f"{folder.name}: route {report.route}: checkpoint {made}")
    return report


def _promised(output: Path) -> str:
    """The last promise tag at the end of what a client has printed, "" for none: the folder may not hold it."""
    try:
        with open(output, "rb", opener=without_waiting) as file:
            file.seek(max(0, file.seek(0, 2) - _END))
            return promised(outside(clean(file.read(_END).decode("utf-8", "replace"))))
    except OSError as error:
        say(f"{output}: no promise is read in it: {error.strerror or error}")
        return ""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser(prog="context-checkpoint.sh", description="Earlier runs of the loop, on demand.")
    parser.add_argument("command", nargs="?", default="checkpoint", choices=["start", "end", "checkpoint"])
    parser.add_argument("output", nargs="?", type=Path, help="end: what the run's client has printed")
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="the run's folder; default: RALF_RUN_DIR")
    parser.add_argument("--route", metavar="R", help="the route; default: the one that is meant")
    parser.add_argument("--root", metavar="DIR", help="the project")
    try:
        given = parser.parse_args(args)
    except SystemExit as stopped:
        return 1 if stopped.code else 0  # 2 would stop a client that calls this as its hook
    try:
        if not environment.checkpoints_are_off():
            _run(given)
    except (RalfError, OSError) as error:
        say(str(error))
        if isinstance(error, RalfError) and error.hint:
            say(f"hint: {typed(error.hint, given.root)}")
    return 0


def _run(given: argparse.Namespace) -> None:
    project = Checkpointing(given.run_dir, root=given.root).project()
    if not (given.root or project.folder.parent.exists()):
        say(f"{project.root}: is no project; for one: python -m ralf_cli init --client ralf")
        return
    own = client.run_of(project.root) if given.run_dir is None else None
    run_dir = own.path if own is not None else given.run_dir
    checkpoints = Checkpointing(run_dir, given.route or "", root=project.root)
    if given.command == "checkpoint":
        checkpoints.make()
        return
    route = routing.check_new(project, given.route or checkpoints.meant(project))
    if run_dir is None:
        say("no run's folder is named: none is counted, none is taken in; export RALF_RUN_DIR, or --run-dir DIR")
    if given.command == "start":
        print(start(project, run_dir, route), end="")
    elif run_dir is not None:
        end(project, run_dir, route, given.output)


if __name__ == "__main__":
    sys.exit(main())
