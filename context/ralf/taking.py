"""Takes what is new in a transcript: segment by segment, one record each, acknowledged before the next is begun."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ralf import sessions, state as states, tokens
from ralf.briefing.since import remember
from ralf.errors import Busy, DamagedRouteFile, UnknownToken
from ralf.journal import stream_of
from ralf.model import Attempt, Checkpoint
from ralf.project import Project
from ralf.proving import loss
from ralf.proving.loss import LossReport
from ralf.route import empty
from ralf.runs import records
from ralf.segments import Piece, cut, full
from ralf.sessions import Standing, standing
from ralf.state import State
from ralf.store import Token
from ralf.summarizers import Summarizer, registry
from ralf.transcripts import Transcript, notes
from ralf.transcripts.events import Event, Position
from ralf.writer import RouteWriter, writing

if TYPE_CHECKING:
    from ralf.payload import Payloads

_AHEAD = 16  # events of the next segment that are looked at for the rest of a secret
_MOST_TRIES = 5  # when other writers take the same session's segments

Progress = Callable[[int, int], None]
"""Told how many bytes of the transcript are done, and how many there are."""


class Taking:
    """One transcript that is taken into one route, and what came of it.

    written   the checkpoints, oldest first; () when nothing was new
    losses    what each of them keeps and leaves, in the same order
    context   the route as it is then
    before    the journal's newest record before the first of them; None before the first record of all
    warnings  what the reader should know
    damage    why the route file could not be made to show it, "" for nothing
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
        """summarizer, reason, agent_type, keep: as for `payload.Payloads`; run: the run of a loop in which a client's
        session is, "" for none.
        """
        self.project = project
        self.route = route
        self.source = source
        self.summarizer = summarizer
        self.reason = reason
        self.written: list[Checkpoint] = []
        self.losses: list[LossReport] = []
        self.context = empty(route)
        self.before: Token | None = None
        self.warnings: list[str] = []
        self.damage = ""
        self._agent_type = agent_type
        self._keep = keep
        self._run = run
        self._taken = Position()  # how far the journal says that the transcript was taken
        self._known: Token | None = None  # the newest record when what the work begins with was read

    def take(
        self, limit: int, *, restart: bool = False, begin: Position | None = None, progress: Progress | None = None
    ) -> None:
        """Take all segments of at most `limit` tokens that are new. The rest is as for `checkpoint.checkpoint`, which
        says what is raised.
        """
        tries = 0
        while tries < _MOST_TRIES:
            before = standing(self.project, self.route, self.source.session).position
            if self._take(limit, restart=restart, begin=begin, progress=progress):
                return
            tries = tries + 1 if standing(self.project, self.route, self.source.session).position == before else 0
        raise Busy(self.route, "other writers take this session's segments as fast as they are made", "try again")

    def read_again(self) -> None:
        """Look at the route anew, after somebody else wrote to it."""
        state = self._state()
        if state is not None:
            self.context = state.own
            self.damage = state.damage
            now = {entry.checkpoint_id: entry for entry in state.own.checkpoint_history}
            self.written = [now.get(entry.checkpoint_id, entry) for entry in self.written]

    def _take(self, limit: int, *, restart: bool, begin: Position | None, progress: Progress | None) -> bool:
        """Take the segments that are new; False when another writer took one of them first."""
        self._known = self.project.store.head(stream_of(self.route))
        stand = standing(self.project, self.route, self.source.session)
        restart = restart and not sessions.unchanged(stand, self.source)
        if restart:
            stand = Standing(stand.session)
        else:
            sessions.check_unchanged(stand, self.source, self.route)
        self._taken = stand.position
        if begin is not None and begin.byte > stand.position.byte:
            stand = Standing(stand.session, begin)
        state = self._state()
        self.context = state.own if state is not None else empty(self.route)
        size = self.source.size() + (self._taken.byte if self.source.rewritten else 0)
        pieces = self._pieces(stand.position, limit)
        piece = next(pieces, None)
        if piece is None and state is not None:
            self.damage = state.damage
            if state.behind and not state.damage:
                with writing(self.project, self.route) as writer:
                    writer.show()
                    self.context = writer.context
                self.warnings += writer.warnings
        if piece is None and self.source.attempt is not None:
            self._take_run(self.source.attempt)
        while piece is not None:
            following = next(pieces, None)
            if following is None and piece.rest and not self.source.rewritten:
                piece = replace(piece, end=self.source.end)
            known = len(self.written)
            taken = self._take_piece(piece, stand, following, restart=restart)
            if taken is None:
                return False
            stand, piece = taken, following
            restart = restart and len(self.written) == known  # up to here the new file is what the old one was
            if progress is not None:
                progress(stand.position.byte, size)
        return True

    # ---- reading ----

    def _state(self) -> State | None:
        if not self.project.folder.exists():
            return None
        try:
            return states.load(self.project, self.route)
        except DamagedRouteFile as error:  # no journal yet: what is new goes there, the file stays as it is
            self.damage = str(error)
            return None

    def _pieces(self, after: Position, limit: int) -> Iterator[Piece]:
        events = self.source.events(after) if not self.source.rewritten else self._new_notes(after)
        pieces = (piece for piece in cut(events, limit, tokens.count) if piece.tokens)
        return pieces if self.reason != "threshold" else full(pieces)

    def _new_notes(self, after: Position) -> Iterator[Event]:
        redactor, events = self.project.redactor, self.source.events()
        if not redactor.problem:
            known = sessions.noted(self.project, self.route, self.source.session)
            return notes.new(events, known, redactor.digest, after)
        from ralf.past import history  # who has its key does not need it
        from ralf.secrets.secretspans import untagged

        told = history.texts_of(self.project, self.route, self.source.session)  # under a key that is forgotten
        return notes.new(events, set(map(untagged, told)), lambda text: untagged(redactor.text(text)), after)

    # ---- one segment ----

    @cached_property
    def _payloads(self) -> Payloads:
        """Imported and made for the first segment: to compile the patterns of redactor and summariser takes longer than
        to find that nothing is new.
        """
        from ralf.payload import Payloads

        summarizer = registry.named(self.summarizer) if isinstance(self.summarizer, str) else self.summarizer
        keep = tuple(map(self.project.redactor.text, self._keep))
        return Payloads(self.project, self.source, summarizer, self.reason, self._agent_type, keep)

    def _take_piece(self, piece: Piece, stand: Standing, following: Piece | None, *, restart: bool) -> Standing | None:
        """Write one segment's checkpoint; where the session stands then, None when another writer was there first."""
        last, rest = following is None, following.events[:_AHEAD] if following is not None else ()
        payload, after = self._payloads.of(piece, stand, self.context, rest, self._run_told(last=last))
        span = f"{piece.start.byte}-{piece.end.byte}"
        identity = "\0".join((self.route, stand.session, span, after.tail))
        id_ = f"checkpoint-{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
        with writing(self.project, self.route) as writer:
            if not restart and standing(self.project, self.route, stand.session).position != self._taken:
                return None
            if self._is_rewritten(writer.token) or not self.project.store.has_blob(payload["evidence"]):
                return None  # words were forgotten that the work began with
            if payload.get("attempt"):
                payload["attempt"] = records.with_again(self.project, self.route, payload["attempt"])
            before, token = writer.context.revision, writer.token
            landed = writer.append("checkpoint", payload, id=id_, shown=last).revision > before
            if last:
                writer.show()
                remember(self.project, writer.context)
        self._taken = after.position
        self.context, self._known = writer.context, writer.token
        self.warnings += writer.warnings
        if landed:
            self.before = self.before if self.written else token
            self._note(writer, payload)
        return after

    def _run_told(self, *, last: bool) -> Attempt | None:
        """The run that a record is of: the one in which a client's session is; of a folder, in its last record."""
        if self.source.rewritten:
            return self.source.attempt if last else None
        return Attempt(run=self._run) if self._run else None

    def _take_run(self, run: Attempt) -> None:
        """Write down that there was a run, and what came of it, where its folder holds nothing that is new."""
        writer = records.write(self.project, self.route, [run])
        if writer is not None:
            self.context, self._known = writer.context, writer.token
            self.warnings += writer.warnings
            self.damage = writer.damage

    def _is_rewritten(self, head: Token | None) -> bool:
        """Whether the journal is another than the one that the work began with."""
        if self._known in (None, head):
            return False
        try:
            self.project.store.entry(stream_of(self.route), str(self._known))
        except UnknownToken:
            return True
        return False

    def _note(self, writer: RouteWriter, payload: Mapping[str, Any]) -> None:
        self.written.append(writer.context.checkpoint_history[-1])
        self.damage = writer.damage
        entry = self.written[-1]
        if payload["refused"]:
            self.warnings.append(f"{self.route}: {entry.checkpoint_id}: refused the work of {payload['refused']}")
        self.losses.append(loss.report(self.project, self.route, entry.checkpoint_id, payload))
