"""Runs a checkpoint: writes the new part of a transcript as records, segment by segment, and reports it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf import config, project as projects, routing
from ralf.checkpointing.due import Piece, cut, full
from ralf.config.local_config import MODELS
from ralf.document import index
from ralf.errors import Busy, DamagedRouteFile, DamagedTranscript, UnknownToken, UsageError
from ralf.facts.progress import run_tree
from ralf.model import Attempt, Checkpoint
from ralf.project import Project
from ralf.redact import engine, redactor_for
from ralf.route import offsets
from ralf.route.fold import empty
from ralf.route.load import State, load_state
from ralf.route.offsets import IngestOffset, ingest_offset
from ralf.route.write import RouteWriter, open_route
from ralf.storage.files import content_of
from ralf.storage.journal import Token, stream_of
from ralf.text import tokens
from ralf.text.cleaning import clean, one_line
from ralf.text.frozen import dataclass, field, replace
from ralf.transcripts import notes
from ralf.transcripts.events import Event, Position
from ralf.transcripts.notes import Notes
from ralf.transcripts.reader import Transcript, open_transcript

if TYPE_CHECKING:
    from ralf.checkpointing.record import RecordBuilder
    from ralf.checkpointing.section import Summarizer
    from ralf.config.local_config import Cap
    from ralf.refining.command import Command
    from ralf.refining.refine import Refinement


# --------------------
# The report


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """The result of one call of `checkpoint`.

    checkpoints    those written by this call, oldest first; () when nothing was new
    tokens_read    o200k_base tokens of the segments
    tokens_stored  o200k_base tokens of what they came to
    path           the route file
    run            the run whose folder was read, and what came of it, also where nothing was written; None for any
                   other transcript
    skipped        transcript records that were not used, by type or reason
    warnings       what the reader should know, such as lines that could not be read
    damage         why the route file could not be made to show it, "" for nothing: it is in the journal
    refinements    what a model that was asked for made of them
    blank          the transcript was read from its beginning, and holds no message and no call
    """

    route: str
    revision: int
    checkpoints: tuple[Checkpoint, ...]
    reason: str
    summarizer: str
    path: Path
    run: Attempt | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    damage: str = ""
    refinements: tuple[Refinement, ...] = ()
    blank: bool = False

    @property
    def tokens_read(self) -> int:
        """Tokens of the segments."""
        return sum(entry.tokens for entry in self.checkpoints)

    @property
    def tokens_stored(self) -> int:
        """Tokens of what they came to."""
        return sum(entry.tokens_stored or 0 for entry in self.checkpoints)

    @property
    def ratio(self) -> float:
        """Tokens read per token stored, 0 when nothing was stored."""
        return self.tokens_read / self.tokens_stored if self.tokens_stored else 0.0


# --------------------
# Records of runs whose folders hold nothing new


def write(project: Project, route: str, runs: Sequence[Attempt]) -> RouteWriter | None:
    """Write down in one record that there were runs, oldest first, and what came of them; None where the route knows
    all of it. Raises what `writing` does.
    """
    trees = [run_tree(run, redactor_for(project)) for run in runs]
    if not _new(project, route, trees):
        return None
    with open_route(project, route) as writer:
        if new := _new(project, route, trees):
            identity = "\0".join((route, str(writer.context.revision), *(tree["run"] for tree in new)))
            digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
            payload = {"attempts": new, "timestamp": next((run.timestamp for run in reversed(runs)), "")}
            writer.append("attempt", payload, id=f"attempt-{digest[:40]}")
    return writer


def _new(project: Project, route: str, trees: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of runs those of which the route does not know what is told, each once, as a record holds them."""
    trees = list({tree["run"]: tree for tree in trees}.values())
    known = offsets.known_runs(project, route, trees)
    both = zip(trees, known, strict=True)
    return [tree | ({"again": True} if there else {}) for tree, (there, told) in both if not told]


# --------------------
# The ingest: one record per segment, acknowledged before the next segment begins


_AHEAD = 16  # events of the next segment that are looked at for the rest of a secret

_MOST_TRIES = 5  # when other writers take the same session's segments

Progress = Callable[[int, int], None]
"""Told how many bytes of the transcript are done, and how many there are."""


class Ingest:
    """The ingest of one transcript into one route, and its results.

    written   the checkpoints, oldest first; () when nothing was new
    context   the route afterwards
    before    the journal's newest record before the first of them; None before the first record of all
    warnings  what the reader should know
    damage    why the route file could not be made to show it, "" for nothing
    blank     the transcript was read from its beginning, and gave nothing
    """

    def __init__(
        self,
        project: Project,
        route: str,
        source: Transcript,
        *,
        summarizer: Summarizer | str,
        reason: str,
        agent_type: str,
        keep: tuple[str, ...],
        run: str,
    ) -> None:
        """summarizer, reason, agent_type, keep: see `RecordBuilder`.

        run  the run of a loop to which a client's session belongs, "" for none
        """
        self.project = project
        self.route = route
        self.source = source
        self.summarizer = summarizer
        self.reason = reason
        self.written: list[Checkpoint] = []
        self.context = empty(route)
        self.before: Token | None = None
        self.warnings: list[str] = []
        self.damage = ""
        self.blank = False
        self._agent_type = agent_type
        self._keep = keep
        self._run = run
        self._ingested = Position()  # how far the journal says that the transcript was taken
        self._known: Token | None = None  # the newest record when what the work begins with was read

    def take(
        self, limit: int, *, restart: bool = False, begin: Position | None = None, progress: Progress | None = None
    ) -> None:
        """Ingest all new segments of at most `limit` tokens. Arguments and errors: see `checkpoint.checkpoint`."""
        tries = 0
        while tries < _MOST_TRIES:
            before = ingest_offset(self.project, self.route, self.source.session).position
            if self._ingest_new(limit, restart=restart, begin=begin, progress=progress):
                return
            if self._known is not None and self.project.store.head(stream_of(self.route)) is None:
                raise Busy(self.route, "was renamed, merged or forgotten at this moment", "try again")
            tries = tries + 1 if ingest_offset(self.project, self.route, self.source.session).position == before else 0
        raise Busy(self.route, "other writers take this session's segments as fast as they are made", "try again")

    def read_again(self) -> None:
        """Reload the route after another writer wrote to it."""
        state = self._state()
        if state is not None:
            self.context = state.own
            self.damage = state.damage
            now = {entry.checkpoint_id: entry for entry in state.own.checkpoint_history}
            self.written = [now.get(entry.checkpoint_id, entry) for entry in self.written]

    def _ingest_new(self, limit: int, *, restart: bool, begin: Position | None, progress: Progress | None) -> bool:
        """Ingest the new segments; False when another writer was first with one of them."""
        self._known = self.project.store.head(stream_of(self.route))
        offset = ingest_offset(self.project, self.route, self.source.session)
        restart = restart and not offsets.is_unchanged(offset, self.source)
        if restart:
            offset = IngestOffset(offset.session)
        else:
            offsets.check_unchanged(offset, self.source, self.route)
        self._ingested = offset.position
        if begin is not None and begin.byte > offset.position.byte:
            offset = IngestOffset(offset.session, begin)
        state = self._state()
        self.context = state.own if state is not None else empty(self.route)
        size = self.source.size() + (self._ingested.byte if self.source.rewritten else 0)
        pieces = self._pieces(offset.position, limit)
        piece = next(pieces, None)
        self.blank = piece is None and offset.position == Position() and not self.source.rewritten
        if piece is None and state is not None:
            self.damage = state.damage
            if state.behind and not state.damage:
                with open_route(self.project, self.route) as writer:
                    self.context = writer.context
                self.warnings += writer.warnings
        run = self.source.attempt
        if piece is None and run is not None and (told := write(self.project, self.route, [run])) is not None:
            self._follow(told)
            self.damage = told.damage
        while piece is not None:
            following = next(pieces, None)
            if following is None and piece.rest and not self.source.rewritten:
                piece = replace(piece, end=self.source.end)
            known = len(self.written)
            taken = self._write_segment(piece, offset, following, restart=restart)
            if taken is None:
                return False
            offset, piece = taken, following
            restart = restart and len(self.written) == known  # up to here the new file is what the old one was
            if progress is not None:
                progress(offset.position.byte, size)
        return True

    # ---- reading ----

    def _state(self) -> State | None:
        if not self.project.folder.exists():
            return None
        try:
            return load_state(self.project, self.route)
        except DamagedRouteFile as error:  # no journal yet: what is new goes there, the file stays as it is
            self.damage = str(error)
            return None

    def _pieces(self, after: Position, limit: int) -> Iterator[Piece]:
        events = self.source.events(after) if not self.source.rewritten else self._new_notes(after)
        pieces = (piece for piece in cut(events, limit, tokens.count) if piece.tokens)
        return pieces if self.reason != "threshold" else full(pieces)

    def _new_notes(self, after: Position) -> Iterator[Event]:
        redactor, events = redactor_for(self.project), self.source.events()
        if not redactor.problem:
            known = offsets.note_digests(self.project, self.route, self.source.session)
            return notes.new(events, known, redactor.digest, after)
        from ralf.redact.marks import untagged
        from ralf.route import history  # who has its key does not need it

        told = history.texts_of(self.project, self.route, self.source.session)  # under a key that is forgotten
        return notes.new(events, set(map(untagged, told)), lambda text: untagged(redactor.text(text)), after)

    # ---- one segment ----

    @cached_property
    def _builder(self) -> RecordBuilder:
        """Imported and made for the first segment: to compile the patterns of redactor and summariser takes longer than
        to find that nothing is new.
        """
        from ralf.checkpointing.record import RecordBuilder
        from ralf.checkpointing.section import Extractive

        summarizer = Extractive() if isinstance(self.summarizer, str) else self.summarizer
        keep = tuple(map(redactor_for(self.project).text, self._keep))
        return RecordBuilder(self.project, self.route, self.source, summarizer, self.reason, self._agent_type, keep)

    def _write_segment(
        self, piece: Piece, offset: IngestOffset, following: Piece | None, *, restart: bool
    ) -> IngestOffset | None:
        """Write one segment's checkpoint and return the new offset; None when another writer was first."""
        last, rest = following is None, following.events[:_AHEAD] if following is not None else ()
        payload, after = self._builder.build_record(piece, offset, self.context, rest, self._run_told(last=last))
        span = f"{piece.start.byte}-{piece.end.byte}"
        identity = "\0".join((self.route, offset.session, span, after.tail))
        id_ = f"checkpoint-{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
        with open_route(self.project, self.route) as writer:
            if not restart and ingest_offset(self.project, self.route, offset.session).position != self._ingested:
                return None
            if self._is_rewritten(writer.token) or not self.project.store.has_blob(payload["evidence"]):
                return None  # words were forgotten that the work began with
            if payload.get("attempt"):
                [(known, _)] = offsets.known_runs(self.project, self.route, [payload["attempt"]])
                payload["attempt"] |= {"again": True} if known else {}
            before, token = writer.context.revision, writer.token
            landed = writer.append("checkpoint", payload, id=id_, shown=last).revision > before
        self._ingested = after.position
        self._follow(writer)
        if landed:
            self.before = self.before if self.written else token
            self.written.append(writer.context.checkpoint_history[-1])
            self.damage = writer.damage
        return after

    def _run_told(self, *, last: bool) -> Attempt | None:
        """The run that a record is of: the one in which a client's session is; of a folder, in its last record."""
        if self.source.rewritten:
            return self.source.attempt if last else None
        return Attempt(run=self._run) if self._run else None

    def _follow(self, writer: RouteWriter) -> None:
        """Continue from the route as a writer has left it."""
        self.context, self._known = writer.context, writer.token
        self.warnings += writer.warnings

    def _is_rewritten(self, head: Token | None) -> bool:
        """Whether the journal is another than the one that the work began with."""
        if self._known in (None, head):
            return False
        try:
            self.project.store.entry(stream_of(self.route), str(self._known))
        except UnknownToken:
            return True
        return False


# --------------------
# The checkpoint
#
# transcript → segment → redact → facts + summary → evidence blob → record (acknowledged) → route file


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
                embedded one, and then that model hands over what is new, or at the newest one if nothing was, while
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
    Raises UsageError (a refused name), TranscriptNotFound, DamagedTranscript (no session; no record in it could be
    read; by hand also: none is finished), TranscriptChanged (it shrank or was replaced), DamagedJournal, Busy, OSError;
    the route is then as before, or has the checkpoints of the first segments.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    source = (
        open_transcript(Path(transcript), root=project.root, as_text=as_text)
        if isinstance(transcript, str | os.PathLike)
        else transcript
    )
    settings = config.of(project)
    model = _model(project, summarizer)
    embedded = settings.summarizer if model or summarizer is None else summarizer
    if isinstance(embedded, str) and embedded not in config.CHOICES["summarizer"]:
        known = ", ".join((*config.CHOICES["summarizer"], *MODELS))
        raise UsageError(embedded, f"no such summarizer; known: {known}", "--summarizer extractive")
    ingest = Ingest(
        project,
        route,
        source,
        summarizer=embedded,
        reason=reason,
        agent_type=settings.agent_type or getattr(source, "agent_type", ""),
        keep=tuple(dict.fromkeys(text for hint in keep if (text := one_line(clean(hint))))),
        run=project.run if run is None else run,
    )
    ingest.take(segment_tokens or settings.segment_limit, restart=restart, begin=begin, progress=progress)
    if ingest.blank and source.end == Position() and reason == "manual":
        what = "holds no finished record"
        raise DamagedTranscript(source.path, what, "name a session log of a client, or a list of messages")
    refinements: tuple[Refinement, ...] = ()
    if model is not None:
        from ralf.refining import refine

        names = [entry.checkpoint_id for entry in ingest.written]  # or the newest checkpoint, where these are none
        refinements = tuple(refine.ask_now(project, route, model[0], names, cap=model[1]))
        if refinements:
            ingest.read_again()
    elif summarizer is None and source.origin != "import":  # nothing is spent on what is long over
        _start_worker(ingest)
    return _report(ingest, refinements)


def record_runs(
    route: str, runs: Sequence[Transcript], *, root: str | os.PathLike[str] | None = None
) -> tuple[str, ...]:
    """Write down in one record that there were runs that wrote nothing, oldest first, and how they ended: what
    `checkpoint` does for each of them, where there are thousands. Known ones, and transcripts of no run, are left out.

    Returns what the reader should know. Raises UsageError (a refused name), DamagedJournal, Busy, OSError.
    """
    project = projects.find(root)
    route = routing.check_new(project, route)
    told = [run.attempt for run in runs if run.attempt is not None]
    writer = write(project, route, told) if told else None
    return (*writer.warnings, *filter(None, [writer.damage])) if writer is not None else ()


def _model(project: Project, wanted: Summarizer | str | None) -> tuple[Command, Cap] | None:
    """The model that is asked for by name, and what may be spent on it in a day; None where the name is no model's."""
    if wanted not in MODELS:
        return None
    from ralf.config import local_config  # only who asks a model pays for it
    from ralf.refining.command import command_of

    settings = local_config.local_config_of(project)
    return command_of(settings, str(wanted)), settings.cap


def _start_worker(ingest: Ingest) -> None:
    """Start the configured model in the background, if there is one and something is owed it."""
    try:
        if b"summarizer" not in content_of(ingest.project.local_config_file):
            return
    except FileNotFoundError:
        return
    except OSError:
        pass  # what is wrong with it is said below
    from ralf.refining import refine

    problem = refine.start(ingest.project, ingest.route)
    if problem:
        ingest.warnings.append(problem)


def _report(ingest: Ingest, refinements: tuple[Refinement, ...]) -> CheckpointReport:
    """Build the report of a call."""
    if ingest.written:
        index.shorten(ingest.project.room_for(index.NAME))
    source, run = ingest.source, ingest.source.attempt
    numbered = (one for one in ingest.context.active_work.last_runs if run is not None and one.run == run.run)
    return CheckpointReport(
        route=ingest.route,
        revision=ingest.context.revision,
        checkpoints=tuple(ingest.written),
        reason=ingest.reason,
        summarizer=ingest.summarizer if isinstance(ingest.summarizer, str) else ingest.summarizer.name,
        path=ingest.project.route_file(ingest.route),
        run=next(numbered, run),
        skipped=dict(source.skipped),
        warnings=tuple(dict.fromkeys([*ingest.warnings, *_unread(ingest)])),
        damage=ingest.damage,
        refinements=refinements,
        blank=ingest.blank,
    )


def _unread(ingest: Ingest) -> list[str]:
    """Return warnings about content that could not be read, or not kept as it should be."""
    source, told = ingest.source, []
    if ingest.written and (problem := redactor_for(ingest.project).problem):
        told.append(problem)
    if ingest.written and ingest.before is None and not engine.available():  # said once, at a route's first checkpoint
        told.append(engine.NOT_LOOKED_FOR)
    if isinstance(source, Notes):
        told += [f"{path}: cannot be read: {what}" for path, what in source.problems.items()]
    if source.malformed:
        lines = ", ".join(map(str, source.malformed[:5]))
        told.append(f"{source.path}: {source.skipped['malformed']} lines that cannot be read: {lines}")
    if counts := ", ".join(f"{source.skipped[what]} {what}" for what in _NOT_UNDERSTOOD if source.skipped[what]):
        told.append(f"{source.path}: records that were not understood: {counts}")
    return told


_NOT_UNDERSTOOD = ("no role", "unknown role", "unknown frame", "untyped", "oversized")
"""What a reader counts that it did not understand; the other kinds are of no use to anybody."""
