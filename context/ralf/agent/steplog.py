"""The stream of a step: its newest state at a flat cost, older records by their places, and appends that compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from ralf import environment
from ralf.agent import records
from ralf.agent.records import Answered, Body, Decided, Heard, Record, Saved, StepState, Stored
from ralf.errors import UnknownToken, UsageError
from ralf.project import Project
from ralf.storage.journal import Token, entry_at
from ralf.storage.registry import NO_FOLDER
from ralf.text import cleaning
from ralf.text.frozen import dataclass

_MOST_TRIES = 20  # at a stream that is rewritten again and again


@dataclass(frozen=True, slots=True)
class Made:
    """What an iteration has done so far.

    asked     by key, how many times a call was made
    answered  by key, the place and the number of the record of its answer
    heard     outcomes of waits that records depend on and no saved state covers, oldest first
    """

    asked: dict[str, int]
    answered: dict[str, Answered]
    heard: list[Heard]


class StepLog:
    """The records of one step. `state` and `head` are as of the last look or append; not for several threads."""

    def __init__(self, project: Project, run: str, step: str) -> None:
        self.project = project
        self.step = step
        self.stream = records.stream_of(run, step)
        self.where = run if step == "main" else f"{run}/{step}"
        self.state = StepState()
        self.head: Token | None = None
        self._looked: tuple[Token, Record] | None = None  # the newest record, where it was just read
        self._stamp: tuple[int, ...] = ()  # of the file in which `head` was the newest

    # ---- the newest state ----

    def look(self) -> StepState:
        """The state as the store has it now: one record is read. DamagedJournal, UsageError as `records.parsed`."""
        store = self.project.store
        for _ in range(_MOST_TRIES):
            head = store.head(self.stream)
            if head == self.head:
                break
            if head is None:
                self.state, self.head = StepState(), None
                break
            with suppress(UnknownToken):  # rewritten in between
                entry = entry_at(store, self.stream, head)
                record = records.parsed(self.where, entry)
                if record is None and self._is_registered_since():
                    continue
                if record is None:  # somebody else's: only ours count
                    return self.refold()
                self.state, self.head = records.apply(record.was, record, head), head
                self._looked = head, record
                break
        return self.state

    def _is_registered_since(self) -> bool:
        """Whether another process has registered the project since this one looked: its records are ours."""
        owner = self.project.owner
        return owner.registration is None and owner.look_again() is not None

    def refold(self) -> StepState:
        """The state made from all records: where the stream was rewritten, the places that they name are void."""
        state, head = StepState(), None
        for token, record in self.all():
            head = token
            if record is not None:
                state = records.apply(state, record, token)
        self.state, self.head = state, head
        return state

    def all(self) -> Iterator[tuple[Token, Record | None]]:
        """All records with their places, oldest first; None for one that is not this user's."""
        for entry in self.project.store.read(self.stream):
            yield entry.token, records.parsed(self.where, entry)

    def has_moved(self) -> bool:
        """Whether somebody else has appended since the last look. A file that is as it was is not opened."""
        stamp = self._file_stamp()
        if stamp and stamp == self._stamp:
            return False
        if self.project.store.head(self.stream) != self.head:
            return True
        self._stamp = stamp  # taken before the head was read: who appended in between would have been seen
        return False

    def _file_stamp(self) -> tuple[int, ...]:
        """What changes with every append to the stream's file, () for a store without files."""
        files = self.project.store.properties.files
        if files is None:
            return ()
        try:
            found = files.path(self.stream).stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    # ---- records by their places ----

    def record(self, place: Callable[[StepState], Token]) -> Record | None:
        """The record at a place that the state names, None for no place."""
        for fresh in (False, True):
            state = self.refold() if fresh else self.state
            token = place(state)
            if not token:
                return None
            try:
                return self._at(token)
            except UnknownToken:
                if fresh:
                    raise
        return None

    def _at(self, token: Token) -> Record:
        if self._looked is not None and self._looked[0] == token:
            return self._looked[1]
        record = records.parsed(self.where, entry_at(self.project.store, self.stream, token))
        if record is None:
            raise UnknownToken(self.stream, "this place has another user's record")
        return record

    def _chain(self, start: Token, before: Callable[[StepState], Token]) -> Iterator[Record]:
        """Records, newest first, each of which names the place of the one before. UnknownToken."""
        token = start
        while token:
            record = self._at(token)
            yield record
            token = before(record.was)

    def made(self) -> Made:
        """What this iteration has done so far."""
        state = self.state
        try:
            trail = list(self._chain(state.trail, lambda was: was.trail))
        except UnknownToken:
            trail = self._trail_of_all()
            state = self.state
        made = Made({}, {}, list(state.ahead))
        for record in reversed(trail):
            body = record.body
            if isinstance(body, records.Asked):
                made.asked[body.key] = body.repeat + 1
            elif isinstance(body, Answered):
                made.answered[body.key] = body
            if record.number > state.state_record:
                made.heard.extend(getattr(body, "heard", ()))
        return made

    def _trail_of_all(self) -> list[Record]:
        """The same records, newest first, found by reading the whole stream."""
        state, head, trail = StepState(), None, list[Record]()
        for token, record in self.all():
            head = token
            if record is None:
                continue
            before, state = state, records.apply(state, record, token)
            if state.trail == token:
                trail.append(record)
            elif state.iteration != before.iteration:
                trail = []
        self.state, self.head = state, head
        return trail[::-1]

    def saved(self) -> Iterator[Record]:
        """The records with a saved state, newest first."""
        try:
            yield from list(self._chain(self.state.state_at, lambda was: was.state_at))
        except UnknownToken:
            found = [one for _, one in self.all() if one is not None and has_state(one.body)]
            yield from reversed(found)

    def saved_at(self, number: int) -> Record | None:
        """The record with the state of a number."""
        try:
            for record in self._chain(self.state.state_at, lambda was: was.state_at):
                found = number_of(record.body)
                if found <= number:
                    return record if found == number else None
        except UnknownToken:
            return next((one for one in self.saved() if number_of(one.body) == number), None)
        return None

    def stored(self, key: str) -> Stored | None:
        """The newest result that was stored under a key."""
        try:
            for record in self._chain(self.state.stored_at, lambda was: was.stored_at):
                if isinstance(record.body, Stored) and record.body.key == key:
                    return record.body
        except UnknownToken:
            found = [one.body for _, one in self.all() if one is not None and isinstance(one.body, Stored)]
            return next((body for body in reversed(found) if body.key == key), None)
        return None

    # ---- writing ----

    def append(self, body: Body, writer: str, id_: str) -> StepState:
        """Append one record behind the head as it was last seen. Conflict where there is another one by now."""
        record = Record(self.state.records + 1, records.time_text(time.time()), writer, body, self.state)
        token = self.project.store.append(self.stream, records.encoded(record), id=id_, after=self.head)
        self.state, self.head, self._looked = records.apply(self.state, record, token), token, None
        return self.state


def prepare(project: Project, stream: str) -> None:
    """See that a stream can be written to, and what is written be told as this user's later.

    UsageError where it cannot, and where a folder of the stream is a link: there may be many runs, so each is looked at
    when it is used.
    """
    project.prepare()
    owner = project.owner
    if owner.seal_key is None and not owner.vouches:
        raise UsageError(project.folder, NO_FOLDER)
    files = project.store.properties.files
    if files is not None:
        for folder in files.path(stream).parents:
            if folder == project.folder:
                break
            if folder.is_symlink():
                raise UsageError(folder, "is a symbolic link: not followed", "remove the link")


def holder_name(project: Project, by: str = "") -> str:
    """By what name a step is held or a signal sent: the one that is given, else what the environment says."""
    told = by or environment.agent_name() or project.run or environment.holder()
    name = cleaning.one_line(cleaning.clean(told))[:200]
    if not name:
        raise UsageError("by", "a holder needs a name")
    return name


def has_state(body: Body) -> bool:
    """Whether a record has a saved state."""
    return isinstance(body, (Saved, Decided)) and body.state is not None


def number_of(body: Body) -> int:
    """The number of the state that a record has, 0 for none."""
    return body.number if isinstance(body, (Saved, Decided)) else 0
