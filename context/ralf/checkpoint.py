"""Checkpoints: takes what is new in a transcript and makes it part of a route. This module alone composes the flow.

transcript → segment → redact → facts + summary → probe → evidence blob → record (acknowledged) → route file
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import config, project as projects, routing
from ralf.files.opening import content_of
from ralf.model import Attempt
from ralf.project import Project
from ralf.report import CheckpointReport
from ralf.runs import records
from ralf.secrets import engine
from ralf.summarizers import Summarizer, registry
from ralf.taking import Progress, Taking
from ralf.text import clean, one_line
from ralf.transcripts import Transcript, open_transcript
from ralf.transcripts.events import Position
from ralf.transcripts.notes import Notes

if TYPE_CHECKING:
    from ralf.refining.refine import Refinement
    from ralf.refining.spend import Cap
    from ralf.summarizers.command import Command


def checkpoint(
    route: str,
    transcript: str | os.PathLike[str] | Transcript,
    *,
    root: str | os.PathLike[str] | None = None,
    summarizer: Summarizer | str | None = None,
    reason: str = "manual",
    keep: Sequence[str] = (),
    segment_tokens: int | None = None,
    restart: bool = False,
    begin: Position | None = None,
    run: str | None = None,
    as_text: bool = False,
    progress: Progress | None = None,
) -> CheckpointReport:
    """Take what is new in a transcript, cut it into segments, and write a checkpoint for each.

    route       the route's name; made when it does not exist
    transcript  a client's session log, of any format that `ralf.transcripts` knows; a run folder; or a transcript that
                somebody has made (`ralf.transcripts.notes`)
    root        the project directory; see `ralf.project.find`
    summarizer  its name, or an object with `summarize`; None: as configured. `claude`, `codex`, `llm` or `command`: the
                embedded one, and then that model improves each checkpoint, or the newest one if nothing was new, while
                the caller waits
    reason      recorded in the checkpoint: manual, threshold, pressure, compaction, task-completed, todos-done,
                session-end …
    keep        what has to be kept, in a few words each; recorded, and passed on to every summariser
    segment_tokens  o200k_base tokens that a segment has at most; None: the configured threshold, 50,000 by default
    restart     read the transcript from its beginning, as a new file under the same session
    begin       take nothing that lies before this place: it is another route's
    run         the run of a loop in which a client's session is, called as its folder's session is; "": in none; None:
                as the environment says
    as_text     read the file as a document that nobody said: its origin is "import", and it makes no request and no
                rule. Without it a file that is no session is refused

    Nothing new: no write. With `summarizer` None the model that the local configuration names, if any, is started in
    the background and not waited for. Every checkpoint is acknowledged (durable) when this returns, and read back.
    Raises UsageError (a refused name), TranscriptNotFound, DamagedTranscript, TranscriptChanged (it shrank or was
    replaced), DamagedJournal, Busy, OSError; the route is then as before, or has the checkpoints of the first segments.
    """
    project = projects.find(root)
    routing.check_new(project, route)
    project.check_links()
    source = _opened(project, transcript, as_text=as_text)
    settings = config.of(project)
    model = _model(project, summarizer)
    embedded = settings.summarizer if model or summarizer is None else summarizer
    if isinstance(embedded, str):
        registry.check(embedded)
    taking = Taking(
        project,
        route,
        source,
        summarizer=embedded,
        reason=reason,
        agent_type=settings.agent_type,
        keep=_hints(keep),
        run=project.run if run is None else run,
    )
    taking.take(segment_tokens or settings.segment_limit, restart=restart, begin=begin, progress=progress)
    refinements: tuple[Refinement, ...] = ()
    if model is not None:
        refinements = _asked(taking, *model)
    elif summarizer is None and source.origin != "import":  # nothing is spent on what is long over
        _start_worker(taking)
    if taking.written:
        from ralf import archive

        archive.a_little(project, route)
    return _report(taking, refinements)


def record_runs(
    route: str, runs: Sequence[Transcript], *, root: str | os.PathLike[str] | None = None
) -> tuple[str, ...]:
    """Write down in one record that there were runs that wrote nothing, oldest first, and how they ended: what
    `checkpoint` does for each of them, where there are thousands. Known ones, and transcripts of no run, are left out.

    Returns what the reader should know. Raises UsageError (a refused name), DamagedJournal, Busy, OSError.
    """
    project = projects.find(root)
    routing.check_new(project, route)
    project.check_links()
    told = [run.attempt for run in runs if run.attempt is not None]
    writer = records.write(project, route, told) if told else None
    return (*writer.warnings, *filter(None, [writer.damage])) if writer is not None else ()


def _model(project: Project, wanted: Summarizer | str | None) -> tuple[Command, Cap] | None:
    """The model that is asked for by name, and what may be spent on it in a day; None where the name is no model's."""
    if wanted not in registry.MODELS:
        return None
    from ralf import localconfig  # only who asks a model pays for it

    settings = localconfig.of(project)
    return settings.command_of(str(wanted)), settings.cap


def _opened(project: Project, transcript: str | os.PathLike[str] | Transcript, *, as_text: bool) -> Transcript:
    """The transcript itself, or the one in a file or in a run's folder."""
    if not isinstance(transcript, str | os.PathLike):
        return transcript
    return open_transcript(Path(transcript), root=project.root, as_text=as_text)


def _hints(keep: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for hint in keep if (text := one_line(clean(hint)))))


def _asked(taking: Taking, model: Command, cap: Cap) -> tuple[Refinement, ...]:
    """Have a model improve what was written, or the newest checkpoint if nothing was."""
    from ralf.refining import worker

    names = [entry.checkpoint_id for entry in taking.written]
    refinements = tuple(worker.ask_now(taking.project, taking.route, model, names, cap=cap))
    if refinements:
        taking.read_again()
    return refinements


def _start_worker(taking: Taking) -> None:
    """Start the configured model in the background, if there is one and something is owed it."""
    try:
        if b"summarizer" not in content_of(taking.project.local_config_file):
            return
    except FileNotFoundError:
        return
    except OSError:
        pass  # what is wrong with it is said below
    from ralf.refining import worker

    problem = worker.start(taking.project, taking.route, after=taking.before, written=len(taking.written))
    if problem:
        taking.warnings.append(problem)


def _report(taking: Taking, refinements: tuple[Refinement, ...]) -> CheckpointReport:
    """What the call came to."""
    source = taking.source
    return CheckpointReport(
        route=taking.route,
        revision=taking.context.revision,
        checkpoints=tuple(taking.written),
        reason=taking.reason,
        summarizer=taking.summarizer if isinstance(taking.summarizer, str) else taking.summarizer.name,
        losses=tuple(taking.losses),
        path=taking.project.route_file(taking.route),
        run=_run_of(taking),
        skipped=dict(source.skipped),
        warnings=tuple(dict.fromkeys([*taking.warnings, *_unread(taking)])),
        damage=taking.damage,
        refinements=refinements,
    )


def _run_of(taking: Taking) -> Attempt | None:
    """The run that was read, with the number that it has on the route."""
    run = taking.source.attempt
    if run is None:
        return None
    return next((one for one in taking.context.active_work.last_runs if one.run == run.run), run)


def _unread(taking: Taking) -> list[str]:
    """What could not be read, or kept as it should be."""
    source, told = taking.source, []
    if taking.written and taking.project.redactor.problem:
        told.append(taking.project.redactor.problem)
    if taking.written and taking.before is None and not engine.available():  # said once, at a route's first checkpoint
        told.append(engine.NOT_LOOKED_FOR)
    if isinstance(source, Notes):
        told += [f"{path}: cannot be read: {what}" for path, what in source.problems.items()]
    if source.malformed:
        lines = ", ".join(map(str, source.malformed[:5]))
        told.append(f"{source.path}: {source.skipped['malformed']} lines that cannot be read: {lines}")
    return told
