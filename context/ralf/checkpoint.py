"""Checkpoints: takes what is new in a transcript and makes it part of a route. This module alone composes the flow.

transcript → segment → redact → facts + summary → probe → evidence blob → record (acknowledged) → route file
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf import config, project as projects, routing, sessions, state as states, tokens
from ralf.briefing.since import remember
from ralf.errors import Busy, DamagedRouteFile, UnknownToken
from ralf.files.opening import content_of
from ralf.journal import stream_of
from ralf.model import Attempt, Checkpoint
from ralf.past import history
from ralf.payload import Payloads
from ralf.project import Project
from ralf.proving import loss
from ralf.proving.loss import LossReport
from ralf.proving.proof import EMBEDDED
from ralf.report import CheckpointReport
from ralf.route import empty
from ralf.runs import records
from ralf.segments import Piece, cut, full
from ralf.sessions import Standing, standing
from ralf.state import State
from ralf.store import Token
from ralf.summarizers import Summarizer
from ralf.summarizers.registry import MODELS
from ralf.text import clean, one_line
from ralf.transcripts import Transcript, notes, open_transcript
from ralf.transcripts.events import Event, Position
from ralf.transcripts.notes import Notes
from ralf.writer import RouteWriter, writing

if TYPE_CHECKING:
    from ralf.refining.refine import Refinement
    from ralf.refining.spend import Cap
    from ralf.summarizers.command import Command

_AHEAD = 16  # events of the next segment that are looked at for the rest of a secret
_MOST_TRIES = 5  # when other writers take the same session's segments

Progress = Callable[[int, int], None]
"""Told how many bytes of the transcript are done, and how many there are."""


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
    reason      recorded in the checkpoint: manual, threshold, pressure, compaction, task-completed, session-end …
    keep        what has to be kept, in a few words each; recorded, and passed on to every summariser
    segment_tokens  o200k_base tokens that a segment has at most; None: the configured threshold, 50,000 by default
    restart     read the transcript from its beginning, as a new file under the same session
    begin       take nothing that lies before this place: it is another route's
    run         the run of a loop in which a client's session is, called as its folder's session is; "": in none; None:
                as the environment says

    Nothing new: no write. With `summarizer` None the model that the local configuration names, if any, is started in
    the background and not waited for. Every checkpoint is acknowledged (durable) when this returns, and read back.
    Raises UsageError (a refused name), TranscriptNotFound, DamagedTranscript, TranscriptChanged (it shrank or was
    replaced), DamagedJournal, Busy, OSError; the route is then as before, or has the checkpoints of the first segments.
    """
    project = projects.find(root)
    routing.check_new(project, route)
    project.check_links()
    source = _opened(project, transcript)
    settings = config.load(project.config_file)
    model = _model(project, summarizer)
    embedded = _summarizer(settings.summarizer if model or summarizer is None else summarizer)
    hints = tuple(map(project.redactor.text, _hints(keep)))
    call = _Run(project, route, source, embedded, reason, settings.agent_type, hints)
    call.in_run = project.run if run is None else run
    tries = 0
    while tries < _MOST_TRIES:
        before = standing(project, route, source.session).position
        if call.take(segment_tokens or settings.segment_limit, restart=restart, begin=begin, progress=progress):
            if model is not None:
                call.ask(*model)
            elif summarizer is None and source.origin != "import":  # nothing is spent on what is long over
                call.start_worker()
            call.archive()
            return call.report()
        tries = tries + 1 if standing(project, route, source.session).position == before else 0
    raise Busy(route, "other writers take this session's segments as fast as they are made", "try again")


def record_runs(
    route: str, runs: Sequence[Transcript], *, root: str | os.PathLike[str] | None = None
) -> CheckpointReport:
    """Write down in one record that there were runs that wrote nothing, oldest first, and how they ended: what
    `checkpoint` does for each of them, where there are thousands. Known ones, and transcripts of no run, are left out.

    Raises UsageError (a refused name), DamagedJournal, Busy, OSError.
    """
    project = projects.find(root)
    routing.check_new(project, route)
    project.check_links()
    told = [run.attempt for run in runs if run.attempt is not None]
    call = _Run(project, route, Notes(project.root, "", ()), _summarizer(EMBEDDED), "import", "", ())
    if told:
        call.take_runs(told)
    return call.report()


class _Run:
    """One call of `checkpoint`."""

    def __init__(
        self,
        project: Project,
        route: str,
        source: Transcript,
        summarizer: Summarizer,
        reason: str,
        agent_type: str,
        keep: tuple[str, ...],
    ) -> None:
        self._project = project
        self._route = route
        self._source = source
        self._summarizer = summarizer
        self._reason = reason
        self._payloads = Payloads(project, source, summarizer, reason, agent_type, keep)
        self._taken = Position()  # how far the journal says that the transcript was taken
        self._before: Token | None = None  # the journal's newest record before ours
        self._known: Token | None = None  # the newest one when what the work begins with was read
        self._refinements: tuple[Refinement, ...] = ()
        self._written: list[Checkpoint] = []
        self._warnings: list[str] = []
        self._damage = ""
        self._losses: list[LossReport] = []
        self._context = empty(route)
        self.in_run = ""  # the run in which a client's session is

    def take(self, limit: int, *, restart: bool, begin: Position | None, progress: Progress | None) -> bool:
        """Take the segments that are new; False when another writer took one of them first."""
        self._known = self._project.store.head(stream_of(self._route))
        stand = standing(self._project, self._route, self._source.session)
        restart = restart and not sessions.unchanged(stand, self._source)
        if restart:
            stand = Standing(stand.session)
        else:
            sessions.check_unchanged(stand, self._source, self._route)
        self._taken = stand.position
        if begin is not None and begin.byte > stand.position.byte:
            stand = Standing(stand.session, begin)
        state = self._state()
        self._context = state.context if state is not None else empty(self._route)
        size = self._source.size() + (self._taken.byte if self._source.rewritten else 0)
        pieces = self._pieces(stand.position, limit)
        piece = next(pieces, None)
        if piece is None and state is not None:
            self._damage = state.damage
            if state.behind and not state.damage:
                with writing(self._project, self._route) as writer:
                    writer.show()
                    self._context = writer.context
                self._warnings += writer.warnings
        if piece is None and self._source.attempt is not None:
            self.take_runs([self._source.attempt])
        while piece is not None:
            following = next(pieces, None)
            if following is None and piece.rest and not self._source.rewritten:
                piece = replace(piece, end=self._source.end)
            known = len(self._written)
            taken = self._take_piece(piece, stand, following, restart=restart)
            if taken is None:
                return False
            stand, piece = taken, following
            restart = restart and len(self._written) == known  # up to here the new file is what the old one was
            if progress is not None:
                progress(stand.position.byte, size)
        return True

    def report(self) -> CheckpointReport:
        """What the call came to."""
        if self._written and self._project.redactor.problem:
            self._warnings.append(self._project.redactor.problem)
        if isinstance(self._source, Notes):
            self._warnings += [f"{path}: cannot be read: {what}" for path, what in self._source.problems.items()]
        malformed = self._source.malformed
        if malformed:
            lines = ", ".join(map(str, malformed[:5]))
            self._warnings.append(
                f"{self._source.path}: {self._source.skipped['malformed']} lines that cannot be read: {lines}"
            )
        return CheckpointReport(
            route=self._route,
            revision=self._context.revision,
            checkpoints=tuple(self._written),
            reason=self._reason,
            summarizer=self._summarizer.name,
            losses=tuple(self._losses),
            path=self._project.route_file(self._route),
            run=self._run_of_report(),
            skipped=dict(self._source.skipped),
            warnings=tuple(dict.fromkeys(self._warnings)),
            damage=self._damage,
            refinements=self._refinements,
        )

    def _run_of_report(self) -> Attempt | None:
        """The run that was read, with the number that it has on the route."""
        run = self._source.attempt
        if run is None:
            return None
        return next((one for one in self._context.active_work.last_runs if one.run == run.run), run)

    # ---- models ----

    def ask(self, model: Command, cap: Cap) -> None:
        """Have a model improve what was written, or the newest checkpoint if nothing was."""
        from ralf.refining import worker

        names = [entry.checkpoint_id for entry in self._written]
        self._refinements = tuple(worker.ask_now(self._project, self._route, model, names, cap=cap))
        state = self._state()
        if self._refinements and state is not None:
            self._context = state.context
            self._damage = state.damage
            now = {entry.checkpoint_id: entry for entry in state.context.checkpoint_history}
            self._written = [now.get(entry.checkpoint_id, entry) for entry in self._written]

    def start_worker(self) -> None:
        """Start the configured model in the background, if there is one and something is owed it."""
        try:
            if b"summarizer" not in content_of(self._project.local_config_file):
                return
        except FileNotFoundError:
            return
        except OSError:
            pass  # what is wrong with it is said below
        from ralf.refining import worker

        problem = worker.start(self._project, self._route, after=self._before, written=len(self._written))
        if problem:
            self._warnings.append(problem)

    def archive(self) -> None:
        """Move a little of what is old to the archive, if anything was written."""
        if self._written:
            from ralf import archive

            archive.a_little(self._project, self._route)

    # ---- reading ----

    def _state(self) -> State | None:
        if not self._project.folder.exists():
            return None
        try:
            return states.load(self._project, self._route)
        except DamagedRouteFile as error:  # no journal yet: what is new goes there, the file stays as it is
            self._damage = str(error)
            return None

    def _pieces(self, after: Position, limit: int) -> Iterator[Piece]:
        events = self._source.events(after) if not self._source.rewritten else self._new_notes(after)
        pieces = (piece for piece in cut(events, limit, tokens.count) if piece.tokens)
        return pieces if self._reason != "threshold" else full(pieces)

    def _new_notes(self, after: Position) -> Iterator[Event]:
        redactor, events = self._project.redactor, self._source.events()
        if not redactor.problem:
            known = sessions.noted(self._project, self._route, self._source.session)
            return notes.new(events, known, redactor.digest, after)
        from ralf.secrets.secretspans import untagged

        told = history.texts_of(self._project, self._route, self._source.session)  # under a key that is forgotten
        return notes.new(events, set(map(untagged, told)), lambda text: untagged(redactor.text(text)), after)

    # ---- one segment ----

    def _take_piece(self, piece: Piece, stand: Standing, following: Piece | None, *, restart: bool) -> Standing | None:
        """Write one segment's checkpoint; where the session stands then, None when another writer was there first."""
        last, rest = following is None, following.events[:_AHEAD] if following is not None else ()
        payload, after = self._payloads.of(piece, stand, self._context, rest, self._run_told(last=last))
        span = f"{piece.start.byte}-{piece.end.byte}"
        identity = "\0".join((self._route, stand.session, span, after.tail))
        id_ = f"checkpoint-{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
        with writing(self._project, self._route) as writer:
            if not restart and standing(self._project, self._route, stand.session).position != self._taken:
                return None
            if self._is_rewritten(writer.token) or not self._project.store.has_blob(payload["evidence"]):
                return None  # words were forgotten that the work began with
            if payload.get("attempt"):
                payload["attempt"] = records.with_again(self._project, self._route, payload["attempt"])
            before, token = writer.context.revision, writer.token
            landed = writer.append("checkpoint", payload, id=id_, shown=last).revision > before
            if last:
                writer.show()
                remember(self._project, writer.context)
        self._taken = after.position
        self._context, self._known = writer.context, writer.token
        self._warnings += writer.warnings
        if landed:
            self._before = self._before if self._written else token
            self._note(writer, payload)
        return after

    def _run_told(self, *, last: bool) -> Attempt | None:
        """The run that a record is of: the one in which a client's session is; of a folder, in its last record."""
        if self._source.rewritten:
            return self._source.attempt if last else None
        return Attempt(run=self.in_run) if self.in_run else None

    def take_runs(self, runs: Sequence[Attempt]) -> None:
        """Write down that there were runs, and what came of them, where their folders hold nothing that is new."""
        writer = records.write(self._project, self._route, runs)
        if writer is not None:
            self._context, self._known = writer.context, writer.token
            self._warnings += writer.warnings
            self._damage = writer.damage

    def _is_rewritten(self, head: Token | None) -> bool:
        """Whether the journal is another than the one that the work began with."""
        if self._known in (None, head):
            return False
        try:
            self._project.store.entry(stream_of(self._route), str(self._known))
        except UnknownToken:
            return True
        return False

    def _note(self, writer: RouteWriter, payload: Mapping[str, Any]) -> None:
        self._written.append(writer.context.checkpoint_history[-1])
        self._damage = writer.damage
        entry = self._written[-1]
        if payload["refused"]:
            self._warnings.append(f"{self._route}: {entry.checkpoint_id}: refused the work of {payload['refused']}")
        self._losses.append(loss.report(self._project, self._route, entry.checkpoint_id, payload))


def _model(project: Project, wanted: Summarizer | str | None) -> tuple[Command, Cap] | None:
    """The model that is asked for by name, and what may be spent on it in a day; None where the name is no model's."""
    if wanted not in MODELS:
        return None
    from ralf import localconfig  # only who asks a model pays for it

    settings = localconfig.of(project)
    return settings.command_of(str(wanted)), settings.cap


def _opened(project: Project, transcript: str | os.PathLike[str] | Transcript) -> Transcript:
    """The transcript itself, or the one in a file or in a run's folder."""
    if not isinstance(transcript, str | os.PathLike):
        return transcript
    return open_transcript(Path(transcript), root=project.root)


def _hints(keep: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for hint in keep if (text := one_line(clean(hint)))))


def _summarizer(wanted: Summarizer | str) -> Summarizer:
    if not isinstance(wanted, str):
        return wanted
    from ralf.summarizers.registry import named

    return named(wanted)
