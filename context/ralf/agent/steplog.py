"""The stream of a step: its newest state at a flat cost, older records by their places, and appends that compare."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ralf import environment
from ralf.agent import contents, records
from ralf.agent.contents import Tree
from ralf.agent.records import Answered, Body, Decided, Heard, Record, Saved, StepState, Stored
from ralf.errors import UnknownToken, UsageError
from ralf.project import Project
from ralf.storage.journal import Digest, Entry, Token
from ralf.text import cleaning
from ralf.text.frozen import dataclass

_MOST_TRIES = 20  # at a stream that is rewritten again and again

_MOST_KEPT = 10_000  # contents that are kept in mind

_MOST_STEPS = 500  # from record to record: to read the whole stream in order takes less than more of them

_PLACES = ("state_at", "trail", "input_at", "output_at", "stored_at")
"""Fields of a state that name a place in its stream."""

_FIELDS = ("state", "output", "answer", "input", "blob")
"""The contents of records."""


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


class Content(NamedTuple):
    """A content that is there: its record's number, time and iteration, its field, of a state its number, and of a
    stored result its key.
    """

    record: int
    at: float
    iteration: int
    field: str
    state: int
    size: int
    blobs: tuple[Digest, ...]
    key: str = ""


class StepLog:
    """The records of one step. `state` and `head` are as of the last look or append; not for several threads."""

    def __init__(self, project: Project, run: str, step: str) -> None:
        self.project = project
        self.step = step
        self.stream = records.stream_of(run, step)
        self.where = run if step == "main" else f"{run}/{step}"
        self.state = StepState()
        self.head: Token | None = None
        self.kept: list[Content] | None = None  # the contents of all records, where all were appended by this object
        self.young: tuple[Digest, ...] = ()  # with it: the blobs that were too young when they were looked at last
        self._looked: tuple[Token, Record] | None = None  # the newest record, where it was just read
        self._stamp: tuple[int, ...] = ()  # of the file in which `head` was the newest
        self._stored: dict[str, Token] = {}  # places of the newest results, as of the record at `_stored_at`
        self._stored_at: Token = ""

    # ---- the newest state ----

    def look(self) -> StepState:
        """The state as the store has it now: one record is read. DamagedJournal, UsageError as `records.parsed`."""
        store = self.project.store
        for _ in range(_MOST_TRIES):
            with suppress(UnknownToken):  # rewritten in between
                entry = store.newest(self.stream)
                if entry is None:
                    self.state, self.head = StepState(), None
                    break
                if entry.token == self.head:
                    break
                self.kept = None
                record = records.parsed(self.where, entry)
                self.state, self.head = records.apply(record.was, record, entry.token), entry.token
                self._looked = entry.token, record
                break
        return self.state

    def refold(self) -> StepState:
        """The state made from all records: where the stream was rewritten, the places that they name are void."""
        state, head = StepState(), None
        for token, record in self.all():
            head = token
            state = records.apply(state, record, token)
        self.state, self.head, self.kept = state, head, None
        return state

    def all(self) -> Iterator[tuple[Token, Record]]:
        """All records with their places, oldest first."""
        for entry in self.project.store.read(self.stream):
            yield entry.token, records.parsed(self.where, entry)

    def has_moved(self) -> bool:
        """Whether somebody else has appended since the last look. A file that is as it was is not opened."""
        if self.head is None:
            return True  # nothing was seen yet
        stamp = self._file_stamp()
        if stamp and stamp == self._stamp:
            return False
        if self.project.store.head(self.stream) != self.head:
            return True
        self._stamp = stamp  # taken before the head was read: who appended in between would have been seen
        return False

    def _file_stamp(self) -> tuple[int, ...]:
        """What changes with every append to the stream's file, () for a store without files."""
        files = self.project.store.files
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
        return records.parsed(self.where, self.project.store.entry(self.stream, token))

    def _chain(self, start: Token, before: Callable[[StepState], Token]) -> Iterator[Record]:
        """Records, newest first, each of which names the place of the one before. UnknownToken, also for too many."""
        token = start
        for _ in range(_MOST_STEPS):
            if not token:
                return
            record = self._at(token)
            yield record
            token = before(record.was)
        raise UnknownToken(self.stream, "this place is too far back")

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
        """The newest result that was stored under a key. Places that are known are not looked for again."""
        for fresh in (False, True):
            if fresh:
                self._find_stored()
            else:
                self._add_stored()
            if key not in self._stored:
                return None
            with suppress(UnknownToken):
                body = self._at(self._stored[key]).body
                if isinstance(body, Stored) and body.key == key:
                    return body
        raise UnknownToken(self.stream, "is rewritten again and again")

    def _add_stored(self) -> None:
        """Add the places of results that were stored since the last look."""
        newest, found = self.state.stored_at, dict[str, Token]()
        token = newest
        try:
            for record in self._chain(newest, lambda was: was.stored_at):
                if token == self._stored_at:
                    break
                if isinstance(record.body, Stored):
                    found.setdefault(record.body.key, token)
                token = record.was.stored_at
        except UnknownToken:
            self._find_stored()
            return
        self._stored = {**(self._stored if token else {}), **found}
        self._stored_at = newest

    def _find_stored(self) -> None:
        """The same by reading the whole stream."""
        self.refold()
        self._stored = {
            one.body.key: token for token, one in self.all() if one is not None and isinstance(one.body, Stored)
        }
        self._stored_at = self.state.stored_at

    # ---- writing ----

    def append(self, body: Body, writer: str, id_: str) -> StepState:
        """Append one record behind the head as it was last seen, with a new id. Conflict where there is another one by
        now.
        """
        record = Record(self.state.records + 1, records.time_text(time.time()), writer, body, self.state)
        token = self.project.store.append(self.stream, records.encoded(record), id=id_, after=self.head, is_new=True)
        if self.head is None:
            self.kept = []
        if self.kept is not None:
            self.kept += contents_in(record)
            self.young = tuple(body.young.split()) if isinstance(body, records.Pruned) else self.young
            self.kept = self.kept if len(self.kept) <= _MOST_KEPT else None
        self.state, self.head, self._looked = records.apply(self.state, record, token), token, None
        return self.state

    def replace(self, change: Callable[[Entry], bytes]) -> bool:
        """Replace the bytes of records, as `Replace.replace` does; the places in the state are the new ones then.

        Whether nothing else of the state has changed: there was nobody else's record. All but the newest one are read
        only as far as the last place lies.
        """
        count, last = 0, ("", "")
        numbers: dict[Token, int] = {}
        places = {name: token for name in _PLACES if (token := getattr(self.state, name))}

        def counted(entry: Entry) -> bytes:
            nonlocal count, last
            count, last = count + 1, (entry.token, entry.id)
            if entry.token in places.values():
                numbers[entry.token] = count
            return change(entry)

        store = self.project.store
        store.replace(self.stream, counted, wipe=False)
        newest = store.newest(self.stream)
        if (
            newest is None
            or (count, *last) != (self.state.records, self.head, newest.id)
            or len(numbers) < len(set(places.values()))
        ):
            self.refold()  # somebody else has appended, or rewritten the stream, or there are another user's records
            return False
        found = {count: newest.token}
        until = max((number for number in numbers.values() if number != count), default=0)
        for number, entry in enumerate(store.read(self.stream) if until else (), start=1):
            found[number] = entry.token
            if number == until:
                break
        moved: dict[str, Any] = {name: found[numbers[token]] for name, token in places.items()}
        self.state, self.head, self._looked = dataclasses.replace(self.state, **moved), newest.token, None
        return True


def contents_in(record: Record) -> Iterator[Content]:
    """The contents of a record that are there."""
    body = record.body
    key = body.key if isinstance(body, Stored) else ""
    for name in _FIELDS:
        tree: Tree | None = getattr(body, name, None)
        if tree is not None and contents.is_kept(tree):
            at, state = records.seconds_of(record.at), number_of(body)
            size, blobs = contents.size_of(tree), tuple(contents.blobs_of(tree))
            yield Content(record.number, at, record.was.iteration, name, state, size, blobs, key)


def prepare(project: Project, stream: str) -> None:
    """See that a stream can be written to, and what is written be told as this user's later.

    UsageError where it cannot, and where a folder of the stream is a link: there may be many runs, so each is looked at
    when it is used.
    """
    project.prepare()
    files = project.store.files
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
