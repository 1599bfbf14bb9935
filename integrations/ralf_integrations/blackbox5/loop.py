"""What the loop and its agents call, by `context-checkpoint.sh`: at the start of a run, at its end, and in between.

    python -m ralf_integrations.blackbox5.loop start        take in runs that died; what earlier runs came to
    python -m ralf_integrations.blackbox5.loop end [FILE]   take in this run, and the promise tag in FILE, its output
    python -m ralf_integrations.blackbox5.loop checkpoint   a checkpoint of this run's session, else of its folder

A run is named by `RALF_RUN_DIR`, its task by `RALF_TASK_ID` and the rest of the rules of `ralf route`. Exit status: 0,
also where something went wrong, which is said on stderr: a loop goes on. 1 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import ralf
from ralf import command, config, environment as clients, names, routing, sessions
from ralf.briefing.fence import fenced, outside, shown
from ralf.context import RouteContext
from ralf.errors import RalfError, RouteNotFound
from ralf.files.opening import without_waiting
from ralf.project import Project
from ralf.report import CheckpointReport
from ralf.routing import DEFAULT
from ralf.runs import brought, current, documents, earlier, outcomes
from ralf.runs.folder import RunFolder, is_run
from ralf.text import clean
from ralf.transcripts import runfolder
from ralf.transcripts.notes import session_of
from ralf_integrations import environment
from ralf_integrations.blackbox5 import runstate, timeline_memory
from ralf_integrations.blackbox5.checkpointing import Checkpointing, track
from ralf_integrations.blackbox5.messages import say, typed
from ralf_integrations.hooks import earlier as earlier_sessions, handover, known

_END = 1 << 20  # bytes of an output in which its promise is looked for

MOST = 50
"""Earlier runs beside this one that are looked at, the newest: what is older is history, for `ralf migrate`."""


def start(project: Project, run_dir: Path | None, route: str) -> str:
    """Take in what earlier runs left, and what is handed to this one: what they came to, within the usual budget."""
    if run_dir is not None:
        runstate.begin(project, run_dir, route)
        earlier_sessions.catch_up(project, route, clients.session())
        for folder in _earlier(project, run_dir):
            _take(project, folder, _route_of(project, folder))
    try:
        context: RouteContext | None = ralf.get_context(route, root=project.root)
    except RouteNotFound:
        context = None
    if context is None or context.wholly_foreign:
        text = fenced(shown(handover.nothing(route)), short=True)
    elif route in known.of(project, clients.session()).briefed:
        held = f"Your window holds the context of {route} already: `ralf context show {route} --brief` prints it again."
        text = handover.words(command.typed(held, project.command))
    else:  # no agent is handed what is foreign without asking for it
        text = context.without_foreign().render(config.of(project).brief_tokens, section="brief")
    if run_dir is not None and run_dir.is_dir():
        _begun(project, run_dir, route)  # afterwards: what is handed over tells of the runs before
    return text


def end(project: Project, run_dir: Path | None, route: str, output: Path | None) -> None:
    """Take in a run that ends. Raises as `ralf.checkpoint`."""
    if run_dir is None:
        return
    report = _take(project, run_dir, route, output=output)
    if report is not None:
        track(run_dir, report)
    runstate.end(project, run_dir)
    for line in timeline_memory.refresh(project):
        _say(line)


def _begun(project: Project, run_dir: Path, route: str) -> None:
    """Write down that a run has begun, so that it counts even where it is killed before it says a word."""
    try:
        ralf.checkpoint(route, run_dir, root=project.root, reason="run-begun")
    except (RalfError, OSError) as error:
        _say(f"{run_dir}: is not counted yet: {error}")


def _own(project: Project) -> Path | None:
    found = current.folder(project.root)
    return found.path if found is not None else None


def _earlier(project: Project, run_dir: Path) -> Iterator[Path]:
    """The runs beside this one that are over and have something untaken, the oldest first."""
    here = run_dir.resolve()
    found: list[tuple[float, Path]] = []
    with suppress(OSError):
        beside = (one for one in here.parent.iterdir() if one != here and one.is_dir() and not one.is_symlink())
        found += ((one.stat().st_mtime, one) for one in beside)
    for _, folder in sorted(sorted(found, reverse=True)[:MOST]):
        if is_run(folder) and not runstate.is_taken(project, folder) and not runstate.lives(project, folder):
            if brought.is_brought(RunFolder(folder)) and not _began_here(project, folder):
                _say(f"{folder}: came with git, and is left out; to take such runs in: ralf migrate run-folders")
                continue
            yield folder


def _began_here(project: Project, folder: Path) -> bool:
    """Whether a run has told this store of itself."""
    return bool(runstate.route_of(project, folder) or _counting(project, folder))


def _counting(project: Project, folder: Path) -> str:
    """The route that counts a run already, "" for none."""
    run = {"run": session_of(folder, project.root)}
    routes = routing.names_of(project)
    return next((route for route in routes if sessions.known_runs(project, route, [run])[0][0]), "")


def _route_of(project: Project, folder: Path) -> str:
    """The route of an earlier run: the one that it had when it began, else that of the task that its folder tells, else
    the one that counts it already, else that of the task that its documents name, as `ralf migrate run-folders` has it.
    """
    if known := runstate.route_of(project, folder) or earlier.task_of(RunFolder(folder)):
        return known
    with suppress(RalfError, OSError):  # what was remembered is lost: the routes know which of them counts it
        return _counting(project, folder) or names.slug(documents.task_in(RunFolder(folder)) or DEFAULT)
    return DEFAULT


def _take(project: Project, folder: Path, route: str, *, output: Path | None = None) -> CheckpointReport | None:
    """Take a run's folder into its route; what goes wrong with one of them is said, and None."""
    seen = runstate.state_of(folder)
    try:
        logged = known.worked_in(project, route, session_of(folder, project.root))
        source = runfolder.reader(folder, project.root, logged=logged)
        if output is not None and source.attempt is not None and (promise := _promised(output)):
            source.attempt = replace(source.attempt, outcome=promise)
        report = ralf.checkpoint(route, source, root=project.root, reason="session-end")
    except (RalfError, OSError) as error:
        _say(f"{folder}: not taken in: {error}")
        return None
    runstate.taken(project, folder, seen)
    made = ", ".join(entry.checkpoint_id for entry in report.checkpoints)
    if made:
        _say(f"{folder.name}: route {report.route}: checkpoint {made}")
    return report


def _promised(output: Path) -> str:
    """The last promise tag at the end of what a client has printed, "" for none: the folder may not hold it."""
    try:
        with open(output, "rb", opener=without_waiting) as file:
            file.seek(max(0, file.seek(0, 2) - _END))
            return outcomes.promised(outside(clean(file.read(_END).decode("utf-8", "replace"))))
    except OSError as error:
        _say(f"{output}: no promise is read in it: {error.strerror or error}")
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
        _say(str(error))
        if isinstance(error, RalfError) and error.hint:
            _say(f"hint: {typed(error.hint, given.root)}")
    return 0


def _run(given: argparse.Namespace) -> None:
    project = Checkpointing(given.run_dir, root=given.root).project()
    if not (given.root or project.folder.parent.exists()):
        _say(f"{project.root}: is no project; for one: python -m ralf_cli init --client ralf")
        return
    run_dir = given.run_dir or _own(project)
    checkpoints = Checkpointing(run_dir, given.route or "", root=project.root)
    if given.command == "checkpoint":
        checkpoints.make()
        return
    route = given.route or checkpoints.meant(project)
    routing.check_new(project, route)
    if run_dir is None:
        _say("no run's folder is named: none is counted, none is taken in; export RALF_RUN_DIR, or --run-dir DIR")
    if given.command == "start":
        print(start(project, run_dir, route), end="")
    else:
        end(project, run_dir, route, given.output)


def _say(line: str) -> None:
    say(line, by="context-checkpoint")


if __name__ == "__main__":
    sys.exit(main())
