"""The checkpoint that a budget makes: of which route, of which transcript, and once per crossing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import config, holding, project as projects, routing
from ralf.environment import run as run_of_the_loop, session as current_session
from ralf.errors import RalfError, TranscriptNotFound
from ralf.project import Project
from ralf.transcripts import ofproject, open_transcript
from ralf_integrations import environment
from ralf_integrations.blackbox5 import crossing
from ralf_integrations.blackbox5.messages import say, typed

if TYPE_CHECKING:
    from ralf.report import CheckpointReport

THRESHOLD = 70.0
"""Percent of the window at which a checkpoint is made."""

LARGE_WINDOW = 1_000_000
"""Tokens of a window in which more than the usual ones are in use."""

_SESSIONS = 5_000  # of Codex's newest, of all projects, that are looked at for this project's newest


@dataclass(frozen=True, slots=True)
class Usage:
    """What a client's own figures say: tokens in its window, the window's size (None: it does not tell), and where."""

    tokens: int
    window: int | None
    transcript: Path


@dataclass
class Checkpointing:
    """Makes the checkpoints of one run.

    run_dir     the run's folder; None: the one that the environment names, if it does
    route       the route; "": the one that is meant, as `ralf route` tells it
    transcript  the session log, or a run's folder; None: this project's newest session, else the run's folder
    root        the project; None: as everywhere, but looked for from the run's folder upwards
    again       take a session that another route has already, from its beginning; else that is refused
    threshold   percent of the window at which one is made; 0: none is
    reports     what was made
    """

    run_dir: str | Path | None = None
    route: str = ""
    transcript: str | Path | None = None
    root: str | Path | None = None
    threshold: float = THRESHOLD
    again: bool = False
    reports: list[CheckpointReport] = field(default_factory=list)

    def see(self, percent: float) -> bool:
        """Make a checkpoint if the mark is crossed with this figure; whether one was made by this call.

        Whatever goes wrong is said on stderr and tried again at the next call: a budget does not fail for it.
        """
        if self.threshold <= 0 or environment.checkpoints_are_off():
            return False
        try:
            project = self.project()
            if percent >= self.threshold and not self._is_wanted(project):
                return False
            key = str(self._folder() or Path(project.root, current_session()))
            return crossing.at(project, key, percent, self.threshold, partial(self.make, "pressure"))
        except (RalfError, OSError) as error:
            say(f"no checkpoint: {error}")
        except ImportError as error:  # run as a file, by a Python in which ralf is not installed
            say(f"no checkpoint: {error}; call this with the Python that ralf is installed in")
        return False

    def make(self, reason: str = "manual") -> CheckpointReport:
        """Make a checkpoint of what is new. Raises TranscriptNotFound, and what `ralf.checkpoint` raises."""
        from ralf.checkpoint import checkpoint  # most calls make none

        project = self.project()
        route = self.route or self.meant(project)
        source = open_transcript(self.source(project), root=project.root)
        begin = holding.begin_of(project, route, source, again=self.again)
        report = checkpoint(route, source, root=project.root, reason=reason, begin=begin)
        if report.checkpoints:
            holding.keep(project, report.route, source)
        self.reports.append(report)
        track(self._folder(), report)
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
        from ralf.runs import earlier
        from ralf.runs.folder import RunFolder

        choice = routing.choose(project)
        task = earlier.task_of(RunFolder(Path(self.run_dir))) if self.run_dir else ""
        route = task if task and not choice.rule.startswith("$") else choice.route
        return routing.known(project, route) or route

    def source(self, project: Project) -> Path:
        """What is read: the transcript that was named, this project's newest session, or the run's folder."""
        if self.transcript is not None:
            return Path(self.transcript)
        if (found := _session(project)) is not None:
            return found
        folder = self._folder()
        if folder is None or not folder.is_dir():
            what = "no client has kept a session of this project here, and no run's folder is named"
            raise TranscriptNotFound(project.root, what, "name one: --transcript FILE, or --run-dir DIR")
        return folder

    def _is_wanted(self, project: Project) -> bool:
        """Whether checkpoints are made by themselves there: not in a folder that is no project, unless it was named."""
        if not (project.folder.parent.exists() or self.root or self.route or self.transcript):
            say(f"no checkpoint: {project.root} is no project; for one: {typed('ralf init', project.root)}")
            return False
        return config.of(project).hooks == "on"

    def _folder(self) -> Path | None:
        if self.run_dir:
            return Path(self.run_dir)
        if not any(run_of_the_loop()[:2]):
            return None
        from ralf.runs import current  # only within a loop

        found = current.folder(Path(self.root) if self.root is not None else projects.find().root)
        return found.path if found is not None else None


def track(folder: Path | None, report: CheckpointReport) -> None:
    """Note the checkpoints that were made in the run's own tracking, where it has one."""
    from ralf_integrations.blackbox5 import session_tracker

    for entry in report.checkpoints:
        try:
            session_tracker.record_checkpoint(folder, entry.checkpoint_id, route=report.route)
        except (RalfError, OSError) as error:
            say(f"not noted in the run's tracking: {error}")


def usage(project: Project) -> Usage:
    """How full the window of the project's newest session is, by its client's own figures.

    TranscriptNotFound where no client has kept a session, or the last ones do not say how full theirs is; errors of
    reading as they come.
    """
    from ralf_integrations.health import tail

    found = _session(project)
    if found is None:
        what = "no client has kept a session of this project here"
        raise TranscriptNotFound(project.root, what, "count yourself: --tokens N")
    end = tail.read(found)
    if end.filled is None:
        what = "does not say how full its window is: it has had no answer yet, or was just compacted"
        raise TranscriptNotFound(found, what, "count yourself: --tokens N")
    return Usage(end.filled, end.capacity, found)


def _session(project: Project) -> Path | None:
    """The log of the session that calls us, wherever it was started; where none says so, this project's newest."""
    own = ofproject.of_session(current_session(), most=_SESSIONS)
    return own or next(iter(ofproject.newest_first(project, most=_SESSIONS)), None)
