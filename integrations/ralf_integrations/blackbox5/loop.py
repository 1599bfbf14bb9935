"""What the loop and its agents call, by `context-checkpoint.sh`: at the start of a run, at its end, and in between.

    python -m ralf_integrations.blackbox5.loop start        take in runs that died; what earlier runs came to
    python -m ralf_integrations.blackbox5.loop end [FILE]   take in this run, and the promise tag in FILE, its output
    python -m ralf_integrations.blackbox5.loop checkpoint   a checkpoint of this run's session, else of its folder

A run is named by `RALF_RUN_DIR`, its task by `RALF_TASK_ID` and the rest of the rules of `ralf route`. Exit status: 0,
also where something went wrong, which is said on stderr: a loop goes on. 1 for wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ralf
from ralf import config, environment as clients, routing
from ralf.checkpointing.flow import CheckpointReport
from ralf.errors import RalfError, RouteNotFound
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import offsets
from ralf.routing import DEFAULT
from ralf.storage import durable, files
from ralf.storage.files import content_of, without_waiting
from ralf.text import cleaning
from ralf.text.cleaning import clean, fenced, outside, shown
from ralf.text.sentences import promised
from ralf.transcripts.notes import session_of
from ralf_integrations import environment
from ralf_integrations.blackbox5 import claims, timeline_memory
from ralf_integrations.blackbox5.checkpointing import Checkpointing, say, track, typed
from ralf_integrations.blackbox5.runs import runfolder
from ralf_integrations.blackbox5.runs.folder import RunFolder, current_folder, is_brought, is_run, task_of_run
from ralf_integrations.hooks import handover, previous_sessions, session_registry

# ---- state of runs between processes ----


_MOST_FILES = 400  # files of a folder that are looked at


def mark_begun(project: Project, folder: Path, route: str) -> None:
    """A run begins: its route, and its loop, by the leader of our process group. Said twice, the first one counts."""
    known = _read_state(project, folder)
    if "process" not in known:
        process = os.getpgrp()
        owner = {
            "process": process,
            "born": session_registry.process_start(process),
            "machine": session_registry.machine(),
        }
        _write_state(project, folder, {**known, "route": route, **owner})


def mark_ended(project: Project, folder: Path) -> None:
    """A run is over, whoever started it."""
    _write_state(project, folder, {**_read_state(project, folder), "process": 0, "born": 0})


def is_alive(project: Project, folder: Path) -> bool:
    """Whether a run may go on: another loop than ours began it, and still runs. One loop has one run at a time."""
    known = _read_state(project, folder)
    process, born = known.get("process"), known.get("born")
    if not isinstance(process, int) or not isinstance(born, int) or known.get("machine") != session_registry.machine():
        return False
    return process != os.getpgrp() and session_registry.is_running(process, born)


def recorded_route(project: Project, folder: Path) -> str:
    """The route that a run had when it began, "" where that is not known."""
    route = _read_state(project, folder).get("route", "")
    return route if isinstance(route, str) and cleaning.is_valid(route) else ""


def state_of(folder: Path) -> str:
    """A hash of the names, sizes and times of a folder's files."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            stat = entry.stat(follow_symlinks=False)
            found.append((entry.name, stat.st_size, stat.st_mtime_ns))
    return hashlib.sha256(repr(sorted(found)[:_MOST_FILES]).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_taken(project: Project, folder: Path) -> bool:
    """Whether a run's folder was taken in as it is now."""
    return _read_state(project, folder).get("taken") == state_of(folder)


def mark_taken(project: Project, folder: Path, state: str) -> None:
    """A run's folder was taken in as it was then."""
    _write_state(project, folder, {**_read_state(project, folder), "taken": state})


def _state_path(project: Project, folder: Path) -> Path:
    name = hashlib.sha256(os.path.realpath(folder).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return project.cache / "runs" / f"{name}.json"


def _read_state(project: Project, folder: Path) -> dict[str, Any]:
    try:
        tree = json.loads(content_of(_state_path(project, folder)))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _write_state(project: Project, folder: Path, tree: dict[str, Any]) -> None:
    with suppress(OSError, RalfError):
        project.prepare()
        path = _state_path(project, folder)
        files.make(path.parent)
        durable.write(path, json.dumps({"run": str(folder), **tree}).encode())


# ---- commands ----


_END = 1 << 20  # bytes of an output in which its promise is looked for

MOST = 50
"""Earlier runs beside this one that are looked at, the newest: what is older is history, for `ralf import`."""


def start(project: Project, run_dir: Path | None, route: str) -> str:
    """Take in what earlier runs left, and what is handed to this one: what they came to, within the usual budget."""
    held = ""
    if run_dir is not None:
        mark_begun(project, run_dir, route)
        held = claims.begin(project, run_dir, route)
        previous_sessions.catch_up(project, route, clients.session())
        for folder in _earlier(project, run_dir):
            _take(project, folder, _route_of(project, folder))
    try:
        context: RouteContext | None = ralf.get_context(route, root=project.root)
    except RouteNotFound:
        context = None
    if context is None or context.wholly_foreign:
        text = fenced(shown(handover.nothing(route)), short=True)
    elif route in session_registry.load(project, clients.session()).briefed:
        known = f"Your window holds the context of {route} already: `ralf show {route} --brief` prints it again."
        text = handover.words(config.typed(known, project.command))
    else:  # no agent is handed what is foreign without asking for it
        text = context.without_foreign().render(config.of(project).brief_tokens, section="brief")
    if run_dir is not None and run_dir.is_dir():
        _begun(project, run_dir, route)  # afterwards: what is handed over tells of the runs before
    return f"{handover.words(held)}\n{text}" if held else text


def end(project: Project, run_dir: Path | None, route: str, output: Path | None) -> None:
    """Take in a run that ends. Raises as `ralf.checkpoint`."""
    if run_dir is None:
        return
    report = _take(project, run_dir, route, output=output)
    if report is not None:
        track(run_dir, report)
        ended = report.run
        summary = report.checkpoints[-1].summary_ref.partition(": ")[2] if report.checkpoints else ""
        if told := claims.end(project, run_dir, route, ended.outcome if ended is not None else "", summary):
            _say(told)
    mark_ended(project, run_dir)
    for line in timeline_memory.refresh(project):
        _say(line)


def _begun(project: Project, run_dir: Path, route: str) -> None:
    """Write down that a run has begun, so that it counts even where it is killed before it says a word."""
    try:
        ralf.checkpoint(route, run_dir, root=project.root, reason="run-begun")
    except (RalfError, OSError) as error:
        _say(f"{run_dir}: is not counted yet: {error}")


def _own(project: Project) -> Path | None:
    found = current_folder(project.root)
    return found.path if found is not None else None


def _earlier(project: Project, run_dir: Path) -> Iterator[Path]:
    """The runs beside this one that are over and have something untaken, the oldest first."""
    here = run_dir.resolve()
    found: list[tuple[float, Path]] = []
    with suppress(OSError):
        beside = (one for one in here.parent.iterdir() if one != here and one.is_dir() and not one.is_symlink())
        found += ((one.stat().st_mtime, one) for one in beside)
    for _, folder in sorted(sorted(found, reverse=True)[:MOST]):
        if is_run(folder) and not is_taken(project, folder) and not is_alive(project, folder):
            if is_brought(RunFolder(folder)) and not _began_here(project, folder):
                _say(f"{folder}: came with git, and is left out; to take such runs in: ralf import run-folders")
                continue
            yield folder


def _began_here(project: Project, folder: Path) -> bool:
    """Whether a run has told this store of itself."""
    return bool(recorded_route(project, folder) or _counting(project, folder))


def _counting(project: Project, folder: Path) -> str:
    """The route that counts a run already, "" for none."""
    run = {"run": session_of(folder, project.root)}
    routes = routing.names_of(project)
    return next((route for route in routes if offsets.known_runs(project, route, [run])[0][0]), "")


def _route_of(project: Project, folder: Path) -> str:
    """The route of an earlier run: the one that it had when it began, else that of the task that its folder tells, else
    the one that counts it already, else that of the task that its documents name, as `ralf import run-folders` has it.
    """
    if known := recorded_route(project, folder) or task_of_run(RunFolder(folder)):
        return known
    with suppress(RalfError, OSError):  # what was remembered is lost: the routes know which of them counts it
        return _counting(project, folder) or cleaning.slug(runfolder.task_in_documents(RunFolder(folder)) or DEFAULT)
    return DEFAULT


def _take(project: Project, folder: Path, route: str, *, output: Path | None = None) -> CheckpointReport | None:
    """Take a run's folder into its route; what goes wrong with one of them is said, and None."""
    seen = state_of(folder)
    try:
        logged = session_registry.worked_in(project, route, session_of(folder, project.root))
        source = runfolder.reader(folder, project.root, logged=logged)
        if output is not None and source.attempt is not None and (promise := _promised(output)):
            source.attempt = replace(source.attempt, outcome=promise)
        report = ralf.checkpoint(route, source, root=project.root, reason="session-end")
    except (RalfError, OSError) as error:
        _say(f"{folder}: not taken in: {error}")
        return None
    mark_taken(project, folder, seen)
    made = ", ".join(entry.checkpoint_id for entry in report.checkpoints)
    if made:
        _say(f"{folder.name}: route {report.route}: checkpoint {made}")
    return report


def _promised(output: Path) -> str:
    """The last promise tag at the end of what a client has printed, "" for none: the folder may not hold it."""
    try:
        with open(output, "rb", opener=without_waiting) as file:
            file.seek(max(0, file.seek(0, 2) - _END))
            return promised(outside(clean(file.read(_END).decode("utf-8", "replace"))))
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
    route = routing.check_new(project, route)
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
