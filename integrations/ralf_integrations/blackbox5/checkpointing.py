"""The checkpoint of a run, of which route and transcript; and what the commands print."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import config, project as projects, routing
from ralf.environment import session as current_session
from ralf.errors import RalfError, TranscriptNotFound
from ralf.project import Project
from ralf.route import offsets
from ralf.text.cleaning import clean, one_line
from ralf.transcripts.reader import log_of_session, newest_logs, open_transcript
from ralf_integrations import environment
from ralf_integrations.blackbox5 import client

if TYPE_CHECKING:
    from ralf.checkpointing.flow import CheckpointReport

ENGINE, MEMORY = "2-engine", "5-project-memory"
"""Folders of the tree."""

_SESSIONS = 5_000  # of Codex's newest, of all projects, that are looked at for this project's newest

# ---- messages ----


def say(line: str) -> None:
    """Say something to whoever looks at stderr."""
    print(f"context-checkpoint: {one_line(clean(line))}", file=sys.stderr)


def put(text: str) -> None:
    """Print a text on stdout, with a line end where it has none. A reader that goes away is no error."""
    try:
        print(text, end="" if text.endswith("\n") else "\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(error: RalfError | OSError, root: str | os.PathLike[str] | None = None) -> int:
    """Say what is wrong and what to type next. The exit status: 2 for a refused name, 3 for what is missing, else 1."""
    print(f"Error: {one_line(clean(str(error)))}", file=sys.stderr)
    if isinstance(error, RalfError) and error.hint:
        print(f"hint: {one_line(clean(typed(error.hint, root)))}", file=sys.stderr)
    return error.exit_status if isinstance(error, RalfError) and error.exit_status in (2, 3) else 1


def typed(text: str, root: str | os.PathLike[str] | None = None) -> str:
    """A text of ours with the commands in it as they work in a project: by the loop's script, else by our Python."""
    own = f"{shlex.quote(sys.executable)} -m ralf_cli"
    with suppress(RalfError, OSError):
        found = projects.find(root).command
        own = own if found == config.NAME else found
    return config.typed(text, own)


# ---- checkpoints ----


@dataclass
class Checkpointing:
    """Makes the checkpoints of one run.

    run_dir     the run's folder; None: the one that the environment names, if it does
    route       the route; "": the one that is meant, as `ralf route` tells it
    transcript  the session log, or a run's folder; None: this project's newest session, else the run's folder
    root        the project; None: as everywhere, but looked for from the run's folder upwards
    """

    run_dir: str | Path | None = None
    route: str = ""
    transcript: str | Path | None = None
    root: str | Path | None = None

    def attempt(self) -> bool:
        """Make a checkpoint because the window fills, where they are made by themselves; whether that went well. What
        goes wrong is said on stderr: a budget does not fail for it.
        """
        if environment.checkpoints_are_off():
            return False
        try:
            project = self.project()
            if not (project.folder.parent.exists() or self.root or self.route or self.transcript):
                say(f"no checkpoint: {project.root} is no project; for one: {typed('ralf init', project.root)}")
            elif config.of(project).hooks == "on":
                self.make("pressure")
                return True
        except (RalfError, OSError) as error:
            say(f"no checkpoint: {error}")
        return False

    def make(self, reason: str = "manual") -> CheckpointReport:
        """Make a checkpoint of what is new. Raises TranscriptNotFound, and what `ralf.checkpoint` raises."""
        from ralf.checkpointing.flow import checkpoint  # most calls make none

        project = self.project()
        route = self.route or self.meant(project)
        folder = self._folder()
        found = Path(self.transcript) if self.transcript is not None else _session(project)
        if found is None and (folder is None or not folder.is_dir()):
            what = "no client has kept a session of this project here, and no run's folder is named"
            raise TranscriptNotFound(project.root, what, "name one: --transcript FILE, or --run-dir DIR")
        source = open_transcript(found or folder or Path(), root=project.root)
        begin = offsets.begin_of(project, route, source)
        report = checkpoint(route, source, root=project.root, reason=reason, begin=begin)
        if report.checkpoints:
            offsets.keep(project, report.route, source)
        track(folder, report)
        made = ", ".join(entry.checkpoint_id for entry in report.checkpoints)
        say(f"route {report.route}: {f'checkpoint {made}' if made else 'nothing new since its last checkpoint'}")
        return report

    def project(self) -> Project:
        """The project that is meant."""
        folder = self._folder()
        if folder is not None and self.root is None:
            found = projects.find(here=folder.absolute())
            if found.folder.parent.exists():
                return found
        return projects.find(self.root)

    def meant(self, project: Project) -> str:
        """The route that is meant where none was named: by the environment, the run's folder, and so on."""
        from ralf_integrations.blackbox5.runs.folder import RunFolder

        choice = routing.choose(project)
        task = client.task_of_run(RunFolder(Path(self.run_dir))) if self.run_dir else ""
        route = task if task and not choice.rule.startswith("$") else choice.route
        return routing.known(project, route) or route

    def _folder(self) -> Path | None:
        if self.run_dir or not environment.in_a_run():
            return Path(self.run_dir) if self.run_dir else None
        found = client.run_of(Path(self.root) if self.root is not None else projects.find().root)
        return found.path if found is not None else None


def track(folder: Path | None, report: CheckpointReport) -> None:
    """Note the checkpoints that were made in the run's own tracking, where it has one."""
    from ralf_integrations.blackbox5 import session_tracker

    for entry in report.checkpoints:
        try:
            session_tracker.record_checkpoint(folder, entry.checkpoint_id, route=report.route)
        except (RalfError, OSError) as error:
            say(f"not noted in the run's tracking: {error}")


def usage(project: Project) -> tuple[int, int | None]:
    """Tokens in the window of the project's newest session, by its client's own figures, and the window's size, None
    where it does not tell.

    TranscriptNotFound where no client has kept a session, or the last ones do not say how full theirs is; errors of
    reading as they come.
    """
    from ralf_integrations.health import tail

    found = _session(project)
    end = tail.read(found) if found is not None else None
    if end is None or end.filled is None:
        what = "does not say how full its window is: it has had no answer yet, or was just compacted"
        what = what if found else "no client has kept a session of this project here"
        raise TranscriptNotFound(found or project.root, what, "count yourself: --tokens N")
    return end.filled, end.capacity


def _session(project: Project) -> Path | None:
    """The log of the session that calls us, wherever it was started; where none says so, this project's newest."""
    own = log_of_session(current_session(), most=_SESSIONS)
    return own or next(iter(newest_logs(project, most=_SESSIONS)), None)


def named_project(project: str | os.PathLike[str] | None = None) -> Project:
    """A project: by its folder, or by its name in the tree's memory; None: the one that is meant, and where we are in
    none, the one that `BB5_PROJECT` names, `blackbox5` by default.

    A name finds `MEMORY/NAME`, by `BB5_MEMORY_PATH`, `BLACKBOX5_HOME`, `BB5_HOME` or `~/.blackbox5`. UsageError for a
    folder that is none.
    """
    text = os.fspath(project) if project is not None else ""
    if "/" in text or (text and Path(text).is_dir()):
        return projects.find(text)
    here = projects.find()
    root = environment.blackbox5_root()
    memory = environment.blackbox5_memory() or (root / MEMORY if root is not None else None)
    named = memory / (text or environment.blackbox5_project()) if memory is not None else None
    is_there = named is not None and (named / ".autonomous").is_dir()
    return here if not is_there or (not text and here.folder.parent.exists()) else projects.find(named)
